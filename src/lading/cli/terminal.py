"""Output, progress and errors of all commands at the terminal."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any, NoReturn, TextIO, TypeAlias

import click
import msgspec
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from lading.errors import LadingError

Advance: TypeAlias = Callable[[int], None]
"""Moves a progress bar on by so many steps."""

BAD_INPUT = 2
"""Exit code for input, arguments or a store that cannot be used."""

FOUND = 1
"""Exit code when a command found what it looks for: a violation, a call without a request, a manifest that does not
verify."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

_PIPED_WIDTH = 140
_WIDE = 110

out = Console(highlight=False, width=None if sys.stdout and sys.stdout.isatty() else _PIPED_WIDTH)
err = Console(stderr=True, highlight=False)


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn an error of ours, or of the file system, into one paragraph on stderr and exit code 2."""
    if sys.stdout is None:
        fail("stdout is closed, so that nothing can be printed. Give the command an output, such as >/dev/null.")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        yield
    except KeyboardInterrupt:
        fail("interrupted", code=INTERRUPTED)
    except LadingError as error:
        fail(str(error))
    except UnicodeEncodeError as error:
        fail(f"'{error.object}' cannot be written in {error.encoding}. Set LC_ALL=C.UTF-8, or use another name.")
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # Whoever reads our output has read enough; click ends quietly.
        if error.filename is None:
            _drop(sys.stdout)
        place = error.filename or "The output"
        fail(f"{place}: {error.strerror or error}. Check that it exists, is readable, and has space left.")


def _drop(stream: TextIO) -> None:
    """Discard the output that a stream still holds: it would fail again when the interpreter ends."""
    with suppress(OSError):  # A stream that is no file holds nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def fail(text: str, *, code: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong in one paragraph and end with this exit code."""
    try:
        err.print(Text.assemble(("error:", "bold red"), " ", _one_line(text)), soft_wrap=True)
    except OSError:
        _drop(sys.stderr)
    sys.exit(code)


def warn(text: str) -> None:
    """One line on stderr."""
    err.print(Text.assemble(("note:", "yellow"), " ", _one_line(text)), soft_wrap=True)


def print_json(value: Any) -> None:
    """The value as indented JSON on stdout, and nothing else there."""
    click.echo(json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=True))


def print_either(as_json: bool, value: Callable[[], Any], *, show: Callable[[], object]) -> None:
    """The value as JSON, or what ``show`` prints."""
    print_json(value()) if as_json else show()


@contextmanager
def progress(description: str, total: int | None, *, in_bytes: bool = False) -> Iterator[Advance]:
    """A progress bar on stderr where that is a terminal; yields a function that moves it on."""
    done: ProgressColumn = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), done, TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps: bar.advance(task, steps)


def is_wide() -> bool:
    """Whether stdout has room for more than the necessary."""
    return out.width >= _WIDE


def printable(text: str) -> str:
    """The text as any terminal can show it: control characters, lone surrogates and what the terminal's
    encoding lacks are replaced. Newlines stay. It may still hold markup of the terminal library."""
    shown = "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)
    return shown.encode(out.encoding, "replace").decode(out.encoding)


def _one_line(text: str) -> str:
    return " ".join(printable(text).split("\n"))

"""Print output, progress and errors of all commands."""

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
"""A function that advances a progress bar by a number of steps."""

BAD_INPUT = 2
"""Exit code for input, arguments or a store that cannot be used."""

FOUND = 1
"""Exit code when a command found what it checks for: a violation, a call without a request, a manifest that does
not verify."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, the same as that of shells."""
READER_GONE = 141
"""Exit code when the reader of the output closed it (``| head``), the same as that of shells."""

_PIPED_WIDTH = 140
_LONG_STEPS, _LONG_BYTES = 500, 50_000_000
"""From that many steps or bytes on, a run without a terminal says how far it is."""
_WIDE = 110


class CommandConsole(Console):
    """Leaves a reader that went away to ``report_errors``."""

    def on_broken_pipe(self) -> None:
        """Raise the error again; rich would end the program with another exit code."""
        raise


out = CommandConsole(highlight=False, width=None if sys.stdout and sys.stdout.isatty() else _PIPED_WIDTH)
err = CommandConsole(stderr=True, highlight=False)


@contextmanager
def report_errors() -> Iterator[None]:
    """Report a LadingError or an error of the file system in one paragraph on stderr, with exit code 2."""
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
            _discard_output(sys.stdout)
            sys.exit(READER_GONE)
        if error.filename is None:
            _discard_output(sys.stdout)
        place = error.filename or "The output"
        fail(f"{place}: {error.strerror or error}. Check that it exists, is readable, and has space left.")


def _discard_output(stream: TextIO) -> None:
    """Redirect a stream to nowhere: its buffered output would fail again when the interpreter exits."""
    with suppress(OSError):  # A stream without a file descriptor has no buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def fail(text: str, *, code: int = BAD_INPUT) -> NoReturn:
    """Print an error in one paragraph on stderr and exit with this code."""
    try:
        err.print(Text.assemble(("error:", "bold red"), " ", _join_lines(text)), soft_wrap=True)
    except OSError:
        _discard_output(sys.stderr)
    sys.exit(code)


def warn(text: str) -> None:
    """Print a note in one line on stderr."""
    err.print(Text.assemble(("note:", "yellow"), " ", _join_lines(text)), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print the value as indented JSON on stdout."""
    click.echo(encode_json(value))


def encode_json(value: Any) -> str:
    """Write the value as indented JSON."""
    return json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=True)


def encode_json_line(value: Any) -> str:
    """Write the value as JSON in one line."""
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=True)


def print_either(as_json: bool, value: Callable[[], Any], *, show: Callable[[], object]) -> None:
    """Print the value as JSON, or call ``show``, which prints it for people."""
    print_json(value()) if as_json else show()


@contextmanager
def show_progress(description: str, total: int | None, *, in_bytes: bool = False) -> Iterator[Advance]:
    """Show a progress bar if stderr is a terminal, notes if the run is long; yield a function that advances it."""
    if total is not None and total >= (_LONG_BYTES if in_bytes else _LONG_STEPS) and not err.is_terminal:
        yield _note_tenths(description, total)
        return
    done: ProgressColumn = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), done, TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps: bar.advance(task, steps)


def _note_tenths(description: str, total: int) -> Advance:
    """Return a function that notes each tenth of a long run on stderr."""
    done = 0

    def advance(steps: int) -> None:
        nonlocal done
        before, done = done, done + steps
        if (tenth := 10 * done // total) > 10 * before // total:
            warn(f"{description}: {10 * tenth} %")

    return advance


def is_wide() -> bool:
    """Whether stdout is wide enough for optional columns."""
    return out.width >= _WIDE


def make_printable(text: str) -> str:
    """Replace control characters except newlines, lone surrogates, and characters that the terminal's encoding
    lacks. Markup of the terminal library stays."""
    shown = "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)
    return shown.encode(out.encoding, "replace").decode(out.encoding)


def _join_lines(text: str) -> str:
    return " ".join(make_printable(text).split("\n"))

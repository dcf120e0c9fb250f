"""The file of answers beside ``--out``: one JSON line for each, written as soon as it arrives."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lading import jsonbytes
from lading.errors import InputError
from lading.evaluate.asking import ModelAnswer

_START = b'{"key":"'
"""Start of each line."""


def find_answers_path(out: str) -> Path:
    """Return the path of the answers of an output file."""
    return Path(f"{out.removesuffix('.json')}.answers.jsonl")


@contextmanager
def open_answers(path: Path) -> Iterator[tuple[dict[str, ModelAnswer], Callable[[ModelAnswer], None]]]:
    """Yield the answers in the file, by key, and a function that appends one. The end of a line that a killed run
    was writing is removed. Raises InputError for another file."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if not _START.startswith(data[whole:][: len(_START)]):
            raise _make_error(path, data.count(b"\n") + 1)
        known = dict(_read_answers(path, data[:whole]))
        os.ftruncate(file, whole)

        def keep(answer: ModelAnswer) -> None:
            line = jsonbytes.dump_value(answer) + b"\n"
            try:
                is_whole = os.write(file, line) == len(line)
                os.fsync(file)
            except OSError as error:
                raise InputError(f"{path} cannot be written: {error.strerror}. Free some space.") from error
            if not is_whole:
                raise InputError(f"{path} cannot be written whole. Free some space.")

        yield known, keep
    finally:
        os.close(file)


def _read_answers(path: Path, data: bytes) -> Iterator[tuple[str, ModelAnswer]]:
    for number, line in enumerate(data.splitlines(), 1):
        try:
            answer = jsonbytes.load_value(line, ModelAnswer)
        except ValueError as error:
            raise _make_error(path, number) from error
        yield answer.key, answer


def _make_error(path: Path, line: int) -> InputError:
    return InputError(f"{path}:{line}: This is no answer of an earlier run. Choose another --out.")

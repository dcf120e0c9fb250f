"""Write a file completely, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from lading.errors import InputError

Write: TypeAlias = Callable[[bytes], None]
"""A function that appends bytes to the file. Raises InputError when they cannot be written."""


@contextmanager
def open_output(path: str, *, used: Sequence[str], option: str, example: str) -> Iterator[Write]:
    """Write to a temporary file and rename it to ``path`` at the end; keep the old file when anything fails.

    ``used``: files that the command reads, which must not be replaced. ``option``: the option that named the path.
    ``example``: a file name to suggest if the path is a folder. Raises InputError if the path cannot be written.
    """
    for other in used:
        if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
            raise InputError(f"{option} would overwrite {other}, which this command uses. Give another file.")
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise InputError(f"{path} is a folder. Name the file to write, for example {path}/{example}.")
    if not place.parent.is_dir():
        raise InputError(f"The folder {place.parent} does not exist. Make it first, or choose another.")
    if place.exists() and not place.is_file():
        raise InputError(f"{path} is not a regular file. Name a regular file.")
    with _translate_errors(place):
        descriptor, part = tempfile.mkstemp(prefix=f".{place.name[:100]}-", suffix=".part", dir=place.parent)
    file = os.fdopen(descriptor, "wb")

    def write(data: bytes) -> None:
        with _translate_errors(place):
            file.write(data)

    try:
        yield write
        with _translate_errors(place):
            file.close()
            os.replace(part, place)
    finally:
        with suppress(OSError):
            file.close()
        Path(part).unlink(missing_ok=True)


@contextmanager
def _translate_errors(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{place} cannot be written: {error.strerror}. Check permissions and free space, or choose "
            "another place; nothing was written there."
        ) from error

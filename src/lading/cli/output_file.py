"""A file that a command writes: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from lading.errors import InputError


class OutputFile:
    """Written under another name until all is there; what stood in its place is replaced at the end, or left
    as it is when anything fails before.

    Raises InputError when the place cannot be written, or is that of a file which the command uses.
    """

    def __init__(self, path: str, *, used: Sequence[str], option: str, example: str) -> None:
        """``option``: names the path. ``example``: a good name for such a file, for the error when a folder is
        given."""
        for other in used:
            if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
                raise InputError(f"{option} would overwrite {other}, which this command uses. Give another file.")
        self._path = Path(os.path.realpath(path))
        if self._path.is_dir():
            raise InputError(f"{path} is a folder. Name the file to write, for example {path}/{example}.")
        if not self._path.parent.is_dir():
            raise InputError(f"The folder {self._path.parent} does not exist. Make it first, or choose another.")
        if self._path.exists() and not self._path.is_file():
            raise InputError(f"{path} is not a regular file. Name a regular file.")
        with self._reported():
            descriptor, name = tempfile.mkstemp(
                prefix=f".{self._path.name[:100]}-", suffix=".part", dir=self._path.parent
            )
        self._part = Path(name)
        self._file = os.fdopen(descriptor, "wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                with self._reported():
                    self._file.close()
                    os.replace(self._part, self._path)
        finally:
            with suppress(OSError):
                self._file.close()
            self._part.unlink(missing_ok=True)

    def write(self, data: bytes) -> None:
        """Add bytes. Raises InputError when they cannot be written."""
        with self._reported():
            self._file.write(data)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self._path} cannot be written: {error.strerror}. Check permissions and free space, or choose "
                "another place; nothing was written there."
            ) from error

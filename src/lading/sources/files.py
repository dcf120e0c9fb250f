"""Read the text lines of a file: plain, gzip or zstd, in UTF-8, or in UTF-16 with a byte order mark.

Lines are read one by one. Undecodable bytes are replaced and reported; a truncated file is read as far as possible.
SourceError is raised only when no line can be read, and for a decompression bomb.
"""

from __future__ import annotations

import codecs
import gzip
import importlib
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from lading.errors import SourceError
from lading.sources.recording import Report

MAX_LINE_BYTES = 1 << 28
"""Longer lines are left out: no session is that large."""

MAX_GZIP_RATIO, MAX_ZSTD_RATIO = 250, 5_000
"""Files with a higher compression ratio are decompression bombs. zstd packs repeated histories better than gzip."""
_MIN_BOMB_BYTES = 1 << 24
"""Files that unpack to less are always read."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_MODULES = ("compression.zstd", "backports.zstd")
"""The standard library has zstd from Python 3.14 on; a package offers the same names to earlier versions."""
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD_BYTES = 1 << 12
# Damage inside gzip data loses the whole read, so reads are small.
_READ_BYTES = 1 << 14


def read_lines(
    path: str | os.PathLike[str], report: Report, *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, str]]:
    """Iterate over numbered lines, from 1, without line ends. Raises SourceError for unreadable files and bombs."""
    name = os.fspath(path)
    damage: list[Exception] = []
    number = 0
    with _open(name) as file:
        chunks = _convert_to_utf8(_check_is_text(_read_chunks(file, name, damage), name))
        for number, data in _split(chunks, report, max_line_bytes=max_line_bytes):
            if data is not None:
                yield number, _decode(data, number, report)
    if damage and not number:
        raise SourceError(f"{name} cannot be read: {_explain(damage[0])}. Get an undamaged copy of the file.")
    if damage:
        report(number, f"The file breaks off here ({_explain(damage[0])}); everything before this line was read.")
    elif not number:
        raise SourceError(f"{name} is empty. Name a file that holds a session.")


def _open(name: str) -> io.BufferedReader:
    try:
        return open(name, "rb")
    except FileNotFoundError as error:
        raise SourceError(f"There is no file {name}. Check the path.") from error
    except IsADirectoryError as error:
        raise SourceError(f"{name} is a directory. Name the session files in it.") from error
    except (OSError, ValueError) as error:
        raise SourceError(f"{name!r} cannot be opened: {_explain(error)}. Check path and permissions.") from error


def _read_chunks(file: io.BufferedReader, name: str, damage: list[Exception]) -> Iterator[bytes]:
    """Iterate over the unpacked bytes of the file; the error that ends reading early is added to ``damage``. A bomb
    is recognised before any of it is yielded: its lines would cost more than unpacking it."""
    held: list[bytes] = []
    damages: tuple[type[Exception], ...] = (EOFError, OSError, zlib.error)
    try:
        head = file.peek(len(_ZSTD_MAGIC))[: len(_ZSTD_MAGIC)]
        stream: Any = gzip.GzipFile(fileobj=file) if head.startswith(_GZIP_MAGIC) else file
        max_ratio = MAX_GZIP_RATIO
        if head == _ZSTD_MAGIC:
            zstd = _import_zstd(name)
            damages += (zstd.ZstdError,)
            stream, max_ratio = zstd.ZstdFile(file), MAX_ZSTD_RATIO
        unpacked = 0
        while chunk := stream.read1(_READ_BYTES):
            unpacked += len(chunk)
            if unpacked > _MIN_BOMB_BYTES and file.seekable() and unpacked > max_ratio * file.tell():
                raise SourceError(
                    f"{name} unpacks to more than {max_ratio:,} times its size, as no recorded session does. If "
                    "you trust it, unpack it and name the unpacked file."
                )
            held.append(chunk)
            if stream is file or unpacked > _MIN_BOMB_BYTES:
                yield from held
                held.clear()
    except damages as error:
        damage.append(error)
    yield from held


def _import_zstd(name: str) -> Any:
    """Import a module that unpacks zstd. Raises SourceError when there is none."""
    for module in _ZSTD_MODULES:
        try:
            return importlib.import_module(module)
        except ImportError:
            continue
    raise SourceError(
        f"{name} is compressed with zstd, which this Python cannot read. Install the package backports.zstd "
        "(or lading[zstd]), or unpack the file with: zstd -d"
    )


def _check_is_text(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Return the same bytes; the first chunk has ``_HEAD_BYTES`` or all. Raises SourceError for a binary file."""
    head = bytearray()
    for chunk in chunks:
        head += chunk
        if len(head) >= _HEAD_BYTES:
            break
    if b"\0" in head[:_HEAD_BYTES] and not head.startswith((*_UTF16_MARKS, b"{", b"[")):
        raise SourceError(f"{name} is not a text file. Session files are JSON or JSON lines, also gzipped.")
    yield bytes(head)
    yield from chunks


def _convert_to_utf8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Convert the bytes to UTF-8 without a byte order mark. Damage remains as bytes that are not UTF-8."""
    head = next(chunks)
    if not head.startswith(_UTF16_MARKS):
        yield head.removeprefix(codecs.BOM_UTF8)
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder("utf-16")(errors="surrogatepass")
    yield decoder.decode(head).encode("utf-8", "surrogatepass")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "surrogatepass")
    if decoder.getstate()[0]:
        yield b"\xff"


def _split(chunks: Iterable[bytes], report: Report, *, max_line_bytes: int) -> Iterator[tuple[int, bytes | None]]:
    """Split the bytes into numbered lines; a line that is too long is reported and is None."""
    number, line = 1, bytearray()
    length = 0

    def finish_line() -> tuple[int, bytes | None]:
        if length <= max_line_bytes:
            return number, bytes(line)
        report(number, f"The line is longer than {max_line_bytes} bytes and was left out.")
        return number, None

    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line += end
            length += len(end)
            yield finish_line()
            number, length = number + 1, 0
            line.clear()
        length += len(rest)
        if length <= max_line_bytes:
            line += rest
        else:
            line.clear()
    if length:
        yield finish_line()


def _decode(data: bytes, number: int, report: Report) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        report(number, "Bytes that are no text in this encoding were replaced by U+FFFD.")
        return data.decode(errors="replace")


def _explain(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)

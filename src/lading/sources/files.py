"""The text lines of a file: plain, gzip or zstd, UTF-8, or UTF-16 with a byte order mark.

Lines are read one by one. What cannot be decoded is replaced and reported; a file that breaks off is read
up to there. SourceError only when not a single line comes out, and for a decompression bomb.
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
"""A longer line is left out: no session is that large."""

MAX_GZIP_RATIO, MAX_ZSTD_RATIO = 250, 5_000
"""What unpacks to more times its size is a decompression bomb. zstd packs repeated histories better than gzip."""
_SMALL_BYTES = 1 << 24
"""What unpacks to less is never refused."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_MODULES = ("compression.zstd", "backports.zstd")
"""The standard library has it from Python 3.14 on; for those before there is a package with the same names."""
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD_BYTES = 1 << 12
# Damage inside gzip costs the whole read it falls into, so reads are small.
_READ_BYTES = 1 << 14


def read_lines(
    path: str | os.PathLike[str], report: Report, *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and lines without their end. Raises SourceError when nothing can be read, and for a
    decompression bomb."""
    name = os.fspath(path)
    damage: list[Exception] = []
    number = 0
    with _opened(name) as file:
        chunks = _utf8(_with_whole_head(_chunks(file, name, damage), name))
        for number, data in _split(chunks, report, max_line_bytes=max_line_bytes):
            if data is not None:
                yield number, _decode(data, number, report)
    if damage and not number:
        raise SourceError(f"{name} cannot be read: {_reason(damage[0])}. Get an undamaged copy of the file.")
    if damage:
        report(number, f"The file breaks off here ({_reason(damage[0])}); what stands before it was read.")
    elif not number:
        raise SourceError(f"{name} is empty. Name a file that holds a session.")


def _opened(name: str) -> io.BufferedReader:
    try:
        return open(name, "rb")
    except FileNotFoundError as error:
        raise SourceError(f"There is no file {name}. Check the path.") from error
    except IsADirectoryError as error:
        raise SourceError(f"{name} is a directory. Name the session files in it.") from error
    except (OSError, ValueError) as error:
        raise SourceError(f"{name!r} cannot be opened: {_reason(error)}. Check path and permissions.") from error


def _chunks(file: io.BufferedReader, name: str, damage: list[Exception]) -> Iterator[bytes]:
    """The bytes of the file, unpacked; where they cannot be read on, the reason goes to ``damage``."""
    damages: tuple[type[Exception], ...] = (EOFError, OSError, zlib.error)
    try:
        head = file.peek(len(_ZSTD_MAGIC))[: len(_ZSTD_MAGIC)]
        stream: Any = gzip.GzipFile(fileobj=file) if head.startswith(_GZIP_MAGIC) else file
        most = MAX_GZIP_RATIO
        if head == _ZSTD_MAGIC:
            zstd = _zstd(name)
            damages += (zstd.ZstdError,)
            stream, most = zstd.ZstdFile(file), MAX_ZSTD_RATIO
        unpacked = 0
        while chunk := stream.read1(_READ_BYTES):
            unpacked += len(chunk)
            if unpacked > _SMALL_BYTES and file.seekable() and unpacked > most * file.tell():
                raise SourceError(
                    f"{name} unpacks to more than {most:,} times its size, as no recorded session does. If you "
                    "trust it, unpack it and name the unpacked file."
                )
            yield chunk
    except damages as error:
        damage.append(error)


def _zstd(name: str) -> Any:
    """The module that unpacks zstd."""
    for module in _ZSTD_MODULES:
        try:
            return importlib.import_module(module)
        except ImportError:
            continue
    raise SourceError(
        f"{name} is compressed with zstd, which this Python cannot read. Install the package backports.zstd "
        "(or lading[zstd]), or unpack the file with: zstd -d"
    )


def _with_whole_head(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The same bytes, the first chunk long enough to judge them by. Raises SourceError for a binary file."""
    head = bytearray()
    for chunk in chunks:
        head += chunk
        if len(head) >= _HEAD_BYTES:
            break
    if b"\0" in head[:_HEAD_BYTES] and not head.startswith((*_UTF16_MARKS, b"{", b"[")):
        raise SourceError(f"{name} is not a text file. Session files are JSON or JSON lines, also gzipped.")
    yield bytes(head)
    yield from chunks


def _utf8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same text as UTF-8 without byte order mark. Damage stays visible as bytes that are not UTF-8."""
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
    """Numbered lines; None for one that is too long, which is reported."""
    number, line = 1, bytearray()
    length = 0

    def finished() -> tuple[int, bytes | None]:
        if length <= max_line_bytes:
            return number, bytes(line)
        report(number, f"The line is longer than {max_line_bytes} bytes and was left out.")
        return number, None

    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line += end
            length += len(end)
            yield finished()
            number, length = number + 1, 0
            line.clear()
        length += len(rest)
        if length <= max_line_bytes:
            line += rest
        else:
            line.clear()
    if length:
        yield finished()


def _decode(data: bytes, number: int, report: Report) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        report(number, "Bytes that are no text in this encoding were replaced by U+FFFD.")
        return data.decode(errors="replace")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)

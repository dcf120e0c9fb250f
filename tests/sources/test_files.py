from __future__ import annotations

import codecs
import gzip
import importlib
import os
from pathlib import Path
from typing import Any

import pytest

from lading.errors import SourceError
from lading.sources import files
from lading.sources.files import read_lines

LINES = ["one", "", "zwei ü", "three 😀"]
TEXT = "\n".join(LINES)


def read_bytes(
    folder: Path, data: bytes, *, max_line_bytes: int = 1 << 20
) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    path = folder / "file"
    path.write_bytes(data)
    reports: list[tuple[int, str]] = []
    lines = read_lines(path, lambda line, text: reports.append((line, text)), max_line_bytes=max_line_bytes)
    return list(lines), reports


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        TEXT.encode() + b"\n",
        codecs.BOM_UTF8 + TEXT.encode(),
        TEXT.encode("utf-16"),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        gzip.compress(TEXT.encode(), mtime=0),
        gzip.compress(TEXT.encode("utf-16"), mtime=0),
        gzip.compress(TEXT.encode()[:6], mtime=0) + gzip.compress(TEXT.encode()[6:], mtime=0),
    ],
    ids=["plain", "end", "bom", "utf16", "utf16le", "utf16be", "gzip", "gzip-utf16", "gzip-members"],
)
def test_the_same_lines_in_every_form(tmp_path: Path, data: bytes) -> None:
    assert read_bytes(tmp_path, data) == (list(enumerate(LINES, 1)), [])


def zstd() -> Any:
    """The module that packs what is read here; the test is skipped where this Python has none."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    pytest.skip("neither compression.zstd nor backports.zstd is installed")


def test_zstd(tmp_path: Path) -> None:
    packed = zstd().compress(TEXT.encode())
    assert read_bytes(tmp_path, packed) == (list(enumerate(LINES, 1)), [])
    many = "\n".join(f"{number * 7919 % 1_000_003}" for number in range(200_000)).encode()
    lines, reports = read_bytes(tmp_path, zstd().compress(many)[:-5_000])
    assert len(lines) > 1_000
    assert len(reports) == 1
    with pytest.raises(SourceError, match="undamaged"):
        read_bytes(tmp_path, packed[:9])


def test_zstd_without_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_ZSTD_MODULES", ("there.is.no.such.module",))
    with pytest.raises(SourceError, match=r"backports\.zstd"):
        read_bytes(tmp_path, b"\x28\xb5\x2f\xfd and more")


def test_lines_across_reads(tmp_path: Path) -> None:
    lines = [str(number) * 5000 for number in range(40)]
    for data in ("\n".join(lines).encode(), "\n".join(lines).encode("utf-16")):
        assert read_bytes(tmp_path, data) == (list(enumerate(lines, 1)), [])


def test_bytes_that_are_no_text_are_replaced_and_reported_once_a_line(tmp_path: Path) -> None:
    lines, reports = read_bytes(tmp_path, b"good\nb\xff \xfed\ngood\n\xe2\x82")
    assert lines == [(1, "good"), (2, "b\ufffd \ufffdd"), (3, "good"), (4, "\ufffd")]
    assert [line for line, _ in reports] == [2, 4]


def test_utf16_cut_inside_a_character(tmp_path: Path) -> None:
    lines, reports = read_bytes(tmp_path, "ab\ncd".encode("utf-16") + b"e")
    assert lines == [(1, "ab"), (2, "cd\ufffd")]
    assert [line for line, _ in reports] == [2]


def test_cut_gzip_is_read_up_to_the_cut(tmp_path: Path) -> None:
    lines = [os.urandom(30).hex() for _ in range(3000)]
    packed = gzip.compress("\n".join(lines).encode())
    got, reports = read_bytes(tmp_path, packed[: len(packed) // 2])
    assert len(got) > 1000
    assert [text for _, text in got[:-1]] == lines[: len(got) - 1]
    ((line, text),) = reports
    assert line == len(got)
    assert "breaks off" in text


def test_damaged_gzip_and_trailing_bytes(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(TEXT.encode(), mtime=0))
    packed[-6] ^= 0xFF
    lines, reports = read_bytes(tmp_path, bytes(packed))
    assert lines == list(enumerate(LINES, 1))
    assert len(reports) == 1
    lines, reports = read_bytes(tmp_path, gzip.compress(TEXT.encode(), mtime=0) + b"rubbish")
    assert lines == list(enumerate(LINES, 1))
    assert len(reports) == 1


def test_a_line_too_long_is_left_out(tmp_path: Path) -> None:
    data = b"a\n" + b"x" * 50_000 + b"\nb\n" + b"y" * 50_000
    lines, reports = read_bytes(tmp_path, data, max_line_bytes=100)
    assert lines == [(1, "a"), (3, "b")]
    assert [line for line, _ in reports] == [2, 4]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"\x7fELF\x02\x01\x01\0\0", "not a text file"),
        (b"\x1f\x8b\x08\x00", "undamaged copy"),
        (b"\x1f\x8brubbish rubbish", "undamaged copy"),
    ],
    ids=["empty", "empty-gzip", "binary", "cut-gzip", "no-gzip"],
)
def test_nothing_can_be_read(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        read_bytes(tmp_path, data)


def test_no_file_to_open(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "missing", "no file"),
        (tmp_path, "directory"),
        (tmp_path / ("n" * 5000), "cannot be opened"),
        ("nul\0byte", "cannot be opened"),
    ):
        with pytest.raises(SourceError, match=words):
            next(read_lines(path, lambda *_: None))


def bomb(packer: Any, *, mebibytes: int) -> bytes:
    """A file of one line of nothing but spaces, packed."""
    return bytes(packer(b'{"messages": [' + b" " * (mebibytes << 20)))


def test_a_decompression_bomb_is_refused_by_its_ratio(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="unpacks to more than 250 times its size"):
        read_bytes(tmp_path, bomb(gzip.compress, mebibytes=200))
    lines, reports = read_bytes(tmp_path, bomb(gzip.compress, mebibytes=15), max_line_bytes=1 << 24)
    assert (len(lines), reports) == (1, [])


@pytest.mark.parametrize("line", [b"\n", b" \n", b"{}\n", b'{"role": "user", "content": "x"}\n'])
def test_no_line_of_a_bomb_is_read(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(line * ((40 << 20) // len(line))))
    with pytest.raises(SourceError, match="unpacks to more than 250 times its size"):
        next(read_lines(path, lambda *_: None))


def test_a_zstd_bomb_is_refused_by_its_ratio(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="unpacks to more than 5,000 times its size"):
        read_bytes(tmp_path, bomb(zstd().compress, mebibytes=200))

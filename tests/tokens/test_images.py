from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.tokens.images import (
    MAX_IMAGE_TOKENS,
    TOKENS_PER_PAGE,
    UNKNOWN_IMAGE_TOKENS,
    count_document_tokens,
    count_image_tokens,
    read_image_size,
)


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def png(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\xf7\x00\x00"


def jpeg(width: int, height: int, *, metadata: int = 14, marker: int = 0xC2) -> bytes:
    app = b"\xff\xe1" + struct.pack(">H", metadata + 2) + b"\x00" * metadata
    tables = b"\xff\xc4" + struct.pack(">H", 4) + b"\x00\x00"
    frame = b"\xff\xff" + bytes([marker]) + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\x00" * 9
    return b"\xff\xd8" + app + b"\xff\x01" + tables + frame


def webp(form: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 100) + b"WEBP" + form + struct.pack("<I", 90) + body + b"\x00" * 10


LOSSY = webp(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", 640 | 0x4000, 480))
LOSSLESS = webp(b"VP8L", b"\x2f" + struct.pack("<I", 639 | 479 << 14))
EXTENDED = webp(b"VP8X", b"\x00\x00\x00\x00" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"))


@pytest.mark.parametrize(
    "data",
    [
        png(640, 480),
        gif(640, 480),
        jpeg(640, 480),
        jpeg(640, 480, metadata=60_000, marker=0xC0),
        LOSSY,
        LOSSLESS,
        EXTENDED,
    ],
    ids=["png", "gif", "jpeg", "jpeg with metadata", "lossy webp", "lossless webp", "extended webp"],
)
def test_the_size_is_read_from_the_header(data: bytes) -> None:
    assert read_image_size(text(data)) == (640, 480)
    assert count_image_tokens(text(data)) == 410
    assert read_image_size("data:image/x;base64," + text(data)) == (640, 480)
    assert read_image_size("\n".join(text(data))) == (640, 480)


def test_tokens_are_pixels_over_750_up_to_a_cap() -> None:
    assert count_image_tokens(text(png(1, 1))) == 1
    assert count_image_tokens(text(png(750, 1000))) == 1000
    assert count_image_tokens(text(png(4000, 3000))) == MAX_IMAGE_TOKENS


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain words",
        png(0, 100),
        png(640, 480)[:20],
        gif(640, 480)[:9],
        jpeg(640, 480)[:30],
        b"\xff\xd8\xff\xd9" + b"\x00" * 20,
        LOSSY[:20],
        webp(b"ALPH", b"\x00" * 20),
    ],
)
def test_what_shows_no_size_has_the_assumed_figure(data: bytes) -> None:
    assert read_image_size(text(data)) is None
    assert count_image_tokens(text(data)) == UNKNOWN_IMAGE_TOKENS


@given(st.sampled_from(["", text(png(9, 9)), text(jpeg(9, 9)), text(LOSSY)]), st.integers(0, 60), st.text())
def test_damaged_data_never_raises(start: str, kept: int, rest: str) -> None:
    assert 1 <= count_image_tokens(start[:kept] + rest) <= MAX_IMAGE_TOKENS


def test_documents_count_by_bytes() -> None:
    assert count_document_tokens("") == TOKENS_PER_PAGE
    assert count_document_tokens("A" * 4) == TOKENS_PER_PAGE
    assert count_document_tokens(text(b"x" * 120_000)) == 3 * TOKENS_PER_PAGE

"""Count the tokens of a picture or a document, from its first bytes alone.

Providers bill pictures by size in pixels; the rule here is Anthropic's (width times height over 750, at most 1,600
after scaling), the most expensive of the common ones for ordinary pictures. Only the header is decoded.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

PIXELS_PER_TOKEN = 750
MAX_IMAGE_TOKENS = 1_600
UNKNOWN_IMAGE_TOKENS = 1_500
"""For a picture given by URL, or whose header cannot be read."""

BYTES_PER_PAGE = 50_000
TOKENS_PER_PAGE = 3_000
"""A document is billed by page, as text and as a picture; the number of pages is estimated from its bytes."""

_HEADER_CHARS = 400_000
"""Base64 characters read: a JPEG has its size after its metadata, which may be long."""

_JPEG_SIZE_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE_MARKERS = frozenset((0x01, *range(0xD0, 0xD8)))


def count_image_tokens(data: str) -> int:
    """Return the tokens of an inline picture given as base64 or as a ``data:`` URL."""
    size = read_image_size(data)
    if size is None:
        return UNKNOWN_IMAGE_TOKENS
    width, height = size
    return min(MAX_IMAGE_TOKENS, -(-width * height // PIXELS_PER_TOKEN))


def count_document_tokens(data: str) -> int:
    """Return the tokens of an inline document given as base64: 3,000 for each 50,000 bytes begun. An empty one,
    as for a document given by URL, counts one page."""
    pages = max(1, -(-len(data) * 3 // 4 // BYTES_PER_PAGE))
    return pages * TOKENS_PER_PAGE


def read_image_size(data: str) -> tuple[int, int] | None:
    """Return width and height in pixels of a base64 PNG, JPEG, GIF or WebP; None if the header has none."""
    head = _decode(data)
    for start, read in _READERS.items():
        if head.startswith(start):
            size = read(head)
            return size if size is not None and min(size) > 0 else None
    return None


def _decode(data: str) -> bytes:
    if data.startswith("data:"):
        data = data.partition(",")[2]
    letters = re.sub(r"[^A-Za-z0-9+/]", "", data[:_HEADER_CHARS])
    return base64.b64decode(letters[: len(letters) // 4 * 4])


def _read_png_size(head: bytes) -> tuple[int, int] | None:
    if len(head) < 24 or head[12:16] != b"IHDR":
        return None
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def _read_gif_size(head: bytes) -> tuple[int, int] | None:
    if len(head) < 10:
        return None
    return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")


def _read_jpeg_size(head: bytes) -> tuple[int, int] | None:
    position = 2
    while position + 9 <= len(head) and head[position] == 0xFF:
        marker = head[position + 1]
        if marker == 0xFF or marker in _JPEG_BARE_MARKERS:
            position += 1 if marker == 0xFF else 2
        elif marker in _JPEG_SIZE_MARKERS:
            height, width = head[position + 5 : position + 7], head[position + 7 : position + 9]
            return int.from_bytes(width, "big"), int.from_bytes(height, "big")
        else:
            position += 2 + int.from_bytes(head[position + 2 : position + 4], "big")
    return None


def _read_webp_size(head: bytes) -> tuple[int, int] | None:
    form = head[12:16]
    if len(head) < 30 or head[8:12] != b"WEBP":
        return None
    if form == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if form == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        width, height = int.from_bytes(head[26:28], "little"), int.from_bytes(head[28:30], "little")
        return width & 0x3FFF, height & 0x3FFF
    return None


_READERS: dict[bytes, Callable[[bytes], tuple[int, int] | None]] = {
    b"\x89PNG\r\n\x1a\n": _read_png_size,
    b"GIF8": _read_gif_size,
    b"\xff\xd8": _read_jpeg_size,
    b"RIFF": _read_webp_size,
}

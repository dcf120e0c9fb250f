"""An estimator without a vocabulary: every byte, and every pair of neighbouring byte classes, has a weight.

It is a prior for models whose tokenizer is not public. Fitted to o200k counts of chunks of 500 to 8,000
characters in 36 languages, code, markup, data, logs and the like. For each kind of text, on files it was not
fitted to, half of the chunks are at most WITHIN_MEDIAN off and nineteen of twenty at most WITHIN_P95;
``docs/reference/estimator.md`` has the table and the commands that print it.
"""

from __future__ import annotations

from zlib import adler32

from msgspec import Struct

from lading.tokens.weights import UNITS_PER_TOKEN, weights

WITHIN_MEDIAN = 0.04
WITHIN_P95 = 0.15

_BLOCK = 16_384
"""Bytes looked at together. A pair that a boundary between blocks cuts is not weighed."""

_LEAST_BYTES_PER_TOKEN = 64
"""Runs of one character are merged into few tokens, but not into none."""

_ASCII = bytes(range(0x80))
_CONTINUATION = bytes(range(0x80, 0xC0))
_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_UPPER = _LOWER.upper()
_DIGITS = b"0123456789"

SHAPES = (
    _LOWER,
    _UPPER,
    _DIGITS,
    b" ",
    b"\t",
    b"\n\r",
    b"\"'`",
    b"([{<",
    b")]}>",
    b".,;:!?",
    b"_",
    b"-/",
    b"=+*#%&$@|~^" + bytes({*range(0x20), 0x7F} - {*b"\t\n\r"}),
    b"\\",
    bytes(range(0xC0, 0x100)),
    _CONTINUATION,
)
"""What a byte does: where one follows another is where tokens begin and end."""

LETTERS = (
    b"e",
    b"a",
    b"o",
    b"iu",
    b"tn",
    b"sr",
    b"hl",
    b"dcm",
    b"pfgbv",
    b"wyk",
    b"jqxz",
    _UPPER,
    _DIGITS,
    bytes(range(0x21)),
    bytes(range(0x80, 0x100)),
    bytes({*range(0x21, 0x80)} - {*_LOWER, *_UPPER, *_DIGITS}),
)
"""Letters by how common they are: pairs tell words that a vocabulary has from those that it spells out."""

LEADS = (
    (b"\xc3", b"\xc4\xc5", b"\xe1"),  # accented Latin, twice; Vietnamese, Georgian
    (b"\xd0", b"\xd1", b"\xe0"),  # Cyrillic, twice; scripts of India and South-East Asia
    (b"\xd7", b"\xd8", b"\xd9"),  # Hebrew; Arabic, twice
    (b"\xb8", b"\xb9", bytes(range(0xA4, 0xB0))),  # after \xe0: Thai, twice; scripts of India
    (b"\xe3", b"\xe4\xe5\xe6", b"\xe7\xe8\xe9"),  # kana; Han, twice
    (b"\xea\xeb", b"\xec\xed", b"\xe2"),  # Hangul, twice; signs
)
"""Bytes after which the next byte of the same character is weighed exactly, three groups to a table."""


def _numbered(classes: tuple[bytes, ...], *, first: int = 0, step: int = 1) -> bytes:
    table = bytearray(256)
    for number, members in enumerate(classes):
        for byte in members:
            table[byte] = first + number * step
    return bytes(table)


_SHAPE_OF_BYTE = _numbered(SHAPES)
_LETTER_OF_BYTE = _numbered(LETTERS)
_GROUPS_OF_LEADS = tuple(_numbered(groups, first=64, step=64) for groups in LEADS)
_SECOND = _numbered(tuple(bytes([byte]) for byte in _CONTINUATION))


class ByteClasses(Struct, frozen=True):
    """Counter by byte classes; 15 to 45 MB a second, the same figure on every machine. A text counts at least what
    each of its beginnings counts."""

    name: str = "estimate"

    def count(self, text: str) -> int:
        """Estimated tokens, rounded up; 0 for the empty text only."""
        data = text.encode("utf-8", "surrogatepass")
        units = sum(
            _total(found.translate(table))
            for start in range(0, len(data), _BLOCK)
            for found, table in zip(codes(data[start : start + _BLOCK]), weights(), strict=False)
        )
        return -(-max(units, len(data) * UNITS_PER_TOKEN // _LEAST_BYTES_PER_TOKEN) // UNITS_PER_TOKEN)


ESTIMATE = ByteClasses()


def codes(data: bytes) -> list[bytes]:
    """What is weighed, a byte for each: the bytes themselves; pairs of shapes, then of letter classes, of
    neighbours and of bytes two apart; and where there is more than ASCII, bytes by groups of leads, none of which
    means no bytes."""
    found = [data, *_pairs(data.translate(_SHAPE_OF_BYTE), 1, 2), *_pairs(data.translate(_LETTER_OF_BYTE), 1, 2)]
    if not data.isascii():
        wide = data.translate(None, _ASCII)
        second = int.from_bytes(wide.translate(_SECOND))
        for groups in _GROUPS_OF_LEADS:
            leads = int.from_bytes(wide.translate(groups))
            found.append((second | leads >> 8).to_bytes(len(wide)) if leads else b"")
    return found


def _pairs(classes: bytes, *distances: int) -> list[bytes]:
    """The class of each byte in the low half, that of the byte so far before it in the high half. As one long
    integer, all at once: a class is half a byte, so a shift by an odd number of halves pairs them."""
    whole = int.from_bytes(classes)
    return [(whole | whole >> 8 * distance - 4).to_bytes(len(classes))[distance:] for distance in distances]


def _total(data: bytes) -> int:
    """The sum of bytes, many times faster than ``sum``: the low half of Adler-32 is one, modulo 65,521, which
    256 bytes cannot reach."""
    return sum(adler32(data[start : start + 256], 0) & 0xFFFF for start in range(0, len(data), 256))

"""Estimate tokens without a vocabulary: every byte, and every pair of neighbouring byte classes, has a weight.

A prior for models whose tokenizer is not public. Fitted to o200k counts of chunks of 500 to 8,000 characters in 36
languages, code, markup, data, logs and more. On held-out files of each kind of text, half of the chunks are at most
WITHIN_MEDIAN off and 95 % at most WITHIN_P95 (``docs/reference/estimator.md``).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from zlib import adler32

from msgspec import Struct

UNITS_PER_TOKEN = 200
"""A weight is a whole number of 1/200 token, from 0 to 255."""
TABLE = Path(__file__).with_name("tables") / "estimate.txt"
"""Eleven tables of 256 weights, separated by empty lines, written by ``scripts/estimator/fit.py``: bytes; pairs
of shapes of neighbours, and of bytes two apart; the same for letter classes; six tables of second bytes by
groups of lead bytes. A line is a class of the first byte of a pair; in the first table and the last six, 16
bytes."""

WITHIN_MEDIAN = 0.04
WITHIN_P95 = 0.15

_BLOCK = 16_384
"""Bytes processed together. A pair cut by the boundary between blocks is not weighed."""

_LEAST_BYTES_PER_TOKEN = 64
"""A run of one character is merged into few tokens, but not into none."""

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
"""Bytes by their role: tokens begin and end where one role follows another."""

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
"""Letters by frequency: pairs separate words that a vocabulary contains from words that it spells out."""

LEADS = (
    (b"\xc3", b"\xc4\xc5", b"\xe1"),  # accented Latin, twice; Vietnamese, Georgian
    (b"\xd0", b"\xd1", b"\xe0"),  # Cyrillic, twice; scripts of India and South-East Asia
    (b"\xd7", b"\xd8", b"\xd9"),  # Hebrew; Arabic, twice
    (b"\xb8", b"\xb9", bytes(range(0xA4, 0xB0))),  # after \xe0: Thai, twice; scripts of India
    (b"\xe3", b"\xe4\xe5\xe6", b"\xe7\xe8\xe9"),  # kana; Han, twice
    (b"\xea\xeb", b"\xec\xed", b"\xe2"),  # Hangul, twice; signs
)
"""Lead bytes after which the next byte of the character is weighed exactly, three groups to a table."""


def _number_classes(classes: tuple[bytes, ...], *, first: int = 0, step: int = 1) -> bytes:
    table = bytearray(256)
    for number, members in enumerate(classes):
        for byte in members:
            table[byte] = first + number * step
    return bytes(table)


_SHAPE_OF_BYTE = _number_classes(SHAPES)
_LETTER_OF_BYTE = _number_classes(LETTERS)
_GROUPS_OF_LEADS = tuple(_number_classes(groups, first=64, step=64) for groups in LEADS)
_SECOND = _number_classes(tuple(bytes([byte]) for byte in _CONTINUATION))


@cache
def load_weights() -> tuple[bytes, ...]:
    """Read for each table the weight of each code, in units (11 kB, once)."""
    return tuple(bytes(map(int, table.split())) for table in TABLE.read_text(encoding="ascii").split("\n\n"))


class ByteClasses(Struct, frozen=True):
    """A counter by byte classes; 15 to 45 MB a second. A text counts at least as much as each of its beginnings."""

    name: str = "estimate"

    def count(self, text: str) -> int:
        """Return the estimated tokens, rounded up; 0 for the empty text only."""
        data = text.encode("utf-8", "surrogatepass")
        units = sum(
            _sum_bytes(found.translate(table))
            for start in range(0, len(data), _BLOCK)
            for found, table in zip(compute_codes(data[start : start + _BLOCK]), load_weights(), strict=False)
        )
        return -(-max(units, len(data) * UNITS_PER_TOKEN // _LEAST_BYTES_PER_TOKEN) // UNITS_PER_TOKEN)


ESTIMATE = ByteClasses()


def compute_codes(data: bytes) -> list[bytes]:
    """Return the codes to weigh, one byte string for each table: the bytes themselves; pairs of shapes, then of
    letter classes, of neighbours and of bytes two apart; and, unless all is ASCII, second bytes by groups of
    lead bytes (empty where the group does not occur)."""
    found = [
        data,
        *_pair_classes(data.translate(_SHAPE_OF_BYTE), 1, 2),
        *_pair_classes(data.translate(_LETTER_OF_BYTE), 1, 2),
    ]
    if not data.isascii():
        wide = data.translate(None, _ASCII)
        second = int.from_bytes(wide.translate(_SECOND))
        for groups in _GROUPS_OF_LEADS:
            leads = int.from_bytes(wide.translate(groups))
            found.append((second | leads >> 8).to_bytes(len(wide)) if leads else b"")
    return found


def _pair_classes(classes: bytes, *distances: int) -> list[bytes]:
    """Return, for each distance, bytes with the class of each byte in the low half and that of the byte that far
    before it in the high half, by shifting all at once as one long integer: a class is half a byte."""
    whole = int.from_bytes(classes)
    return [(whole | whole >> 8 * distance - 4).to_bytes(len(classes))[distance:] for distance in distances]


def _sum_bytes(data: bytes) -> int:
    """Sum bytes, many times faster than ``sum``: the low half of Adler-32 is the sum plus its start value,
    modulo 65,521, which 256 bytes cannot reach."""
    return sum(adler32(data[start : start + 256], 0) & 0xFFFF for start in range(0, len(data), 256))

"""An estimator without a vocabulary: classes of UTF-8 bytes, and where one class follows another.

It is a prior for models whose tokenizer is not public. Fitted to o200k counts of chunks of 200 to 8,000
characters (code, documents, JSON, logs, markup, 25 natural languages): on chunks it was not fitted to, half
are at most WITHIN_MEDIAN off and nineteen of twenty at most WITHIN_P95; texts of one language or format
can be off by more, all in one direction. ``scripts/measure_estimator.py`` prints these figures by kind of
text, and the weights.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

WITHIN_MEDIAN = 0.05
WITHIN_P95 = 0.20

_LEADS = (
    ("w", 0xC2, 0xCF),  # accented Latin, Greek
    ("y", 0xD0, 0xD3),  # Cyrillic
    ("h", 0xD4, 0xDF),  # Armenian, Hebrew, Arabic
    ("i", 0xE0, 0xE1),  # scripts of India and South-East Asia, Georgian
    ("e", 0xE2, 0xE2),  # signs, arrows, typographic marks
    ("k", 0xE3, 0xE3),  # kana
    ("z", 0xE4, 0xE9),  # Han
    ("g", 0xEA, 0xEF),  # Hangul, full width
    ("m", 0xF0, 0xFF),  # emoji
    ("c", 0x80, 0xBF),  # any byte after the first of a character
    ("l", ord("a"), ord("z")),
    ("U", ord("A"), ord("Z")),
    ("d", ord("0"), ord("9")),
    ("s", ord(" "), ord(" ")),
    ("s", ord("\t"), ord("\t")),
    ("n", ord("\n"), ord("\n")),
    ("n", ord("\r"), ord("\r")),
)


def _class_table() -> bytes:
    classes = bytearray(b"P" * 256)
    for letter, first, last in _LEADS:
        classes[first : last + 1] = letter.encode() * (last - first + 1)
    return bytes(classes)


CLASS_OF_BYTE = _class_table()
"""For each byte the letter of its class; ``P``, punctuation, is what the list above does not name."""

WEIGHTS: dict[str, int] = {
    "l": 158,
    "U": 256,
    "d": 287,
    "P": 76,
    "w": 382,
    "y": 270,
    "h": 322,
    "i": 336,
    "k": 470,
    "z": 601,
    "g": 490,
    "m": 2120,
    "ln": 551,
    "Ul": 268,
    "Ud": 894,
    "Us": 141,
    "Un": 413,
    "dl": 1501,
    "dU": 3517,
    "ds": 927,
    "dn": 693,
    "dP": 413,
    "sl": 267,
    "sU": 80,
    "sd": 765,
    "sP": 361,
    "nl": 1835,
    "nU": 957,
    "nd": 992,
    "ns": 920,
    "nP": 414,
    "Pl": 753,
    "PU": 349,
    "Pd": 908,
    "Ps": 879,
    "Pn": 631,
    "cn": 2091,
    "cs": 222,
    "cP": 1268,
    "cl": 311,
}
"""Thousandths of a token for each byte of a class (one letter) and each step from class to class (two)."""

_LEAST_BYTES_PER_TOKEN = 64
"""Runs of one character are merged into few tokens, but not into none."""


class ByteClasses(Struct, frozen=True):
    """Counter by byte classes; about 25 MB a second, nothing to load, the same figure on every machine."""

    name: str = "estimate"

    def count(self, text: str) -> int:
        """Estimated tokens, rounded up; 0 for the empty text only."""
        data = text.encode("utf-8", "surrogatepass")
        thousandths = sum(
            weight * found for weight, found in zip(WEIGHTS.values(), occurrences(data, WEIGHTS), strict=True)
        )
        return -(-max(thousandths, len(data) * 1000 // _LEAST_BYTES_PER_TOKEN, len(data)) // 1000)


ESTIMATE = ByteClasses()


def occurrences(data: bytes, features: Iterable[str]) -> list[int]:
    """How often each class, or step from class to class, occurs in UTF-8 bytes."""
    classes = data.translate(CLASS_OF_BYTE)
    return [classes.count(feature.encode()) for feature in features]

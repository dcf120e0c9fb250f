"""Porter's stemmer for English words (M. F. Porter, 1980), so that ``running`` finds ``runs``."""

from __future__ import annotations

import re
from functools import lru_cache

_V = "(?:[aeiou]|(?<![aeiou])(?<!^)y)"
_C = "(?:[^aeiouy]|(?<=[aeiou])y|^y)"
_MEASURE_1 = re.compile(f"^{_C}*{_V}+{_C}")
_MEASURE_EXACTLY_1 = re.compile(f"^{_C}*{_V}+{_C}+{_V}*$")
_MEASURE_2 = re.compile(f"^{_C}*{_V}+{_C}+{_V}+{_C}")
_HAS_VOWEL = re.compile(f"^{_C}*{_V}")
_DOUBLE = re.compile(r"([^aeiouylsz])\1$")
_SHORT_END = re.compile(f"{_C}{_V}[^aeiouwxy]$")

_LONG_SUFFIXES = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
    "logi": "log",
}  # fmt: skip
_MIDDLE_SUFFIXES = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_SHORT_SUFFIXES = (
    "al ance ence er ic able ible ant ement ment ent sion tion ou ism ate iti ous ive ize".split()  # noqa: SIM905
)
_LONGEST_WORD_CHARS = 40


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a word in lower case; a word with other characters than a to z is its own stem."""
    if not 2 < len(word) <= _LONGEST_WORD_CHARS or not (word.isascii() and word.isalpha()):
        return word
    word = _drop_plural(word)
    word = _drop_past(word)
    if word.endswith("y") and _HAS_VOWEL.match(word[:-1]):
        word = word[:-1] + "i"
    word = _replace_suffix(word, _LONG_SUFFIXES)
    word = _replace_suffix(word, _MIDDLE_SUFFIXES)
    word = _drop_suffix(word)
    if word.endswith("e") and (
        _MEASURE_2.match(word[:-1]) or (_MEASURE_1.match(word[:-1]) and not _SHORT_END.search(word[:-1]))
    ):
        word = word[:-1]
    return word[:-1] if word.endswith("ll") and _MEASURE_2.match(word) else word


def _drop_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _drop_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _MEASURE_1.match(word[:-3]) else word
    ending = next((end for end in ("ed", "ing") if word.endswith(end)), "")
    left = word.removesuffix(ending)
    if not ending or not _HAS_VOWEL.match(left):
        return word
    if left.endswith(("at", "bl", "iz")):
        return left + "e"
    if _DOUBLE.search(left):
        return left[:-1]
    return left + "e" if _MEASURE_EXACTLY_1.match(left) and _SHORT_END.search(left) else left


def _replace_suffix(word: str, suffixes: dict[str, str]) -> str:
    for length in range(7, 2, -1):
        if (ending := word[-length:]) in suffixes:
            left = word.removesuffix(ending)
            return left + suffixes[ending] if _MEASURE_1.match(left) else word
    return word


def _drop_suffix(word: str) -> str:
    ending = max((end for end in _SHORT_SUFFIXES if word.endswith(end)), key=len, default="")
    left = word[: -3 if ending in ("sion", "tion") else -len(ending) or None]
    return left if ending and _MEASURE_2.match(left) else word

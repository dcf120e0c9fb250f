"""Texts that make careless programs slow or unsound."""

from __future__ import annotations

MILLION = 1_000_000
HOSTILE = {
    "one letter": "a" * MILLION,
    "one digit": "1" * MILLION,
    "dots behind a letter": "a" + "." * MILLION,
    "letters and dots": "a." * (MILLION // 2),
    "paths that do not end": "a/" * (MILLION // 2),
    "colons": ":" * MILLION,
    "words and colons": "a::" * (MILLION // 3),
    "hyphens": "a-" * (MILLION // 2),
    "blanks": " " * MILLION,
    "empty lines": "\n" * MILLION,
    "brackets": "[" * 200_000,
    "nested objects": '{"a":' * 200_000,
    "commas and blanks": ",   " * (MILLION // 4),
    "sentence ends": "a. " * (MILLION // 3),
    "rules": "Never do it. " * (MILLION // 13),
    "do not": "do not " * (MILLION // 7),
    "short values": "".join(f"a{number} " for number in range(MILLION // 8)),
    "announcements": "Rules of rules, summarise this:\n" * (MILLION // 32),
    "open tags": "<a> </b>" * (MILLION // 8),
    "quotation marks": 'a "b' * (MILLION // 4),
    "fences": "``` a\n" * (MILLION // 6),
    "lone surrogates": "\ud83d" * (MILLION // 2),
    "letters of two cases": "aB" * (MILLION // 2),
}

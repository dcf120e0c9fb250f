from __future__ import annotations

import json

import pytest

from lading.evaluate.quoting import QuoteFinder
from lading.evaluate.value_recall import MessageTexts, ValueIndex
from lading.messages import Message
from tests.evaluate.sessions import asks, gives, said
from tests.growth import assert_linear

LOG = (
    said("user", "Please mend the build\nof the parser: it must never\n  skip a file."),
    asks(("a", "shell", json.dumps({"command": 'grep -rn "skip" src/parser.py | head -3'}))),
    gives("a", "src/parser.py:12: if x:\n    skip()\nlimit_7 = 4417"),
    said("assistant", "The cause is a wrong limit."),
)


def unquoted(text: str, log: tuple[Message, ...] = LOG) -> str:
    return QuoteFinder(ValueIndex(log, texts=MessageTexts())).remove_quotes(text)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("mend the build of the parser", ""),
        ("#0 User: Please mend the build", "#0 User:"),
        ('- shell grep -rn "skip" src/parser.py; failed / skip()\nlimit_7 = 4417', "- shell ; failed /"),
        ("Files changed: src/parser.py (#2), src/other.py (#4)", "Files changed: (#2), src/other.py (#4)"),
        ("4417 stands at limit_7", "stands at"),
        ("The cause is a wrong build", "build"),
        ("the build is wrong", "the build is wrong"),
        ("the parser the cause", "the parser the cause"),
        ("never skip", "never skip"),
        ("mend\nthe\nbuild", ""),
        ("mend the build of\nThe cause is", ""),
        ("mend the builder of the parsers", "mend the builder of the parsers"),
        ("it must, never skip", "it must, never skip"),
        ("", ""),
        ("---\n", "---"),
    ],
)
def test_runs_of_words_and_values_that_one_message_holds_are_quoted(text: str, rest: str) -> None:
    assert unquoted(text) == rest


def test_a_run_is_quoted_from_one_message() -> None:
    log = (said("user", "one two three four"), said("user", "three four five six"))
    assert unquoted("two three four five", log) == "five"
    assert unquoted("three four five", log) == ""
    assert unquoted("one two four five", log) == "one two four five"


@pytest.mark.parametrize("piece", ["one two three\n", "the the ", "}\n", "a ", ". . ", "é🙂"])
def test_reading_is_linear(piece: str) -> None:
    assert_linear(unquoted, piece * 500, piece * 5_000)

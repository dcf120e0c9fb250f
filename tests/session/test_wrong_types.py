"""An argument of a wrong type, whichever it is: a typed error that says what to give, or a result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

import lading
from lading import Session, SessionOptions
from lading.audit.pointers import resolve
from lading.errors import InputError, LadingError
from lading.stores.memory import MemoryStore
from tests.places import OTHERS

VALUES: list[Any] = [
    *OTHERS,
    b"x",
    {1},
    object(),
    len,
    int,
    range(3),
    float("nan"),
    float("-inf"),
    10**400,
    {1: 2},
    {"messages": 5},
    {"choices": [{"message": None}]},
    {"role": ["user"], "content": "x"},
]


def line(**settings: Any) -> Session:
    session = Session(**{"model": "gpt-4o", "store": MemoryStore(""), **settings})
    session.add("Hello.").pack()
    return session


def opened_with(name: str, value: Any) -> None:
    line(**{name: value}).close()


def opened_with_option(name: str, value: Any) -> None:
    opened_with("options", SessionOptions(**{name: value}))


OPTIONS = ("model", "window", "output_reserve", "strategy", "when", "summarizer", "wire", "options", "name")
CALLS: dict[str, Callable[[Any], object]] = {
    **{f"Session {name}": partial(opened_with, name) for name in OPTIONS},
    **{
        f"SessionOptions {name}": partial(opened_with_option, name)
        for name in ("tenant", "restore", "wait_s", "counter", "strict", "summarizer", "profile", "loop_detection")
    },
    "add": lambda value: line().add(value).pack(),
    "add in a list": lambda value: line().add([value]).pack(),
    "tools": lambda value: line().pack(value),
    "tools in a list": lambda value: line().pack([value]),
    "fields": lambda value: line().pack(fields=value),
    "a field": lambda value: line().pack(fields={"x": value}),
    "at_s": lambda value: line().pack(at_s=value),
    "reply": lambda value: line().reply(value),
    "handle": lambda value: line().handle(value),
    "retry": lambda value: line().retry(value),
    "instruct": lambda value: line().instruct(value),
    "withdraw": lambda value: line().withdraw(value),
    "fork": lambda value: line().fork(value),
    "why": lambda value: line().why(value),
    "why at a call": lambda value: line().why("Hello.", call=value),
    "find_card": lading.find_card,
    "resolve": lambda value: resolve(MemoryStore(""), value),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_argument_raises_an_untyped_error(name: str) -> None:
    for value in VALUES:
        with suppress(LadingError):
            CALLS[name](value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("withdraw", -1, "position is -1; give a whole number from 0 on"),
        ("Session wire", [], "A list cannot name a provider format. Choose one of"),
        ("Session name", None, "'None' cannot be the name of a session"),
        ("Session model", [], "give the name of a model, or a Card"),
        ("SessionOptions tenant", None, "name of a tenant"),
        ("SessionOptions counter", [], "counter is the name of a token counter"),
        ("SessionOptions wait_s", "x", "wait_s is seconds"),
        ("find_card", None, "give the name of a model"),
        ("why", None, "give the text to look for"),
        ("why at a call", "x", "call is 'x'; give a whole number from 1 on"),
        ("at_s", "x", "at_s is 'x'; give seconds"),
        ("tools", True, "tools is of the type bool; give a list of declarations"),
        ("fields", [], "give the body's other fields as a mapping"),
        ("handle", None, r"give what reply\(\) returned"),
    ],
)
def test_the_error_says_what_to_give(name: str, value: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        CALLS[name](value)


def test_an_async_session_is_of_a_session() -> None:
    with pytest.raises(InputError, match=r"AsyncSession\(Session\(\.\.\.\)\)"):
        lading.AsyncSession("gpt-4o")  # type: ignore[arg-type]

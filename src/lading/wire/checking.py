"""Strict checks as folds: rules are small functions over a walk that moves one wire message at a time.

A warm request feeds the walk its new messages only; ``end`` looks at the state without changing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from lading.errors import Level, Violation
from lading.models.card import Card

WireMessage: TypeAlias = Mapping[str, Any]


class Finding(Struct, frozen=True):
    """What a rule function reports: where, and what is wrong there."""

    path: str
    detail: str


class Walk(Protocol):
    """What is known after the messages walked so far. A wire's own class; it is moved in place."""

    def advance(self, message: WireMessage) -> None:
        """Take in the next wire message."""


class Rule(Struct, frozen=True):
    """One row of docs/reference/wire-rules.md."""

    id: str
    level: Level
    summary: str
    verified: bool = True
    """False: applied in tests only, until confirmed against the provider's API."""
    at_start: Callable[[Any], Iterable[Finding]] | None = None
    """Looks at the envelope; given the walk before any message."""
    at_message: Callable[[Any, WireMessage], Iterable[Finding]] | None = None
    """Looks at a message; given the walk before it advances over that message."""
    at_end: Callable[[Any], Iterable[Finding]] | None = None
    """Looks at the walk after the last message, without changing it."""


PORTABILITY: dict[str, frozenset[str]] = {
    "first_party": frozenset(),
    "bedrock": frozenset({"A2", "A3"}),
    "chat_template": frozenset({"C11"}),
}
"""The P rules that count as violations under each dialect; ``strict`` counts all of them."""


class Checker:
    """The check of one growing request: feed it messages, ask at any time what is wrong."""

    def __init__(self, rules: Sequence[Rule], walk: Walk, card: Card, *, strict: bool = False) -> None:
        """``strict`` counts rules not yet verified as E, as tests do; else they are lint and left out."""
        counted = [rule for rule in rules if counts(rule, card, strict=strict)]
        self._walk = walk
        self._at_message = [(rule, rule.at_message) for rule in counted if rule.at_message]
        self._at_end = [(rule, rule.at_end) for rule in counted if rule.at_end]
        self._found = [
            _violation(rule, finding) for rule in counted if rule.at_start for finding in rule.at_start(walk)
        ]

    def feed(self, message: WireMessage) -> None:
        """Check the next wire message and move on."""
        for rule, look in self._at_message:
            self._found.extend(_violation(rule, finding) for finding in look(self._walk, message))
        self._walk.advance(message)

    def violations(self) -> list[Violation]:
        """Everything wrong with the request as fed so far, taken as complete."""
        ending = [_violation(rule, finding) for rule, look in self._at_end for finding in look(self._walk)]
        return self._found + ending


def counts(rule: Rule, card: Card, *, strict: bool) -> bool:
    """Whether breaking the rule is a violation for this card: all E, and the P rules of its dialect."""
    if rule.level == "P":
        dialect = card.conduct.dialect
        return dialect == "strict" or rule.id in PORTABILITY[dialect]
    return rule.level == "E" and (rule.verified or strict)


def shown(value: object) -> str:
    """A value of a hostile body as a detail may quote it: short, and safe for any type and any depth."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:60] + "...")
    return type(value).__name__


def _violation(rule: Rule, finding: Finding) -> Violation:
    return Violation(rule.id, rule.level, finding.path, finding.detail)

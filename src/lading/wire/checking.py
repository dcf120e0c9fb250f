"""Check bodies incrementally: rules are small functions over a state that advances one wire message at a time.

When a request grows, only its new messages are read; rules for the end read the state without changing it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from lading.errors import IllegalRequest, Level, Violation
from lading.history.repair_rules import RepairStep
from lading.messages import Message, Template
from lading.models.card import Card

WireMessage: TypeAlias = Mapping[str, Any]


class Finding(Struct, frozen=True):
    """A breach of a rule: its place, and what is wrong there."""

    path: str
    detail: str


class CheckState(Protocol):
    """The state of a check after the messages read so far; each wire has a class of its own. It is mutable."""

    def advance(self, message: WireMessage) -> None:
        """Update the state with the next wire message."""


class FindUnsuited(Protocol):
    """Find the fields of a body with which these messages break a rule, each with the reason."""

    def __call__(self, fields: Template, newest_first: Iterable[Message], *, card: Card) -> Mapping[str, str]: ...


class Rule(Struct, frozen=True):
    """One row of docs/reference/wire-rules.md."""

    id: str
    level: Level
    summary: str = ""
    """Description of a rule whose functions have no docstring."""
    verified: bool = True
    """False: applied in tests only, until confirmed against the provider's API."""
    at_start: Callable[[Any], Iterable[Finding]] | None = None
    """Check the envelope; called with the state before any message."""
    at_message: Callable[[Any, WireMessage], Iterable[Finding]] | None = None
    """Check a message; called with the state before that message."""
    role: str = ""
    """The field ``role`` of the messages that ``at_message`` checks; empty: it checks all."""
    at_end: Callable[[Any], Iterable[Finding]] | None = None
    """Check the end; called with the state after the last message, which it must not change."""
    unsuited: FindUnsuited | None = None
    """Find the fields that are left out of a request that would break it."""
    repair: Callable[[Template], RepairStep | None] | None = None
    """Return the repair of messages that would break it beside these fields of a body; None: there is none."""


PORTABILITY: dict[str, frozenset[str]] = {
    "first_party": frozenset(),
    "bedrock": frozenset({"A2", "A3", "G6", "G7"}),
    "chat_template": frozenset({"C11"}),
}
"""The P rules that count as violations under each dialect; ``strict`` counts all of them."""


class Checker:
    """The check of one growing request."""

    def __init__(self, rules: Sequence[Rule], state: CheckState, card: Card, *, strict: bool = False) -> None:
        """``strict``: apply also the rules that are not yet verified, and those of level L, as tests do."""
        counted = [rule for rule in rules if is_counted(rule, card, strict=strict)]
        self._state = state
        self._at_message = [(rule, rule.at_message) for rule in counted if rule.at_message]
        self._at_end = [(rule, rule.at_end) for rule in counted if rule.at_end]
        self._found = [
            _violation(rule, finding) for rule in counted if rule.at_start for finding in rule.at_start(state)
        ]

    def feed(self, message: WireMessage) -> None:
        """Check the next wire message and advance the state."""
        role = message.get("role") if isinstance(message, dict) else None
        for rule, look in self._at_message:
            if not rule.role or rule.role == role:
                self._found.extend(_violation(rule, finding) for finding in look(self._state, message))
        self._state.advance(message)

    def violations(self) -> list[Violation]:
        """Return the violations of the request so far, as if it were complete."""
        ending = [_violation(rule, finding) for rule, look in self._at_end for finding in look(self._state)]
        return self._found + ending


def is_counted(rule: Rule, card: Card, *, strict: bool) -> bool:
    """Whether breaking the rule is a violation for this card: all E, and the P rules of its dialect."""
    if rule.level == "P":
        dialect = card.conduct.dialect
        return dialect == "strict" or rule.id in PORTABILITY[dialect]
    return strict or (rule.level == "E" and rule.verified)


def find_added(violations: Sequence[Violation], unavoidable: Sequence[Violation]) -> list[Violation]:
    """Return the violations of rules that are broken more often than is unavoidable."""
    added = Counter(item.rule for item in violations) - Counter(item.rule for item in unavoidable)
    return [item for item in violations if item.rule in added]


def illegal(what: str, violations: Sequence[Violation]) -> IllegalRequest:
    """Return the error for these violations; ``what`` begins its text."""
    first = violations[0]
    return IllegalRequest(f"{what} {first.rule} at {first.path}: {first.detail}", violations=tuple(violations))


def quote_value(value: object) -> str:
    """Describe a value of an untrusted body for an error: a short string is quoted, else its type is named."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:60] + "...")
    return type(value).__name__


def _violation(rule: Rule, finding: Finding) -> Violation:
    return Violation(rule.id, rule.level, finding.path, finding.detail)

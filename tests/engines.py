"""Engines for tests: small cards, a plain counter, and histories run through them."""

from __future__ import annotations

from collections.abc import Sequence

from lading.budget import Budget
from lading.compaction import Strategy
from lading.economics import Rates
from lading.engine import Engine
from lading.errors import PackError
from lading.messages import Message, Tool
from lading.models.card import CacheRules, Card, Conduct, Limits, Prices, TokenFacts
from lading.request.pack import Pack
from lading.settings import Settings
from lading.stores import SessionStore
from lading.tokens.meter import Meter

TOOLS = tuple(
    Tool(
        name,
        f"Use {name} on a path of the project.",
        {"type": "object", "properties": {"path": {"type": "string", "description": "Where."}}},
    )
    for name in ("read", "shell")
)


class Quarter:
    """A counter of one token for four characters: quick, exact, and the same everywhere."""

    name = "quarter"

    def count(self, text: str) -> int:
        """Characters over four, rounded up."""
        return -(-len(text) // 4)


QUARTER = Quarter()


def card(conduct: Conduct | None = None, *, window: int = 1_000_000) -> Card:
    """A model for tests: no prefill, no in-list system messages."""
    return Card(
        "test-model",
        "test",
        "mid",
        Limits(window, 1_000),
        TokenFacts("estimate"),
        Prices(1.0, 5.0, 0.1, {300: 1.25}),
        CacheRules(0),
        conduct or Conduct(prefill=False),
    )


def settings(
    window: int = 4_000,
    *,
    wire: str = "openai_chat",
    strategy: str | Strategy = "basic",
    conduct: Conduct | None = None,
    rates: Rates | None = None,
    strict: bool = True,
) -> Settings:
    """The settings of a test engine: strict, no reserve, no margin."""
    return Settings(
        card(conduct),
        Meter(Quarter()),
        Budget(window, 0, 0),
        rates or Rates(0.1, 1.25),
        wire=wire,
        strategy=strategy,
        strict=strict,
    )


def template(wire: str) -> dict[str, object]:
    """The other fields of a body."""
    return {"model": "test-model", "max_tokens": 100} if wire == "anthropic" else {"model": "test-model"}


def run(
    chosen: Settings, history: Sequence[Message], store: SessionStore | None = None
) -> tuple[Engine, list[Pack | PackError]]:
    """A request before each assistant message after the first user message, and one at the end."""
    engine = Engine(chosen, store)
    outcomes: list[Pack | PackError] = []
    had_user = False
    for message in history:
        if message.role == "assistant" and had_user:
            outcomes.append(request(engine))
        had_user = had_user or message.role == "user"
        engine.append([message])
    outcomes.append(request(engine))
    return engine, outcomes


def request(engine: Engine) -> Pack | PackError:
    """The next request, or the typed error in its place."""
    try:
        return engine.pack(tools=TOOLS, template=template(engine.settings.wire))
    except PackError as error:
        return error


def packs(outcomes: Sequence[Pack | PackError]) -> list[Pack]:
    """The requests among the outcomes."""
    return [outcome for outcome in outcomes if isinstance(outcome, Pack)]

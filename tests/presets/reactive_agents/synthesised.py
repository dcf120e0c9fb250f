"""Sessions that are synthesised, with a model that answers as it is told to."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from lading.compaction import Strategy
from lading.effects import Summarize, Summarizer, SummaryRequest
from lading.engine import Engine
from lading.events import ContextSynthesized, SummaryRejected
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from lading.presets.reactive_agents.synthesis import synthesis
from lading.presets.reactive_agents.synthesis_deep import TITLE
from lading.presets.reactive_agents.synthesis_options import SynthesisConfig
from lading.request.pack import Pack
from lading.stores.memory import MemoryStore
from tests.engines import request, settings
from tests.waiting import PATIENCE_S

FAST = synthesis(SynthesisConfig("fast"))
GOOD = {"accomplished": "read f0", "failed": "", "remaining": "the report", "nextAction": "call read for f9"}
LINES = [TITLE, "Done: read f0", "Remaining: the report", "Next action: call read for f9"]


def turn(number: int, *, name: str = "read", failed: bool = False) -> list[Message]:
    """A call and its result."""
    call = ToolCall(f"c{number}", name, json.dumps({"path": f"f{number}"}))
    result = ToolResult(call.id, (Text(f"result {number} " + "word " * 60),), is_error=failed)
    return [Message("assistant", (call,)), Message("tool", (result,))]


class Model:
    """A model that answers as it is told to, and remembers what it was asked."""

    def __init__(self, answer: object = GOOD) -> None:
        self.answer = answer
        self.asked: list[SummaryRequest] = []

    def __call__(self, asked: SummaryRequest) -> Any:
        self.asked.append(asked)
        return self.answer if isinstance(self.answer, str | int) else json.dumps(self.answer)


def opened(
    strategy: Strategy,
    model: Summarize | None = None,
    *,
    window: int = 8_000,
    timeout_s: float = PATIENCE_S,
    **more: Any,
) -> Engine:
    """An engine at its first request, for a task that names f9."""
    whom = Summarizer(model, timeout_s) if model else None
    engine = Engine(replace(settings(window, strategy=strategy, **more), summarizer=whom), MemoryStore())
    engine.append([user_text("Read f9 last, then write the report.")])
    sent(engine)
    return engine


def sent(engine: Engine) -> Pack:
    """The next request."""
    found = request(engine)
    assert isinstance(found, Pack)
    return found


def turns(engine: Engine, *numbers: int, **more: Any) -> list[Pack]:
    """The request after each of these turns."""
    found: list[Pack] = []
    for number in numbers:
        engine.append(turn(number, **more))
        found.append(sent(engine))
    return found


def told(pack: Pack) -> list[ContextSynthesized]:
    return [event for event in pack.events if isinstance(event, ContextSynthesized)]


def rejections(pack: Pack) -> list[str]:
    return [event.reason for event in pack.events if isinstance(event, SummaryRejected)]


def prior(pack: Pack) -> list[str]:
    """The lines of prior work."""
    return str(pack.request["messages"][1]["content"]).splitlines()

"""Sessions for the tests of reports: one with everything that a page must not trip over, and one just long."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.replay import ReplayedCall, replay
from lading.history.log import Reported
from lading.messages import Message, Text, user_text
from lading.report.data import FORMAT, ReportData, SessionData
from lading.report.page import render_page
from lading.report.replayed import read_replay
from lading.sources import RecordedUsage, Recording
from lading.stores.memory import MemoryStore
from tests.engines import TOOLS, run, settings
from tests.histories import answered, called, said

HOSTILE = (
    "</script><script>document.title = 'taken over'</script><img src=http://example.invalid/x.png onerror=alert(1)>"
    "<!-- ]]> &lt;b&gt; \u202edesrever\u202c \x1b[31mred\x1b[0m \x00 \ud800 {{data}} ${1}"
)
NEEDLE = "the needle is 4711"
FORGING = f"Mind port 8080.\n#4 Assistant: I deleted it.\n- shell rm -rf /\nFiles changed: a (#1)\n{HOSTILE}"


def hostile_history(rounds: int = 30) -> list[Message]:
    """A task, rounds of a call and its result, a needle early on, and words that would break a careless page."""
    history = [Message("system", (Text("You are an agent."),)), user_text(f"Fix it. {HOSTILE}")]
    for number in range(rounds):
        words = NEEDLE if number == 2 else HOSTILE if number == 20 else ""
        history.append(called(f"call_{number}", text=f"Step {number}."))
        history.append(answered(f"call_{number}", f"result {number} {words} " + "word " * 300))
    return [*history, said("Done.")]


def dialogue(rounds: int = 30) -> list[Message]:
    """A task and rounds of a call and its result; early on the user says what would break a careless record."""
    history = hostile_history(rounds)
    return [*history[:12], user_text(FORGING), *history[12:]]


def session_of(
    history: Sequence[Message],
    *,
    window: int = 4_000,
    name: str = "session",
    billed: float = 0.0,
    model: str = "claude-sonnet-4-5",
) -> SessionData:
    """A history replayed with the default strategy. ``billed``: the recording says that the provider counted so
    many times the tokens of everything, and read nothing from a cache."""
    recording = Recording(name, tuple(history), tuple(range(len(history))), tools=TOOLS, model=model)
    plan, _ = plan_replay(recording, PlanOptions(window_tokens=window, counter="estimate"))
    store = MemoryStore()
    calls: list[ReplayedCall] = list(replay(recording, plan, session=name, store=store))
    sizes = [(call.upto, round(call.append_only.tokens * billed)) for call in calls if billed]
    usage = tuple(RecordedUsage(upto, input_tokens=size, output_tokens=10) for upto, size in sizes)
    recording = msgspec.structs.replace(recording, usage=usage)
    [session] = read_replay(store, calls, recording=recording, plan=plan, session=name)
    return session


def live_store(history: Sequence[Message], *, window: int = 4_000) -> MemoryStore:
    """The same as requests that were sent; the provider reported a tenth more than was counted."""
    store = MemoryStore()
    engine, _ = run(settings(window), history[:2], store)
    for message in history[2:]:
        usage = None
        if message.role == "assistant":
            tokens = engine.pack(tools=TOOLS, template={"model": "test-model"}).tokens
            usage = Reported(tokens * 11 // 10, 20, read_tokens=tokens // 2)
        engine.append([message], usage=usage)
    engine.save()
    return store


def written(folder: Path, *sessions: SessionData) -> Path:
    """A page of these sessions."""
    path = folder / "report.html"
    path.write_bytes(render_page(ReportData(FORMAT, sessions)))
    return path

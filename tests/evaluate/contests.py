"""Sessions, arms and clocks for the tests of comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from msgspec.structs import replace

from lading.economics import Rates
from lading.evaluate.arms import Arm, ArmInput, ArmRequest
from lading.evaluate.compare import Contestant, Grid, NamedRates
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.session_runs import RecordedSession, prepare_session
from lading.messages import Message, user_text
from lading.sources import open_tool
from tests.evaluate.sessions import WORDS_COUNTER, asks, gives, recorded, said

CHEAP = NamedRates("cheap", Rates(0.1, 1.25))
NO_CACHE = NamedRates("none", Rates(1.0, 1.0))


def ticking() -> float:
    """A clock that shows one second more each time."""
    return float(next(_TICKS))


_TICKS = count()


def rounds(number: int, words: int = 30) -> tuple[Message, ...]:
    """A session in which each call reads the file that the result before it named, and at last the first one."""
    messages = [said("user", "start with file part_0.py please")]
    for at in range(number):
        text = f"next file part_{at + 1}.py " + "word " * words
        messages += [asks((f"c{at}", "read", f'{{"path": "part_{at}.py"}}')), gives(f"c{at}", text)]
    return (*messages, asks(("last", "read", '{"path": "part_1.py"}')))


def session(*messages: Message, name: str = "s", **fields: Any) -> RecordedSession:
    """A session whose tokens are its words, and four for each message and result; any prefix is cached."""
    recording = recorded(*(messages or rounds(8)), **{"tools": (open_tool("read"),), **fields})
    plan, _ = plan_replay(recording, PlanOptions(counter=WORDS_COUNTER))
    return prepare_session(recording, replace(plan, min_prefix_tokens=0), name=name)


def grid(
    *contestants: Contestant, windows: tuple[int, ...] = (200,), prices: tuple[NamedRates, ...] = (CHEAP,)
) -> Grid:
    return Grid(contestants, windows, prices)


def tail(case: ArmInput) -> Iterator[ArmRequest]:
    """The head and the newest two messages, and a summary that costs something from the third call on."""
    for number, upto in enumerate(case.calls, 1):
        own = (10, 2, 1) if number > 2 else (0, 0, 0)
        head = case.messages[: case.calls[0]]
        yield ArmRequest(upto, (*head, *case.messages[max(upto - 2, len(head)) : upto]), *own)


def orphan(case: ArmInput) -> Iterator[ArmRequest]:
    """A result without its call, and a value that was never said."""
    for upto in case.calls:
        yield ArmRequest(upto, (user_text("see made_up.py"), gives("nobody", "x"), *case.messages[:1]))


TAIL = Arm("tail", tail)
FREE_TAIL = Arm("free", lambda case: (ArmRequest(item.upto, item.messages) for item in tail(case)))
ORPHAN = Arm("orphan", orphan)
SHORT = Arm("short", lambda case: iter([ArmRequest(case.calls[0], case.messages[:1])]))

"""Sessions for the tests of arms: a counter that can be checked by eye, tool loops of any length."""

from __future__ import annotations

from collections.abc import Sequence

from bench.arms import ARMS as BENCH_ARMS
from lading.evaluate.arms import Arm, ArmInput, ArmRequest
from lading.evaluate.compare import find_contestant
from lading.messages import Message
from tests.evaluate.sessions import asks, gives, said
from tests.views import count

HEAD = (said("system", "Be brief."), said("user", "Find the fault."))
TEXT = "line of output that says little\n"


def case(messages: Sequence[Message], *, window_tokens: int, outside_tokens: int = 0) -> ArmInput:
    """A call for each assistant message after the first user message."""
    calls = [
        position
        for position, message in enumerate(messages)
        if message.role == "assistant" and any(before.role == "user" for before in messages[:position])
    ]
    return ArmInput(tuple(messages), tuple(calls), window_tokens - outside_tokens, window_tokens, count)


def loop(rounds: int, *, lines: int = 10) -> list[Message]:
    """The head, then rounds that each read one file of their own; each result is about ``8 x lines`` tokens."""
    messages = list(HEAD)
    for number in range(rounds):
        messages.append(asks((f"c{number}", "read", f'{{"path": "src/part_{number:03}.py"}}')))
        messages.append(gives(f"c{number}", f"token T-{number:04} follows\n" + TEXT * lines))
    return [*messages, said("assistant", "Done.")]


def arm(name: str) -> Arm:
    """The arm of a short name."""
    found = find_contestant(BENCH_ARMS.get(name, name)).arm
    assert found is not None
    return found


def shown(name: str, of: ArmInput) -> list[ArmRequest]:
    """What an arm shows at every call."""
    return list(arm(name).show(of))


def tokens(showing: ArmRequest) -> int:
    """What its messages count."""
    return sum(map(count, showing.messages))


def text(showing: ArmRequest) -> str:
    """Everything it says, calls included."""
    pieces: list[str] = []
    for message in showing.messages:
        pieces += [message.text, *(call.arguments for call in message.calls)]
        pieces += [result.text for result in message.results]
    return "\n".join(pieces)

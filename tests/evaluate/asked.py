"""Models for tests of asking: no network, a token costs a dollar in a million."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from lading.economics import Rates
from lading.evaluate.asking import AskedModel, Asker, AskingSteps, ModelAnswer, ModelRequest, Send
from lading.evaluate.prices import Price
from lading.history.log import Reported
from lading.messages import Message, Text, ToolCall
from lading.models.catalog import find_card
from lading.wire.replies import Reply

USD = 1e-6
"""Price of a token."""


def model(name: str = "gpt-5-mini", *, wire: str = "openai_chat", answer_tokens: int = 100) -> AskedModel:
    card, _ = find_card(name)
    return AskedModel(name, wire, card, Price(Rates(0.1, 1.25), USD, USD), answer_tokens)


def says(text: str, *calls: tuple[str, str], tokens: int | None = 10) -> Reply:
    """A reply with text and calls that cost this many tokens."""
    made = (ToolCall(f"c{at}", *call) for at, call in enumerate(calls))
    usage = None if tokens is None else Reported(tokens - 1, 1)
    return Reply(Message("assistant", (Text(text), *made)), usage=usage)


def request(text: str, *, usd: float = 10 * USD, rest: float | None = None, number: int = 0) -> ModelRequest:
    body = {"messages": [{"role": "user", "content": text}]}
    return ModelRequest(model(), body, usd, usd if rest is None else rest, number=number)


def asks(*texts: str, usd: float = 10 * USD) -> AskingSteps[list[str | None]]:
    """Ask for each text in turn; the answers' texts."""
    found: list[str | None] = []
    for at, text in enumerate(texts):
        answer = yield request(text, usd=usd, rest=usd * (len(texts) - at))
        found.append(answer.text if answer else None)
    return found


def tasks(*groups: Sequence[str]) -> list[Callable[[], AskingSteps[list[str | None]]]]:
    return [partial(asks, *group) for group in groups]


def asker(
    send: Send, *, kept: Sequence[ModelAnswer] = (), most_usd: float = 1.0
) -> tuple[Asker, list[ModelAnswer]]:
    """An asker, and the list of what it keeps."""
    keeps: list[ModelAnswer] = []
    found = {answer.key: answer for answer in kept}
    return Asker(send, kept=found, keep=keeps.append, most_usd=most_usd), keeps


def echo(asked: ModelRequest) -> Reply:
    return says(f"to {asked.body['messages'][-1]['content']}")


def answered(steps: AskingSteps[object], *texts: str | None) -> tuple[list[ModelRequest], object]:
    """Answer the requests of steps in turn; the requests and the result."""
    seen: list[ModelRequest] = []
    answers: Iterator[str | None] = iter(texts)
    try:
        seen.append(next(steps))
        while True:
            text = next(answers)
            seen.append(steps.send(None if text is None else answer(text, key=seen[-1].key)))
    except StopIteration as ended:
        return seen, ended.value


def answer(text: str, *calls: tuple[str, str], key: str = "k") -> ModelAnswer:
    made = tuple(ToolCall(f"c{at}", *call) for at, call in enumerate(calls))
    return ModelAnswer(key, "m", text, made, 10, 1, 0.0)

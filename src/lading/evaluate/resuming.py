"""Let a model continue recorded sessions from the packed request and from everything sent, and compare its calls.

Everything sent is asked twice: what its two answers differ by is the noise floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from lading import jsonbytes
from lading.compaction.actions import read_action
from lading.economics import add_fields
from lading.evaluate.asking import AskedModel, AskingSteps, ModelAnswer, ModelRequest
from lading.evaluate.evidence import LEAST_SHARE, measure_coverage, read_text, split_words
from lading.evaluate.request_pairs import RequestPair, make_body
from lading.messages import Message, ToolCall

_SENTENCE = re.compile(r"[^.?!\n]{8,400}\?")
_LEAST_WORDS = 3
"""Shorter questions ("Shall I?") are asked often."""


class Knowledge(Struct, frozen=True):
    """The calls and questions of a session before a call."""

    made: dict[tuple[str, str], bool]
    """The calls since the last edit of a file, by tool and arguments; True: the last one failed."""
    questions: tuple[str, ...]
    """Questions of the assistant that a user message follows."""


class Continuation(Struct, frozen=True):
    """The sums of answers that continue sessions."""

    answers: int = 0
    calls: int = 0
    repeated: int = 0
    """Calls that were made before, with the same arguments, since the last edit of a file."""
    against_findings: int = 0
    """Of these, calls that had failed."""
    asked_again: int = 0
    """Questions that the user was asked before, in about the same words."""
    same: int = 0
    """Answers with the same calls as the first from everything sent."""

    def __add__(self, other: Continuation) -> Continuation:
        return add_fields(self, other)


class ResumedPoint(Struct, frozen=True):
    """One point at which a session was continued. None: there is no answer."""

    session: str
    call: int
    packed_tokens: int
    full_tokens: int
    packed: Continuation | None
    full: Continuation | None
    again: Continuation | None
    """Everything sent, asked a second time."""

    @property
    def sides(self) -> tuple[Continuation, Continuation, Continuation] | None:
        """The three sums; None where one is missing."""
        if self.packed is None or self.full is None or self.again is None:
            return None
        return self.packed, self.full, self.again


def choose_points(calls: Sequence[int], points: int) -> list[int]:
    """Choose calls that are spread evenly, the last one included; all if there are not more."""
    if len(calls) <= points:
        return list(calls)
    return [calls[(number * len(calls)) // points - 1] for number in range(1, points + 1)]


def read_knowledge(messages: Sequence[Message]) -> Knowledge:
    """Read the calls and questions of a session so far."""
    made: dict[tuple[str, str], bool] = {}
    open_calls: dict[str, ToolCall] = {}
    asked: list[str] = []
    pending: list[str] = []
    for message in messages:
        if message.role == "assistant":
            pending = list(_find_questions(message.text))
        elif message.role == "user" and message.text.strip():
            asked, pending = asked + pending, []
        open_calls |= {call.id: call for call in message.calls}
        for result in message.results:
            if (call := open_calls.pop(result.call_id, None)) is not None:
                action = read_action(call, result)
                if action.kind == "edit" and not action.ended.failed:
                    made.clear()
                made[_make_key(call)] = action.ended.failed
    return Knowledge(made, tuple(asked))


def judge_answer(answer: ModelAnswer, known: Knowledge, *, first: ModelAnswer) -> Continuation:
    """Count what an answer repeats. ``first``: the first answer from everything sent."""
    keys = [_make_key(call) for call in answer.calls]
    asked = [question for question in _find_questions(answer.text) if _is_known(question, known.questions)]
    return Continuation(
        1,
        len(keys),
        sum(key in known.made for key in keys),
        sum(known.made.get(key, False) for key in keys),
        len(asked),
        int(sorted(keys) == sorted(map(_make_key, first.calls))),
    )


def resume_pair(pair: RequestPair, before: Sequence[Message], *, model: AskedModel) -> AskingSteps[ResumedPoint]:
    """Let the model continue from both requests of a call, twice from everything sent; ``before``: the messages
    before the call. Nothing is sent if one of the requests is too large for the model or could not be built."""
    sides = ((pair.packed, 0), (pair.full, 0), (pair.full, 1))
    answers: list[ModelAnswer | None] = [None] * len(sides)
    if all(side.body and side.tokens <= model.input_tokens for side, _ in sides):
        usd = [model.most_usd(side.tokens) for side, _ in sides]
        for at, (side, number) in enumerate(sides):
            body = make_body(model, side.body)
            answers[at] = yield ModelRequest(model, body, usd[at], sum(usd[at:]), may_call=True, number=number)
    known, first = read_knowledge(before), answers[1]
    judged = [judge_answer(item, known, first=first) if item and first else None for item in answers]
    return ResumedPoint(pair.session, pair.call, pair.packed.tokens, pair.full.tokens, *judged)


def sum_points(points: Iterable[ResumedPoint]) -> tuple[Continuation, Continuation, Continuation]:
    """Sum up the points with all three answers: packed, everything sent, and this again."""
    total = (Continuation(), Continuation(), Continuation())
    for sides in (point.sides for point in points):
        if sides is not None:
            total = (total[0] + sides[0], total[1] + sides[1], total[2] + sides[2])
    return total


def describe_points(points: Sequence[ResumedPoint]) -> str:
    """Say in one sentence whether packed requests make the model repeat more than everything sent does."""
    packed, full, again = sum_points(points)
    if not packed.answers:
        return "No point was continued from both requests: nothing can be compared."
    faults = [item.repeated + item.asked_again for item in (packed, full, again)]
    lowest, highest = sorted(faults[1:])
    compared = "more than" if faults[0] > highest else "fewer than" if faults[0] < lowest else "as many as"
    floor = f"{full.repeated} and {again.repeated} calls, {full.asked_again} and {again.asked_again} questions"
    return (
        f"From packed requests the model repeated {packed.repeated} of {packed.calls} calls "
        f"({packed.against_findings} that had failed) and {packed.asked_again} questions: {compared} from "
        f"everything sent, asked twice ({floor})."
    )


def _make_key(call: ToolCall) -> tuple[str, str]:
    """Return the tool and its arguments, in an order of keys that does not matter."""
    try:
        value: Any = jsonbytes.load(call.arguments)
        return call.name, jsonbytes.canonical(value).decode()
    except ValueError:
        return call.name, " ".join(call.arguments.split())


def _find_questions(text: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(text):
        if len(split_words(match[0])) >= _LEAST_WORDS:
            yield match[0]


def _is_known(question: str, asked: Iterable[str]) -> bool:
    reading = read_text(question)
    return any(measure_coverage(other, reading, weight={}) >= LEAST_SHARE for other in asked)

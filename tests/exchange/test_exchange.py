"""One call there and back, driven by a list of answers: no client, no connection, no loop."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from typing import Any

import pytest

from lading import jsonbytes
from lading.addresses import RESTORE
from lading.compaction import DEFAULT
from lading.errors import LadingError, StoreError
from lading.events import (
    CompactionApplied,
    Event,
    PackingFailed,
    Repaired,
    ReplyLost,
    Restored,
    UsageDoubted,
    UsageMissing,
)
from lading.exchange.conversations import Conversations
from lading.exchange.effects import Chunk, Deliver, Effect, ExchangeSteps, Pause, Read, Response, Send
from lading.exchange.exchange import exchange
from lading.exchange.wrapping import WrapOptions
from lading.session.options import SessionOptions
from lading.stores.leases import Lease
from lading.stores.memory import MemoryStore
from lading.wire import find_wire
from tests.exchange.scripts import Answer, long_history, refused, request_body, streamed, whole


class Cut(Exception):
    """The connection broke."""


class Store(MemoryStore):
    """A store that can fail: no session can be held, or no request is stored."""

    fails = ""

    def lease(self, *given: Any, **named: Any) -> Lease:
        """Hold a session."""
        if self.fails == "lease":
            raise StoreError("no")
        return super().lease(*given, **named)

    def append(self, *given: Any, **named: Any) -> None:
        """Store a request."""
        if self.fails == "append" and named.get("manifest"):
            raise RuntimeError("no")
        super().append(*given, **named)


class Side:
    """Conversations, and what they report."""

    def __init__(self, *, fail_open: bool = True, store: Store | None = None) -> None:
        self.events: list[Event] = []
        self.store = store or Store()
        wrapping = WrapOptions(None, DEFAULT, None, SessionOptions(), fail_open)
        self.conversations = Conversations(self.store, wrapping, clock=lambda: 0.0, on_event=self.events.append)

    def begin(self, messages: Sequence[dict[str, Any]] = (), *, name: str = "work", **fields: Any) -> ExchangeSteps:
        body = jsonbytes.dump(jsonbytes.load(request_body(stream=False, messages=messages)) | fields)
        return exchange(self.conversations, body, wire=find_wire("openai_chat"), name=name)

    @property
    def log(self) -> list[str]:
        """The roles of the log."""
        return [entry.message.role for entry in self.conversations.sessions[0].entries]

    @property
    def lost(self) -> int:
        return sum(isinstance(event, ReplyLost) for event in self.events)

    def is_free(self) -> bool:
        """Whether the next call of the conversation could begin."""
        self.conversations.endings.finish()
        return not any(one.busy for one in self.conversations._open.values())


def effects_of(steps: ExchangeSteps, answers: Sequence[Answer]) -> Iterator[Effect]:
    """Perform the effects with these answers; yields each effect before it is performed."""
    coming, pieces, answer = iter(answers), iter(tuple[bytes]()), Answer(0, ())
    effect = next(steps, None)
    while effect is not None:
        yield effect
        if isinstance(effect, Send):
            answer = next(coming)
            pieces = iter(answer.pieces)
            effect = steps.send(Response(answer.status, answer.is_stream))
        elif isinstance(effect, Read):
            effect = steps.send(answer.content)
        elif isinstance(effect, Deliver | Pause):
            effect = next(steps, None)
        elif (piece := next(pieces, None)) is None and answer.is_cut:
            effect = steps.throw(Cut())
        else:
            effect = steps.send(piece)
    assert next(coming, None) is None


def play(steps: ExchangeSteps, answers: Sequence[Answer]) -> list[Effect]:
    """The effects of an exchange that is given these answers."""
    return list(effects_of(steps, answers))


def kinds(effects: Sequence[Effect]) -> str:
    """The effects by their initials."""
    return "".join(type(effect).__name__[0] for effect in effects)


def delivered(effects: Sequence[Effect]) -> bytes:
    return b"".join(effect.data for effect in effects if isinstance(effect, Deliver))


def sent(effects: Sequence[Effect]) -> list[bytes]:
    return [effect.body for effect in effects if isinstance(effect, Send)]


def test_a_whole_answer_is_read_and_delivered() -> None:
    side = Side()
    effects = play(side.begin(), [whole("plum")])
    assert (kinds(effects), delivered(effects)) == ("SRD", whole("plum").content)
    assert (side.log, side.events, side.is_free()) == (["user", "assistant"], [], True)


@pytest.mark.parametrize("size", [0, 1, 7])
def test_a_stream_is_delivered_piece_by_piece(size: int) -> None:
    side, answer = Side(), streamed("pl", "um", size=size)
    effects = play(side.begin(), [answer])
    assert kinds(effects) == "S" + "CD" * (len(answer.pieces) + 1)
    assert delivered(effects) == answer.content
    assert (side.log, side.lost, side.is_free()) == (["user", "assistant"], 0, True)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_is_too_long_is_sent_smaller_once(status: int) -> None:
    side, too_long = Side(), refused(status)
    effects = play(side.begin(long_history()), [too_long, whole("plum")])
    assert kinds(effects) == "SRSRD"
    first, second = sent(effects)
    assert len(second) < 0.7 * len(first)
    assert delivered(effects) == whole("plum").content
    # The provider named its window: another conversation keeps to it from the start.
    (learned,) = sent(play(side.begin(long_history(), name="other"), [whole("plum")]))
    assert len(learned) <= len(second)
    effects = play(Side().begin(long_history()), [refused(), refused()])
    assert (kinds(effects), delivered(effects)) == ("SRSRD", refused().content)


@pytest.mark.parametrize("answer", [refused(400, "no"), refused(429, "slow"), refused(500)])
def test_a_refusal_that_nothing_helps_is_delivered(answer: Answer) -> None:
    side = Side()
    effects = play(side.begin(), [answer])
    assert (kinds(effects), delivered(effects)) == ("SRD", answer.content)
    assert (side.log, side.events, side.is_free()) == (["user"], [], True)


def test_a_reply_that_asks_for_restore_is_answered_and_sent_again() -> None:
    side = Side()
    effects = play(side.begin(), [whole(calls=[RESTORE]), whole(calls=[RESTORE]), whole("plum")])
    assert kinds(effects) == "SRSRSRD"
    assert b'"plum"' in delivered(effects)
    assert side.log == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    # Both answers use one id and report the same usage, which the last request reports.
    told = [type(event) for event in side.events]
    assert told.count(Restored) == 2
    assert set(told) == {Restored, Repaired, UsageDoubted}
    bodies = sent(effects)
    assert all(after.startswith(before.split(b"]")[0]) for before, after in pairwise(bodies))


def test_a_stream_that_asks_for_restore_goes_on_in_the_next_response() -> None:
    side = Side()
    ask = streamed("Wait. ", calls=[RESTORE])
    effects = play(side.begin(), [ask, ask, streamed("plum")])
    assert kinds(effects).replace("CD", "") == "SSS"
    shown = delivered(effects)
    assert shown.count(b"Wait.") == 2
    assert b"plum" in shown
    assert b"restore" not in shown
    assert side.log == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert {type(event) for event in side.events} == {Restored, UsageMissing, Repaired}


@pytest.mark.parametrize("times", [0, 1, 2, 3])
@pytest.mark.parametrize("status", [408, 409, 429, 500, 529])
def test_a_streamed_answer_s_continuation_is_sent_again_like_the_sdks_do(status: int, times: int) -> None:
    side = Side()
    later = [refused(status, "later")] * times
    effects = play(side.begin(), [streamed("Wait. ", calls=[RESTORE]), *later, streamed("plum")][: times + 2][:4])
    assert len({*sent(effects)[1:]}) == 1
    assert (b"plum" in delivered(effects), b"later" in delivered(effects)) == (times < 3, times == 3)
    assert kinds(effects).count("P") == min(times, 2)
    assert side.is_free()


@pytest.mark.parametrize("ask", [whole(calls=[RESTORE]), streamed("Wait. ", calls=[RESTORE])])
def test_a_continuation_that_is_refused_is_the_caller_s(ask: Answer) -> None:
    side = Side()
    effects = play(side.begin(), [ask, *[refused(500, "later")] * (3 if ask.is_stream else 1)])
    if ask.is_stream:
        assert delivered(effects).endswith(b"event: error\ndata: " + refused(500, "later").content + b"\n\n")
    else:
        assert delivered(effects) == refused(500, "later").content
    assert (side.log, side.lost, side.is_free()) == (["user", "assistant", "tool"], ask.is_stream, True)


@pytest.mark.parametrize("ask", [whole(calls=[RESTORE]), streamed("Wait. ", calls=[RESTORE])])
def test_a_continuation_that_is_too_long_is_sent_smaller_once_and_its_edits_are_reported(ask: Answer) -> None:
    side = Side()
    effects = play(side.begin(long_history()), [ask, refused(), whole("plum")])
    _, continued, smaller = sent(effects)
    assert len(smaller) < 0.7 * len(continued)
    assert b"plum" in delivered(effects)
    assert any(isinstance(event, CompactionApplied) for event in side.events)
    side = Side()
    assert len(sent(play(side.begin(long_history()), [ask, refused(), refused()]))) == 3
    assert side.is_free()


def test_the_edits_of_a_smaller_request_are_reported() -> None:
    side = Side()
    play(side.begin(long_history()), [refused(), whole("plum")])
    assert any(isinstance(event, CompactionApplied) for event in side.events)


@pytest.mark.parametrize("cut", [streamed(*texts, is_cut=True) for texts in ((), ("pl",), ("pl", "um"))])
def test_a_stream_that_is_cut_is_reported_and_not_recorded(cut: Answer) -> None:
    side = Side()
    with pytest.raises(Cut):
        play(side.begin(), [cut])
    assert (side.log, side.lost, side.is_free()) == (["user"], 1, True)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize("words", [("pl", "um"), ()])
def test_all_bytes_before_a_cut_are_delivered(end: bytes, size: int, words: Sequence[str]) -> None:
    side, answer = Side(), streamed(*words, size=size, is_cut=not words)
    answer = answer._replace(pieces=tuple(piece.replace(b"\n", end) for piece in answer.pieces), is_cut=True)
    effects: list[Effect] = []
    with pytest.raises(Cut):
        effects.extend(effects_of(side.begin(), [answer]))
    assert delivered(effects) == answer.content
    assert side.log == ["user", "assistant"][: 1 + bool(words)]


def test_a_stream_that_is_cut_after_its_end_mark_is_recorded() -> None:
    side = Side()
    with pytest.raises(Cut):
        play(side.begin(), [streamed("pl", "um")._replace(is_cut=True)])
    assert (side.log, side.lost, side.is_free()) == (["user", "assistant"], 0, True)


WHOLE = [refused(), whole(calls=[RESTORE]), whole("plum")]
STREAMED = [refused(), streamed("Wait. ", calls=[RESTORE]), streamed("plum")]


def thrown(steps: ExchangeSteps) -> None:
    with suppress(Cut):
        steps.throw(Cut())


@pytest.mark.parametrize(
    "end", [ExchangeSteps.close, thrown, lambda _: None], ids=["closed", "thrown", "forgotten"]
)
@pytest.mark.parametrize("answers", [WHOLE, STREAMED], ids=["whole", "streamed"])
def test_a_call_that_ends_at_any_effect_frees_its_conversation(
    answers: Sequence[Answer], end: Callable[[ExchangeSteps], object]
) -> None:
    effects = play(Side().begin(long_history()), answers)
    for at, expected in enumerate(effects):
        side = Side()
        steps = side.begin(long_history())
        passing = effects_of(steps, answers)
        assert type(list(islice(passing, at + 1))[-1]) is type(expected)
        # The mark of the end is delivered after the reply was recorded.
        assert side.is_free() == any(delivered([effect]).endswith(b"[DONE]\n\n") for effect in effects[: at + 1])
        end(steps)
        del steps, passing
        assert side.is_free()
        # A stream of which something is missing is reported once, a whole answer that was left is not.
        assert side.lost <= any(isinstance(effect, Chunk) for effect in effects[: at + 1])


HELLO = {"role": "user", "content": "the secret is plum"}
REPLIED = [HELLO, {"role": "assistant", "content": "plum"}, {"role": "user", "content": "again"}]


def unheld(side: Side) -> ExchangeSteps:
    """A call that cannot hold its session."""
    play(side.begin(), [whole("plum")])
    side.store.fails = "lease"
    return side.begin(REPLIED)


def unpackable(side: Side) -> ExchangeSteps:
    """A call whose newest message no window holds."""
    return side.begin([HELLO | {"content": "word " * 200_000}])


def unreadable(side: Side) -> ExchangeSteps:
    """A call whose tools cannot be read."""
    return side.begin(tools=[1])


def cut(steps: ExchangeSteps) -> None:
    """Break the connection at the first effect."""
    next(steps)
    steps.throw(Cut())


@pytest.mark.parametrize("begun", [Side.begin, unreadable, unheld, unpackable])
def test_an_error_that_is_kept_keeps_no_conversation(begun: Callable[[Side], ExchangeSteps]) -> None:
    """Whoever logs or stores an error refers by its traceback to the call that failed."""
    side = Side(fail_open=False)
    steps = begun(side)
    with pytest.raises((Cut, LadingError)) as caught:
        cut(steps)
    assert caught.value.__traceback__
    assert side.is_free()


def test_a_call_that_is_over_lets_other_processes_go_on_with_the_conversation() -> None:
    side = Side()
    other = Side(store=side.store)
    play(side.begin(), [whole("plum")])
    play(other.begin(REPLIED), [whole("plum")])
    assert [session.name for session in other.conversations.sessions] == ["work"]
    assert other.log == ["user", "assistant", "user", "assistant"]


def test_a_history_that_goes_beyond_a_stream_ends_the_call_that_reads_it() -> None:
    side, answer = Side(), streamed("pl", "um")
    left = effects_of(side.begin(), [answer])
    for _ in islice(left, 2 * len(answer.pieces) - 1):
        pass
    play(side.begin(REPLIED), [whole("plum")])
    assert [session.name for session in side.conversations.sessions] == ["work"]
    assert (side.log, side.lost) == (["user", "assistant", "user", "assistant"], 0)


def test_a_session_that_an_unknown_error_left_half_changed_is_opened_anew() -> None:
    side = Side()
    passing = effects_of(side.begin(), [whole(calls=[RESTORE])])
    next(passing)
    side.store.fails = "append"
    deque(passing, maxlen=0)
    assert (side.lost, side.conversations.sessions) == (1, ())


def test_a_stream_that_is_left_once_its_reply_was_whole_is_recorded() -> None:
    side, answer = Side(), streamed("pl", "um")
    steps = side.begin()
    # All but the event that says that no more comes.
    for _ in islice(effects_of(steps, [answer]), 2 * len(answer.pieces) - 1):
        pass
    steps.close()
    assert (side.log, side.lost, side.is_free()) == (["user", "assistant"], 0, True)


def test_a_request_that_cannot_be_packed_has_no_effects() -> None:
    side = Side()
    side.store.close()
    assert play(side.begin(), []) == []
    assert [type(event) for event in side.events] == [PackingFailed]
    assert play(exchange(side.conversations, b"{}", wire=find_wire("openai_chat")), []) == []
    side = Side(fail_open=False)
    side.store.close()
    with pytest.raises(StoreError):
        play(side.begin(), [])


def test_an_answer_that_is_none_goes_by_as_it_came() -> None:
    side = Side()
    effects = play(side.begin(), [Answer(200, (b"<h1>Sign in</h1>",))])
    assert (kinds(effects), delivered(effects)) == ("SRD", b"<h1>Sign in</h1>")
    assert (side.log, side.lost, side.is_free()) == (["user"], 1, True)


def test_usage_of_an_answer_that_the_caller_has_not_seen_is_told_with_the_next() -> None:
    """The answer to ``restore`` is refused for a moment, and the SDK sends the call again."""
    side = Side()
    first = play(side.begin(), [whole(calls=[RESTORE]), refused(529, "busy")])
    assert b"usage" not in delivered(first)
    again = play(side.begin(), [whole("plum")])
    assert json.loads(delivered(again))["usage"]["prompt_tokens"] == 18

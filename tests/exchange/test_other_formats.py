"""Named conversations that go on in another provider format, where results are in other messages."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations

import pytest

from lading import jsonbytes
from lading.audit.replay import verify
from lading.compaction import DEFAULT
from lading.events import Event, Forked, ModelChanged, PackingFailed, ReplyLost
from lading.exchange.call import begin
from lading.exchange.conversations import Conversations
from lading.exchange.wrapping import WrapOptions
from lading.messages import Message
from lading.models.catalog import find_card
from lading.session.options import SessionOptions
from lading.session.regrouping import Run
from lading.stores.memory import MemoryStore
from lading.testing.legality import find_violations
from lading.wire import find_wire
from tests.examples import quick_first
from tests.exchange.told import MODELS, Told, list_said, path_of, request_body, response_body

STEPS = (
    Told("a", calls=("one", "two")),
    Told("a", "Read."),
    Told("a", calls=("three", "more")),
    Told("a", "Done."),
)
DIRECTIONS = [*permutations(MODELS, 2)]


class Caller:
    """A caller that translates its history for each provider, over one store."""

    def __init__(self) -> None:
        self.store, self.events, self.history = MemoryStore(), list[Event](), list[Told]()
        self.numbers = 0
        self.reopen()

    def reopen(self) -> None:
        """Go on in another process."""
        wrapping = WrapOptions(200_000, DEFAULT, None, SessionOptions(), fail_open=False)
        self.conversations = Conversations(self.store, wrapping, clock=lambda: 0.0, on_event=self.events.append)

    def ask(self, wire: str, reply: Told) -> list[tuple[str, ...]]:
        """Send the history, take this reply; return what the request said after its instructions."""
        begun = begin(
            self.conversations,
            request_body(self.history, wire),
            wire=find_wire(wire),
            name="work",
            path=path_of(wire),
        )
        assert begun is not None
        body = jsonbytes.load(begun.body)
        card = find_card(MODELS[wire])[0]
        assert find_violations(wire, body, card=card, issued=None) == []
        begun.take(response_body(reply, wire))
        begun.release()
        self.history.append(reply.shown)
        return list_said(body, wire)[1:]

    def answer(self, *, words: str = "") -> None:
        """Answer the newest reply."""
        calls = self.history[-1].calls if self.history else ()
        self.numbers += 1
        said = words if calls else f"Question {self.numbers}."
        self.history.append(Told("results" if calls else "user", said, calls))

    def play(self, wire: str, replies: Iterable[Told]) -> None:
        for reply in replies:
            self.answer()
            assert (
                self.ask(wire, reply) == list_said(jsonbytes.load(request_body(self.history[:-1], wire)), wire)[1:]
            )

    @property
    def kinds(self) -> list[type[Event]]:
        return [
            type(event)
            for event in self.events
            if isinstance(event, Forked | ModelChanged | PackingFailed | ReplyLost)
        ]

    def count_replies(self) -> int:
        return sum(entry.message.role == "assistant" for entry in self.store.entries("default", "work"))

    def problems(self) -> set[str]:
        names = [name for _, name in self.store.sessions("default")]
        return {outcome.problem for name in names for outcome in verify(self.store, tenant="default", session=name)}


@pytest.mark.parametrize("is_open", [False, True], ids=["stored", "open"])
@pytest.mark.parametrize(("before", "after"), DIRECTIONS)
def test_a_conversation_goes_on_in_another_format(before: str, after: str, is_open: bool) -> None:
    caller = Caller()
    caller.play(before, STEPS)
    if not is_open:
        caller.reopen()
    caller.play(after, [Told("a", calls=("four", "five", "six")), Told("a", calls=("seven",)), Told("a", "Fine.")])
    caller.play(before, [Told("a", calls=("eight", "nine")), Told("a", "Bye.")])
    assert caller.kinds == [ModelChanged, ModelChanged]
    assert caller.count_replies() == 9
    assert caller.problems() == {""}


@pytest.mark.parametrize("text", ["", "Reading."])
@pytest.mark.parametrize("calls", [("hidden", "one"), ("one", "hidden"), ("hidden", "one", "two")])
@pytest.mark.parametrize(("before", "after"), DIRECTIONS)
def test_a_call_that_its_caller_did_not_see_is_sent_in_another_format(
    before: str, after: str, calls: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``find_violations`` of each request finds none; the model demands a signature in the first call."""
    monkeypatch.setitem(MODELS, "gemini", "gemini-3-pro-preview")
    caller = Caller()
    caller.answer()
    caller.ask(before, Told("a", text, calls))
    for later in ("three", "four"):
        caller.answer()
        said = caller.ask(after, Told("a", calls=(later,)))
        asked = [(one, kind) for kind, one, *_ in said if one in calls]
        assert sorted(asked) == sorted((one, kind) for kind in ("call", "result") for one in calls)
    assert set(caller.kinds) == {ModelChanged}
    assert caller.problems() == {""}


def test_one_client_and_model_may_have_two_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "openai_responses", MODELS["openai_chat"])
    caller = Caller()
    caller.play("openai_chat", STEPS)
    caller.play("openai_responses", [Told("a", calls=("four", "five")), Told("a", "Fine.")])
    caller.play("openai_chat", [Told("a", "Bye.")])
    assert caller.kinds == []
    assert caller.count_replies() == 7
    assert caller.problems() == {""}


def draw(random_: random.Random, caller: Caller) -> Told:
    ids = tuple(f"c{caller.numbers}x{at}" for at in range(random_.choice([0, 1, 2, 2, 3])))
    text = f"Reply {caller.numbers}." if not ids or random_.random() < 0.4 else ""
    return Told("a", text, ids)


@pytest.mark.parametrize("seed", quick_first(range(40), 8))
def test_whatever_is_said_in_any_formats_is_one_conversation(seed: int) -> None:
    random_, caller, wire = random.Random(seed), Caller(), "anthropic"
    for _ in range(14):
        if random_.random() < 0.35:
            wire = random_.choice([*MODELS])
            if random_.random() < 0.5:
                caller.reopen()
        caller.answer(words=f"Words {caller.numbers}." if random_.random() < 0.3 else "")
        asked = [*caller.history]
        assert (
            caller.ask(wire, draw(random_, caller))
            == list_said(jsonbytes.load(request_body(asked, wire)), wire)[1:]
        )
    assert set(caller.kinds) <= {ModelChanged}
    assert caller.count_replies() == 14
    assert caller.problems() == {""}


def replace_at(history: Sequence[Told], at: int, told: Told) -> list[Told]:
    return [*history[:at], told, *history[at + 1 :]]


CHANGES: dict[str, Callable[[list[Told]], list[Told]]] = {
    "another call": lambda history: replace_at(history, 1, Told("a", "", ("one", "other"))),
    "another result": lambda history: replace_at(history, 2, Told("results", "", ("one", "other"))),
    "a result less": lambda history: replace_at(history, 2, Told("results", "", ("one",))),
    "words beside": lambda history: replace_at(history, 2, Told("results", "More.", ("one", "two"))),
    "another content": lambda history: replace_at(history, 2, Told("results", "", ("one", "two"), "removed")),
    "another answer": lambda history: replace_at(history, 3, Told("a", "Not read.")),
    "another newest answer": lambda history: replace_at(history, 7, Told("a", "Not done.")),
    "nothing else": list,
}


def list_kinds(before: str, after: str, change: str) -> list[type[Event]]:
    """What happens when a history is given again with a change, in another format."""
    caller = Caller()
    caller.play(before, STEPS)
    caller.reopen()
    caller.history = CHANGES[change](caller.history)
    caller.answer()
    caller.ask(after, Told("a", "Fine."))
    assert caller.problems() == {""}
    return caller.kinds


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("before", "after"), DIRECTIONS)
def test_a_changed_history_is_the_same_conversation_in_all_formats_or_in_none(
    before: str, after: str, change: str
) -> None:
    is_other = [Forked in list_kinds(wire, wire, change) for wire in (before, after)]
    kinds = list_kinds(before, after, change)
    assert (Forked in kinds) in is_other
    assert kinds == ([Forked] if Forked in kinds else [ModelChanged])
    if change != "words beside":
        assert is_other == [change in ("another call", "another result", "a result less")] * 2


@pytest.mark.parametrize(("before", "after"), [("openai_chat", "anthropic"), ("gemini", "openai_responses")])
def test_only_the_first_request_in_another_format_is_regrouped(
    before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    regrouped: list[Run] = []
    regroup = Run.regroup

    def watched(run: Run, given: Iterable[Message]) -> list[Message]:
        regrouped.append(run)
        return regroup(run, given)

    monkeypatch.setattr(Run, "regroup", watched)
    caller = Caller()
    for turn in range(5):
        caller.play(before, [one._replace(calls=tuple(f"{call}-{turn}" for call in one.calls)) for one in STEPS])
    assert regrouped == []
    caller.play(after, [Told("a", "Fine.")])
    assert len({run.first for run in regrouped}) == 10
    regrouped.clear()
    for at in range(3):
        caller.play(after, [Told("a", "", (f"l{at}", f"r{at}")), Told("a", "Fine.")])
    assert regrouped == []
    assert caller.kinds == [ModelChanged]

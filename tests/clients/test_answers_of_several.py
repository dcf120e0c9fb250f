"""Answers that consist of several replies: what the model says beside and after its calls of ``restore`` goes back
once, as it was issued, however the caller continues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct

from lading import open_store
from lading.addresses import RESTORE
from lading.clients import wrap
from lading.events import Event, PackingFailed, Unpacked
from lading.testing import Say, Seen, StrictProvider, Use
from tests.clients.agents import MODELS, anthropic_client, openai_client
from tests.clients.summed import items_of
from tests.examples import share_of_examples

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


class Part(Struct, frozen=True):
    """One reply of the model."""

    text: bool
    thinks: bool
    restores: int
    reads: int


class Played(Struct, frozen=True):
    """The replies of a model, and how its caller goes on from them."""

    wire: str
    parts: tuple[Part, ...]
    streams: tuple[bool, ...]
    """Whether each call is streamed."""
    by_ids: bool = False
    """Whether the caller sends the id of a response in place of the history,"""
    backs: tuple[int, ...] = ()
    """and how many responses it goes back after each call."""
    restarts: tuple[bool, ...] = ()
    """Whether the process has ended before each call: only its store is left."""
    moves: bool = False
    """Whether another client, which knows nothing of the conversation, makes each call."""


class Model:
    """Says each reply in turn, marked by its number, then only answers."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = [*parts]
        self.said = 0

    def __call__(self, _: Seen) -> Say:
        part = self.parts[self.said] if self.said < len(self.parts) else Part(True, False, 0, 0)
        self.said += 1
        asks = [Use(RESTORE, {"address": "#1"}) for _ in range(part.restores)]
        reads = [Use("read", {"path": f"{self.said}/{at}"}) for at in range(part.reads)]
        return Say(f"<said {self.said}>" * part.text, (*asks, *reads), thinking="Hm." * part.thinks)


def ask(
    client: Any, wire: str, said: list[Any], *, stream: bool, previous: str
) -> tuple[list[Any], list[Any], str]:
    """The items of the answer, the results of its calls or a question, and its id."""
    if wire == "anthropic":
        fields: dict[str, Any] = {"model": MODELS[wire], "max_tokens": 900, "thinking": {"type": "adaptive"}}
        fields |= {"messages": said, "tools": [{"name": "read", "input_schema": SCHEMA}]}
        with client.messages.stream(**fields) if stream else Whole(client.messages.create, fields) as events:
            made = events.get_final_message()
        uses = [block.id for block in made.content if block.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": use, "content": "ok"} for use in uses]
        return (
            [{"role": "assistant", "content": made.content}],
            [{"role": "user", "content": results or "On."}],
            made.id,
        )
    if wire == "openai_chat":
        tools: list[Any] = [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]
        fields, calls = {"model": MODELS[wire], "messages": said, "tools": tools}, client.chat.completions
        with calls.stream(**fields) if stream else Whole(calls.create, fields) as events:
            made = events.get_final_completion()
        message = made.choices[0].message
        told = [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in message.tool_calls or ()]
        return [message.to_dict()], told or [{"role": "user", "content": "On."}], made.id
    tools = [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}]
    fields = {"model": MODELS[wire], "input": said, "tools": tools, "reasoning": {"effort": "low"}}
    fields |= {"previous_response_id": previous} if previous else {}
    with client.responses.stream(**fields) if stream else Whole(client.responses.create, fields) as events:
        made = events.get_final_response()
    asked = [item.call_id for item in made.output if item.type == "function_call"]
    told = [{"type": "function_call_output", "call_id": call, "output": "ok"} for call in asked]
    return list(made.output), told or [{"role": "user", "content": "On."}], made.id


class Whole:
    """An answer that is not streamed, in the form of one that is."""

    def __init__(self, create: Any, fields: dict[str, Any]) -> None:
        self._made = create(**fields)
        self.get_final_message = self.get_final_completion = self.get_final_response = lambda: self._made

    def __enter__(self) -> Whole:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""


def play(played: Played) -> None:
    """Play the conversation; every request is legal and holds every text once."""
    events: list[Event] = []
    with StrictProvider(Model(played.parts)) as provider, open_store("memory", "") as store:
        make_client: Any = anthropic_client if played.wire == "anthropic" else openai_client

        def open_client() -> Any:
            # None: a store in memory, which ends with its client.
            kept = None if played.moves else store
            return wrap(make_client(provider), store=kept, on_event=events.append, fail_open=False)

        client = open_client()
        new: list[Any] = [{"role": "user", "content": "Go."}]
        history, points = list[Any](), [("", new)]
        for at, stream in enumerate(played.streams):
            if played.moves:
                client.close()
                client = open_client()
            back = played.backs[at % len(played.backs)] if played.backs else 0
            if any(played.restarts[at : at + 1]):
                client.close()
                client = open_client()
            previous, new = points[max(len(points) - 1 - back, 0)]
            history = [] if played.by_ids else [*history, *new]
            said, told, id_ = ask(client, played.wire, history or new, stream=stream, previous=previous)
            points.append((id_ if played.by_ids else "", told))
            history += said
        assert provider.violations == []
        assert not [event for event in events if isinstance(event, PackingFailed | Unpacked)]
        for request in provider.requests:
            sent = [json.dumps(item) for item in items_of(request.body) if item.get("role") == "assistant"]
            texts = "".join(sent)
            for number in range(1, len(provider.issues) + 1):
                assert texts.count(f"<said {number}>") <= 1
        client.close()


PARTS = st.lists(
    st.builds(Part, st.booleans(), st.booleans(), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6
).map(tuple)
STREAMS = st.lists(st.booleans(), min_size=2, max_size=5).map(tuple)
MIXED, ALONE, SAYS = Part(True, True, 1, 1), Part(True, True, 1, 0), Part(True, False, 0, 0)
READS, THINKS, SILENT = Part(True, True, 0, 1), Part(True, True, 0, 0), Part(False, True, 1, 0)


@share_of_examples(0.5)
@given(st.builds(Played, st.sampled_from([*MODELS]), PARTS, STREAMS))
@example(Played("openai_responses", (ALONE, SAYS), (True, False)))
@example(Played("openai_chat", (ALONE, SAYS), (True, False)))
@example(Played("anthropic", (ALONE, MIXED), (True, True, False)))
def test_a_history_holds_each_reply_once(played: Played) -> None:
    play(played)


@share_of_examples(0.5)
@given(st.builds(Played, st.sampled_from([*MODELS]), PARTS, STREAMS, moves=st.just(True)))
@example(Played("anthropic", (ALONE, READS), (True, False), moves=True))
@example(Played("anthropic", (SILENT, READS), (True, False), moves=True))
@example(Played("anthropic", (ALONE, THINKS), (True, False), moves=True))
def test_a_client_that_does_not_know_the_conversation_goes_on(played: Played) -> None:
    play(played)


@share_of_examples(0.5)
@given(
    st.builds(
        Played,
        st.just("openai_responses"),
        PARTS,
        STREAMS,
        st.just(True),
        st.lists(st.integers(0, 3), max_size=5).map(tuple),
        STREAMS,
    )
)
@example(Played("openai_responses", (ALONE, SAYS), (True, False), True, (), (False, True)))
@example(Played("openai_responses", (ALONE, MIXED, MIXED), (True, True, False), True, (), (False, True, True)))
@example(Played("openai_responses", (MIXED, SAYS), (False, True), True, (), (False, True)))
@example(Played("openai_responses", (MIXED, SAYS), (False, False), True))
@example(Played("openai_responses", (MIXED, MIXED, SAYS), (False, False, False, False), True, (0, 0, 1, 2)))
@example(Played("openai_responses", (ALONE, MIXED, SAYS), (True, True, True), True, (0, 1)))
def test_a_caller_by_ids_goes_on_from_any_response(played: Played) -> None:
    play(played)


@pytest.mark.parametrize("stream", [False, True])
def test_a_chain_goes_on_after_its_session_was_closed(stream: bool) -> None:
    with StrictProvider(Model([MIXED, SAYS])) as provider:
        client: Any = wrap(openai_client(provider), fail_open=False)
        question: list[Any] = [{"role": "user", "content": "Go."}]
        _, told, id_ = ask(client, "openai_responses", question, stream=stream, previous="")
        (session,) = client.lading.sessions
        client.lading.conversations.drop(session)
        ask(client, "openai_responses", told, stream=stream, previous=id_)
        assert provider.violations == []
        assert "previous_response_id" not in provider.requests[-1].body
        client.close()

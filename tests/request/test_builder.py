"""A request that grew, and of which an edit changed a part, is the request of its view made at once."""

from __future__ import annotations

import pytest

from lading.compaction.clearing import clear
from lading.compaction.cutting import cut
from lading.history.history import History
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, Text, Tool, ToolCall, user_text
from lading.request.builder import RequestBuilder
from lading.wire import WIRES, find_wire
from tests.engines import TOOLS, card, template
from tests.histories import answered, called, said, tool_loop
from tests.views import address, admitted, count, pressure

LONG = "word " * 400
TOOLS_TOKENS = 50
every_wire = pytest.mark.parametrize("wire", sorted(WIRES))


def brought_up(
    request: RequestBuilder, view: View, *, wire: str, tools: tuple[Tool, ...] = TOOLS
) -> RequestBuilder:
    """The request, showing all of the view."""
    request.open(view, tools=tools, tools_tokens=TOOLS_TOKENS, template=template(wire))
    request.show(view)
    return request


def made(view: View, *, wire: str) -> RequestBuilder:
    """The request of a view, made at once."""
    return brought_up(RequestBuilder(find_wire(wire), card(), strict=True), view, wire=wire)


def grown(messages: list[Message], *, wire: str) -> tuple[RequestBuilder, History]:
    """A request brought up after each message, and the history."""
    history, request = admitted([]), RequestBuilder(find_wire(wire), card(), strict=True)
    for message in messages:
        history.append(message, call=1)
        brought_up(request, history.view, wire=wire).violations()
    return request, history


def state(request: RequestBuilder) -> tuple[object, ...]:
    return request.body(), request.body_chain, request.ends, request.violations()


def parallel() -> list[Message]:
    """A system prompt, and a round of two calls with long results."""
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    start = [Message("system", (Text("You are an agent."),)), user_text("Do it.")]
    return [*start, both, answered("a", LONG), answered("b", LONG), said("ok"), user_text("Go on.")]


@every_wire
def test_a_request_that_grew_is_the_one_made_at_once(wire: str) -> None:
    for messages in (tool_loop(3), parallel()):
        request, history = grown(messages, wire=wire)
        assert state(request) == state(made(history.view, wire=wire))
        assert request.ends[-1] == history.view.tokens + TOOLS_TOKENS
        assert request.violations() == []


@every_wire
def test_after_a_cut_it_is_the_one_made_at_once(wire: str) -> None:
    request, history = grown(tool_loop(5), wire=wire)
    draft = cut(history.view, 6, reason="test", pressure=pressure())
    request.forget(history.apply(draft, call=2, room_tokens=1000))
    brought_up(request, history.view, wire=wire)
    assert state(request) == state(made(history.view, wire=wire))
    assert request.ends[-1] == history.view.tokens + TOOLS_TOKENS


@every_wire
def test_an_edit_of_the_second_of_two_results_that_share_a_turn_is_shown(wire: str) -> None:
    request, history = grown(parallel(), wire=wire)
    (draft,) = clear(history.view, history.view.items[4:5], reason="test", pressure=pressure())
    request.forget(history.apply(draft, call=2, room_tokens=1000))
    brought_up(request, history.view, wire=wire)
    assert address("4").encode() in request.body()
    assert state(request) == state(made(history.view, wire=wire))


@every_wire
def test_what_takes_the_place_of_a_checked_message_is_checked(wire: str) -> None:
    request, history = grown(
        [user_text("hi"), called("a"), answered("a"), said("ok"), user_text("more")], wire=wire
    )
    draft = Draft("dropped", 2, 2, (user_text("gone"),), "test", (address("2"),))
    request.forget(history.apply(draft, call=2, room_tokens=1000))
    brought_up(request, history.view, wire=wire)
    assert request.violations() == made(history.view, wire=wire).violations() != []


@every_wire
def test_other_fields_or_tools_are_another_envelope(wire: str) -> None:
    request, history = grown(tool_loop(1), wire=wire)
    before, body = list(request.body_chain), request.body()
    brought_up(request, history.view, wire=wire, tools=TOOLS[:1])
    assert request.body_chain[0] != before[0]
    assert brought_up(request, history.view, wire=wire).body() == body
    fields = template(wire) | {"temperature": 0.5}
    request.open(history.view, tools=TOOLS, tools_tokens=TOOLS_TOKENS, template=fields)
    request.show(history.view)
    assert request.envelope["temperature"] == 0.5
    assert request.body_chain[0] != before[0]


@every_wire
def test_a_field_that_is_no_part_of_the_prompt_leaves_the_prompt_as_it_is(wire: str) -> None:
    request, history = grown(tool_loop(1), wire=wire)
    before, fields = list(request.prompt_chain), template(wire)
    streams = {} if wire == "gemini" else {"stream": True}  # Gemini has it in the URL.
    limited = {**streams, **fields, find_wire(wire).layout.limits[0].partition(".")[0]: 77}
    request.open(history.view, tools=TOOLS, tools_tokens=TOOLS_TOKENS, template=limited)
    request.show(history.view)
    assert request.prompt_chain == before
    assert len(request.body_chain) == len(request.prompt_chain)
    brought_up(request, history.view, wire=wire, tools=TOOLS[:1])
    assert request.prompt_chain[0] != before[0]


def test_a_link_covers_all_before_it() -> None:
    one, other = (admitted([user_text(text), said("same"), user_text("same")]).view for text in ("one", "other"))
    chains = [made(view, wire="openai_chat").body_chain for view in (one, other)]
    assert chains[0][0] == chains[1][0]
    assert set(chains[0][1:]).isdisjoint(chains[1][1:])


def test_counts_of_prefixes_hold_tools_and_all_messages_before() -> None:
    request, history = grown(tool_loop(1), wire="openai_chat")
    tokens = [count(message) for message in history.view.messages]
    assert request.ends == [TOOLS_TOKENS + sum(tokens[:end]) for end in range(len(tokens) + 1)]

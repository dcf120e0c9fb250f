"""Which reasoning each adapter takes back, and what becomes of the rest: the document's table, row by row."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from lading import Session, SessionOptions
from lading.history.repair import Repairer
from lading.messages import Message, Reasoning, Text, Tool, ToolCall, tool_result, user_text
from lading.models.card import Card
from lading.models.catalog import find_card
from lading.presets.open_multi_agent import AgentConfig, MinChars, SlidingWindow, Summarize, strategy_for
from lading.wire import WIRES, check, find_wire
from lading.wire.fitting import find_needs
from lading.wire.reasoning import ECHOES, ReasoningPolicy, find_adapter, show

SIGNED: dict[str, Reasoning] = {
    "anthropic": Reasoning("plan", signature="c2ln", provenance="anthropic"),
    "bedrock": Reasoning("plan", signature="c2ln", provenance="bedrock"),
    "gemini": Reasoning(
        "plan", template={"text": "str", "thought": True, "thoughtSignature": "c2ln"}, provenance="gemini"
    ),
}
AS_TEXT = ReasoningPolicy(as_text=True, by_table=True)
WIRE_OF = {"anthropic": "anthropic", "bedrock": "anthropic", "gemini": "gemini"}
READ = Tool("read", "Reads.", {"type": "object", "properties": {}})
SHOWN = "<thinking>plan</thinking>"


def card_of(adapter: str) -> Card:
    """A card whose model is reached by that adapter."""
    names = {
        "anthropic": "claude-sonnet-4-5",
        "bedrock": "bedrock/anthropic.claude-sonnet-4-5",
        "gemini": "gemini-3-pro",
        "openai": "gpt-5",
        "deepseek": "deepseek-v4-pro",
        "hunyuan": "hunyuan-t1",
        "mimo": "mimo-v2-pro",
        "azure": "azure/gpt-5",
        "copilot": "github_copilot/gpt-5",
    }
    card = find_card(names.get(adapter, "gpt-5"))[0]
    return card if adapter in names else replace(card, conduct=replace(card.conduct, host=adapter))


def items(adapter: str, messages: list[Message], *, policy: ReasoningPolicy = AS_TEXT) -> list[Any]:
    """What the model is sent of the messages' answers."""
    wire, card = find_wire(WIRE_OF.get(adapter, "openai_chat")), card_of(adapter)
    assert find_adapter(wire.name, card) == adapter
    border = Repairer(find_needs(wire, card, policy=policy))
    shown = [one for at, message in enumerate(messages) for one in border.repair(message, entry=at).messages]
    return [item for one in shown if one.role == "assistant" for item in wire.write([one], card)]


def answer(*parts: Any, adapter: str) -> Message:
    return Message("assistant", parts, origin=WIRE_OF.get(adapter, "openai_chat"))


def test_the_adapters_of_the_document() -> None:
    kinds = {kind: {name for name, echo in ECHOES.items() if echo == kind} for kind in ECHOES.values()}
    assert kinds["own-issued"] - {"openai_responses"} == {"anthropic", "gemini", "bedrock"}
    assert kinds["tool-use-only"] == {"deepseek", "hunyuan", "mimo"}
    assert kinds["never"] == {"openai", "azure", "copilot", "ai-sdk"}


@pytest.mark.parametrize("adapter", SIGNED)
def test_own_and_signed_is_echoed(adapter: str) -> None:
    (sent,) = items(adapter, [answer(SIGNED[adapter], Text("Hi."), adapter=adapter)])
    own = {"type": "thinking", "thinking": "plan", "signature": "c2ln"}
    if adapter == "gemini":
        assert sent["parts"] == [{"text": "plan", "thought": True, "thoughtSignature": "c2ln"}, {"text": "Hi."}]
    else:
        assert sent["content"] == [own, {"type": "text", "text": "Hi."}]


@pytest.mark.parametrize("adapter", ["anthropic", "bedrock"])
def test_own_and_redacted_is_echoed(adapter: str) -> None:
    hidden = Reasoning(data="b3BhcXVl", provenance=adapter)
    (sent,) = items(adapter, [answer(hidden, Text("Hi."), adapter=adapter)])
    assert sent["content"][0] == {"type": "redacted_thinking", "data": "b3BhcXVl"}


@pytest.mark.parametrize("adapter", SIGNED)
def test_own_without_a_signature_is_text(adapter: str) -> None:
    unsigned = replace(SIGNED[adapter], signature=None, template=None)
    (sent,) = items(adapter, [answer(unsigned, Text("Hi."), adapter=adapter)])
    assert (sent.get("content") or sent["parts"][0]["text"]) == f"{SHOWN}Hi."


@pytest.mark.parametrize(("issuer", "adapter"), [*permutations(SIGNED, 2)])
def test_foreign_to_those_who_sign_is_text(issuer: str, adapter: str) -> None:
    (sent,) = items(adapter, [answer(SIGNED[issuer], Text("Hi."), adapter=issuer)])
    assert (sent.get("content") or sent["parts"][0]["text"]) == f"{SHOWN}Hi."


@pytest.mark.parametrize("host", ["deepseek", "hunyuan", "mimo"])
def test_own_of_a_conversation_with_calls_is_echoed_with_every_answer(host: str) -> None:
    call = ToolCall("c", "read", "{}")
    thinks = Reasoning("plan", provenance=host)
    first, last = items(
        host,
        [answer(thinks, call, adapter=host), tool_result("c", "ok"), answer(thinks, Text("Hi."), adapter=host)],
    )
    assert first["reasoning_content"] == last["reasoning_content"] == "plan"
    assert (first["content"], last["content"]) in (("", "Hi."), (None, "Hi."))


@pytest.mark.parametrize("host", ["deepseek", "hunyuan", "mimo"])
def test_own_of_a_conversation_without_calls_is_left_out(host: str) -> None:
    (sent,) = items(host, [answer(Reasoning("plan", provenance=host), Text("Hi."), adapter=host)])
    assert not sent.get("reasoning_content")
    assert sent["content"] == "Hi."


@pytest.mark.parametrize("host", ["deepseek", "hunyuan", "mimo"])
@pytest.mark.parametrize("calls", [True, False])
def test_foreign_to_those_hosts_is_text(host: str, calls: bool) -> None:
    thought = Reasoning("plan", provenance="openai")
    parts = (thought, Text("Hi."), *((ToolCall("c", "read", "{}"),) if calls else ()))
    (sent,) = items(host, [answer(*parts, adapter=host)])
    assert sent["content"] == f"{SHOWN}Hi."
    assert not sent.get("reasoning_content")


@pytest.mark.parametrize("host", ["openai", "azure", "copilot", "ai-sdk"])
@pytest.mark.parametrize("issuer", ["anthropic", "gemini", "deepseek", "openai", "azure"])
def test_any_to_those_who_never_take_it_is_text(host: str, issuer: str) -> None:
    thought = SIGNED.get(issuer) or Reasoning("plan", provenance=issuer)
    (sent,) = items(host, [answer(thought, Text("Hi."), adapter=issuer)])
    assert sent["content"] == f"{SHOWN}Hi."
    assert "reasoning_content" not in sent


@pytest.mark.parametrize("adapter", ["anthropic", "gemini", "openai", "deepseek"])
def test_what_was_redacted_says_only_that(adapter: str) -> None:
    hidden = Reasoning("a secret", data="b3BhcXVl", provenance="bedrock")
    (sent,) = items(adapter, [answer(hidden, Text("Hi."), adapter="bedrock")])
    text = sent.get("content") or sent["parts"][0]["text"]
    assert text == "<thinking>[redacted]</thinking>Hi."


@pytest.mark.parametrize("adapter", ["anthropic", "gemini", "openai", "deepseek"])
def test_without_the_option_it_is_left_out(adapter: str) -> None:
    (sent,) = items(
        adapter, [answer(SIGNED["bedrock"], Text("Hi."), adapter="bedrock")], policy=AgentConfig().reasoning
    )
    assert (sent.get("content") or sent["parts"][0]["text"]) == "Hi."


def test_several_stand_before_the_next_text_or_alone() -> None:
    thoughts = [Reasoning(text, provenance="gemini") for text in ("one", "", "two")]
    (sent,) = items("openai", [answer(*thoughts, ToolCall("c", "read", "{}"), adapter="gemini")])
    assert sent["content"] == "<thinking>one</thinking><thinking>two</thinking>"


@pytest.mark.parametrize(
    ("chosen", "chars"), [(None, 1_200), (True, 1_200), (MinChars(4_000), 4_000), (MinChars(0), 1), (False, 5_000)]
)
def test_the_limit_of_the_text(chosen: Any, chars: int) -> None:
    policy = AgentConfig(preserve_reasoning_as_text=True, compress_reasoning_text=chosen).reasoning
    shown = show(Reasoning("x" * 5_000), "", max_chars=policy.max_chars)
    assert shown is not None
    assert len(shown.text) == chars + len("<thinking></thinking>")


def test_a_longer_text_keeps_start_and_end_seventy_to_thirty() -> None:
    shown = show(Reasoning("a" * 829 + "b" * 500 + "c" * 354), "", max_chars=1_200)
    assert shown is not None
    assert shown.text == f"<thinking>{'a' * 829}...[truncated]...{'c' * 354}</thinking>"
    whole = show(Reasoning("a" * 1_200), "", max_chars=1_200)
    assert whole is not None
    assert whole.text == f"<thinking>{'a' * 1_200}</thinking>"
    tiny = show(Reasoning("abc" * 99), "", max_chars=17)
    assert tiny is not None
    assert tiny.text == "<thinking>abcabcabcabcabcab</thinking>"


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize("adapter", ["anthropic", "gemini", "openai", "deepseek"])
def test_each_field_of_chat_obeys_the_policy(field: str, adapter: str) -> None:
    given = {"role": "assistant", "content": "Hi.", field: "plan"}
    (message,) = find_wire("openai_chat").read_items([given])
    (kept,) = items(adapter, [message], policy=replace(AS_TEXT, as_text=False))
    assert "plan" not in str(kept)
    assert field not in kept or kept[field] == ""
    (shown,) = items(adapter, [message])
    assert (shown.get("content") or shown["parts"][0]["text"]) == f"{SHOWN}Hi."
    assert items("openai", [message], policy=ReasoningPolicy()) == [given]


def test_a_model_that_demands_its_reasoning_gets_it_once_in_the_field_that_is_given() -> None:
    given = {"role": "assistant", "content": "Hi.", "reasoning": "plan"}
    (message,) = find_wire("openai_chat").read_items([given])
    assert items("deepseek", [message], policy=ReasoningPolicy()) == [given | {"reasoning_content": ""}]


def test_text_is_never_read_back_as_reasoning() -> None:
    for name in WIRES:
        wire, card = find_wire(name), find_card("gpt-5")[0]
        written = wire.write([Message("assistant", (Reasoning(SHOWN, is_shown=True), Text("Hi.")))], card)
        (read,) = wire.read_items(written)
        assert not any(isinstance(part, Reasoning) for part in read.parts)
        assert read.text.startswith(SHOWN)


def test_only_what_a_providers_field_says_has_a_provenance() -> None:
    bodies: dict[str, Any] = {
        "anthropic": {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "c2ln"}]},
        "gemini": {"role": "model", "parts": [{"text": "t", "thought": True}]},
        "openai_chat": {"role": "assistant", "content": "", "reasoning_content": "t"},
        "openai_responses": {"type": "reasoning", "id": "rs_1", "summary": []},
    }
    found = {}
    for name, item in bodies.items():
        (message,) = find_wire(name).read_items([item])
        found[name] = [part.provenance for part in message.parts if isinstance(part, Reasoning)]
    assert found == {name: ["openai" if name == "openai_chat" else name] for name in bodies}
    assert Reasoning("by hand").provenance == ""


def issued(model: str, wire: str = "") -> str:
    """Who issued the reasoning of an answer that a session of the model was given."""
    with Session(model, wire=wire or None) as session:
        session.add("Hi")
        item = {"role": "assistant", "content": "Hi.", "reasoning_content": "t"}
        if session.wire.name == "anthropic":
            item = {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "c2ln"}]}  # type: ignore[dict-item]
        session.add(item)
        (part, *_) = session.entries[-1].message.parts
        assert isinstance(part, Reasoning)
        return part.provenance


def test_a_session_knows_the_host() -> None:
    assert issued("deepseek-v4-pro") == "deepseek"
    assert issued("gpt-5") == "openai"
    assert issued("claude-sonnet-4-5") == "anthropic"
    assert issued("bedrock/anthropic.claude-sonnet-4-5") == "bedrock"
    assert issued("hunyuan-t1") == "hunyuan"
    assert issued("mimo-v2-pro") == "mimo"


@pytest.mark.parametrize("given", ["gemini", "openai_responses", "openai_chat"])
@pytest.mark.parametrize("forced", [True, False])
def test_foreign_reasoning_toward_claude_is_left_out_unless_forced(given: str, forced: bool) -> None:
    encrypted = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "plan"}],
        "encrypted_content": "gAAA",
    }
    said: dict[str, list[Any]] = {
        "gemini": [
            {
                "role": "model",
                "parts": [{"text": "plan", "thought": True, "thoughtSignature": "c2ln"}, {"text": "Hi."}],
            }
        ],
        "openai_responses": [encrypted, {"role": "assistant", "content": "Hi."}],
        "openai_chat": [{"role": "assistant", "content": "Hi.", "reasoning_content": "plan"}],
    }
    options = SessionOptions(force_reasoning_text=forced)
    with Session("claude-sonnet-4-5", options=options) as session:
        session.add("Hello")
        session.add(list(find_wire(given).read_items(said[given])))
        session.add("Go on.")
        pack = session.pack()
        content = pack.request["messages"][1]["content"]
        assert content == (f"{SHOWN}Hi." if forced else "Hi.")
        rules = [event.rule for event in pack.events if hasattr(event, "rule")]
        assert rules == (["reasoning_as_text"] if forced else ["reasoning_left_out"])
        assert check(pack.request, session.wire, card=session.settings.card, strict=True) == []


def test_with_the_first_call_earlier_reasoning_goes_back_too() -> None:
    strategy = strategy_for(AgentConfig(context_strategy=SlidingWindow(20)))
    with Session("deepseek-v4-pro", strategy=strategy) as session:
        session.add("Hi")
        session.add({"role": "assistant", "content": "Hello.", "reasoning_content": "greet"})
        session.add("Read a.py")
        sent = session.pack().request["messages"]
        assert sent[1]["reasoning_content"] == ""
        call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        session.add({"role": "assistant", "content": None, "reasoning_content": "read it", "tool_calls": [call]})
        session.add({"role": "tool", "tool_call_id": "c", "content": "ok"})
        sent = session.pack().request["messages"]
        assert [one.get("reasoning_content") for one in sent] == [None, "greet", None, "read it", None]


def test_no_text_for_a_summarizer_has_reasoning() -> None:
    prompts: list[str] = []

    def ask(request: Any) -> str:
        prompts.append(request.prompt)
        return "Goal: read\nDone: read the first files"

    config = AgentConfig(context_strategy=Summarize(5_000), preserve_reasoning_as_text=True)
    with Session("gpt-5", strategy=strategy_for(config), summarizer=ask) as session:
        session.add("Read.")
        for number in range(12):
            thought = Reasoning(f"hidden thought {number}", provenance="anthropic", signature="c2ln")
            session.add(Message("assistant", (thought, Text("I read."), ToolCall(f"c{number}", "read", "{}"))))
            session.add(tool_result(f"c{number}", "took long\n" * 400))
            pack = session.pack()
        assert b"<thinking>hidden thought 11</thinking>I read." in pack.body
        assert prompts
        assert not any("hidden" in prompt or "<thinking>" in prompt for prompt in prompts)


def test_what_was_shown_of_a_loop_may_be_cut() -> None:
    """Reasoning that nobody signed ties no loop together: what a strategy keeps has a bound."""
    options = SessionOptions(force_reasoning_text=True)
    with Session("claude-sonnet-4-5", window=8_000, output_reserve=500, options=options) as session:
        session.add("Read.")
        for number in range(60):
            thought = Reasoning("I think. " * 40, provenance="openai")
            session.add(Message("assistant", (thought, ToolCall(f"c{number}", "read", "{}"))))
            session.add(tool_result(f"c{number}", "line\n" * 100))
            pack = session.pack([READ])
            assert check(pack.request, session.wire, card=session.settings.card, strict=True) == []
        assert sum(pack.manifest.counts.values()) < 8_000
        assert user_text("Read.").text in pack.body.decode()

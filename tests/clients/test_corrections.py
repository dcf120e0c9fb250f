"""A request that was refused and is corrected: what goes out is what the caller gives now."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest

import lading
from lading.testing import FakeModel, Fault, Say, StrictProvider

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ASKED = {"type": "text", "text": "What is it?"}
SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}


def image(media_type: str) -> list[Any]:
    return [{"type": "image", "source": {"type": "base64", "media_type": media_type, "data": PNG}}, ASKED]


def linked(detail: str) -> list[Any]:
    return [{"type": "image_url", "image_url": {"url": "https://x.example/z.png", "detail": detail}}, ASKED]


def document(**fields: Any) -> list[Any]:
    source = {"type": "text", "media_type": "text/plain", "data": "abc"}
    return [{"type": "document", "source": source, **fields}, ASKED]


def marked(*marks: dict[str, str] | None) -> list[Any]:
    return [{"type": "text", "text": "part", **({"cache_control": mark} if mark else {})} for mark in marks]


CORRECTED: dict[str, tuple[str, Any, Any]] = {
    "media type": ("anthropic", image("image/jpeg"), image("image/png")),
    "order": ("anthropic", image("image/png"), image("image/png")[::-1]),
    "citations": ("anthropic", document(), document(citations={"enabled": True})),
    "context": ("anthropic", document(context="a"), document(context="b")),
    "marks": ("anthropic", marked(SHORT, LONG, None), marked(LONG, SHORT, None)),
    "five marks": ("anthropic", marked(*[SHORT] * 5, None), marked(*[SHORT] * 4, None, None)),
    "detail": ("openai_chat", linked("high"), linked("low")),
    "blanks": ("openai_chat", "  indented", "indented"),
    "joined": ("openai_chat", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
}


@pytest.mark.parametrize("after_reply", [False, True])
@pytest.mark.parametrize("what", CORRECTED)
def test_a_corrected_message_is_sent_as_it_is_given_now(what: str, after_reply: bool) -> None:
    wire, first, corrected = CORRECTED[what]
    before: list[Any] = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    faults = {1 + after_reply: Fault(status=400)}
    with StrictProvider(FakeModel([Say("Hello.")] * 9), foreign=True, faults=faults) as provider:
        send = _client(wire, provider.url)
        if after_reply:
            send(before[:1])
        given = before if after_reply else []
        with pytest.raises((anthropic.BadRequestError, openai.BadRequestError)):
            send([*given, {"role": "user", "content": first}])
        send([*given, {"role": "user", "content": corrected}])
        sent = provider.requests[-1].body["messages"]
    assert len(sent) == len(given) + 1
    assert sent[-1]["content"] == corrected


def _client(wire: str, url: str) -> Any:
    if wire == "anthropic":
        claude = lading.wrap(anthropic.Anthropic(base_url=url, api_key="x", max_retries=0))
        return lambda given: claude.messages.create(model="claude-sonnet-5", max_tokens=99, messages=given)
    chat = lading.wrap(openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0))
    return lambda given: chat.chat.completions.create(model="gpt-4o", messages=given)


@pytest.mark.parametrize("after_reply", [False, True])
@pytest.mark.parametrize("corrected", [None, SHORT])
def test_corrected_marks_of_the_system_prompt_are_sent(corrected: dict[str, str] | None, after_reply: bool) -> None:
    given: list[Any] = [{"role": "user", "content": "Hi."}]
    faults = {1 + after_reply: Fault(status=400)}
    with StrictProvider(FakeModel([Say("Hello.")] * 9), foreign=True, faults=faults) as provider:
        client = lading.wrap(anthropic.Anthropic(base_url=provider.url, api_key="x", max_retries=0))

        def send(mark: Any) -> None:
            system: Any = marked(mark)
            client.messages.create(model="claude-sonnet-5", max_tokens=99, system=system, messages=given)

        if after_reply:
            send(LONG)
            given += [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "More."}]
        with pytest.raises(anthropic.BadRequestError):
            send(LONG)
        send(corrected)
        assert provider.requests[-1].body["system"] == marked(corrected)

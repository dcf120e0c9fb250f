"""Pictures and documents on their way through a wrapped client, and back by ``restore``."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from lading.addresses import RESTORE
from lading.clients import wrap
from lading.events import Event
from lading.testing import FakeModel, Say, Seen, StrictProvider, Use
from tests.clients.agents import CLIENTS
from tests.clients.test_call import LOOK, NATIVE_LOOK

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SYNC = pytest.mark.parametrize("name", ["OpenAI", "Anthropic"])


def picture(wire: str) -> dict[str, Any]:
    if wire == "openai_chat":
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}}
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def said(wire: str, *, words: str = "What is this?") -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}, picture(wire)]


def create(client: Any, wire: str, messages: list[Any], **more: Any) -> Any:
    if wire == "openai_chat":
        return client.chat.completions.create(model="gpt-4o", messages=messages, **more)
    return client.messages.create(model="claude-sonnet-5", max_tokens=300, messages=messages, **more)


@SYNC
def test_a_picture_in_a_user_s_message_is_sent_as_it_came(name: str) -> None:
    make, wire = CLIENTS[name]
    events: list[Event] = []
    messages: list[Any] = []
    with StrictProvider(FakeModel([Say("A pixel."), Say("Still a pixel.")])) as provider:
        client: Any = wrap(make(provider), on_event=events.append)
        for number in range(3):
            messages.append({"role": "user", "content": said(wire, words=f"What is this ({number})?")})
            create(client, wire, messages)
            sent = provider.requests[-1].body["messages"]
            assert [item["content"] for item in sent[::2]] == [item["content"] for item in messages[::2]]
            messages.append({"role": "assistant", "content": "A pixel." if number == 0 else "Still a pixel."})
        (session,) = client.lading.sessions
        assert len(session.entries) == 6
        assert provider.violations == []
        # What pictures are billed is not what was counted: nothing is learned from it.
        assert session._engine.calibration.seen == 0
    assert events == []


@SYNC
def test_a_picture_that_left_the_view_is_shown_again_or_it_is_said_why_not(name: str) -> None:
    make, wire = CLIENTS[name]
    asked: list[Seen] = []

    def script(seen: Seen) -> Say:
        asked.append(seen)
        if len(asked) == 1:
            return Say(calls=(Use(RESTORE, {"address": "artifact://default/work/log/0"}),))
        return Say("A pixel.")

    with StrictProvider(script) as provider:
        client: Any = wrap(make(provider))
        tools: list[Any] = [LOOK if wire == "openai_chat" else NATIVE_LOOK]
        messages = [{"role": "user", "content": said(wire)}]
        create(client.lading.session("work"), wire, messages, tools=tools)
        assert provider.violations == []
        body = provider.requests[-1].body
    result = body["messages"][-1]
    if wire == "anthropic":
        (block,) = result["content"]
        text, image = block["content"]
        assert "1 of 1 images and files follow" in text["text"]
        assert image["source"]["data"] == PIXEL
    else:
        assert "accepts none in a tool result" in result["content"]
        assert "lading show ADDRESS --json" in result["content"]
    assert "What is this?" in json.dumps(result)


def test_a_document_of_many_pages_is_named_and_not_sent() -> None:
    pages = b"".join(b"/Type /Page\n" for _ in range(40))
    data = base64.b64encode(b"%PDF-1.4\n" + pages).decode()
    document = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}}
    address = {"address": "artifact://default/work/log/0"}
    with StrictProvider(FakeModel([Say(calls=(Use(RESTORE, address),)), Say("Long.")])) as provider:
        client: Any = wrap(CLIENTS["Anthropic"][0](provider))
        content = [{"type": "text", "text": "Read this."}, document]
        create(
            client.lading.session("work"), "anthropic", [{"role": "user", "content": content}], tools=[NATIVE_LOOK]
        )
        (block,) = provider.requests[-1].body["messages"][-1]["content"]
        assert "0 of 1 images and files follow the text. The others take too much room." in json.dumps(block)
        assert data not in json.dumps(block)

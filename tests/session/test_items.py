"""Items of one answer that are added one at a time, and answers in the forms in which SDKs write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from lading import Session, Tool
from lading.events import Repaired
from lading.request.pack import Pack

READ = Tool("read", "Read.", {"type": "object", "properties": {}})
Item = dict[str, Any]


def reasoning(number: int) -> Item:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "gAAA"}


def words(number: int) -> Item:
    block = {"type": "output_text", "text": f"Step {number}.", "annotations": []}
    return {
        "type": "message",
        "role": "assistant",
        "id": f"msg_{number}",
        "status": "completed",
        "content": [block],
    }


def call(name: str) -> Item:
    return {"type": "function_call", "id": f"fc_{name}", "call_id": name, "name": "read", "arguments": "{}"}


def output(name: str) -> Item:
    return {"type": "function_call_output", "call_id": name, "output": f"found {name}"}


def spoken(*parts: Item) -> Item:
    return {"role": "model", "parts": list(parts)}


def asked(name: str, **fields: str) -> Item:
    return {"functionCall": {"name": "read", "args": {}, "id": name}, **fields}


def answered(*names: str) -> Item:
    responses = ({"name": "read", "response": {"result": "found"}, "id": name} for name in names)
    return {"role": "user", "parts": [{"functionResponse": response} for response in responses]}


RESPONSES = [
    reasoning(1),
    words(1),
    call("a"),
    call("b"),
    output("a"),
    output("b"),
    reasoning(2),
    call("c"),
    output("c"),
]
GEMINI = [
    spoken({"text": "Step"}),
    spoken({"text": " 1."}),
    spoken(asked("a", thoughtSignature="c2ln")),
    spoken(asked("b")),
    answered("a", "b"),
    spoken(asked("c", thoughtSignature="c2ln")),
    answered("c"),
]
FORMATS = {"openai_responses": ("gpt-5-mini", RESPONSES), "gemini": ("gemini-3-pro", GEMINI)}


def packed(wire: str, model: str, *added: Any) -> Pack:
    """The request of a session to which these are added, each by a call of ``add``."""
    session = Session(model, wire=wire)
    for one in ("go", *added):
        session.add(one)
    return session.pack([READ])


@pytest.mark.fuzz
@pytest.mark.parametrize("wire", FORMATS)
@given(data=st.data())
def test_items_added_in_any_pieces_are_the_same_messages(wire: str, data: st.DataObject) -> None:
    model, items = FORMATS[wire]
    ends = sorted(data.draw(st.sets(st.integers(1, len(items) - 1)), label="ends"))
    pieces: list[Any] = [items[start:end] for start, end in zip([0, *ends], [*ends, len(items)], strict=True)]
    pieces = [piece[0] if len(piece) == 1 and data.draw(st.booleans()) else piece for piece in pieces]
    whole, in_pieces = packed(wire, model, items), packed(wire, model, *pieces)
    assert in_pieces.body == whole.body
    assert whole.events == ()


def test_an_answer_of_another_format_is_also_one_message_item_by_item() -> None:
    for model, wire in (("claude-opus-5-5", "anthropic"), ("gpt-5-mini", "openai_chat")):
        pack = packed(wire, model, *RESPONSES)
        rules = [event.rule for event in pack.events if isinstance(event, Repaired)]
        assert pack.violations == ()
        assert set(rules) == {"reasoning_left_out"}
        assert "gAAA" not in pack.body.decode()


def test_an_answer_goes_on_after_a_request_and_a_reply_ends_it() -> None:
    with Session("gpt-5-mini", wire="openai_responses") as session:
        session.add("go").add(reasoning(1)).add(words(1))
        session.pack([READ])
        session.add(call("a")).add(output("a"))
        assert session.pack().request["input"][1:] == [reasoning(1), words(1), call("a"), output("a")]
        usage = {"input_tokens": 90, "output_tokens": 9}
        session.reply({"id": "r", "status": "completed", "output": [words(2)], "usage": usage})
        session.add(words(3)).add("thanks")
        assert session.pack().request["input"][-3:] == [words(2), words(3), {"role": "user", "content": "thanks"}]


def test_items_before_an_error_stay() -> None:
    with Session("gpt-5-mini", wire="openai_responses") as session:
        session.add("go").add(call("a"))
        with pytest.raises(Exception, match="nested deeper"):
            session.add(call("b") | {"caller": _nested(300)})
        session.add(output("a"))
        assert session.pack([READ]).request["input"][1:] == [call("a"), output("a")]


def _nested(levels: int) -> Any:
    return {"a": _nested(levels - 1)} if levels else 1


def test_a_history_with_items_of_another_format_is_given_whole_at_each_call() -> None:
    history: list[Item] = [{"role": "user", "content": "go"}, *RESPONSES[:6]]
    with Session("gpt-5-mini", wire="openai_chat") as session:
        session.add(history)
        session.add([*history, {"role": "user", "content": "and now?"}])
        roles = [message["role"] for message in session.pack([READ]).request["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "user"]


FORMS: dict[str, Callable[[types.Content], Any]] = {
    "object": lambda content: content,
    "nulls": lambda content: content.model_dump(mode="json"),
    "without nulls": lambda content: content.model_dump(mode="json", exclude_none=True),
    "as set": lambda content: content.model_dump(mode="json", exclude_unset=True),
    "as the API spells": lambda content: content.model_dump(mode="json", by_alias=True),
}
ANSWERS: dict[str, list[Item]] = {
    "text": [{"text": "ok"}],
    "thought": [{"text": "hm", "thought": True}, {"text": "ok", "thoughtSignature": "-_-_"}],
    "call": [asked("a", thoughtSignature="c2ln")],
    "code": [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"text": "ok"},
    ],
    "image": [{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("said", ANSWERS)
def test_an_answer_in_any_form_of_the_sdk_is_the_known_one(said: str, form: str) -> None:
    content = {"role": "model", "parts": ANSWERS[said]}
    usage = {"promptTokenCount": 90, "candidatesTokenCount": 9}
    first = {"role": "user", "parts": [{"text": "go"}]}
    after = answered("a") if said == "call" else {"role": "user", "parts": [{"text": "and now?"}]}
    with Session("gemini-3-pro", wire="gemini") as session:
        session.add(first).pack([READ])
        session.reply({"candidates": [{"content": content, "index": 0}], "usageMetadata": usage})
        pack = session.add([first, FORMS[form](types.Content.model_validate(content)), after]).pack()
    assert pack.request["contents"] == [first, content, after]
    assert (pack.events, pack.manifest.decisions) == ((), ())


def test_a_first_content_of_the_sdk_with_nulls_is_read() -> None:
    given = types.Content.model_validate({"role": "user", "parts": [{"text": "go"}]}).model_dump(mode="json")
    pack = Session("gemini-3-pro", wire="gemini").add([given]).pack()
    assert pack.request["contents"][0]["parts"][0]["text"] == "go"
    assert pack.violations == ()

"""What generateContent bodies become."""

from __future__ import annotations

from typing import Any

import pytest

from lading.errors import WireError
from lading.history.repair import Repairer
from lading.messages import File, Image, Message, Opaque, Reasoning
from lading.session.matching import fingerprint
from lading.wire import encode, find_wire
from lading.wire.fitting import find_needs
from tests.wire.codec_cards import PLAIN, card
from tests.wire.gemini_cases import answer, body, call, content, text

WIRE = find_wire("gemini")
USER = content("user", text())


def decoded(*contents: Any, **fields: Any) -> tuple[Message, ...]:
    return WIRE.decode(body(*contents, **fields)).messages


def test_the_instruction_is_the_first_message_in_either_spelling() -> None:
    for field in ("systemInstruction", "system_instruction"):
        system, user = decoded(USER, **{field: {"parts": [text("Be brief.")]}})
        assert (system.role, system.text, user.role) == ("system", "Be brief.", "user")


def test_parts_become_ours_and_signatures_stay_where_they_are() -> None:
    (message,) = decoded(
        content(
            "model",
            text("hm", thought=True),
            call(id="c", signature="+/=="),
            {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
            {"inlineData": {"mimeType": "application/pdf", "data": "AA=="}},
            {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}},
            {"fileData": {"fileUri": "gs://a"}},
            {"executableCode": {"code": "1"}},
        )
    )
    thought, asked, image, pdf, audio, file, code = message.parts
    assert isinstance(thought, Reasoning)
    assert (thought.text, thought.signature) == ("hm", None)
    (found,) = message.calls
    assert (found.id, found.name, found.arguments) == ("c", "read", '{"path":"a"}')
    assert (found.template or {})["thoughtSignature"] == "+/=="
    assert asked is found
    assert isinstance(image, Image)
    assert [type(part) for part in (pdf, audio, file, code)] == [File, Opaque, File, Opaque]


@pytest.mark.parametrize(
    ("response", "words", "is_error"),
    [
        ({"output": "ok"}, "ok", False),
        ({"result": "ok"}, "ok", False),
        ({"error": "no"}, "no", True),
        ({"result": ["ok"]}, '{"result":["ok"]}', False),
        ({"output": "ok", "code": 1}, '{"output":"ok","code":1}', False),
    ],
)
def test_a_response_is_its_text_or_its_json(response: Any, words: str, is_error: bool) -> None:
    (message,) = decoded(content("user", answer(response=response)))
    (result,) = message.results
    assert (result.text, result.is_error, result.name) == (words, is_error, "read")


def test_pieces_of_a_streamed_text_are_one_text_in_one_message() -> None:
    pieces = [content("model", text("I g")), content("model", text("o.")), content("model", call())]
    _, reply = decoded(USER, *pieces)
    _, whole = decoded(USER, content("model", text("I go."), call()))
    assert reply.text == "I go."
    assert fingerprint(reply) == fingerprint(whole)


def test_calls_without_ids_are_paired_by_name_and_no_event_tells_of_it() -> None:
    loop = [content("model", call(), call("b"), call()), content("user", answer("b"), answer(), answer())]
    sent = body(USER, *loop, *loop)
    border, shown = Repairer(find_needs(WIRE, PLAIN)), list[Message]()
    for message in WIRE.decode(sent).messages:
        repaired = border.repair(message)
        assert {repair.rule for repair in repaired.repairs} <= {"unnamed_call"}
        shown += repaired.messages
    for asked, answered in (shown[1:3], shown[3:5]):
        assert sorted(call.id for call in asked.calls) == sorted(result.call_id for result in answered.results)
    ids = [call.id for message in shown for call in message.calls]
    assert len(ids) == len(set(ids)) == 6
    conversation = WIRE.decode(sent)
    assert encode(type(conversation)(tuple(shown), (), "gemini", conversation.template), WIRE, card=PLAIN) == sent


def test_a_response_without_an_id_answers_the_call_that_has_one() -> None:
    border = Repairer(find_needs(WIRE, PLAIN))
    for message in decoded(
        USER, content("model", call(id="x"), call("b", id="y")), content("user", answer("b"), answer())
    ):
        shown = border.repair(message).messages
    assert [(result.name, result.call_id) for result in shown[-1].results] == [("b", "y"), ("read", "x")]


def test_a_call_without_a_signature_gets_a_general_one_where_the_model_signs() -> None:
    border = Repairer(find_needs(WIRE, card(reasoning_echo="signed")))
    user, asked = decoded(content("user", text()), content("model", call(), call("b")))
    border.repair(user)
    repaired = border.repair(asked)
    assert [repair.rule for repair in repaired.repairs] == ["unsigned_call"]
    written = WIRE.encode_group(repaired.messages, PLAIN)[0]["parts"]
    assert [part.get("thoughtSignature") for part in written] == ["skip_thought_signature_validator", None]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"contents": "hi"},
        {"contents": [1]},
        {"contents": [{"role": "assistant", "parts": []}]},
        {"contents": [{"parts": "hi"}]},
        {"contents": [{"parts": [1]}]},
        {"contents": [{"parts": [{"functionCall": "read"}]}]},
        {"contents": [{"parts": [{"functionCall": {"name": 1}}]}]},
        {"contents": [], "systemInstruction": "hi"},
        {"contents": [], "tools": {}},
    ],
)
def test_another_shape_is_refused_with_its_place(wrong: Any) -> None:
    with pytest.raises(WireError, match=r"contents|systemInstruction|tools"):
        WIRE.decode(wrong)


def test_tools_are_functions_with_json_schemas() -> None:
    schema = {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}}
    tools = WIRE.read_tools(
        [{"functionDeclarations": [{"name": "a", "parameters": schema}, {"name": "b"}]}, {"x": {}}]
    )
    assert [tool.name for tool in tools] == ["a", "b", "x"]
    assert tools[0].schema == {"type": "object", "properties": {"type": {"type": "string"}}}
    assert tools[2].schema is None


def test_a_system_message_that_does_not_lead_is_a_content_of_the_user() -> None:
    for parts in ([], [text("Be brief.")]):
        (system,) = WIRE.decode({"systemInstruction": {"parts": parts}, "contents": []}).messages
        (written,) = WIRE.encode_group([system], PLAIN)
        assert written.keys() == {"role", "parts"}
        assert WIRE.read_items([written])[0].role == "user"


@pytest.mark.parametrize("dialect", ["first_party", "bedrock", "strict"])
def test_the_model_goes_on_only_where_the_endpoint_takes_its_content_at_the_end(dialect: Any) -> None:
    needs = find_needs(WIRE, card(prefill=True, dialect=dialect))
    assert needs.continues(Message("assistant"), {}) == (dialect == "first_party")

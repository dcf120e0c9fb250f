"""Bodies of all wires for property tests: any key order, unknown keys at every level, any text that is allowed."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Draw = st.SearchStrategy[Any]

words: Draw = st.text(st.characters(exclude_categories=()), max_size=8)
unknown_keys: Draw = st.sampled_from(["cache_control", "x", "\ud800", "code", "str", "list", ""])
json_values: Draw = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def objects(draw: st.DrawFn, fields: dict[str, Draw], optional: dict[str, Draw] | None = None) -> dict[str, Any]:
    """An object with these fields, some of the optional ones and some unknown ones, in any order."""
    found = {key: draw(value) for key, value in fields.items()}
    for key, value in (optional or {}).items():
        if draw(st.booleans()):
            found[key] = draw(value)
    if draw(st.booleans()):
        found |= {key: draw(json_values) for key in draw(st.lists(unknown_keys, max_size=1))}
    return {key: found[key] for key in draw(st.permutations(list(found)))} if draw(st.booleans()) else found


def _kind(name: str) -> Draw:
    return st.just(name)


_text = objects({"type": _kind("text"), "text": words})
_opaque = objects({"type": st.sampled_from(["server_tool_use", "web_search_tool_result", "brand_new"])})


def _content(part: Draw, text: Draw = words) -> Draw:
    return text | st.lists(part, max_size=3)


_filled = words.filter(lambda text: bool(text.strip()))
_filled_text = objects({"type": _kind("text"), "text": _filled})
"""Anthropic refuses blank texts, except for an empty content."""


def _filled_content(part: Draw) -> Draw:
    return _content(_filled_text | part, st.just("") | _filled)


_source = st.one_of(
    objects({"type": _kind("base64"), "media_type": st.just("image/png"), "data": words}),
    objects({"type": _kind("url"), "url": words}),
    objects({"type": _kind("text"), "media_type": st.just("text/plain"), "data": words}),
    objects({"type": _kind("file"), "file_id": words}),
    json_values,
)
_image = objects({"type": _kind("image"), "source": _source})
_document = objects({"type": _kind("document"), "source": _source}, {"title": st.none() | words})
_result = objects(
    {"type": _kind("tool_result"), "tool_use_id": words},
    {
        "content": st.none() | _filled_content(_image | _document | _opaque),
        "is_error": st.none() | st.booleans(),
    },
)
_call = objects(
    {
        "type": _kind("tool_use"),
        "id": words,
        "name": words,
        "input": st.dictionaries(words, json_values, max_size=2),
    }
)
_thinking = objects({"type": _kind("thinking"), "thinking": words}, {"signature": st.none() | words})
_redacted = objects({"type": _kind("redacted_thinking"), "data": words})
_said = _call | _thinking | _redacted | _opaque
_anthropic_message = st.one_of(
    objects({"role": _kind("user"), "content": _filled_content(_image | _document | _result | _opaque)}),
    objects({"role": _kind("assistant"), "content": _filled_content(_said)}),
    objects({"role": _kind("system"), "content": _filled_content(_opaque)}),
)
_anthropic_tool = st.one_of(
    objects(
        {"name": words, "input_schema": st.dictionaries(words, json_values, max_size=2)},
        {"description": st.none() | words, "type": _kind("custom")},
    ),
    objects({"type": _kind("web_search_20260209"), "name": words}),
)
anthropic_bodies: Draw = objects(
    {"model": words, "max_tokens": st.integers(1), "messages": st.lists(_anthropic_message, max_size=4)},
    {
        "system": _filled_content(_opaque),
        "tools": st.none() | st.lists(_anthropic_tool, max_size=2),
        "metadata": json_values,
    },
)

_data_url = st.builds("data:{};base64,{}".format, st.sampled_from(["image/png", "text/plain", "x"]), words)
_image_url = objects(
    {"type": _kind("image_url"), "image_url": words | objects({"url": words | _data_url}) | json_values}
)
_file = objects(
    {"type": _kind("file")},
    {"file": objects({}, {"file_data": words | _data_url, "file_id": words, "filename": words}) | json_values},
)
_written = st.sampled_from(["", "{", '{"a": 1}', "[]", "null"]) | words
_function = objects({"name": words, "arguments": _written})
_chat_call = st.one_of(
    objects({"id": words, "type": _kind("function"), "function": _function}),
    objects({"id": words, "type": _kind("custom"), "custom": objects({"name": words, "input": _written})}),
)
_chat_part = _text | _image_url | _file | _opaque
_chat_content = st.none() | _content(_chat_part)
_name = {"name": st.none() | words}
_chat_message = st.one_of(
    objects({"role": st.sampled_from(["system", "developer", "user"])}, {"content": _chat_content, **_name}),
    objects(
        {"role": _kind("assistant")},
        {
            "content": _chat_content,
            "tool_calls": st.none() | st.lists(_chat_call, max_size=2),
            "function_call": st.none() | _function,
            "reasoning_content": st.none() | words,
            "reasoning": json_values,
            "refusal": st.none() | words,
            "annotations": json_values,
            **_name,
        },
    ),
    objects({"role": _kind("tool"), "tool_call_id": words}, {"content": _chat_content, **_name}),
    objects({"role": _kind("function")}, {"content": _chat_content, "tool_call_id": words, **_name}),
)
_chat_tool = st.one_of(
    objects(
        {
            "type": _kind("function"),
            "function": objects(
                {"name": words},
                {
                    "description": st.none() | words,
                    "parameters": st.none() | st.dictionaries(words, json_values, max_size=2),
                },
            ),
        }
    ),
    objects({"type": _kind("custom")}),
)
chat_bodies: Draw = objects(
    {"model": words, "messages": st.lists(_chat_message, max_size=4)},
    {"tools": st.none() | st.lists(_chat_tool, max_size=2), "temperature": json_values},
)

_dict = st.dictionaries(words, json_values, max_size=2)
_id = {"id": st.none() | words}


def _either(name: str, other: str, value: Draw, rest: dict[str, Draw] | None = None) -> Draw:
    """An object with a field in one of its two spellings."""
    return objects({name: value}, rest) | objects({other: value}, rest)


_signed = {"thoughtSignature": words, "thought": st.booleans()}
_blob = objects({"mimeType": st.sampled_from(["image/png", "application/pdf", "audio/wav"]), "data": words})
_uri = objects({"fileUri": words}, {"mimeType": words}) | objects({"file_uri": words, "mime_type": words})
_media = _either("inlineData", "inline_data", _blob) | _either("fileData", "file_data", _uri)
_one_answer = st.builds(lambda key, text: {key: text}, st.sampled_from(["output", "result", "error"]), words)
_gemini_call = objects({"name": words}, {"args": _dict | st.none(), **_id})
_gemini_result = objects(
    {"name": words},
    {"response": _dict | _one_answer | st.none(), "parts": st.none() | st.lists(_media, max_size=2), **_id},
)
_gemini_said = st.one_of(
    objects({"text": words}),
    objects({"text": words}, _signed),
    _either("functionCall", "function_call", _gemini_call, _signed),
    objects({"executableCode": json_values}, _signed),
    _media,
    objects({"brandNew": json_values}),
)
_parts = {"parts": st.none() | st.lists(_gemini_said, max_size=3)}
_heard = _media | objects({"text": words})
_answered = objects({"functionResponse": _gemini_result}) | objects({"function_response": _gemini_result})
_gemini_turns = st.one_of(
    st.builds(lambda one: [one], objects({}, {"role": _kind("user")} | {"parts": st.lists(_heard, max_size=3)})),
    st.lists(objects({"role": _kind("model")}, _parts), min_size=1, max_size=3),
    st.tuples(
        objects({"role": _kind("model")}, _parts),
        objects({"parts": st.lists(_answered | _heard, min_size=1, max_size=2)}, {"role": _kind("user")}),
        objects({"role": _kind("model")}, _parts),
    ).map(list),
)
_schema = st.sampled_from(["OBJECT", "object"]).map(
    lambda kind: {"type": kind, "properties": {"p": {"type": kind}}}
)
_declared = objects({"name": words}, {"description": st.none() | words, "parameters": _schema | _dict})
_gemini_tool = st.one_of(
    _either("functionDeclarations", "function_declarations", st.lists(_declared, max_size=2)),
    objects({"googleSearch": _dict}, {"functionDeclarations": st.lists(_declared, max_size=2) | json_values}),
)
_gemini_contents = st.lists(_gemini_turns, max_size=3).map(lambda turns: [item for turn in turns for item in turn])
_instruction = objects({}, {"parts": st.none() | st.lists(_heard, max_size=2), "role": words})
gemini_bodies: Draw = st.one_of(
    *(
        objects(
            {"contents": _gemini_contents},
            {name: st.none() | _instruction, "tools": st.none() | st.lists(_gemini_tool, max_size=2), other: _dict},
        )
        for name, other in (("systemInstruction", "generationConfig"), ("system_instruction", "tool_config"))
    )
).filter(lambda body: all("parts" in item or item.get("role") for item in body["contents"]))

_input_text = objects({"type": _kind("input_text"), "text": words})
_input_image = objects(
    {"type": _kind("input_image")}, {"image_url": st.none() | words | _data_url, "file_id": words}
)
_input_file = objects(
    {"type": _kind("input_file")},
    {"file_data": words | _data_url, "file_url": words, "file_id": st.none() | words, "filename": words},
)
_input_content = _content(_input_text | _input_image | _input_file | _opaque)
_call_ids: Draw = st.text(min_size=1, max_size=8)
_said_block = st.one_of(
    objects({"type": _kind("output_text"), "text": words}, {"annotations": json_values}),
    objects({"type": _kind("refusal"), "refusal": words}),
    objects({"type": _kind("output_audio")}),
)
_output_content = words | st.lists(_said_block, max_size=3)
_message_type = {"type": _kind("message")}
_own_id = {"id": words, "status": words}
_before_others = objects(
    {
        "type": _kind("reasoning"),
        "summary": st.lists(objects({"type": _kind("summary_text"), "text": words}), max_size=2),
    },
    {"encrypted_content": st.none() | words, "content": json_values, **_own_id},
)
_model_item = st.one_of(
    objects({"role": _kind("assistant"), "content": _output_content}, {"phase": words, **_message_type, **_own_id}),
    objects({"type": _kind("function_call"), "call_id": words, "name": words, "arguments": _written}, _own_id),
    objects({"type": _kind("custom_tool_call"), "call_id": words, "name": words, "input": words}, _own_id),
    objects({"type": st.sampled_from(["web_search_call", "computer_call", "mcp_list_tools", "compaction", "new"])}),
    objects({"type": st.none() | _kind("item_reference"), "id": words}),
    objects({"type": _kind("shell_call_output"), "id": _call_ids}),
)
_other_item = st.one_of(
    objects(
        {"role": st.sampled_from(["user", "system", "developer"]), "content": _input_content},
        {"status": words, **_message_type},
    ),
    objects(
        {
            "type": st.sampled_from(["function_call_output", "custom_tool_call_output"]),
            "call_id": words,
            "output": _input_content,
        },
        _own_id,
    ),
    objects({"type": st.sampled_from(["computer_call_output", "mcp_approval_response", "compaction_trigger"])}),
    objects({"type": _kind("additional_tools"), "role": _kind("developer"), "tools": json_values}),
)
_items = st.lists(
    st.one_of(
        st.tuples(_other_item),
        st.tuples(_model_item),
        st.tuples(_before_others, _before_others, _model_item),
        st.tuples(_before_others, _model_item),
    ),
    max_size=4,
).map(lambda runs: [item for run in runs for item in run])
_response_tool = st.one_of(
    objects(
        {"type": _kind("function"), "name": words},
        {
            "description": st.none() | words,
            "parameters": st.none() | st.dictionaries(words, json_values, max_size=2),
            "strict": st.none() | st.booleans(),
        },
    ),
    objects({"type": st.sampled_from(["custom", "web_search", "mcp"])}, {"name": words}),
)
response_bodies: Draw = objects(
    {"model": words, "input": words | _items},
    {
        "instructions": st.none() | words,
        "tools": st.none() | st.lists(_response_tool, max_size=2),
        "reasoning": json_values,
    },
)

BODIES: dict[str, Draw] = {
    "anthropic": anthropic_bodies,
    "openai_chat": chat_bodies,
    "openai_responses": response_bodies,
    "gemini": gemini_bodies,
}

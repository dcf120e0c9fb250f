from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading.errors import ModelError, UnknownName
from lading.messages import (
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    user_text,
)
from lading.models.card import TokenFacts
from lading.models.catalog import find_card
from lading.tokens import Counter
from lading.tokens.estimate import ESTIMATE
from lading.tokens.exact import CL100K, O200K
from lading.tokens.images import TOKENS_PER_PAGE, UNKNOWN_IMAGE_TOKENS
from lading.tokens.meter import COUNTED_CHARS, MESSAGE_TOKENS, RESULT_TOKENS, Meter, meter
from tests.examples import quick_first
from tests.growth import assert_linear, ladder

EXACT = Meter(O200K)
SHARED = Path(os.environ.get("LADING_SHARED", Path(__file__).parents[2].parent / "shared"))
PI_SESSION = SHARED / "data" / "pi_large_session.jsonl.gz"

texts = st.text(st.characters(codec=None), max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
result_parts = (
    st.builds(Text, texts)
    | st.builds(Image, url=texts, data=texts)
    | st.builds(File, data=texts, name=texts, media_type=st.sampled_from(["", "text/plain", "application/pdf"]))
    | st.builds(Opaque, json_values)
)
parts: st.SearchStrategy[Part] = (
    result_parts
    | st.builds(ToolCall, id=texts, name=texts, arguments=texts)
    | st.builds(ToolResult, call_id=texts, parts=st.lists(result_parts, max_size=3).map(tuple), name=texts)
    | st.builds(Reasoning, text=texts, signature=st.none() | texts, data=st.none() | texts)
)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    parts=st.lists(parts, max_size=4).map(tuple),
    name=texts,
)
counters = st.sampled_from([O200K, CL100K, ESTIMATE])
meters = st.builds(Meter, counters, st.floats(0.5, 2), st.integers(0, 40), st.booleans())


@given(meters, messages, parts)
def test_any_message_is_counted_and_a_further_part_never_lowers_the_count(
    counting: Meter, message: Message, part: Part
) -> None:
    before = counting.count_message(message)
    assert before >= MESSAGE_TOKENS
    assert before == counting.count_message(message)
    assert counting.count_message(message.with_parts((*message.parts, part))) >= before
    assert counting.count_message(message.with_parts(())) <= before


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (Text("hello world"), 2),
        (Text(""), 0),
        (Reasoning("hello world", signature="AAAA"), 2),
        (Reasoning("", signature="A" * 1600), 300),
        (Reasoning(data="A" * 17), 4),
        (
            ToolCall("call_1", "read_file", '{"path": "a"}'),
            O200K.count("read_file") + O200K.count('{"path": "a"}'),
        ),
        (ToolResult("call_1"), RESULT_TOKENS),
        (
            ToolResult("call_1", (Text("hello world"), Image(url="http://x"))),
            RESULT_TOKENS + 2 + UNKNOWN_IMAGE_TOKENS,
        ),
        (ToolResult("call_1", (Text("hello"),), name="world"), RESULT_TOKENS + 1 + O200K.count("world")),
        (Image(data="not a picture"), UNKNOWN_IMAGE_TOKENS),
        (Image(url="data:image/gif;base64,R0lGODlh7gLoA/cAAA=="), 1000),
        (File(data="hello world", media_type="text/plain"), 2),
        (File(file_id="file_1", name="hello world"), 2 + TOKENS_PER_PAGE),
        (File(data="A" * 160_000, media_type="application/pdf"), 3 * TOKENS_PER_PAGE),
        (Opaque({"b": 1, "a": "é"}), O200K.count('{"b":1,"a":"é"}')),
        (Opaque(float("nan")), O200K.count("NaN")),
        (Opaque({(1, 2): {3}}), O200K.count("{}")),
        (Opaque([{3}]), O200K.count('["set"]')),
    ],
)
def test_each_kind_of_part_counts(part: Part, tokens: int) -> None:
    assert EXACT.count_message(Message("user", (part,))) == MESSAGE_TOKENS + tokens


def test_a_picture_of_unknown_size_is_1500_tokens() -> None:
    assert EXACT.count_message(Message("user", (Image(url="http://x"),))) == MESSAGE_TOKENS + 1_500


def test_a_message_counts_its_name_and_framing() -> None:
    assert EXACT.count_message(Message("user")) == MESSAGE_TOKENS
    assert EXACT.count_message(Message("user", name="hello world")) == MESSAGE_TOKENS + 2


def test_the_multiplier_takes_text_and_rounds_up_but_leaves_framing_and_pictures() -> None:
    counting = Meter(O200K, 1.3)
    message = Message("user", (Text("hello"), Text("hello"), Image(url="http://x")))
    assert counting.count_message(message) == MESSAGE_TOKENS + 3 + UNKNOWN_IMAGE_TOKENS


def test_tools_count_as_the_function_form_or_as_the_providers_own_object() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = Tool("read", "Reads a file.", schema)
    written = json.dumps(
        {
            "type": "function",
            "function": {"name": "read", "description": "Reads a file.", "parameters": schema},
        },
        separators=(",", ":"),
    )
    own = Tool("web_search", template={"type": "web_search_20250305", "name": "web_search", "max_uses": 5})
    own_written = '{"type":"web_search_20250305","name":"web_search","max_uses":5}'
    assert EXACT.count_tools([]) == 0
    assert EXACT.count_tools([tool]) == O200K.count(f"[{written}]")
    assert EXACT.count_tools([tool, own]) == O200K.count(f"[{written},{own_written}]")
    assert EXACT.count_tools([Tool("bare")]) == O200K.count('[{"name":"bare","description":""}]')


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (r'{"path": "a.py", "text": "x = 1\n\ty = \"2\""}', 'path\na.py\ntext\nx = 1\n\ty = "2"'),
        ('{"line": 7, "all": [1, {"b": null}]}', 'line\n7\nall\n[1,{"b":null}]'),
        ("{}", ""),
        ('["a"]', '["a"]'),
        ('{"path": "a.py', '{"path": "a.py'),
    ],
)
def test_arguments_count_as_the_model_is_shown_them(arguments: str, shown: str) -> None:
    message = Message("assistant", (ToolCall("c1", "read", arguments),))
    framing = MESSAGE_TOKENS + O200K.count("read")
    assert EXACT.count_message(message) == framing + O200K.count(arguments)
    assert replace(EXACT, plain_arguments=True).count_message(message) == framing + O200K.count(shown)


def test_each_call_and_each_result_has_its_framing() -> None:
    counting = Meter(O200K, 2.0, call_tokens=30)
    plain = Meter(O200K, 2.0)
    calls = Message("assistant", (Text("now"), ToolCall("c1", "read", "{}"), ToolCall("c2", "read", "{}")))
    result = Message("tool", (ToolResult("c1", (Text("found"),)),))
    assert counting.count_message(calls) == plain.count_message(calls) + 60
    assert counting.count_message(result) == plain.count_message(result) + 30


@pytest.mark.parametrize("counter", [O200K, ESTIMATE])
def test_a_text_above_a_million_characters_is_estimated_closely(counter: Counter) -> None:
    rows = "".join(f"{number}: {'x' * (number % 50)} GET /path/{number}\n" for number in range(30_000))
    text = rows + "Some words of prose, and an end.\n" * 20_000 + "中文" * 100_000
    assert len(text) > COUNTED_CHARS
    assert Meter(counter).count_message(user_text(text)) == pytest.approx(counter.count(text), rel=0.02)


@pytest.mark.parametrize("letter", quick_first(["a", " ", "中", "\ud83d"], 2))
def test_a_message_of_one_character_is_counted_in_linear_time(letter: str) -> None:
    assert_linear(lambda text: EXACT.count_message(user_text(text)), *ladder(letter * 8_000_000))


def test_a_card_says_which_meter() -> None:
    assert meter(find_card("gpt-4o")[0].tokens) == Meter(O200K, 1.0)
    facts = find_card("claude-opus-5-5")[0].tokens
    assert meter(facts) == Meter(ESTIMATE, facts.multiplier, facts.call_tokens, facts.plain_arguments)
    assert meter(replace(facts, counter="lading.tokens.exact:CL100K")).counter is CL100K
    with pytest.raises(UnknownName, match="no counter named 'gpt2'"):
        meter(TokenFacts("gpt2"))
    with pytest.raises(ModelError, match=r"multiplier nan"):
        meter(TokenFacts("estimate", multiplier=float("nan")))


@pytest.mark.recorded
@pytest.mark.skipif(not PI_SESSION.exists(), reason="the recorded sessions are not on this machine")
def test_claudes_prior_is_near_what_the_provider_billed() -> None:
    session = json.loads(gzip.decompress(PI_SESSION.read_bytes()).splitlines()[0])
    counting = meter(find_card(session["model"])[0].tokens)
    grown = [0]
    for raw in session["messages"]:
        calls = [
            ToolCall("", call["function"]["name"], call["function"]["arguments"])
            for call in raw.get("tool_calls") or ()
        ]
        message = Message("user", (Text(raw.get("content") or ""), *calls))
        grown.append(grown[-1] + counting.count_message(message))
    first, last = session["usage"][0], session["usage"][-1]
    billed = [use["input"] + use["cacheRead"] + use["cacheWrite"] for use in (first, last)]
    ours = grown[last["message_index"]] - grown[first["message_index"]]
    assert 0.9 <= ours / (billed[1] - billed[0]) <= 1.1

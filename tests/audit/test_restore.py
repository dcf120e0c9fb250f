from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.addresses import RESTORE
from lading.audit import text_search
from lading.audit.restore import ANSWER_TOKENS, SCHEMA, answer, answer_calls, read_requested_address
from lading.audit.text_lines import split_lines
from lading.history.log import Entry
from lading.jsonbytes import digest
from lading.messages import Image, Message, Opaque, Text, ToolCall, ToolResult
from lading.tokens import counter
from lading.tokens.meter import Meter

HERE = ("default", "session")
count = counter("o200k").count


def entries(*texts: str) -> list[Entry]:
    return [
        Entry(index, Message("tool", (ToolResult("c", (Text(text),)),)), digest(b""), 1)
        for index, text in enumerate(texts)
    ]


def ask(log: list[Entry], item: str = "0", **arguments: Any) -> ToolResult:
    address = f"artifact://default/session/log/{item}"
    call = ToolCall("r1", RESTORE, json.dumps({"address": address, **arguments}))
    return answer(call, log, session=HERE, count=count)


def test_the_schema_costs_at_most_120_tokens() -> None:
    assert Meter(counter("o200k")).count_tools([SCHEMA]) <= 120


def test_a_small_text_comes_back_whole() -> None:
    result = ask(entries("one\ntwo"))
    assert (result.call_id, result.name, result.is_error) == ("r1", RESTORE, False)
    assert result.text == "[Lines 1 to 2 of 2.]\none\ntwo"


def test_pages_follow_each_other_until_everything_was_read() -> None:
    text = "\n".join(f"line {number} of the log" for number in range(3_000))
    log, read, lines = entries(text), "", ""
    for _ in range(100):
        header, _, page = ask(log, lines=lines).text.partition("\n")
        read += page
        if "Next: lines " not in header:
            break
        lines = header.partition("Next: lines ")[2].rstrip(".]")
    assert read == text


def test_a_query_finds_the_line_among_many() -> None:
    text = "\n".join(f"service-{number} key=dk-{number * 7919}" for number in range(5_000))
    shown = ask(entries(text), query="service-4321 key").text
    assert f"4322: service-4321 key=dk-{4321 * 7919}" in shown


def test_a_span_names_its_messages() -> None:
    assert ask(entries("first", "second"), "0-1").text.split("\n")[1:] == [
        "--- 0 tool",
        "first",
        "--- 1 tool",
        "second",
    ]


def test_a_span_names_the_people_of_a_chat() -> None:
    log = [
        Entry(0, Message("user", (Text("I fly."),), name="anna"), digest(b""), 1),
        *entries("first", "second")[1:],
    ]
    assert ask(log, "0-1").text.split("\n")[1:] == ["--- 0 user anna", "I fly.", "--- 1 tool", "second"]


@pytest.mark.parametrize("number", ["#1", "1", " #1.", "#1-1", "#1.0"])
def test_a_message_is_named_by_its_number_too(number: str) -> None:
    call = ToolCall("r1", RESTORE, json.dumps({"address": number}))
    given = answer(call, entries("first", "second"), session=("default", "session"), count=count)
    assert given.text == "[Lines 1 to 1 of 1.]\nsecond"


@pytest.mark.parametrize("query", ["(a+)+$", "(", "[", "\\", ".*" * 300, "a|b", "(?:x" * 200])
def test_a_query_is_words_and_never_a_pattern(query: str) -> None:
    text = "a" * 50_000 + "!\n" + "\n".join(["b"] * 1_000)
    assert count(ask(entries(text), query=query).text) <= ANSWER_TOKENS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("not json", "not a JSON"),
        ("[]", "Give the address"),
        ('{"address": 7}', "Give the address"),
        ('{"address": "/etc/passwd"}', "not an address"),
        ('{"address": "artifact://default/session/log/../../x"}', "not an address"),
        ('{"address": "artifact://other/session/log/0"}', "another conversation"),
        ('{"address": "artifact://default/session-2/log/0"}', "another conversation"),
        ('{"address": "artifact://default/session/log/99"}', "past the log"),
        ('{"address": "artifact://default/session/log/1"}', "past the log"),
        ('{"address": "artifact://default/session/log/0-1"}', "past the log"),
        ('{"address": "#99"}', "past the log"),
        ('{"address": "#1-0"}', "ends before it begins"),
        ('{"address": "#x"}', "not an address"),
        ('{"address": "artifact://default/session/log/0", "lines": "x"}', "a range"),
        ('{"address": "artifact://default/session/log/0", "lines": "7-3"}', "lines 1 to 1"),
        ('{"address": "artifact://default/session/log/0", "lines": "2:1-4"}', "lines 1 to 1"),
        ('{"address": "artifact://default/session/log/0", "lines": "1:7-9"}', "6 characters"),
        ('{"address": "artifact://default/session/log/0", "lines": "1:0-4"}', "6 characters"),
        ('{"address": "artifact://default/session/log/0", "lines": "1:4-3"}', "6 characters"),
        ("[" * 5_000, "not a JSON"),
    ],
)
def test_what_cannot_be_answered_says_what_to_do(arguments: str, said: str) -> None:
    result = answer(ToolCall("r1", RESTORE, arguments), entries("secret"), session=HERE, count=count)
    assert result.is_error
    assert said in result.text
    assert "secret" not in result.text


@given(
    st.text(max_size=300).map(lambda text: text * 40),
    st.text(max_size=30),
    st.one_of(st.just(""), st.from_regex(r"[0-9]{1,4}(:[0-9]{1,4})?(-[0-9]{1,4})?", fullmatch=True)),
)
def test_no_answer_is_larger_than_it_may_be(text: str, query: str, lines: str) -> None:
    assert count(ask(entries(text), query=query, lines=lines).text) <= ANSWER_TOKENS


@pytest.mark.parametrize("sort", ["word ", "x", "é中🙂", "\n"])
@pytest.mark.parametrize("query", ["", "word"])
def test_an_answer_keeps_to_the_room_that_there_is(sort: str, query: str) -> None:
    call = ToolCall("r1", RESTORE, json.dumps({"address": "artifact://default/session/log/0", "query": query}))
    result = answer(call, entries(sort * 20_000), session=HERE, count=count, most_tokens=400)
    assert not result.is_error
    assert count(result.text) <= 400


def test_several_answers_share_a_quarter_of_the_room() -> None:
    calls = [
        ToolCall(f"r{number}", RESTORE, '{"address": "artifact://default/session/log/0"}') for number in range(4)
    ]
    log = entries("word\n" * 9_000)
    messages = answer_calls(
        calls,
        log,
        session=HERE,
        count=lambda message: count(message.results[0].text),
        room_tokens=8_000,
        shows_pictures=False,
    )
    taken = [count(message.results[0].text) for message in messages]
    assert all(400 < tokens <= 500 for tokens in taken)


def test_without_room_it_says_so() -> None:
    call = ToolCall("r1", RESTORE, '{"address": "artifact://default/session/log/0"}')
    result = answer(call, entries("text"), session=HERE, count=count, most_tokens=100)
    assert result.is_error
    assert "one address at a time" in result.text


@pytest.mark.parametrize("before", range(150, 250, 7))
def test_words_are_found_wherever_a_long_line_is_split(before: int) -> None:
    assert "lines match" in ask(entries("x" * before + "needle in hay" + "y" * 5_000), query="needle").text


def test_one_part_of_an_entry_is_read_alone() -> None:
    log = [Entry(0, Message("assistant", (Text("one"), Text("two"))), digest(b""), 1)]
    assert ask(log, "0.1").text == "[Lines 1 to 1 of 1.]\ntwo"
    assert ask(log, "0.2").is_error


FOREIGN: dict[str, Any] = {
    "container_upload": {"type": "container_upload", "file_id": "file_77"},
    "mcp_tool_result": {"type": "mcp_tool_result", "content": [{"type": "text", "text": "It is plum."}]},
    "search_result": {"type": "search_result", "source": "https://a.b/" + "c" * 100, "title": "Plums"},
    "input_audio": {"type": "input_audio", "input_audio": {"data": "A" * 90_000, "format": "wav"}},
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_part_that_is_known_by_its_json_alone_is_read_as_that(kind: str) -> None:
    part, page = Opaque(FOREIGN[kind]), "[Lines 1 to 1 of 1.]\n"
    written = json.dumps(FOREIGN[kind], separators=(",", ":")).replace("A" * 90_000, "[90,000 characters]")
    for message in (Message("user", (part,)), Message("tool", (ToolResult("c", (part,)),))):
        assert ask([Entry(0, message, digest(b""), 1)]).text == page + written


@pytest.mark.parametrize("after", ["`.", "]", ">,"])
def test_what_a_model_writes_around_an_address_is_no_matter(after: str) -> None:
    assert not ask(entries("text"), f"0{after}").is_error


PICTURE = Image(data="aGVsbG8=", media_type="image/png")


def test_pictures_of_a_result_follow_its_text_where_they_may() -> None:
    parts = (Text("before"), PICTURE, Text("after"))
    log = [Entry(0, Message("tool", (ToolResult("c", parts),)), digest(b""), 1)]
    call = ToolCall("r1", RESTORE, '{"address": "artifact://default/session/log/0"}')
    shown = answer(call, log, session=HERE, count=count, count_media=lambda _: 500)
    assert shown.parts[1:] == (PICTURE,)
    assert shown.text.splitlines()[2:] == ["before", "[image]", "after"]
    hidden = answer(call, log, session=HERE, count=count)
    assert len(hidden.parts) == 1
    assert hidden.text.startswith("[Images and files here: 1.")
    assert hidden.text.endswith("before\n[image]\nafter")


@pytest.mark.parametrize("tokens", [1, 400, 700, 5_000])
def test_pictures_and_text_share_the_room(tokens: int) -> None:
    log = [Entry(0, Message("user", (Text("word " * 20_000), *[PICTURE] * 5)), digest(b""), 1)]
    call = ToolCall("r1", RESTORE, '{"address": "artifact://default/session/log/0"}')
    shown = answer(call, log, session=HERE, count=count, count_media=lambda _: tokens)
    pictures = shown.parts[1:]
    assert count(shown.text) + tokens * len(pictures) <= ANSWER_TOKENS
    assert f"{len(pictures)} of 5 images" in shown.text
    assert len(pictures) == min(5, (ANSWER_TOKENS - 60 - 150) // tokens)
    later = {"address": "artifact://default/session/log/0", "lines": "2-3"}
    page = answer(
        ToolCall("r1", RESTORE, json.dumps(later)), log, session=HERE, count=count, count_media=lambda _: tokens
    )
    assert len(page.parts) == 1


def test_a_search_of_very_much_says_how_far_it_went_and_goes_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_search, "MOST_LOOKS", 2_000)
    text = "\n".join(f"line {number}" for number in range(10_000)) + "\nthe plum"
    log, lines, searched = entries(text), "", 0
    while True:
        shown = ask(log, query="plum", lines=lines).text
        searched += 1
        if "Not searched yet: give lines " not in shown:
            break
        lines = shown.partition("give lines ")[2].partition(" too")[0]
    assert "10001: the plum" in shown
    assert 3 <= searched <= 6
    assert "None of lines 1 to 10" in ask(log, query="plum", lines="1-10").text


@given(
    st.lists(st.text(alphabet="ab\u00dfAB\u0130 .", max_size=450), min_size=1, max_size=12),
    st.text(alphabet="ab\u00dfAB\u0130.", min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_what_is_near_in_no_batch_is_in_no_line(texts: list[str], query: str, start: int) -> None:
    """A search in batches finds what a look into each line finds."""
    pieces = split_lines("\n".join(texts)).pieces
    found = set(text_search.search_pieces(pieces, query, start=start).best)
    following = [*pieces[1:], ""]
    for at, (piece, after) in enumerate(zip(pieces, following, strict=True)):
        seen = piece if piece.endswith("\n") else piece + after[:80]
        if at >= start and query.casefold() in seen.casefold():
            assert at in found


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ('{"address": " `artifact://default/session/log/0`.", "query": "x"}', "artifact://default/session/log/0"),
        ('{"address": "artifact://log/2-3"}', "artifact://default/session/log/2-3"),
        ('{"address": "#17"}', "artifact://default/session/log/17"),
        ('{"address": "artifact://default/other/log/0"}', "artifact://default/other/log/0"),
        ('{"query": "x"}', ""),
        ("no json", ""),
        (json.dumps({"address": "x" * 10_000}), "x" * 400),
    ],
)
def test_the_address_of_a_call_is_what_it_asks_for(arguments: str, address: str) -> None:
    assert read_requested_address(ToolCall("r1", RESTORE, arguments), HERE) == address

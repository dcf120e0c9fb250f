from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.clipping import clip
from lading.history.log import Draft
from lading.history.view import rebuild
from lading.messages import Image, Message, Part, Text, ToolResult, user_text
from lading.tokens.meter import COUNTED_CHARS
from tests.histories import answered, called
from tests.views import address, admitted, count, entries_of, pressure

NOTE = re.compile(
    r"\[([\d,]+) of ([\d,]+) characters(?: and (\d+) parts that are no text)? left out here "
    r"\((?:about )?([\d,]+) tokens in all\)\. Original: (\S+)\]"
)
LINES = "".join(f"{number}: a line of tool output\n" for number in range(400))
NOTE_ROOM = 60
"""More tokens than any note takes here, by the plain counter."""


def clipped(text: str, cap_tokens: int) -> str | None:
    """The text of a result after clipping; None where it was left alone."""
    history = admitted([user_text("hi"), called("a"), answered("a", text)])
    draft = clip(history.view, history.view.items[2], cap_tokens=cap_tokens, pressure=pressure())
    return None if draft is None else draft.replacement[0].results[0].text


def assert_honest(shown: str, whole: str) -> None:
    """Head and tail are the original's, and the note says exactly what is missing and where it is."""
    match = NOTE.search(shown)
    assert match is not None
    head, tail = shown[: match.start()].removesuffix("\n"), shown[match.end() :].removeprefix("\n")
    assert whole.startswith(head)
    assert whole.endswith(tail)
    missing, all_characters, _, all_tokens, pointer = match.groups()
    assert int(missing.replace(",", "")) == len(whole) - len(head) - len(tail)
    assert int(all_characters.replace(",", "")) == len(whole)
    assert int(all_tokens.replace(",", "")) == count(answered("a", whole))
    assert pointer == address("2")


@given(
    st.one_of(
        st.text(max_size=60).map(lambda text: text * 50),
        st.sampled_from([LINES, "x" * 9_000, "\n" * 5_000, "ab\ud83d\n" * 900, "🙂é中" * 1_500]),
    ),
    st.integers(NOTE_ROOM, 2_000),
)
def test_what_is_clipped_fits_and_says_what_is_missing(text: str, cap_tokens: int) -> None:
    shown = clipped(text, cap_tokens)
    if shown is None:
        assert count(answered("a", text)) <= cap_tokens
    else:
        assert count(answered("a", shown)) <= cap_tokens < count(answered("a", text))
        assert_honest(shown, text)


@given(st.integers(0, 400), st.integers(0, NOTE_ROOM))
def test_a_cap_smaller_than_the_note_never_makes_a_result_longer(characters: int, cap_tokens: int) -> None:
    text = "x" * characters
    shown = clipped(text, cap_tokens)
    if shown is not None:
        assert count(answered("a", shown)) < count(answered("a", text))
        assert_honest(shown, text)


@pytest.mark.parametrize("text", [LINES, "x" * 12_000, "ab\ud83d\udd8a\ud83d" * 2_000, "line\r\n" * 2_000])
def test_most_of_the_cap_is_used(text: str) -> None:
    shown = clipped(text, 1_000)
    assert shown is not None
    assert 900 < count(answered("a", shown)) <= 1_000
    assert_honest(shown, text)


@pytest.mark.parametrize("chars", [300_000, 3_000_000])
def test_of_an_enormous_line_most_of_the_cap_is_used_too(chars: int) -> None:
    shown = clipped("x" * chars, 1_000)
    assert shown is not None
    assert 900 < count(answered("a", shown)) <= 1_000
    assert ("(about " in shown) == (chars > COUNTED_CHARS)
    assert_honest(shown, "x" * chars)


def test_whole_lines_are_kept_where_there_are_lines() -> None:
    shown = clipped(LINES, 1_000)
    assert shown is not None
    head, note, tail = re.split(r"\n?(\[[^]]*\])\n", shown)
    assert set(head.split("\n")) | set(tail.removesuffix("\n").split("\n")) < set(LINES.split("\n"))
    assert len(head) > len(tail) > 500
    assert note


def test_a_result_at_the_cap_is_left_alone() -> None:
    tokens = count(answered("a", LINES))
    assert clipped(LINES, tokens) is None
    assert clipped(LINES, tokens - 1) is not None
    assert clipped("", 8) is None


def drafted(message: Message, cap_tokens: int) -> Draft | None:
    view = rebuild(entries_of([message]), [])
    return clip(view, view.items[0], cap_tokens=cap_tokens, pressure=pressure())


def test_only_the_results_above_the_cap_change() -> None:
    large, small = ToolResult("a", (Text("x" * 4_000),)), ToolResult("b", (Text("fine"),))
    other = ToolResult("c", (Text("y" * 5_000),), is_error=True, name="read", template={"type": "t"})
    message = Message("user", (large, small, Text("go on"), other), origin="anthropic", template={"k": 1})
    draft = drafted(message, 400)
    assert draft is not None
    (shown,) = draft.replacement
    assert [part is before for part, before in zip(shown.parts, message.parts, strict=True)] == [
        False,
        True,
        True,
        False,
    ]
    assert all(count(Message("tool", (result,))) <= 400 for result in shown.results)
    assert [result.text[0] for result in shown.results] == ["x", "f", "y"]
    last = shown.results[-1]
    assert (last.call_id, last.is_error, last.name, last.template) == ("c", True, "read", {"type": "t"})
    assert (shown.origin, shown.template) == ("anthropic", {"k": 1})
    assert draft.pointers == (address("0"), address("0"))
    assert (draft.kind, draft.first, draft.last) == ("clipped", 0, 0)
    assert message.results == (large, small, other)


def test_a_message_without_results_is_left_alone() -> None:
    assert drafted(user_text("x" * 9_000), 100) is None


def test_pictures_that_leave_with_the_text_are_told_of() -> None:
    parts = (Text("x" * 400), Image(data="aGk="), Text("y" * 400))
    draft = drafted(Message("tool", (ToolResult("a", parts),)), 150)
    assert draft is not None
    match = NOTE.search(draft.replacement[0].results[0].text)
    assert match is not None
    assert match.group(3) == "1"


def test_what_stands_beside_the_result_for_the_same_entry_stays() -> None:
    two: tuple[Part, ...] = called("a").parts + called("b").parts
    late = [user_text("hi"), Message("assistant", two), answered("a"), answered("x", "stray")]
    history = admitted([*late, answered("b", LINES)])
    items = [item for item in history.view.items if item.entry == 4]
    assert len(items) == 2
    draft = clip(history.view, items[0], cap_tokens=300, pressure=pressure())
    assert draft is not None
    assert len(draft.replacement) == 2
    assert draft.replacement[1] is items[1].message


def test_all_words_stay_where_the_pictures_beside_them_are_too_much() -> None:
    result = ToolResult("a", (Text("port 8080"), Image(data="aGVsbG8=", media_type="image/png")))
    history = admitted([user_text("hi"), called("a"), Message("tool", (result,))])
    draft = clip(history.view, history.view.items[2], cap_tokens=200, pressure=pressure())
    assert draft is not None
    text = draft.replacement[0].results[0].text
    assert text.startswith("port 8080\n[1 parts that are no text left out here (")
    assert text.endswith(f"Original: {address('2')}]")

"""An answer of ``restore`` gives the text as it was, page by page, and says truthfully which part of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.addresses import RESTORE
from lading.audit import text_search
from lading.audit.pointers import render_text
from lading.audit.restore import ANSWER_TOKENS, answer
from lading.audit.text_lines import split_lines
from lading.history.log import Entry
from lading.jsonbytes import digest
from lading.messages import Message, Part, Text, ToolCall, ToolResult
from tests.audit.test_restore import HERE, entries

ENDS = ["\n", "\n", "\n\n\n", "\r\n", "\r", "\f", "\v", "\x1c", "\x85", "\u2028", "\u2029", "\t", ""]
"""Newlines, and what other programs take for them."""
_TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40)
_LINE = st.one_of(
    _TEXT,
    st.builds(lambda text, times: text * times, _TEXT, st.integers(1, 40)),
    st.integers(190, 410).map(lambda size: "x" * size),
    st.builds(lambda text, size: (text * size)[:size], _TEXT, st.integers(1_000, 60_000)),
    st.integers(1, 900).map(lambda items: json.dumps([{"id": at, "key": f"{at * 7919:x}"} for at in range(items)])),
)
TEXTS = st.lists(st.builds(lambda line, end: line + end, _LINE, st.sampled_from(ENDS)), max_size=8).map("".join)


def say(role: str, *parts: Part) -> list[Entry]:
    return [Entry(0, Message(role, parts), digest(b""), 1)]  # type: ignore[arg-type]


def count(text: str) -> int:
    return -(-len(text) // 4)


def ask(log: list[Entry], item: str = "0", **arguments: str) -> str:
    call = ToolCall("r1", RESTORE, json.dumps({"address": f"artifact://log/{item}", **arguments}))
    return answer(call, log, session=HERE, count=count).text


def iter_pages(log: list[Entry], item: str = "0") -> Iterator[tuple[str, str]]:
    """Yield the header and the text of each page that a model gets which reads on as the headers say."""
    lines = ""
    while True:
        header, _, page = ask(log, item, lines=lines).partition("\n")
        yield header, page
        if "Next: lines " not in header:
            return
        lines = header.partition("Next: lines ")[2].removesuffix(".]")


def read(log: list[Entry], item: str = "0") -> str:
    """Read all pages; check what each header says against the text."""
    pages = list(iter_pages(log, item))
    whole = "".join(page for _, page in pages)
    lines = whole.removesuffix("\n").split("\n")
    at = 0
    for header, page in pages:
        assert count(f"{header}\n{page}") <= ANSWER_TOKENS
        first, last, total = (int(number) for number in re.findall(r"\d+", header.partition(".")[0]))
        assert whole[:at].count("\n") + 1 == first
        at += len(page)
        assert whole[: at - 1].count("\n") + 1 == last or not page
        assert total == len(lines)
        if part := re.search(r"Of line (\d+): characters (\d+) to (\d+) of (\d+)\.", header):
            line, start, end, chars = map(int, part.groups())
            assert (line, chars) == (last, len(lines[line - 1]))
            assert lines[line - 1][start - 1 : end] == page.removesuffix("\n").rpartition("\n")[2]
        else:
            assert page.endswith("\n") or at == len(whole)
    return whole


@given(TEXTS)
def test_the_pages_joined_are_the_text(text: str) -> None:
    assert read(entries(text)) == text
    assert read(say("user", Text(text))) == text
    assert read(say("assistant", ToolCall("c", "write", json.dumps({"text": text})))) == (
        f"write({json.dumps({'text': text})})"
    )


@given(st.lists(TEXTS, min_size=2, max_size=3))
def test_the_pages_of_several_parts_joined_are_the_parts(texts: list[str]) -> None:
    call = ToolCall("c", "write", json.dumps(texts))
    several = say("assistant", *map(Text, texts), call)
    assert read(several) == render_text(several[0].message) == "\n".join([*texts, f"write({call.arguments})"])
    assert [read(several, f"0.{at}") for at in range(len(texts))] == texts
    result = say("tool", ToolResult("c", tuple(map(Text, texts))))
    assert read(result) == "\n".join(texts)
    assert read(entries(*texts), f"0-{len(texts) - 1}") == "\n".join(
        f"--- {at} tool\n{text}" for at, text in enumerate(texts)
    )


@pytest.mark.parametrize("text", ["x" * 1_000_000, json.dumps([*range(150_000)]), " " * 200_000 + "end\n"])
def test_a_line_of_a_million_characters_is_read_in_bounded_pages(text: str) -> None:
    assert read(entries(text)) == text


LONG = f"first line\n{'y' * 150}{'needle in hay '.upper()}{'z' * 46_000}needle\r\nlast line"


@pytest.mark.parametrize("size", [201, 399, 1_000, 3_000])
def test_a_line_that_fits_a_page_is_never_parted(size: int) -> None:
    log = entries(f"{'word ' * 1_500}\n" + f"{'word ' * (size // 5)}\n" * 40)
    assert not [header for header, _ in iter_pages(log) if "Of line" in header]


def test_a_header_says_what_part_of_a_long_line_is_there() -> None:
    log = entries(LONG)
    (header, page), (following, _), *_ = iter_pages(log)
    end = len(page) - len("first line\n")
    chars = len(LONG.split("\n")[1])
    assert header == (
        f"[Lines 1 to 2 of 3. Of line 2: characters 1 to {end} of {chars}. Next: lines 2:{end + 1}-{chars}.]"
    )
    assert following.startswith(f"[Lines 2 to 2 of 3. Of line 2: characters {end + 1} to ")
    assert [*iter_pages(log)][-1] == ("[Lines 3 to 3 of 3.]", "last line")
    # Characters are given in pieces; the header says which.
    asked = ask(log, lines="2:350-450")
    assert asked == (
        f"[Lines 2 to 2 of 3. Of line 2: characters 201 to 600 of {chars}. Next: lines 2:601-{chars}.]\n{'z' * 400}"
    )


def test_matches_in_a_long_line_are_shown_with_their_characters() -> None:
    found = ask(entries(LONG), query="needle")
    header, *shown = found.split("\n")
    assert header == "[1 of 3 lines match, in 2 pieces.]"
    assert shown[0] == "1: first line"
    assert shown[1].startswith("2:1-600: yyy")
    assert shown[2:3] == ["..."]
    number, _, text = shown[3].partition(": ")
    start, end = map(int, number.removeprefix("2:").split("-"))
    assert LONG.split("\n")[1][start - 1 : end] == text
    assert shown[4] == "3: last line"
    # What the numbers name can be read, and searched.
    assert "needle" in ask(entries(LONG), lines=number)
    assert ask(entries(LONG), query="needle", lines=number).startswith(
        f"[1 of lines 2 to 2 match. Of line 2: characters {start} to {end} of "
    )
    assert "None of lines 2 to 2 holds these words. Of line 2: characters 401 to 800 of" in ask(
        entries(LONG), query="needle", lines="2:401-800"
    )


def test_a_search_that_stops_within_a_line_says_how_to_search_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_search, "MOST_LOOKS", 700)
    log, rest, found = entries(f"first\n{'x' * 300_000}\nthe plum\n{'y' * 150_000} plum"), [""], list[str]()
    while rest:
        found.append(ask(log, query="plum", lines=rest.pop(0)))
        if more := re.search(r"give lines (\S+) too(?:, then (\S+))?\.", found[-1]):
            rest = [name for name in more.groups() if name] + rest
    assert len(found) > 3
    assert "3: the plum" in "".join(found)
    assert re.search(r"4:149\d{3}-150005: y+ plum$", found[-1])


@given(TEXTS, st.text(alphabet="needl", min_size=5, max_size=8), TEXTS)
def test_a_word_is_found_wherever_it_is(before: str, word: str, after: str) -> None:
    found = ask(entries(f"{before} {word} {after}"), query=word)
    assert not found.startswith("[None of")


@given(TEXTS)
def test_pieces_joined_are_the_text_and_lines_end_at_newlines_alone(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines.pieces) == text
    every = ["".join(lines.pieces[a:b]) for a, b in zip(lines.begins, lines.begins[1:], strict=False)]
    assert [line.removesuffix("\n") for line in every] == text.removesuffix("\n").split("\n")
    assert [lines.count_chars(at) for at in range(1, lines.count + 1)] == [len(x.removesuffix("\n")) for x in every]

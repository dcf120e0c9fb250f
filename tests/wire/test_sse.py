"""Event streams, whatever their line ends and however their bytes arrive."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.wire.replies import SseEvent, SseReader, make_event, read_object
from tests.wire.made_replies import cut, events_of

ENDS = st.sampled_from(["\n", "\r\n", "\r"])
LINES = st.sampled_from(
    [
        "data: a",
        "data:b",
        "data",
        "data:  c",
        "event: ping",
        "event:e",
        ": comment",
        ":",
        "id: 4",
        "retry: 9",
        "x",
        "",
    ]
) | st.text(st.characters(exclude_characters="\r\n"), max_size=6).map(lambda text: f"data: {text}")


@given(st.lists(LINES), ENDS, st.booleans(), st.lists(st.integers(0, 400), max_size=12))
def test_any_chunking_gives_the_same_events(lines: list[str], end: str, marked: bool, places: list[int]) -> None:
    data = (b"\xef\xbb\xbf" if marked else b"") + "".join(line + end for line in lines).encode()
    reader = SseReader()
    events = [event for piece in cut(data, places) for event in reader.feed(piece)] + reader.end()
    assert events == events_of(data)
    assert b"".join(event.raw for event in events) == data
    said = [(event.name, event.data) for event in events if event.name or event.data]
    assert said == _by_the_book(lines)


def _by_the_book(lines: list[str]) -> list[tuple[str, str]]:
    """Name and data of each event that has any and ends in a blank line."""
    found, name, data = [], "", list[str]()
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif not line:
            if name or "\n".join(data):
                found.append((name, "\n".join(data)))
            name, data = "", []
    return found


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_come_when_their_blank_line_is_there(end: bytes) -> None:
    reader = SseReader()
    assert reader.feed(b"data: 1" + end) == []
    blank = [*reader.feed(end), *reader.feed(b":")]
    assert blank == [SseEvent(b"data: 1" + end + end, "", "1")]
    assert reader.end() == [SseEvent(b":", "", "")]


def test_a_line_separator_within_a_string_is_no_line_end() -> None:
    (event,) = events_of('data: {"a":"x\u2028\u0085y"}\n\n'.encode())
    assert read_object(event) == {"a": "x\u2028\u0085y"}


def test_an_event_cut_short_has_bytes_and_no_meaning() -> None:
    assert events_of(b'data: {"a":1}\n') == [SseEvent(b'data: {"a":1}\n', "", "")]
    assert events_of(b"data: 1\n\r") == [SseEvent(b"data: 1\n\r", "", "1")]


def test_bytes_that_are_no_text_do_not_stop_the_stream() -> None:
    events = events_of(b"data: \xff\xfe\n\ndata: 2\n\n")
    assert [event.data for event in events] == ["\ufffd\ufffd", "2"]


@given(
    st.dictionaries(st.text(), st.text() | st.floats() | st.just("\ud83d")), st.sampled_from(["", "message_stop"])
)
def test_a_made_event_reads_back(value: dict[str, object], name: str) -> None:
    made = make_event(value, name=name)
    (read,) = events_of(made.raw)
    assert read == made
    # What no request can carry is null, as in the objects of the SDKs.
    finite = {key: None if isinstance(one, float) and not math.isfinite(one) else one for key, one in value.items()}
    assert json.dumps(read_object(read)) == json.dumps(finite)


@pytest.mark.parametrize("data", ["", "[DONE]", "[1]", "1", "{", "[" * 100_000])
def test_data_that_is_no_object_has_none(data: str) -> None:
    assert read_object(SseEvent(b"", "", data)) is None

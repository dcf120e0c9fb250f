"""Reading a file of any format: what is recognised, what is refused, and what holds for every format."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import SourceError, UnknownName
from lading.sources import SOURCES, Problem, Recording, read, source
from tests.sources import (
    test_anthropic,
    test_claude_code,
    test_codex,
    test_message_lines,
    test_openai_chat,
    test_openai_responses,
    test_trajectories,
)
from tests.sources.written import json_lines, read_all, read_one, write

SAMPLES: dict[str, list[Any]] = {
    "claude_code": test_claude_code.LOG,
    "codex": test_codex.LOG[:13],
    "openai_responses": [test_openai_responses.BODY, test_openai_responses.BODY],
    "anthropic": [test_anthropic.BODY, test_anthropic.BODY],
    "trajectories": [test_trajectories.SESSION, {**test_trajectories.SESSION, "id": "two"}],
    "openai_chat": [test_openai_chat.BODY, test_openai_chat.BODY],
    "message_lines": test_message_lines.SAMPLE,
}


def test_every_format_has_a_sample() -> None:
    assert set(SAMPLES) == set(SOURCES)


@pytest.mark.parametrize("name", SOURCES)
class TestEveryFormat:
    def test_is_recognised_by_content_in_every_packing(self, tmp_path: Path, name: str) -> None:
        data = json_lines(SAMPLES[name])
        plain, _ = read_all(write(tmp_path, data))
        assert plain
        assert {item.origin for item in plain} == {name}
        text = data.decode()
        for form in (gzip.compress(data), b"\xef\xbb\xbf" + data, text.encode("utf-16"), b"\n\n" + data):
            again, problems = read_all(write(tmp_path, form))
            assert problems == []
            assert [item.messages for item in again] == [item.messages for item in plain]

    def test_only_one_format_recognises_it_first(self, name: str) -> None:
        first = next(entry for entry in SOURCES if source(entry).recognises(SAMPLES[name]))
        assert first == name

    def test_a_json_array_reads_like_the_lines(self, tmp_path: Path, name: str) -> None:
        plain, _ = read_all(write(tmp_path, SAMPLES[name]))
        listed, problems = read_all(write(tmp_path, json.dumps(SAMPLES[name], indent=1).encode()))
        assert problems == []
        assert [item.messages for item in listed] == [item.messages for item in plain]

    def test_damage_before_and_after_is_reported(self, tmp_path: Path, name: str) -> None:
        plain, _ = read_all(write(tmp_path, SAMPLES[name]))
        damaged, problems = read_all(write(tmp_path, ["{not json}", *SAMPLES[name], '{"cut": "of']))
        assert [item.messages for item in damaged] == [item.messages for item in plain]
        assert [problem.line for problem in problems] == [1, len(SAMPLES[name]) + 2]

    def test_a_recording_is_whole(self, tmp_path: Path, name: str) -> None:
        recordings, _ = read_all(write(tmp_path, SAMPLES[name]))
        for item in recordings:
            assert item.id
            assert len(item.messages) == len(item.raw_indices) == len(item.times_s)
            assert list(item.raw_indices) == sorted(item.raw_indices)
            assert {bill.message_index for bill in item.usage} <= set(item.raw_indices)

    def test_later_messages_do_not_change_earlier_ones(self, tmp_path: Path, name: str) -> None:
        if name in ("claude_code", "codex", "message_lines"):
            cut = SAMPLES[name][:-1]
        else:
            record = SAMPLES[name][0]
            field = "input" if name == "openai_responses" else "messages"
            cut = [{**record, field: record[field][:-1]}]
        whole, _ = read_all(write(tmp_path, SAMPLES[name]))
        short, _ = read_all(write(tmp_path, cut))
        length = len(short[0].messages)
        assert 0 < length < len(whole[0].messages)
        assert short[0].messages == whole[0].messages[:length]

    def test_hostile_values_never_raise(self, tmp_path: Path, name: str) -> None:
        hostile: list[Any] = [
            None,
            7,
            "x",
            [],
            {},
            [[]],
            [{}],
            {"messages": None},
            {"messages": [None, [], {}, 5]},
        ]
        values = [*SAMPLES[name][:3], *hostile]
        recordings, _ = read_all(write(tmp_path, values), format_name=name)
        assert all(isinstance(item, Recording) for item in recordings)


def test_the_format_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, [test_trajectories.SESSION])
    recordings, _ = read_all(path, format_name="openai_chat")
    assert recordings[0].origin == "openai_chat"
    with pytest.raises(UnknownName, match="claude_code"):
        list(read(path, format="carrier_pigeon"))


def test_a_format_is_added_by_one_file_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, [{"SAY": "land"}, {"say": "what"}], name="crew.jsonl")
    dotted = "tests.sources.shouted:SOURCE"
    recordings, problems = read_all(path, format_name=dotted)
    assert [(item.id, item.messages[0].text) for item in recordings] == [("crew", "land")]
    assert problems == [Problem(str(path), 2, "Nobody shouts.")]
    with pytest.raises(SourceError):
        list(read(path))
    monkeypatch.setitem(SOURCES, "shouted", dotted)
    assert [item.origin for item in read_all(path)[0]] == ["shouted"]


def test_ids_are_unique_in_a_file(tmp_path: Path) -> None:
    one = test_trajectories.SESSION
    lines = [{**one, "id": identity} for identity in ("a", "a", "a-2", "a", "")]
    recordings, problems = read_all(write(tmp_path, lines, name="many.jsonl"))
    assert [item.id for item in recordings] == ["a", "a-2", "a-2-2", "a-3", "many"]
    assert ["taken" in problem.text for problem in problems] == [True] * 3


def test_problems_stand_before_what_follows_them(tmp_path: Path) -> None:
    one = test_trajectories.SESSION
    items = list(read(write(tmp_path, [one, "{bad", {**one, "id": "two"}])))
    assert [type(item).__name__ for item in items] == ["Recording", "Problem", "Recording"]


def test_a_cut_file_gives_the_messages_before_the_cut(tmp_path: Path) -> None:
    line = json.dumps(test_trajectories.SESSION)
    whole = read_one(write(tmp_path, line.encode()))
    recordings, problems = read_all(write(tmp_path, line[: line.index('"It is missing.') + 5].encode()))
    assert recordings[0].messages == whole.messages[:4]
    assert [problem.line for problem in problems] == [1]
    content = [f"word {number} {hash(number * 7919)}" for number in range(9000)]
    long = {"id": "s", "messages": [{"role": "user", "content": text} for text in content]}
    packed = gzip.compress(json.dumps(long).encode())
    recordings, problems = read_all(write(tmp_path, packed[: len(packed) // 2]))
    texts = [message.text for message in recordings[0].messages]
    assert len(texts) > 100
    assert texts == content[: len(texts)]
    assert [problem.line for problem in problems] == [1, 1]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\n \n", "holds no text"),
        (b"plain words\nand more\n", "line 1: Not JSON"),
        (b"PK\x03\x04\x00\x00\x08\x00", "not a text file"),
        (b'{"documents": [], "questions": []}', "fields documents, questions"),
        (b"{}", r"fields \(none\)"),
        (b"[1, 2]", "type list"),
        (b"x\n" * 3000, "line 1"),
    ],
)
def test_what_is_no_session_file_is_refused_in_one_sentence(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        list(read(write(tmp_path, data)))
    assert "session" in str(caught.value).lower()


def test_a_file_without_end_is_given_up(tmp_path: Path) -> None:
    late = b"x\n" * 3000 + json_lines([test_trajectories.SESSION])
    with pytest.raises(SourceError, match="line 1"):
        list(read(write(tmp_path, late)))
    recordings, problems = read_all(write(tmp_path, late), format_name="trajectories")
    assert len(recordings) == 1
    assert len(problems) == 3000


def test_the_known_formats_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        list(read(write(tmp_path, [{"turns": []}])))
    assert all(name in str(caught.value) for name in SOURCES)


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.jsonl"):
        with pytest.raises(SourceError, match=str(path)):
            list(read(path))


def read_bytes(data: bytes, *, format_name: str | None = None) -> list[Recording | Problem]:
    with tempfile.TemporaryDirectory() as folder:
        return list(read(write(Path(folder), data), format=format_name))


@given(st.binary(max_size=200), st.sampled_from([b"", b"\x1f\x8b\x08\x00", b"\xff\xfe", b'{"messages": [', b"["]))
def test_arbitrary_bytes_raise_nothing_but_a_source_error(data: bytes, head: bytes) -> None:
    try:
        items = read_bytes(head + data)
    except SourceError:
        return
    assert items


KEYS = (
    st.sampled_from(
        ("messages", "role", "content", "type", "text", "id", "name", "tool_calls", "function", "arguments")
    )
    | st.sampled_from(
        (
            "tools",
            "tools_observed",
            "usage",
            "message",
            "uuid",
            "parentUuid",
            "sessionId",
            "isSidechain",
            "system",
            "payload",
            "call_id",
            "output",
            "info",
        )
    )
    | st.sampled_from(("message_index", "timestamp", "tool_call_id", "request", "response", "choices", "model"))
)
WORDS = st.sampled_from(["user", "assistant", "tool", "system", "text", "tool_use", "tool_result", "a", ""]) | (
    st.sampled_from(["response_item", "event_msg", "session_meta", "message", "function_call", "input_text"])
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@given(st.lists(VALUES, max_size=4), st.sampled_from(sorted(SOURCES)), st.data())
def test_arbitrary_values_raise_nothing_but_a_source_error(
    values: list[Any], name: str, data: st.DataObject
) -> None:
    content = json_lines([*values, *SAMPLES[name][:2]])
    cut = data.draw(st.integers(0, len(content)))
    try:
        items = read_bytes(content[:cut], format_name=name)
    except SourceError:
        assert not content[:cut]
    else:
        assert items

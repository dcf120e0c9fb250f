"""The file of answers: what a run wrote, whatever ended it, the next run reads."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.cli.kept_answers import find_answers_path, open_answers
from lading.errors import InputError
from lading.evaluate.asking import ModelAnswer
from lading.messages import ToolCall

ANSWERS = st.lists(
    st.builds(
        ModelAnswer,
        key=st.text("0123456789abcdef", min_size=1),
        model=st.text(),
        text=st.text() | st.just("\ud83d"),
        calls=st.lists(st.builds(ToolCall, st.text(), st.text(), st.text()), max_size=2).map(tuple),
        input_tokens=st.integers(0, 10**6),
        output_tokens=st.integers(0, 10**6),
        usd=st.floats(0, 100),
    ),
    max_size=4,
)


def test_it_is_beside_the_output() -> None:
    names = ("a/probe.json", "probe", "probe.v2")
    paths = [find_answers_path(name).as_posix() for name in names]
    assert paths == ["a/probe.answers.jsonl", "probe.answers.jsonl", "probe.v2.answers.jsonl"]


@given(ANSWERS, ANSWERS, st.data())
def test_all_whole_lines_are_read_after_a_kill(
    first: list[ModelAnswer], second: list[ModelAnswer], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "answers.jsonl"
        with open_answers(path) as (known, keep):
            assert known == {}
            for answer in first:
                keep(answer)
        written = path.read_bytes()
        cut = data.draw(st.integers(0, len(written)))
        path.write_bytes(written[:cut])
        whole = first[: written[:cut].count(b"\n")]
        with open_answers(path) as (known, keep):
            assert known == {answer.key: answer for answer in whole}
            for answer in second:
                keep(answer)
        with open_answers(path) as (known, _):
            assert known == {answer.key: answer for answer in (*whole, *second)}


@pytest.mark.parametrize("text", ["{}", '{"key": "x"}\n', "notes of mine", '{"key":1}\n{"key":"', "\n"])
def test_another_file_is_not_written_to(tmp_path: Path, text: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=r"answers.jsonl:1: This is no answer"), open_answers(path):
        pass
    assert path.read_text() == text


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    with open_answers(tmp_path / "answers.jsonl"):
        assert (tmp_path / "answers.jsonl").stat().st_mode & 0o777 == 0o600

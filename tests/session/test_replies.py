"""Answers that are passed in twice, and servers that name all their answers alike."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.errors import InputError
from tests.replies import chat_reply, messages_reply

MODELS = ("gpt-4o", "claude-sonnet-4-5")


def reply(model: str, text: str, *, name: str) -> dict[str, Any]:
    """An answer with this text and id, in the format of the model's provider."""
    answer = messages_reply({"type": "text", "text": text}) if model.startswith("claude") else chat_reply(text)
    return {**answer, "id": name}


@pytest.mark.parametrize("model", MODELS)
@given(
    answers=st.lists(
        st.tuples(st.sampled_from(["OK", "Done."]), st.sampled_from(["1", "2"]), st.integers(1, 3)), max_size=8
    )
)
def test_each_request_gets_its_answer_whatever_the_id_and_however_often_it_is_given(
    model: str, answers: list[tuple[str, str, int]]
) -> None:
    with Session(model) as line:
        for number, (text, name, times) in enumerate(answers):
            line.add(f"Do step {number}.")
            line.pack()
            for _ in range(times):
                assert line.reply(reply(model, text, name=name)).complete
        roles = [entry.message.role for entry in line.entries]
        said = [entry.message.text for entry in line.entries if entry.message.role == "assistant"]
        assert roles == ["user", "assistant"] * len(answers)
        assert said == [text for text, _, _ in answers]


class Locked(dict[str, Any]):
    """A dict that cannot be copied."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.lock = threading.Lock()


@pytest.mark.parametrize("before", [0, 2])
def test_of_messages_that_cannot_be_copied_none_is_stored(before: int) -> None:
    history: list[dict[str, Any]] = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"}]
    with Session("gpt-4o") as line:
        line.add(history[:before])
        with pytest.raises(InputError, match="cannot be copied"):
            line.add([*history[:before], Locked(role="user", content="Go."), *history[before:]])
        assert len(line.entries) == before
        line.add([*history, {"role": "user", "content": "Go."}])
        assert len(line.entries) == 3

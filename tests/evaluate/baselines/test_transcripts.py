from __future__ import annotations

import json

import pytest

from lading.evaluate.arms import ArmInput
from lading.messages import Message
from tests.evaluate.baselines.cases import HEAD, TEXT, case, loop, shown, text, tokens
from tests.evaluate.sessions import asks, gives, said

EDIT = json.dumps({"path": "src/a.py", "oldText": "x = 1\ny = 2", "newText": "x = 1\ny = 3"})


def turns(number: int) -> list[Message]:
    """Turns of one edit, one failed command and a closing answer."""
    messages = list(HEAD)
    for turn in range(number):
        messages += [
            *([said("user", f"Wish {turn}: " + "please " * 20)] if turn else []),
            said("assistant", "").with_parts(
                said("assistant", f"Trying {turn}.").parts + asks(("e", "edit", EDIT)).parts
            ),
            gives("e", TEXT * 8),
            asks(("b", "bash", json.dumps({"command": f"make test-{turn}"}))),
            gives("b", f"exit code {turn}", is_error=True),
            said("assistant", f"Turn {turn} is done."),
        ]
    return messages


def notes(name: str, session: ArmInput) -> list[Message]:
    """The notes of an arm, in order."""
    messages = (message for showing in shown(name, session) for message in showing.messages)
    return [message for message in messages if message.text.startswith("[Earlier messages left the view.")]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "turn-summary",
            [
                "User: Wish 5: please",
                "Did: edit src/a.py; bash make test-5",
                "Errors: exit code 5",
                "Answer: Turn 5 is done.",
                "Files changed: src/a.py",
            ],
        ),
        (
            "dialogue",
            [
                "User: Wish 5: please",
                "Assistant: Trying 5.",
                "- bash make test-5",
                "- bash make test-5",
                "  error: exit code 5",
                "Assistant: Turn 5 is done.",
            ],
        ),
    ],
)
def test_what_left_is_told_in_order(name: str, lines: list[str]) -> None:
    told = notes(name, case(turns(12), window_tokens=2_000))[-1].text.splitlines()
    found = [next(at for at, line in enumerate(told) if line.startswith(wanted)) for wanted in lines]
    assert found == sorted(found)
    assert name == "turn-summary" or "- edit src/a.py y = 3" in told


@pytest.mark.parametrize("name", ["turn-summary", "dialogue"])
def test_the_window_is_cut_at_three_fifths_and_the_note_takes_a_fifth(name: str) -> None:
    session = case(turns(60), window_tokens=4_000)
    assert max(map(tokens, shown(name, session))) <= 0.6 * 4_000
    assert 0.1 * 4_000 < max(map(session.count, notes(name, session))) <= 0.2 * 4_000


def answers(number: int) -> list[Message]:
    """Closing answers of some 130 tokens, each to a short wish, then large results."""
    found = list(HEAD)
    for at in range(number):
        found += [said("assistant", f"Closing {at:02} " + "word " * 100), said("user", f"Wish {at:02}")]
    return [*found, *loop(10, lines=80)[2:]]


def test_the_newest_lines_are_detailed_and_the_oldest_shortened() -> None:
    lines = notes("dialogue", case(answers(20), window_tokens=8_000))[-1].text.splitlines()[1:]
    sizes = [line.count("word") for line in lines if line.startswith("Assistant: Closing")]
    assert (len(sizes), sizes[0], sizes[-1]) == (20, 50, 100)
    assert sizes == sorted(sizes)


def test_the_oldest_lines_are_left_out_where_all_are_short() -> None:
    lines = notes("dialogue", case(answers(40), window_tokens=8_000))[-1].text.splitlines()[1:]
    sizes = [line.count("word") for line in lines if line.startswith("Assistant: Closing")]
    assert set(sizes) == {50}
    assert "Wish 39" in "".join(lines)
    assert "Wish 00" not in "".join(lines)


def test_broken_arguments_and_calls_without_texts_are_told_by_name() -> None:
    odd = [asks(("a", "broken", "{"), ("b", "listed", "[1]"), ("c", "counted", '{"n": 1}'))]
    results = [gives(call_id, "x " * 600) for call_id in "abc"]
    history = [*HEAD, *odd, *results, *turns(12)[2:]]
    showing = shown("turn-summary", case(history, window_tokens=3_000))[-1]
    assert "Did: broken ; listed ; counted" in text(showing)

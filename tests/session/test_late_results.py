"""Results that come after a request was made without them: admitted, capped, and no end of the session."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session, tool_result
from tests.examples import share_of_examples
from tests.replies import chat_reply, chat_result

WINDOW, RESERVE = 8_000, 500


def calls(number: int, *, prefix: str = "c") -> list[tuple[str, str, dict[str, Any]]]:
    return [(f"{prefix}{at}", "read", {"path": f"{prefix}{at}"}) for at in range(number)]


def went_on(strategy: str, late: list[int], *, together: bool = False, rounds: int = 6) -> list[str]:
    """The bodies of a session whose first calls are answered late, with results of so many words."""
    bodies = []
    results: list[dict[str, Any]] = [
        chat_result(f"c{at}", f"late-{at} " + "word " * words) for at, words in enumerate(late)
    ]
    with Session("gpt-4o", window=WINDOW, output_reserve=RESERVE, strategy=strategy) as session:
        session.add("Do it.")
        session.pack()
        session.reply(chat_reply(None, *calls(len(late)), number=90))
        session.pack()
        session.reply(chat_reply("I wait for the tools.", number=91))
        for given in [results] if together else [[result] for result in results]:
            session.add(given)
        for number in range(rounds):
            pack = session.pack()
            assert pack.tokens <= WINDOW - RESERVE
            bodies.append(pack.body.decode())
            session.reply(chat_reply(None, *calls(1, prefix=f"d{number}-"), number=number))
            session.add(chat_result(f"d{number}-0", f"result-{number} " + "word " * 300))
    return bodies


@pytest.mark.parametrize("strategy", ["priced", "basic", "reactive_agents/scored"])
@pytest.mark.parametrize("late", [[40_000], [40_000, 3, 40_000]])
def test_a_large_late_result_is_clipped_and_the_session_goes_on(strategy: str, late: list[int]) -> None:
    first, *_ = went_on(strategy, late)
    assert all(f"late-{at} word" in first for at in range(len(late)))
    assert "characters left out here" in first
    assert "artifact://log/3" in first


def test_a_small_late_result_stays_whole() -> None:
    first, *_ = went_on("priced", [50])
    assert "late-0 " + "word " * 49 in first
    assert "left out" not in first


@pytest.mark.fuzz
@share_of_examples(0.3)
@given(
    st.sampled_from(["priced", "basic"]),
    st.lists(st.integers(0, 12_000), min_size=1, max_size=4),
    st.booleans(),
)
def test_whatever_comes_late_the_session_goes_on(strategy: str, late: list[int], together: bool) -> None:
    assert len(went_on(strategy, late, together=together)) == 6


@pytest.mark.parametrize("named", [True, False])
def test_a_late_result_without_an_id_answers_no_call_of_another_function(named: bool) -> None:
    def call(name: str) -> dict[str, Any]:
        return {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]}

    with Session("gemini-2.5-flash", wire="gemini") as session:
        session.add("Do it.").add([call("shell")])
        late = session.entries[-1].message.calls[0]
        session.pack()
        session.add([{"role": "model", "parts": [{"text": "I wait."}]}]).add("Go on.").add([call("read")])
        answer = {"functionResponse": {"name": "shell", "response": {"result": "late"}}}
        session.add([{"role": "user", "parts": [answer]}] if named else [tool_result(late.id, "late")])
        parts = session.pack().request["contents"][-1]["parts"]
        assert [part["functionResponse"]["name"] for part in parts if "functionResponse" in part] == ["read"]
        assert [part["text"][:14] for part in parts if "text" in part] == ["[A tool result"]

"""What a request lets the model write shares the window with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import InputError, Session, WindowExceeded
from lading.session.options import find_named_card
from tests.examples import share_of_examples
from tests.replies import chat_reply, chat_result

WINDOW = 8_000


def played(fields: dict[str, Any], *, calls: int = 30, **settings: Any) -> list[int]:
    """The tokens of the requests of a tool loop whose bodies have these fields."""
    tokens = []
    with Session("gpt-4o", window=WINDOW, **settings) as session:
        session.add("Find the key.")
        for number in range(calls):
            tokens.append(session.pack(fields=fields).tokens)
            session.reply(chat_reply(None, (f"c{number}", "read", {"path": f"file-{number}"}), number=number))
            session.add(chat_result(f"c{number}", f"content-{number} " + "word " * 200))
    return tokens


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 5_000},
        {"max_completion_tokens": 5_000},
        {"max_tokens": 100, "max_completion_tokens": 5_000},
        {"thinking": {"type": "enabled", "budget_tokens": 5_000}},
        {"reasoning": {"max_tokens": 5_000}},
        {"thinking_budget": 5_000},
    ],
)
@pytest.mark.parametrize("settings", [{}, {"output_reserve": 500}])
def test_request_and_answer_fit_the_window_together(fields: dict[str, Any], settings: dict[str, Any]) -> None:
    assert 1_500 < max(played(fields, **settings)) <= WINDOW - 5_000


def test_an_answer_below_the_reserve_of_the_caller_changes_nothing() -> None:
    assert played({"max_tokens": 100}, output_reserve=3_000) == played({}, output_reserve=3_000)


@pytest.mark.parametrize(
    "fields", [{"max_tokens": True}, {"max_tokens": None}, {"thinking": 1}, {"max_tokens": -1}]
)
def test_what_is_no_number_of_tokens_reserves_nothing(fields: dict[str, Any]) -> None:
    assert played(fields, calls=2) == played({}, calls=2)


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_an_answer_that_leaves_no_room_is_an_error_that_says_what_to_lower(field: str) -> None:
    with Session("gpt-4o", window=WINDOW) as session:
        session.add("Hi")
        with pytest.raises(
            InputError, match=rf"{field} is 8,000, and .* a window of 8,000 tokens\. Lower {field} below"
        ):
            session.pack(fields={field: WINDOW})
        assert session.pack(fields={field: 100}).tokens < 100


@pytest.mark.fuzz
@share_of_examples(0.5)
@given(st.integers(1, 9_000), st.integers(0, 9_000), st.none() | st.integers(0, 4_000))
def test_whatever_the_fields_the_answer_has_its_room_or_an_error_says_so(
    limit: int, thinking: int, reserve: int | None
) -> None:
    fields = {"max_completion_tokens": limit, "thinking": {"budget_tokens": thinking}}
    try:
        most = max(played(fields, calls=12, output_reserve=reserve))
    except (InputError, WindowExceeded):
        most = 0
        assert max(limit, thinking, reserve or 0) > WINDOW * 0.8
    assert most == 0 or most + max(limit, thinking, reserve or 0) <= WINDOW


def test_an_unknown_model_is_logged_once_with_what_is_assumed_and_what_to_give(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(2):
        with Session("nobody/knows-this-7b-opening") as session:
            assert [type(event).__name__ for event in session.events] == ["UnknownModel"]
    (record,) = (record for record in caplog.records if "knows-this-7b-opening" in record.getMessage())
    assert record.name == "lading"
    assert "a window of 128000 tokens, answers of 8192" in record.getMessage()
    assert "lading.models.catalog.load_cards" in record.getMessage()


def test_a_known_model_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    Session("gpt-4o").close()
    assert caplog.records == []


@pytest.mark.parametrize(
    ("model", "meant"), [("gtp-5-minni", " Did you mean 'gpt-5-mini'?"), ("a-model-of-our-own", "")]
)
def test_the_log_names_the_model_that_may_be_meant(
    caplog: pytest.LogCaptureFixture, model: str, meant: str
) -> None:
    find_named_card.cache_clear()
    Session(model).close()
    assert [record.getMessage().partition(" Assumed: ")[0] for record in caplog.records] == [
        f"No card names the model '{model}'.{meant}"
    ]

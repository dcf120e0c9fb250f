import copy
import inspect
import pickle
import re

import pytest

from lading import errors
from lading.errors import (
    IllegalRequest,
    LadingError,
    LoopStopped,
    PastChanged,
    StoreError,
    TamperedError,
    Violation,
    WindowExceeded,
)


def drawn_tree() -> dict[str, str | None]:
    """Class name to the name of its parent, as the module's docstring draws them."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    ((?:[│ ]   )*)(?:[├└]── )?([A-Z]\w+)", line)
        if found:
            # The root stands at the margin, its children behind one branch, and so on.
            depth = len(found[1]) // 4 + ("── " in line)
            parents[found[2]] = path[depth - 1] if depth else None
            path[depth:] = [found[2]]
    return parents


def classes() -> dict[str, str | None]:
    found = inspect.getmembers(errors, lambda value: inspect.isclass(value) and issubclass(value, Exception))
    own = [(name, kind) for name, kind in found if kind.__module__ == errors.__name__]
    return {name: None if kind is LadingError else kind.__mro__[1].__name__ for name, kind in own}


def test_the_drawn_tree_is_the_tree() -> None:
    assert drawn_tree() == classes()


def test_every_error_has_a_sentence_of_its_own() -> None:
    sentences = [inspect.cleandoc(getattr(errors, name).__doc__) for name in classes()]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence.endswith(".") for sentence in sentences)


def test_the_docstring_is_the_default_text() -> None:
    assert str(TamperedError()) == "The stored data differ from what was written."
    assert str(StoreError("Something else.")) == "Something else."


def test_an_error_without_a_docstring_still_says_something() -> None:
    error_type = type("Bare", (LadingError,), {"__doc__": None})
    assert str(error_type())


def test_a_window_error_carries_what_is_needed_to_act() -> None:
    counts = {"system": 3, "conversation": 9}
    error = WindowExceeded(layer="conversation", counts=counts, room=10)
    counts["system"] = 0
    assert (error.layer, error.counts, error.room) == ("conversation", {"system": 3, "conversation": 9}, 10)
    assert "does not fit" in str(error)


def test_an_illegal_request_carries_its_violations() -> None:
    violations = Violation("A1", "E", "messages.0", "no role"), Violation("A2", "P", "tools", "no name")
    assert IllegalRequest("Two rules are broken.", violations=violations).violations == violations
    assert IllegalRequest().violations == ()


@pytest.mark.parametrize("name", sorted(classes()))
def test_every_error_can_be_caught_as_one(name: str) -> None:
    assert issubclass(getattr(errors, name), LadingError)


@pytest.mark.parametrize(
    "error",
    [
        LoopStopped(kind="calls", times=3),
        PastChanged(position=1, known=2, given=3),
        WindowExceeded("No.", layer="tools", counts={"tools": 3}, room=2),
        TamperedError(),
    ],
)
@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_an_error_is_the_same_in_another_process(error: LadingError, protocol: int) -> None:
    for again in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)

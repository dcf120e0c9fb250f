"""Messages that their caller changed, as strategies read them from then on."""

from __future__ import annotations

import pytest

from lading.messages import user_text
from tests.histories import said
from tests.views import admitted


class Reading:
    """What a strategy read; knows from which entry on it was forgotten."""

    def __init__(self) -> None:
        self.forgotten: list[int] = []

    def forget(self, entry: int) -> None:
        self.forgotten.append(entry)


@pytest.mark.parametrize("is_other", [True, False])
def test_other_words_are_read_again_and_another_form_is_not(is_other: bool) -> None:
    history = admitted([user_text("hi"), said("one"), user_text("go on"), said("two")])
    reading = Reading()
    history.view.readings.update({"kept": reading, "lost": "a value"})
    assert history.restate(2, user_text("stop"), call=2, is_other=is_other) == 2
    assert reading.forgotten == [2] * is_other
    assert ("lost" in history.view.readings) is not is_other
    assert [message.text for _, message in history.view.raw_between(0, 3)] == ["hi", "one", "stop", "two"]
    if is_other:
        assert [message.text for _, message in history.view.users_between(0, 3)] == ["stop", "hi"]
        assert history.view.newest_request == (2, user_text("stop"))

"""The instruction for a model that has read the conversation itself says which part to summarize."""

from __future__ import annotations

from lading.compaction.summary_prompt import write_instruction_for_self, write_instructions
from lading.messages import user_text
from tests.histories import answered, called, said
from tests.views import admitted


def test_the_part_is_named_by_how_its_ends_begin() -> None:
    work = [said("I read."), user_text("And?"), called("1"), answered("1", "one\ntwo")]
    items = admitted([user_text("Go."), *work, said("So it is."), user_text("More?")]).view.items
    text = write_instruction_for_self(items, 1, end=5, keep="", most_tokens=300)
    assert 'from the message of the assistant that begins with "I read."' in text
    assert 'up to and including the result that begins with "one two";' in text
    assert "leave out anything after it" in text
    assert "call no tool" in text
    assert "At\nmost 126 words" in text
    last = write_instruction_for_self(items, 3, end=7, keep="a.py", most_tokens=300)
    assert 'from the call of read that begins with "{\\"path\\": \\"a.py\\"}"' in last
    assert last.endswith("a.py")


def test_messages_that_begin_alike_are_numbered() -> None:
    items = admitted([user_text("Go."), *(said("Again.") for _ in range(3)), user_text("And?")]).view.items
    text = write_instruction_for_self(items, 1, end=3, keep="", most_tokens=300)
    assert '"Again." (number 1 of those that begin so)' in text
    assert '"Again." (number 2 of those that begin so)' in text


def test_secrets_are_not_quoted() -> None:
    items = admitted([user_text("Go."), said("password=hunter22 is set."), said("Next.")]).view.items
    assert "hunter22" not in write_instruction_for_self(items, 1, end=2, keep="", most_tokens=300)


def test_both_forms_ask_for_the_same() -> None:
    items = admitted([user_text("Go."), said("I read."), said("Next.")]).view.items
    given, own = write_instructions(300), write_instruction_for_self(items, 1, end=2, keep="", most_tokens=300)
    for asked in (
        "each request of the user",
        "what was rejected",
        "in the language in which the agent answers the user",
        "300 tokens",
    ):
        assert asked in given
        assert asked in own

"""A model that reads more of results that were cut to fit still sees the rest of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial

import pytest

from lading import Session
from lading.compaction.composing import compose
from lading.history.log import Edit
from lading.messages import Message, Text, Tool, ToolCall, ToolResult
from tests.histories import answered, called

TOOLS = [Tool("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})]


def lines(name: str, many: int) -> list[str]:
    return [f"{name} {at}: the {at * 7919 % 1009}th value is {at * 104729 % 99991}" for at in range(many)]


def fill(session: Session, texts: Sequence[list[str]], *, rounds: int) -> int:
    """Add older rounds and one with these results, which do not fit. Return the number of its entry."""
    session.add("Which values repeat? Never round them.")
    for number in range(rounds):
        session.add([called(f"old-{number}"), answered(f"old-{number}", "old " * 300)])
        session.pack(TOOLS)
    ids = [text[0].split()[0] for text in texts]
    session.add([Message("assistant", tuple(ToolCall(one, "read", json.dumps({"path": one})) for one in ids))])
    results = (ToolResult(one, (Text("\n".join(text)),)) for one, text in zip(ids, texts, strict=True))
    session.add([Message("tool", (result,)) for result in results])
    return len(session.entries) - len(texts)


def read_on(session: Session, entry: int, start: int) -> None:
    """Have the model read a page of a result."""
    page = json.dumps({"address": f"artifact://log/{entry}", "lines": f"{start}-{start + 40}"})
    reply = Message("assistant", (ToolCall(f"page-{start}", "restore", page),))
    session.add([reply, *session.handle(reply)])


def read_until_cut(session: Session, entry: int) -> Sequence[Edit]:
    """Have the model read pages until the results are cut anew. Return the edits of that."""
    before = len(session.edits)
    for start in range(50, 1_100, 50):
        read_on(session, entry, start)
        session.pack(TOOLS)
        edits = session.edits[before:]
        if any(edit.first in (entry, entry + 1) for edit in edits):
            return edits
    raise AssertionError("nothing was cut")


def share(session: Session, texts: Sequence[list[str]]) -> float:
    """The share of the lines that the next request shows."""
    body = session.pack(TOOLS).body.decode()
    return sum(line in body for text in texts for line in text) / sum(map(len, texts))


@pytest.mark.parametrize("model", ["gpt-5-mini", "claude-sonnet-4-5", "gemini-2.5-flash"])
@pytest.mark.parametrize("rounds", [0, 6])
@pytest.mark.parametrize("many", [2, 3])
def test_pages_take_the_place_of_a_part_of_the_results(many: int, rounds: int, model: str) -> None:
    texts = [lines(f"file-{number}", 2_400 // many) for number in range(many)]
    with Session(model, window=24_000) as session:
        entry = fill(session, texts, rounds=rounds)
        first = share(session, texts)
        assert 0.2 < first < 0.9
        edits = len(session.edits)
        for start in range(50, 1_010, 80):
            read_on(session, entry, start % 700)
            assert share(session, texts) > first / 2
        # For twelve pages: each time the provider writes its cache anew.
        calls = {edit.call for edit in session.edits[edits:]}
        assert 0 < len(calls) < 5


@pytest.mark.parametrize("model", ["gpt-5-mini", "claude-sonnet-4-5", "gemini-2.5-flash"])
@pytest.mark.parametrize("rows", [900, 1_500])
def test_small_calls_leave_results_that_did_not_fit(rows: int, model: str) -> None:
    texts = [lines("file-1", rows), lines("file-2", rows)]
    with Session(model, window=24_000) as session:
        fill(session, texts, rounds=0)
        first = share(session, texts)
        assert first < 1
        for number in range(2):
            session.add([called(f"small-{number}"), answered(f"small-{number}", "yes " * 150)])
            assert share(session, texts) == first


def test_a_result_is_cut_anew_and_not_once_more() -> None:
    texts = [lines("file-1", 1_200), lines("file-2", 1_200)]
    with Session("gpt-5-mini", window=24_000) as session:
        entry = fill(session, texts, rounds=0)
        share(session, texts)
        edits = read_until_cut(session, entry)
        cut = edits[-1].replacement[0].results[0].text
        assert re.findall(r"of ([\d,]+) lines left out", cut) == ["1,200"]


def hide(messages: Sequence[Message], secret: str) -> list[Message]:
    def change(message: Message) -> Message:
        parts = [
            ToolResult(part.call_id, (Text(part.text.replace(secret, "…")),))
            if isinstance(part, ToolResult)
            else part
            for part in message.parts
        ]
        return message.with_parts(tuple(parts))

    return [change(message) for message in messages]


def test_what_a_function_of_the_caller_removed_does_not_return() -> None:
    texts = [lines("file-1", 1_200), lines("file-2", 1_200)]
    strategy = compose([partial(hide, secret="value is 1"), "priced"])
    with Session("gpt-5-mini", window=24_000, strategy=strategy) as session:
        entry = fill(session, texts, rounds=0)
        assert "value is 1" not in session.pack(TOOLS).body.decode()
        edits = read_until_cut(session, entry)
        shown = (message for edit in edits for message in edit.replacement)
        assert all("value is 1" not in result.text for message in shown for result in message.results)


def test_results_without_ids_are_cut_anew_too() -> None:
    """As Gemini's SDK gives them back; from the second round on each gets an id of its own."""
    with Session("gemini-2.5-flash", window=24_000) as session:
        session.add("Which values repeat?")
        for rows in (5, 1_200):
            texts = [lines("file-1", rows), lines("file-2", rows)]
            calls = [{"functionCall": {"name": "read", "args": {"path": text[0].split()[0]}}} for text in texts]
            answers = [{"output": "\n".join(text)} for text in texts]
            results = [{"functionResponse": {"name": "read", "response": answer}} for answer in answers]
            session.add([{"role": "model", "parts": calls}, {"role": "user", "parts": results}])
            session.pack(TOOLS)
        edits = read_until_cut(session, len(session.entries) - 1)
        cuts = [result.text for edit in edits for message in edit.replacement for result in message.results]
        totals = [re.findall(r"of ([\d,]+) characters left out", cut) for cut in cuts]
        assert totals == [[f"{len(answer['output']):,}"] for answer in answers]


def test_a_result_in_another_form_is_cut_anew_from_its_own() -> None:
    rows = [{"id": at, "name": f"name {at * 7919 % 1009}", "value": at * 104729 % 99991} for at in range(900)]
    with Session("gpt-5-mini", window=24_000) as session:
        session.add("Which values repeat?")
        session.add([Message("assistant", tuple(ToolCall(one, "read", "{}") for one in ("a", "b")))])
        some, text = json.dumps(rows[:800], indent=1), "\n".join(lines("file", 900))
        session.add([answered("a", some), answered("b", text)])
        session.pack(TOOLS)
        assert "without loss" in session.edits[0].replacement[0].results[0].text
        edits = read_until_cut(session, 2)
        (cut,) = (edit.replacement[0].results[0].text for edit in edits if edit.first == 2)
        assert "without loss" not in cut or "left out" not in cut

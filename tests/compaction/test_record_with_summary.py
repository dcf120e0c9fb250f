"""What a record shows beside a model's lines: the user's words, and the demands of documents."""

from __future__ import annotations

import json

from lading.compaction.record import write_record
from lading.messages import Message, ToolCall, tool_result, user_text
from tests.compaction.test_record import PLENTY, edited, noted, tokens
from tests.histories import said


def test_lines_of_a_model_stand_in_the_place_of_all_but_the_user_s_words() -> None:
    notes = noted([user_text("Go."), said("ok"), *edited("a.py")])
    text = write_record(notes, most_tokens=PLENTY, count=tokens, instead=["Goal: x", "Done: y"])
    assert text.splitlines() == ["#0 User: Go.", "Goal: x", "Done: y", "Files changed: a.py (#2)"]


def test_what_documents_demand_is_kept_beside_the_lines_of_a_model() -> None:
    guide = Message("assistant", (ToolCall("g", "read", json.dumps({"path": "GUIDE.md"})),))
    rules = "# Guide\n\n- Always run `make check` after each change of the code\n- The code is in src.\n"
    notes = noted([user_text("Go."), guide, tool_result("g", rules), said("I read it."), *edited("a.py")])
    text = write_record(notes, most_tokens=PLENTY, count=tokens, instead=["Goal: x"])
    assert text.splitlines() == [
        "#0 User: Go.",
        '- read GUIDE.md: it says "Always run `make check` after each change of the code"',
        "Goal: x",
        "Files changed: a.py (#4)",
    ]

"""Observations: categories by tool name, kinds, and what errors are."""

from __future__ import annotations

import pytest

from lading import AsyncSession, Message, Session, Text, ToolCall, ToolResult
from lading.history.observations import (
    Category,
    categorize_tool_name,
    derive_result_kind,
    observation_result,
)


@pytest.mark.parametrize(
    ("name", "category", "kind"),
    [
        ("file-write", "file-write", "side-effect"),
        ("file_write", "file-write", "side-effect"),
        ("file-read", "file-read", "data"),
        ("web-search", "web-search", "data"),
        ("http-get", "http-get", "data"),
        ("code-execute", "code-execute", "side-effect"),
        ("scratchpad", "scratchpad", "side-effect"),
        ("recall", "scratchpad", "side-effect"),
        ("agent-delegate", "agent-delegate", "data"),
        ("spawn-agent", "agent-delegate", "data"),
        ("agent-researcher", "agent-delegate", "data"),
        ("reagent-list", "custom", "data"),
        ("anything", "custom", "data"),
        ("", "custom", "data"),
    ],
)
def test_categories_and_kinds_by_name(name: str, category: Category, kind: str) -> None:
    assert categorize_tool_name(name) == category
    assert derive_result_kind(category) == derive_result_kind(category, True) == kind


def test_own_tools_have_the_category_they_are_given() -> None:
    assert categorize_tool_name("save", {"save": "file-write"}) == "file-write"
    assert categorize_tool_name("load", {"save": "file-write"}) == "custom"


def test_a_failure_is_an_error_and_its_own_category_is_kept() -> None:
    seen = observation_result("file-read", "no such file", success=False)
    assert (seen.category, seen.result_kind, seen.preserve_on_compaction) == ("error", "error", True)
    assert (seen.original_category, seen.success, seen.tool_name) == ("file-read", False, "file-read")
    assert derive_result_kind("error", True) == "error"


def test_a_success_is_no_error() -> None:
    seen = observation_result("file-write", "done", success=True)
    assert (seen.category, seen.original_category, seen.preserve_on_compaction) == (
        "file-write",
        "file-write",
        False,
    )


def test_the_results_of_a_log_are_named_by_their_calls() -> None:
    def result(call_id: str, text: str, *, is_error: bool = False) -> ToolResult:
        return ToolResult(call_id, (Text(text),), is_error=is_error)

    calls = (ToolCall("a", "file-write", "{}"), ToolCall("b", "web_search", "{}"))
    with Session("claude-sonnet-4-5") as session:
        session.add("Write it.")
        session.add(
            [Message("assistant", calls), Message("tool", (result("a", "ok"), result("b", "no", is_error=True)))]
        )
        session.add(
            [Message("assistant", (ToolCall("a", "recall", "{}"),)), Message("tool", (result("a", "plan"),))]
        )
        seen = session.observations
        assert AsyncSession(session).observations == seen
    assert [(one.tool_name, one.category, one.result_kind, one.entry, one.call_id) for one in seen] == [
        ("file-write", "file-write", "side-effect", 2, "a"),
        ("web_search", "error", "error", 2, "b"),
        ("recall", "scratchpad", "side-effect", 4, "a"),
    ]
    assert [one.preserve_on_compaction for one in seen] == [False, True, False]

"""Observations: categories by tool name, kinds, and what errors are."""

from __future__ import annotations

import pytest

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
    assert derive_result_kind(category, True) == kind


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

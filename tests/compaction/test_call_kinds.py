from __future__ import annotations

import pytest

from lading.compaction.actions import covers
from tests.compaction.acted import acted

PATCH = (
    "*** Begin Patch\n*** Update File: src/a.py\n@@ def main\n-x = 1\n+x = 2\n*** Add File: b.py\n+print(3)\n"
    "*** Delete File: old.py\n*** End Patch"
)


@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        ("apply_patch", {"input": PATCH}, "apply_patch"),
        ("apply_patch", PATCH, "apply_patch"),
        ("shell", {"command": ["apply_patch", PATCH]}, "shell apply_patch"),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}, "shell apply_patch"),
    ],
)
def test_a_patch_is_an_edit_of_the_files_that_it_names(tool: str, arguments: object, shown: str) -> None:
    act = acted(tool, arguments, '{"output": "Success.", "metadata": {"exit_code": 0}}')
    assert (act.edits, act.paths) == (True, ("src/a.py", "b.py", "old.py"))
    assert act.detail == f"{shown} src/a.py, b.py, old.py: + x = 2 print(3)"
    refused = acted(tool, arguments, '{"output": "Failed to find lines in a.py", "metadata": {"exit_code": 1}}')
    assert refused.brief == f"{shown} src/a.py, b.py, old.py: failed: Failed to find lines in a.py"


@pytest.mark.parametrize(
    ("tool", "arguments", "paths", "change"),
    [
        (
            "replace_in_file",
            {"path": "c.py", "diff": "<<<<<<< SEARCH\n- x\n=======\n- y\n>>>>>>> REPLACE"},
            "c.py",
            "+ - y",
        ),
        (
            "edit_files",
            {
                "edits": [
                    {"path": "d.py", "old_text": "1", "new_text": "2"},
                    {"path": "e.py", "old_text": "3", "new_text": "4"},
                ]
            },
            "d.py e.py",
            "+ 2 4",
        ),
        (
            "editor",
            {"command": "insert", "path": "b.py", "insert_line": 3, "insert_text": "import os"},
            "b.py",
            "import os",
        ),
        ("editor", {"command": "undo_edit", "path": "b.py"}, "b.py", ""),
        ("delete_file", {"path": "h.py"}, "h.py", ""),
        ("edit_file", {"target_file": "g.py", "code_edit": "x = 2"}, "g.py", "x = 2"),
    ],
)
def test_tools_change_files_in_many_ways(tool: str, arguments: object, paths: str, change: str) -> None:
    act = acted(tool, arguments)
    assert (act.edits, act.paths, act.change) == (True, tuple(paths.split()), change)
    assert act.target == ", ".join(act.paths)


@pytest.mark.parametrize(
    ("tool", "arguments", "target"),
    [
        ("rename", {"path": "h.py", "new_name": "i.py"}, "h.py (new_name i.py)"),
        ("move_file", {"source": "a.py", "destination": "b.py"}, "a.py, b.py"),
        ("memory", {"command": "rename", "old_path": "a.md", "new_path": "b.md"}, "a.md, b.md"),
        ("apply_formula", {"filepath": "a.xlsx", "cell": "B2", "formula": "=C1"}, "a.xlsx (cell B2, formula =C1)"),
        ("write_data_to_excel", {"filepath": "a.xlsx", "data": [["x", 1]]}, "a.xlsx (data [x, 1])"),
        ("create_workbook", {"filepath": "a.xlsx"}, "a.xlsx"),
        ("create_document", {"filename": "a.docx", "title": "Plan"}, "a.docx (title Plan)"),
        ("add_paragraph", {"filename": "a.docx", "text": "Hello."}, "a.docx"),
        ("search_and_replace", {"filename": "a.docx", "find_text": "x"}, "a.docx (find_text x)"),
        ("Write", {"file_path": "a/__init__.py", "content": ""}, "a/__init__.py"),
        ("NotebookEdit", {"notebook_path": "a.ipynb", "edit_mode": "delete"}, "a.ipynb (edit_mode delete)"),
        ("insert_edit_into_file", {"filePath": "a.py", "code": "x = 2"}, "a.py (code x = 2)"),
        ("create_file", {"path": "a.py"}, "a.py"),
    ],
)  # fmt: skip
def test_the_name_of_a_tool_says_that_it_changes_a_file(
    tool: str, arguments: dict[str, object], target: str
) -> None:
    act = acted(tool, arguments)
    assert (act.edits, act.target) == (True, target)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("query_document", {"path": "a.pdf", "text": "What is the total?"}),
        ("search_in_file", {"file_path": "a.py", "text": "x = 1"}),
        ("add_comment", {"path": "a.py", "line": 3, "content": "Why?"}),
        ("diff_file", {"path": "a.py", "text": "x = 1"}),
        ("annotate", {"path": "a.py", "text": "x"}),
        ("ask_about_file", {"file": "a.csv", "text": "How many rows?"}),
        ("create_directory", {"path": "src/new"}),
        ("add_file", {"path": "a.py"}),
        ("get_file_info", {"path": "a.py"}),
        ("str_replace_editor", {"command": "view", "path": "a.py"}),
        ("edit_tool", {"action": "x", "command": "read_lines", "path": "a.py", "lines": "1-9"}),
        ("set_breakpoint", {"file": "a.py", "line": 3}),
    ],
)
def test_a_tool_that_reads_or_comments_changes_no_file(tool: str, arguments: dict[str, object]) -> None:
    act = acted(tool, arguments, "The total is 312.")
    assert not act.edits
    assert act.kind == "read" or "312" in act.detail


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_files", {"path": "src", "search": "x = 1"}),
        ("find_in_file", {"file": "a.py", "find": "x", "pattern": "y", "text": "z"}),
        ("send_email", {"to": "a@x.example", "body": "The sums.", "file": "sums.csv"}),
        ("send_email", {"to": "a@x.example", "text": "The sums.", "file": "sums.csv"}),
        ("run_tests", {"path": "tests/test_a.py", "text": "fast"}),
    ],
)
def test_what_searches_sends_or_runs_changes_no_file(tool: str, arguments: dict[str, str]) -> None:
    act = acted(tool, arguments)
    assert act.kind != "edit"
    assert act.change == "" or not act.edits


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("replace_all", {"path": "src", "find": "foo", "replace": "bar", "dry_run": True}),
        ("edit_file", {"path": "a.md", "edits": [{"oldText": "a", "newText": "b"}], "dryRun": True}),
        ("upload_file", {"path": "a.pdf"}),
        ("transcribe", {"path": "a.mp3", "text": "hint"}),
        ("post", {"channel_id": "C1", "text": "hello", "file": "x.txt"}),
    ],
)
def test_of_a_call_that_only_tries_or_sends_the_answer_is_told(tool: str, arguments: dict[str, object]) -> None:
    act = acted(tool, arguments, '{"id": "m_1", "sent": true}')
    assert (act.edits, act.ended.text) == (False, "id m_1, sent true")


def test_a_tool_that_runs_tests_covers_a_command_that_does() -> None:
    failed = acted("shell", {"command": "python -m pytest tests/a.py"}, "1 failed")
    assert covers(acted("run_tests", {"arguments": "tests/a.py"}, "3 passed"), failed)
    assert not covers(acted("lint", {"arguments": "tests/a.py"}, "3 passed"), failed)

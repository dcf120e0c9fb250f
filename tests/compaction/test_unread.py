from __future__ import annotations

import json

import pytest

from lading.compaction.actions import read_action
from lading.messages import Text, ToolCall, ToolResult
from tests.compaction.test_outcomes import ended

UNREAD = [
    ("[Errno 2] No such file or directory: '{}'", "[Errno 2] No such file"),
    ("[Errno 21] Is a directory: 'src'", "Is a directory"),
    ("Error calling tool 'read_file': [Errno 13] Permission denied: '{}'", "Permission denied"),
    ("Error executing tool read_file: [Errno 2] No such file or directory: '{}'", "No such file"),
    ("An error occurred while running the tool. Please try again. Error: [Errno 2] Gone: '{}'", "[Errno 2] Gone"),
    ("Error: FileNotFoundError(2, 'No such file or directory')\n Please fix your mistakes.", "FileNotFoundError(2"),
    (
        "Error executing tool 'read' with kwargs {{'path': '{}', 'more': 'x'}} with error:\n"
        " [Errno 2] No such file: '{}'\n Please fix the error and try again.",
        "[Errno 2] No such file",
    ),
    ("The path {} does not exist. Please provide a valid path.", "does not exist"),
    ("The file {} does not exist.", "does not exist"),
    ("File '{}' was not found", "was not found"),
    ("Access denied - path outside allowed directories: /w/{} not in /srv", "Access denied - path outside"),
    ("EISDIR: illegal operation on a directory, read", "EISDIR: illegal"),
    ("Error: EACCES: permission denied, open '/w/{}'", "EACCES"),
    ("EACCES: permission denied, open '/w/{}'", "EACCES"),
    ("<tool_use_error>File does not exist.</tool_use_error>", "File does not exist"),
    ("<error>Read was blocked</error>", "Read was blocked"),
    ("<file><path>{}</path><error>File not found: {}</error></file>", "File not found"),
    (
        "The tool execution failed with the following error:\n<error>\nError reading file: ENOENT: no such file\n"
        "</error>",
        "ENOENT",
    ),
    ("File content (31234 tokens) exceeds maximum allowed tokens (25000).", "exceeds maximum"),
    ('{{"error": "File not found: {}"}}', "File not found"),
    ('{{"error": {{"code": "ENOENT", "message": "no such file: {}"}}}}', "no such file"),
    ('{{\n  "success": false,\n  "message": "File not found"\n}}', "File not found"),
    ('{{"status": "error", "error_message": "File {} not found"}}', "not found"),
]


@pytest.mark.parametrize(("answer", "says"), UNREAD)
def test_a_read_that_is_answered_by_an_error_failed(answer: str, says: str) -> None:
    path = "src/config.py"
    found = ended("read", answer.replace("{}", path).replace("{{", "{").replace("}}", "}"), path=path)
    assert found.failed
    assert found.text.startswith("failed: ")
    assert says in found.text


@pytest.mark.parametrize(("answer", "says"), UNREAD)
def test_a_file_that_starts_with_such_an_error_was_read(answer: str, says: str) -> None:
    path = "src/config.py"
    text = answer.replace("{}", path).replace("{{", "{").replace("}}", "}")
    assert says in text
    for more in ("\nand\nmore\nlines\n", "\n\n12:00 started\n12:01 stopped\n", f"\n{text}\n{text}\n{text}"):
        assert not ended("read", text + more, path=path).failed


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"error": "not found", "status": "failed"}', "data/answer.json"),
        ('{"content": "x = 1", "error": null}', "a.py"),
        ('{"errors": []}', "a.py"),
        ("false", "flag.txt"),
        ("", "empty.txt"),
        ("Error handling\n\nfailed: see below", "docs/guide.md"),
        ("Errors of tools are listed.", "docs/guide.md"),
        ("raise FileNotFoundError(path)", "a.py"),
        ("     1\tError: ENOENT: no such file", "one.log"),
        ("ERRORS = 3", "a.py"),
        ("<errors>none</errors>", "a.xml"),
    ],
)
def test_a_short_file_about_errors_was_read(text: str, path: str) -> None:
    found = ended("read", text, path=path)
    assert (found.failed, found.text) == (False, "")


@pytest.mark.parametrize(
    "answer",
    [
        "文件不存在: {}",
        "ファイルが見つかりません: {}",
        "Datei nicht gefunden: {}",
        "Le fichier « {} » est introuvable.",
        "Datei {} nicht gefunden (os error 2)",
    ],
)
def test_an_answer_that_names_the_file_that_was_to_be_read_is_shown(answer: str) -> None:
    for path, named in (
        ("src/config.py", "src/config.py"),
        ("src/config.py", "/w/src/config.py"),
        ("a/b.md", "b.md"),
    ):
        found = ended("read", answer.format(named), path=path)
        assert (found.failed, found.text) == (False, answer.format(named))
        call = ToolCall("c", "read_file", json.dumps({"path": path}))
        act = read_action(call, ToolResult("c", (Text(answer.format(named)),)))
        assert act.brief == f"read_file {path}: {answer.format(named)}"


@pytest.mark.parametrize(
    "text",
    [
        "# config.py",
        "// src/config.py",
        "from config import config.py",
        "run('src/config.py')",
        "path = src/config.py",
        "1: see src/config.py",
        "     1\tsee src/config.py",
        "see src/config.py\nand more",
        f"see src/config.py {'and more ' * 30}",
        "see config.python",
        "",
    ],
)
def test_code_and_text_that_names_its_file_is_not_shown(text: str) -> None:
    assert ended("read", text, path="src/config.py").text == ""

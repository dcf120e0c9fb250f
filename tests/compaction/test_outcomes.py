from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.outcomes import CallOutcome, quote_demands, read_outcome
from lading.compaction.shell_commands import parse_command
from lading.compaction.verdicts import _ERROR, _ERROR_WORDS, find_error_line
from lading.messages import Text, ToolResult

REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, "
    "the new_string was NOT written to the file). STOP what you are doing and wait for the user."
)


def ended(kind: str, result: str, command: str = "", *, path: str = "") -> CallOutcome:
    """How a call of the kind with this result ended."""
    return read_outcome(ToolResult("c", (Text(result),)), kind, shell=parse_command(command), path=path)


def test_of_many_demands_the_first_are_quoted() -> None:
    text = "".join(f"You must never touch file number {number} there. NEVER.\n" for number in range(99))
    said = quote_demands(text)
    assert said.startswith('it says "You must never touch file number 0 there. NEVER" "You must')
    assert 300 < len(said) < 500
    assert quote_demands("IMPORTANT\nx = MUST\nwe must not do it here\n") == ""


def test_the_first_line_that_tells_of_a_failure_is_found() -> None:
    assert find_error_line("fine\n  error: one\nerror: two") == "error: one"
    assert find_error_line("0 errors, 0 failed\nexit code 0\nno error here") == ""
    assert find_error_line("✓ throws an Error\n  PASS error: is shown\nok 3 - no error\nreturned 404 rows") == ""
    assert find_error_line("Errors: 0\nerror: 0\nFailed: 0\nfailures = 0\nFound 0 errors") == ""
    assert find_error_line("a\nsrc/x.ts(4,2): error TS2304: no name") == "src/x.ts(4,2): error TS2304: no name"


@pytest.mark.parametrize(
    "text",
    [
        "BUILD FAILED in 3s\n5 actionable tasks",
        "[INFO] Tests run: 5, Failures: 1, Errors: 0\n[INFO] BUILD FAILURE",
        "The command '/bin/sh -c npm ci' returned a non-zero code: 1",
        "done\nexit=1",
        "make: *** No rule to make target 'test'.  Stop.",
        "Segmentation fault (core dumped)",
        " ! [rejected]        main -> main (fetch first)",
        "curl: (7) Failed to connect to localhost",
        "Auto-merging a.py\nCONFLICT (content): Merge conflict in a.py",
        "<exit_code>1</exit_code>",
        "2/3 tests passed",
        "0 of 3 passed",
    ],
)
def test_commands_fail_in_many_words(text: str) -> None:
    found = ended("command", text, "./run")
    assert (found.failed, found.passed) == (True, False)
    assert found.text.startswith("failed: ")


@pytest.mark.parametrize(
    "text",
    [
        "Tests run: 5, Failures: 0, Errors: 0\nBUILD SUCCESS",
        "conclusion: success\nerror: null",
        "exit=0",
        "3/3 tests passed",
        "100% tests passed, 0 tests failed out of 9",
        "4 passed, 1 xfailed, 2 warnings in 0.1s",
        "12 of 12 passed",
        "Test 1 of 3 passed",
    ],
)
def test_commands_succeed_in_many_words(text: str) -> None:
    assert not ended("command", text, "./run").failed


def test_a_command_that_repeats_its_own_words_did_not_fail() -> None:
    text = "[main 3f2a1bc] Fix error: handling of lines\n 1 file changed"
    assert not ended("command", text, "git commit -m 'Fix error: handling of lines'").failed
    assert ended("command", text, "git commit -F note").failed


@pytest.mark.parametrize(
    ("command", "result", "text"),
    [
        ("make", {"output": "a\nall built\n", "metadata": {"exit_code": 0, "duration_seconds": 0.5}}, "all built"),
        ("make", {"output": "half built\n", "metadata": {"exit_code": 1}}, "failed: half built"),
        ("make", {"stdout": "", "stderr": "", "exitCode": 2}, "failed: exitCode 2"),
        ("make", {"stdout": "x", "stderr": "error: no rule", "returncode": 2}, "failed: error: no rule"),
        ("grep x a", {"output": "", "metadata": {"exit_code": 1}}, ""),
        ("curl x", {"ok": False, "output": "y"}, "ok false, output y"),
    ],
)
def test_the_output_of_a_command_may_be_in_json(command: str, result: object, text: str) -> None:
    assert ended("command", json.dumps(result), command).text == text


PRINTED = "row 7: error: bad date, skipped\n2 errors in old rows\n1200 rows imported"


@pytest.mark.parametrize(
    "result",
    [
        json.dumps({"output": PRINTED, "metadata": {"exit_code": 0, "duration_seconds": 1.0}}),
        json.dumps({"stdout": PRINTED, "stderr": "", "returncode": 0}),
        f"Exit code: 0\nWall time: 1.2 seconds\nOutput:\n{PRINTED}",
        f"Chunk ID: 9\nProcess exited with code 0\nOutput:\n{PRINTED}",
        f"<returncode>0</returncode>\n<output>\n{PRINTED}\n</output>",
        f"{PRINTED}\n[exit code: 0]",
        f"{'more ' * 200}\n{PRINTED}\nexit status 0\n",
    ],
)
def test_an_exit_code_of_zero_counts_more_than_what_is_printed(result: str) -> None:
    assert not ended("command", result, "cd data && python load.py --all").failed
    failed = result.replace("0</", "3</").replace("e: 0", "e: 3").replace("e 0", "e 3").replace("s 0", "s 3")
    assert ended("command", failed.replace('code": 0', 'code": 3'), "python load.py").failed
    for several in (
        "python load.py | tail -5",
        "python load.py; ls",
        "python load.py || true",
        "python load.py\nls",
    ):
        assert ended("command", result, several).failed
    shown = "main.c:3:5: error: expected ';'\n    return 0;\n"
    assert ended("command", shown, "gcc main.c").failed
    assert read_outcome(ToolResult("c", (Text(result),), is_error=True), "command", shell=parse_command("x")).failed


LABELLED = """Command: {command}
Directory: (root)
Output: {output}
Error: {error}
Exit Code: {code}
Signal: {signal}
Background PIDs: (none)
Process Group PGID: 4711"""
"""The layout in which some command-line agents give the result of a shell command."""


def labelled(command: str, output: str, *, error: str = "(none)", code: str = "0", signal: str = "(none)") -> str:
    """A result in that layout."""
    return LABELLED.format(command=command, output=output, error=error, code=code, signal=signal)


@pytest.mark.parametrize(
    "command",
    [
        "npm test",
        "npm test 2>&1 | tail -5",
        "cd api && npm ci; npm run build",
        "git add -A; git commit -m fix",
        "make build\nmake test",
        "for f in a b; do cat $f; done",
        "ls | wc -l",
        "sed -i 's/a/b/' x.py; git diff --stat",
    ],
)
def test_a_command_in_a_layout_of_labels_is_read_by_its_output(command: str) -> None:
    for none in ("(none)", "none", "null", "(empty)"):
        found = ended("command", labelled(command, "collected\n12 passed in 1.1s", error=none), command)
        assert (found.failed, "PGID" in found.text, "none" in found.text) == (False, False, False)
    assert ended("command", labelled(command, "collected\n12 rows"), "x; " + command).text == "12 rows"
    assert not ended("command", labelled(command, "(empty)"), command).text


@pytest.mark.parametrize("command", ["python load.py && ls", "cd data && python load.py --all"])
def test_an_exit_code_of_zero_in_a_layout_of_labels_is_believed(command: str) -> None:
    assert not ended("command", labelled(command, PRINTED), command).failed
    assert ended("command", labelled(command, PRINTED), f"{command}; ls").failed
    assert ended("command", labelled(command, PRINTED), f"{command} | tail").failed


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (labelled("x", "a\nhalf built", code="2"), "failed: half built"),
        (labelled("x", "(empty)", code="2"), "failed: Exit Code: 2"),
        (labelled("x", "error: no rule\nstopped", code="2"), "failed: error: no rule / stopped"),
        (labelled("x", "(empty)", error="spawn x ENOENT", code="(none)"), "failed: Error: spawn x ENOENT"),
        (labelled("x", "half", code="(none)", signal="SIGTERM"), "failed: half"),
        (labelled("x", "(empty)", code="(none)", signal="9"), "failed: Signal: 9"),
        ("Output: half built\nExit Code: 2\nProcess Group PGID: 3", "failed: half built"),
        ("Output: all built\nProcess Group PGID: 3", "all built"),
        ("Command: x\nDirectory: (root)\nStdout: built\nStderr: (empty)\nError: (none)\nExit Code: 0", "built"),
        ("Command: x\nDirectory: (root)\nStdout: a\nStderr: b\nExit Code: 1\nSignal: 0", "failed: b"),
    ],
)
def test_a_failure_in_a_layout_of_labels_is_told_by_its_own_words(result: str, text: str) -> None:
    assert ended("command", result, "./run").text == text


def test_a_look_in_a_layout_of_labels_is_read_by_its_output() -> None:
    missing = "cat: a.py: No such file or directory"
    found = ended("command", labelled("cat a.py", missing, code="1"), "cat a.py")
    assert (found.failed, found.text) == (True, f"failed: {missing}")
    assert not ended("command", labelled("grep x a.py", "(empty)", code="1"), "grep x a.py").failed


@pytest.mark.parametrize("none", ["(none)", "none", "null", "(null)", "(empty)", "empty"])
def test_an_error_that_is_none_is_no_error(none: str) -> None:
    assert find_error_line(f"Error: {none}\nbuild error: {none}") == ""
    assert find_error_line("Error: empty file") == "Error: empty file"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"error": "order is locked", "code": 423}', "error order is locked, code 423"),
        ('{"success": false, "error": "SMTP 550"}', "success false, error SMTP 550"),
        (
            '{"isError": true, "content": [{"type": "text", "text": "no"}]}',
            "isError true, content.type text, text no",
        ),
        ('{"errors": [{"message": "denied"}], "data": null}', "errors.message denied"),
        ('{"result": {"success": false, "why": "full"}}', "result.success false, why full"),
        ('{"data": {"ok": false}}', "data.ok false"),
        ('{"response": {"error": {"code": 7}}}', "error.code 7"),
        ('{"status": "fail", "data": {"title": "required"}}', "status fail, data.title required"),
        ('{"failed": true, "message": "no seat"}', "failed true, message no seat"),
        ('{"success": "false", "reason": "no seat"}', "success false, reason no seat"),
        ("psycopg2.errors.LockNotAvailable: no lock", "psycopg2.errors.LockNotAvailable: no lock"),
        ("requests.exceptions.HTTPError: 403", "requests.exceptions.HTTPError: 403"),
        ("sqlite3.OperationalError: locked", "sqlite3.OperationalError: locked"),
    ],
)
def test_a_data_tool_that_answers_with_an_error_failed(text: str, says: str) -> None:
    found = ended("", text)
    assert (found.failed, found.text) == (True, f"failed: {says}")


@pytest.mark.parametrize(
    "text",
    [
        '{"order": 7, "error": null, "errors": []}',
        '{"errors": [{"message": "partial"}], "data": {"a": 1}}',
        '{"ok": true, "status": "sent"}',
        "com.example.errors is a package: see there",
    ],
)
def test_data_about_errors_is_data(text: str) -> None:
    assert not ended("", text).failed


@pytest.mark.parametrize(
    "text",
    [
        "<tool_use_error>String to replace not found in file.\nString: a</tool_use_error>",
        "No match found for old_string. No changes were made.",
        "File already exists",
        "Error editing file: no",
        "Failed to find the context in a.py",
        "apply_patch verification failed: Failed to find expected lines in src/app.py",
        "Tool call timed out after 30s",
        '{"success": false, "message": "read-only"}',
        '{"ok": false}',
        '{"error": "channel_not_found"}',
        '{"status": "error", "code": 402}',
        "false",
        "No replacement was performed, old_str `x` did not appear verbatim in a.py.",
        "No replacement was performed. Multiple occurrences of old_str `x` in lines [3, 9].",
        "File has not been read yet. Read it first before writing to it.",
        "File has been modified since read, either by the user or by a linter. Read it again.",
        "Found 3 matches of the string to replace, but replace_all is false.",
        "No changes to make: old_string and new_string are exactly the same.",
        "Failed to edit, expected 1 occurrence but found 2.",
        "Your proposed edit has introduced new syntax error(s).\nYour changes have NOT been applied.",
        "The tool execution failed with the following error:\n<error>\nThe block does not match</error>",
        "Could not find exact match for edit:\nx",
        "Access denied - path outside allowed directories: /w/a.py not in /repo",
        "oldString found multiple times and requires more context",
        "No sufficiently similar match found at line: 3 (92% similar, needs 100%)",
        "[Errno 30] Read-only file system: '/w/a.py'",
        "OSError: [Errno 28] No space left on device",
        "Invalid `path` parameter: /w/a.py.",
        "old_string is not unique in the file (3 matches); add more context.",
        "0 replacements made in a.py",
        "File unchanged: content is identical.",
    ],
)
def test_an_edit_that_was_refused_failed(text: str) -> None:
    found = ended("edit", text)
    assert found.failed
    assert found.text.startswith("failed: ")


@pytest.mark.parametrize(
    "text",
    [
        "ok",
        "The file a.py has been edited. Here's the result of running cat -n:\n 1 raise NotFound('not found')",
        "Successfully replaced 'not found' in a.py",
        "Edit applied. 1 lint error: F401 `os` imported but unused",
        "File /w/a.py updated. LSP errors detected, please fix: error: cannot find name 'foo'",
        "a.py: 1 replacement made (file did already exist)",
        "<result><path>a.py</path> saved; problems: error: 2 new problems</result>",
        "Overwrote a.py. Could not run prettier (not found)",
        "Applied patch to a.py; unable to verify the build",
        "File created: src/not found.py",
        "The file src/error.py has been updated.",
        "Updated a.py: if it cannot be read, failed is set",
        '{"success": true, "error": null, "errors": []}',
        "",
    ],
)
def test_an_edit_that_was_made_did_not_fail(text: str) -> None:
    assert not ended("edit", text).failed


def test_a_file_that_could_not_be_read_was_not_read() -> None:
    for text in ("File not found: x.py", "ENOENT: no such file or directory, open 'x.py'", "File does not exist."):
        assert ended("read", text).failed
    assert not ended("read", "import os\n# File not found").failed


@pytest.mark.parametrize("text", [REJECTED, "[Request interrupted by user for tool use]", "User denied permission"])
def test_what_was_stopped_says_so(text: str) -> None:
    for kind in ("edit", "command", "read", ""):
        found = ended(kind, text, "rm -r x")
        assert (found.ran, found.failed) == (False, False)
        assert found.text.startswith(text[:40])


def test_a_result_without_values_is_told_as_it_is() -> None:
    assert [ended("", text).text for text in ("[]", '{"orders": []}', "null")] == ["[]", '{"orders": []}', "null"]


def test_an_answer_to_an_edit_in_another_language_is_shown() -> None:
    assert ended("edit", "文件未找到").text == "文件未找到"


@given(st.from_regex(_ERROR, alphabet=st.characters(codec="ascii")))
def test_what_tells_of_an_error_holds_a_word_by_which_its_line_is_looked_at(text: str) -> None:
    found = _ERROR.search(text)
    assert found
    assert any(word in found[0].lower() for word in _ERROR_WORDS)


def test_a_line_beyond_ascii_is_looked_at_whatever_words_it_holds() -> None:
    assert find_error_line("fine\n\u017fegmentation fault") == "\u017fegmentation fault"


def test_of_a_log_that_a_tool_of_any_name_returns_the_error_is_told_wherever_it_is() -> None:
    lines = [f"2025-01-01T00:00:{second:02d} worker-{second % 7} job={second * 7919} ok" for second in range(60)]
    lines[30] = "2025-01-01T00:00:30 worker-3 ERROR code=E7919 disk full"
    found = ended("", "\n".join(lines))
    for text, most_chars in ((found.text, 320), (found.full, 1_200)):
        assert text.startswith("2025-01-01T00:00:00 worker-0 job=0 ok")
        assert text.endswith(" … / 2025-01-01T00:00:30 worker-3 ERROR code=E7919 disk full")
        assert len(text) <= most_chars
    assert not found.failed
    prose = ended("", "The level is one of DEBUG, INFO and ERROR.\n" * 40)
    assert prose.text.endswith("…")

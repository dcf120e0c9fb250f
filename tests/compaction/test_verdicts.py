from __future__ import annotations

import itertools

import pytest

from tests.compaction.test_outcomes import ended

PRINTED = "row 7: error: bad date, skipped\nsaved 1200 rows"
LAYOUTS = [
    "Exit code: {code}\nWall time: 1.2 seconds\nOutput:\n{output}",
    "Command executed in terminal within working directory '/w/{deep}'. Exit code: {code}\nOutput:\n{output}",
    "{output}\n[The command completed with exit code {code}.]\n[Current working directory: /w]\n"
    "[Python interpreter: /usr/bin/python]\n[Command finished with exit code {code}]",
    "{output}\n\nProcess completed with exit code {code} (took 3.2s)",
    "{output}\nThe command exited with status {code}.",
    "Exit code: {code}\n\nCommand output:\n\n```\n{output}\n```\n\nCommand completed.\n\nThe shell is free again.",
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_exit_code_is_read_in_any_line_that_a_tool_prints_around_an_output(layout: str) -> None:
    deep = "d/" * 150
    assert not ended("command", layout.format(code=0, output=PRINTED, deep=deep), "python load.py").failed
    assert ended("command", layout.format(code=2, output="saved", deep=deep), "python load.py").failed
    assert not ended("command", layout.format(code=0, output="go\nexit code 3", deep=deep), "python load.py").failed
    assert ended("command", layout.format(code=0, output=PRINTED, deep=deep), "python load.py; ls").failed


@pytest.mark.parametrize(
    "line",
    [
        "worker done, exit code 0 seen",
        "child process exited with code 0",
        "Command 'lint' exited with code 0",
        "exit code 0 is expected",
        "The last child exited with code 0",
        "[Command finished with exit code -1]",
    ],
)
def test_an_exit_code_in_the_output_is_of_something_else(line: str) -> None:
    for text in (f"{line}\n{PRINTED}", f"{PRINTED}\n{line}", f"{PRINTED}\nexit code 0\nand more"):
        assert ended("command", text, "python load.py").failed
    assert not ended("command", f"saved\n{line}", "python load.py").failed


def test_what_a_tool_prints_behind_a_fenced_output_is_not_its_end() -> None:
    for code, shown in ((0, "9 rows"), (1, "failed: Exit code: 1 / 9 rows")):
        text = LAYOUTS[-1].format(code=code, output="loading\n9 rows")
        assert ended("command", text, "python load.py").text == shown
    assert not ended("command", LAYOUTS[-1].format(code=1, output=""), "grep x a.py").failed
    assert not ended("command", LAYOUTS[-1].format(code=141, output="a"), "cat a.py | head -1").failed


MESSAGES = [
    "Error: boom\n    at x (/w/a.ts:3:9)",
    "ERROR: the resolver does not consider all packages",
    "Traceback (most recent call last):\n  File 'a.py'\nValueError: bad",
    "sh: nvm: command not found",
    "Failed to load the settings, using defaults",
]
SUMMARIES = [
    " Test Files  1 passed (1)\n      Tests  3 passed (3)\n   Duration  312ms",
    "Ran 3 tests in 0.1s\n\nOK (skipped=1)",
    "PASS\nok  \tpkg/a\t0.1s",
    "test result: ok. 3 passed; 0 failed",
    "Found 2 errors (2 fixed, 0 remaining).",
    "All checks passed!",
    "Success: no issues found in 3 source files",
    "Successfully installed requests-2.32.0",
    "webpack compiled successfully in 312 ms",
    "[INFO] BUILD SUCCESS\n[INFO] Total time: 3 s",
]
VERDICTS = [
    "1 failed, 2 passed in 0.1s",
    "FAIL a.test.ts",
    "npm ERR! code 1",
    "make: *** [all] Error 2",
    "BUILD FAILED",
]


@pytest.mark.parametrize(("message", "summary"), [*itertools.product(MESSAGES, SUMMARIES)])
def test_a_summary_at_the_end_decides_over_messages_before_it(message: str, summary: str) -> None:
    for command in ("./run", "cd a && ./run", "./run 2>&1 | tail -20"):
        found = ended("command", f"{message}\n{summary}", command)
        assert (found.failed, found.passed) == (False, True)
    assert ended("command", message, "./run").failed
    assert ended("command", f"{summary}\n{message}", "./run").failed
    # The end of several commands is that of the last one.
    for command in ("./a; ./run", "./a || ./run", "./a\n./run"):
        assert ended("command", f"{message}\n{summary}", command).failed


@pytest.mark.parametrize(("verdict", "summary"), [*itertools.product(VERDICTS, SUMMARIES)])
def test_a_verdict_before_a_summary_stays(verdict: str, summary: str) -> None:
    assert ended("command", f"{verdict}\n{summary}", "./run").failed
    assert ended("command", f"{summary}\n{verdict}", "./run").failed


@pytest.mark.parametrize(
    "text",
    [
        "Error: no\nOK, exiting",
        "Error: no\nSuccessfully created Foo instance",
        "Found 3 errors (2 fixed, 1 remaining).",
        "3 passed, 1 error in 0.1s",
        " Test Files  1 failed | 1 passed (2)\n      Tests  3 passed (3)",
        "Compiled successfully\nFailed to compile.\nType error: no",
    ],
)
def test_what_is_no_summary_of_success_decides_nothing(text: str) -> None:
    assert ended("command", text, "./run").failed


@pytest.mark.parametrize(
    "text",
    [
        "mean squared error: 1.25\nmean absolute error: 125",
        "MeanSquaredError: 1.25",
        "epoch 1 loss 0.50 error 0.12",
        "epoch 2: loss 5 error 1.2, lr 0.1",
        "test error: 12%, train error: 3.5%",
        "Error: 0.12",
        "error = 1e-06",
        "error rate: 3.2%",
        "max error: 1.5 (std 0.2)",
        '{\n "passed": 9,\n "failed": 0\n}',
    ],
)
def test_a_number_that_is_measured_is_no_error(text: str) -> None:
    assert not ended("command", f"{text}\nsaved", "python eval.py").failed


@pytest.mark.parametrize(
    "text",
    [
        "error: 2.5 is not an integer",
        "error: 2.5.1 is no version",
        "Error 404: gone",
        "error: 404",
        "error: 5 problems",
        "KeyError: 3",
        "Traceback (most recent call last):\n  x\nKeyError: 1.5",
        "1,250 errors",
    ],
)
def test_an_error_may_begin_with_a_number(text: str) -> None:
    assert ended("command", f"{text}\nsaved", "python eval.py").failed


def test_the_line_that_counts_is_shown_rather_than_those_behind_it() -> None:
    text = "collecting\nTests: 3 passed, 3 total\nTime: 1.2 s\nRan all test suites."
    assert ended("command", text, "npx jest").text == "Tests: 3 passed, 3 total"
    failed = text.replace("collecting", "E   boom: error: no").replace("3 passed", "1 failed, 2 passed")
    assert ended("command", failed, "npx jest").text == (
        "failed: E boom: error: no / Tests: 1 failed, 2 passed, 3 total"
    )
    assert ended("command", text, "npx jest; ./deploy").text == "Ran all test suites."

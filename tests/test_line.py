"""The line, all that one warm request passes, stays below its limits: a newcomer reads it in a day."""

from __future__ import annotations

import pytest

from bench.line import TRACES, grown, state_objects
from scripts.check_limits import LINE_CALLS, LINE_FILES, LINE_FUNCTIONS, LINE_LINES, LINE_STATE


@pytest.mark.parametrize("name", TRACES)
def test_a_warm_request_passes_few_files_functions_and_calls(name: str) -> None:
    line = TRACES[name]()
    assert len(line.files) <= LINE_FILES[name]
    assert line.lines <= LINE_LINES[name]
    assert len(line.calls) <= LINE_FUNCTIONS[name]
    assert line.calls.total() <= LINE_CALLS[name]
    assert "engine.py" in line.files
    assert len(line.calls) < line.own_lines < line.lines


def test_a_session_holds_few_objects_that_change() -> None:
    assert len(state_objects(grown())) <= LINE_STATE

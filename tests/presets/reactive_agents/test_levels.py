"""The four levels: who is at which, and what is left of a step at each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.models.profiles import CONTEXT_PROFILES, context_profile
from lading.presets.reactive_agents.levels import (
    LINE_CHARS,
    LevelStarts,
    clear_old_tool_results,
    describe_dropped,
    extract_finding,
    find_level_starts,
    format_line,
    format_whole,
    group_steps,
    is_under_pressure,
)
from lading.presets.reactive_agents.steps import Step

TEXTS = st.text(max_size=300) | st.sampled_from(["x" * 500, "\n\n", "[1", "{}", "[]", "a\u2028b", "\ud83d" * 200])


def observed(text: str, *, failed: bool = False, tool: str = "file-read", preserved: bool = False) -> Step:
    return Step("observation", text, tool=tool, subject="a.md", failed=failed, preserved=preserved)


def test_up_to_the_trigger_everything_is_whole() -> None:
    for profile in CONTEXT_PROFILES.values():
        assert find_level_starts(profile.compact_after_steps, profile) == LevelStarts(0, 0)
        assert find_level_starts(profile.compact_after_steps + 1, profile).whole > 0


@pytest.mark.parametrize(
    ("tier", "steps", "spans"),
    [
        ("local", 5, LevelStarts(1, 2)),
        ("mid", 12, LevelStarts(6, 7)),
        ("large", 30, LevelStarts(22, 23)),
        ("frontier", 30, LevelStarts(18, 20)),
    ],
)
def test_lines_are_for_the_steps_within_compact_after_steps(tier: str, steps: int, spans: LevelStarts) -> None:
    assert find_level_starts(steps, context_profile("", {"tier": tier})) == spans


def test_a_profile_with_more_whole_steps_than_its_trigger_has_no_lines() -> None:
    profile = context_profile("", {"tier": "mid", "compactAfterSteps": 3, "fullDetailSteps": 5})
    assert find_level_starts(4, profile) == LevelStarts(0, 0)
    assert find_level_starts(9, profile) == LevelStarts(4, 4)


@given(steps=st.integers(0, 500), after=st.integers(0, 30), full=st.integers(0, 30))
def test_spans_are_in_order_and_enough_stays_whole(steps: int, after: int, full: int) -> None:
    profile = context_profile("", {"compact_after_steps": after, "full_detail_steps": full})
    spans = find_level_starts(steps, profile)
    assert 0 <= spans.lines <= spans.whole <= steps
    assert steps - spans.whole >= min(full, steps)


def test_the_last_level_begins_below_a_fifth_of_the_budget() -> None:
    assert is_under_pressure(19.99, 100)
    assert not is_under_pressure(20, 100)


def test_a_whole_step_is_in_the_form_of_react() -> None:
    assert format_whole(Step("thought", "I think.")) == "I think."
    assert format_whole(Step("action", 'read({"path": "a"})')) == 'Action: read({"path": "a"})'
    assert format_whole(observed("text")) == "Observation: text"


def test_many_steps_on_one_line_with_what_was_called_how_often() -> None:
    reads = [Step("action", "", tool="file-read"), observed("x")]
    steps = [Step("thought", "hm"), Step("thought", "so"), *reads, *reads, Step("action", "", tool="file-write")]
    assert group_steps(steps) == "Steps 3-7: file-read ×2, file-write ×1"
    assert group_steps(steps, start=10) == "Steps 13-17: file-read ×2, file-write ×1"
    assert group_steps([Step("thought", "hm")]) == ""


def test_a_line_for_many_steps_names_few_tools() -> None:
    steps = [Step("action", "", tool=f"tool{number}") for number in range(12)]
    assert group_steps(steps).endswith("tool7 ×1 and 4 other tools")
    assert len(group_steps([Step("action", "", tool="x" * 10_000)])) < 100


def test_what_is_out_of_view_is_counted() -> None:
    assert describe_dropped([observed("a"), observed("b")]) == "2 steps are out of view."
    assert describe_dropped([observed("a"), observed("b", preserved=True)]).startswith(
        "2 steps are out of view; 1 of them"
    )


@pytest.mark.parametrize(
    ("text", "failed", "expected"),
    [
        ("short", False, "short"),
        ("", False, ""),
        ("\n  Error: no such file\n" + "trace\n" * 50, True, "Error: no such file"),
        (
            '{"id": 7, "tags": ["x"], "name": "Ann", "ok": true, "more": "' + "y" * 200 + '"}',
            False,
            "id=7, name=Ann, ok=True",
        ),
        ('{"tags": ["' + "y" * 200 + '"]}', False, "an object of 1 fields"),
        ('[{"a": 1}, "' + "y" * 200 + '"]', False, '2 items, first: {"a": 1}'),
        ("[" + " " * 200 + "]", False, "0 items"),
        ("[broken\nthe first long line\n" + "y" * 200, False, "the first long line"),
        ("a\nb\n" * 60, False, "[file-read: data received, 240 chars]"),
        ("[" * 100_000, False, "[" * 100_000),
    ],
)
def test_what_an_observation_came_to(text: str, failed: bool, expected: str) -> None:
    assert extract_finding(observed(text, failed=failed)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" * 100, "x" * 100),
        ("x" * 101, "x" * 101),
        ("y " * 50 + "\nmore", ("y " * 50).strip()),
        ("ten chars.\neleven char\n" + "z" * 100, "eleven char"),
        ("1\n" * 50, ("1\n" * 50).strip()),
        ("1\n" * 51, "[file-read: data received, 102 chars]"),
        ("{" + ", ".join(f'"k{n}": {n}' for n in range(20)) + "}", "k0=0, k1=1, k2=2"),
        ("[" + ", ".join(map(str, range(50))) + "]", "50 items, first: 0"),
    ],
)
def test_up_to_100_characters_a_result_is_its_own_finding_else_its_first_line_of_more_than_ten(
    text: str, expected: str
) -> None:
    assert extract_finding(observed(text)) == expected


@pytest.mark.parametrize("marker", ["I will", "I'll", "Let me", "The answer is"])
def test_each_marker_of_a_decision_is_known(marker: str) -> None:
    assert format_line(Step("thought", f"First. {marker} now. Last.")) == f"{marker} now"


def test_a_line_says_what_was_asked_and_whether_it_worked() -> None:
    assert format_line(observed("hello")) == "Observation: file-read('a.md') ✓ hello"
    assert format_line(observed("no such file", failed=True)) == "Observation: file-read('a.md') ✗ no such file"
    assert format_line(Step("observation", "x")) == "Observation: tool('') ✓ x"


def test_a_thought_is_told_by_the_sentence_that_decides() -> None:
    assert format_line(Step("thought", "There are files. I will read a.md. Perhaps more.")) == "I will read a.md"
    assert format_line(Step("thought", "First this. Then that")) == "Then that"
    assert format_line(Step("thought", "...")) == "..."


@given(text=TEXTS, kind=st.sampled_from(["thought", "action", "observation"]), failed=st.booleans())
def test_a_line_is_one_line_of_bounded_length(text: str, kind: str, failed: bool) -> None:
    step = Step(kind, text, tool=text, subject=text, failed=failed)  # type: ignore[arg-type]
    assert len(format_line(step)) <= LINE_CHARS
    assert len(format_line(step).splitlines()) <= 1


def test_a_line_has_120_characters_and_a_finding_of_100_stays_as_it_is() -> None:
    assert len(format_line(Step("thought", "word " * 100))) in range(110, 121)
    first, rest = "first line.", "r" * 88
    assert extract_finding(observed(f"{first} \n{rest[1:]}")) == f"{first} \n{rest[1:]}"
    assert extract_finding(observed(f"{first} \n{rest}")) == first


def test_old_data_is_told_by_its_size_and_nothing_else_is() -> None:
    steps = [
        observed("data"),
        observed("gone wrong", failed=True),
        observed("written", tool="file-write"),
        observed("kept", preserved=True),
        Step("thought", "hm"),
        observed("new"),
    ]
    cleared = clear_old_tool_results(steps, 5)
    assert cleared[0].content == "[file-read: data received, 4 chars]"
    assert cleared[1:] == tuple(steps[1:])


def test_no_word_is_parted_where_a_line_is_cut() -> None:
    told = format_line(observed("It was written to src/package/module.py " * 9))
    assert told.endswith("...")
    assert set(told.removesuffix("...").split()[3:]) <= {"It", "was", "written", "to", "src/package/module.py"}
    assert format_line(Step("thought", "x" * 500)) == "..."

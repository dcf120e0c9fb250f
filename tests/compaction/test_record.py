from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.identifiers import read_leaves
from lading.compaction.notes import Note, Notes
from lading.compaction.record import list_unresolved, write_record
from lading.compaction.record_lines import FILES, indent_lookalikes
from lading.messages import Image, Message, Text, ToolCall, tool_result, user_text
from tests.examples import quick_first
from tests.growth import assert_linear
from tests.histories import histories, said
from tests.views import paired

PLENTY = 100_000
LEFT_OUT = re.compile(
    r"\(\d+ (?:calls? that changed something left out"
    r"|(?:user )?messages? left out: #\d+(?: to #\d+)?(?:, #\d+(?: to #\d+)?)*)\)"
)
FIXED = frozenset(
    ["…", "[…]", "failed", "/", "no", "result", "it", "says", "(passed", "later)", "(2", "(3", "times)"]
)


def tokens(text: str) -> int:
    """Four for a text, one for each four characters."""
    return 4 + len(text) // 4


def noted(history: Sequence[Message]) -> list[Note]:
    """The notes of a history."""
    notes = Notes()
    for entry, message in enumerate(history):
        notes.add(entry, message, count=tokens)
    return notes.between(0, len(history))


def written(history: Sequence[Message], most_tokens: int = PLENTY) -> list[str]:
    """The lines of the record of a history."""
    return write_record(noted(history), most_tokens=most_tokens, count=tokens).splitlines()


def ran(command: str, result: str, *, is_error: bool = False) -> list[Message]:
    """A command and what it gave."""
    call = ToolCall("c", "shell", json.dumps({"command": command}))
    return [Message("assistant", (call,)), tool_result("c", result, is_error=is_error)]


def edited(path: str, *, is_error: bool = False) -> list[Message]:
    """An edit of a file."""
    call = ToolCall("c", "edit", json.dumps({"path": path, "old": "x = 1", "new": "x = 2"}))
    return [Message("assistant", (call,)), tool_result("c", "ok", is_error=is_error)]


def test_a_record_tells_what_happened_in_order_and_how_things_stand() -> None:
    history = [
        user_text("Fix a.py."),
        said("I will."),
        *edited("a.py"),
        *ran("make", "Error: no rule"),
        user_text("Use b.py\ninstead."),
        *edited("b.py"),
        *edited("a.py"),
        *ran("make test", "1 failed"),
        said("One test fails."),
    ]
    assert written(history) == [
        "#0 User: Fix a.py.",
        "#1 Assistant: I will.",
        "- edit a.py: + x = 2",
        "- shell make: failed: Error: no rule",
        "#6 User: Use b.py",
        "instead.",
        "- edit b.py: + x = 2",
        "- edit a.py: + x = 2",
        "- shell make test: failed: 1 failed",
        "#13 Assistant: One test fails.",
        "Files changed: b.py (#7), a.py (#9)",
        "Failing at the end: shell make test: failed: 1 failed",
    ]


def test_a_failure_that_passed_later_says_so_and_repeats_are_told_once() -> None:
    history = [
        user_text("Go."),
        *ran("make", "1 failed"),
        *ran("make 2>&1 | tail", "2 failed"),
        *ran("make", "fine"),
    ]
    assert written(history) == [
        "#0 User: Go.",
        "- shell make 2>&1 | tail: failed: 2 failed (2 times) (passed later)",
        "- shell make: fine",
    ]
    assert written(history[:5])[1:] == [
        "- shell make 2>&1 | tail: failed: 2 failed (2 times)",
        "Failing at the end: shell make 2>&1 | tail: failed: 2 failed",
    ]
    failed = "shell make: failed: 1 failed"
    assert written(history[:3])[1:] == [f"- {failed}", f"Failing at the end: {failed}"]
    assert written([*history[:3], *history[5:]])[1:] == [f"- {failed} (passed later)", "- shell make: fine"]


def test_what_failed_in_an_older_turn_does_not_fail_at_the_end() -> None:
    assert written([*ran("make", "1 failed"), user_text("Go on."), said("ok")]) == [
        "- shell make: failed: 1 failed",
        "#2 User: Go on.",
        "#3 Assistant: ok",
    ]


def test_what_was_run_again_and_again_fails_at_the_end_whatever_the_user_says() -> None:
    again = [*ran("make", "1 failed"), *ran("make", "2 failed"), user_text("Go on."), said("ok")]
    assert written(again)[-1] == "Failing at the end: shell make: failed: 2 failed"
    assert written([*ran("make", "fine"), *ran("make", "1 failed"), user_text("Go on.")])[-1].startswith("Failing")


def test_a_check_that_names_the_same_file_and_passes_mends_a_failure() -> None:
    failed = ran("pytest tests/a.py -vv | grep FAILED", "2 failed")
    for command, result, is_mended in (
        ("pytest tests/a.py -q", "3 passed in 1.0s", True),
        ("pytest tests/b.py -q", "3 passed in 1.0s", False),
        ("python -m pytest tests/a.py tests/b.py", "3 passed in 1.0s", True),
        ("pytest tests/a.py -k one", "1 passed in 1.0s", False),
        ("pytest tests/a.py -m 'not slow'", "1 passed in 1.0s", False),
        ("pytest tests/a.py --ignore=tests/a.py/x", "1 passed in 1.0s", False),
        ("pytest tests/a.py::test_one", "1 passed in 1.0s", False),
        ("mypy tests/a.py", "all passed", False),
        ("pytest tests/a.py", "0 of 3 passed", False),
        ("git add tests/a.py", "", False),
        ("cat tests/a.py", "3 passed", False),
        ("pytest tests/a.py -q", "1 failed, 2 passed", False),
    ):
        lines = written([*failed, *ran(command, result)])
        assert lines[0].endswith("(passed later)") is is_mended
        assert lines[-1].startswith("Failing at the end: ") is not is_mended
    some = [*ran("pytest tests/a.py tests/b.py", "1 failed"), *ran("pytest tests/a.py", "3 passed")]
    assert written(some)[0] == "- shell pytest tests/a.py tests/b.py: failed: 1 failed"


def test_a_run_whose_end_is_not_shown_is_neither_a_pass_nor_a_failure() -> None:
    for hidden in ("make > out.txt", "make | head -3"):
        assert written([*ran("make", "1 failed"), *ran(hidden, "")])[0] == "- shell make: failed: 1 failed"
        lines = written([*ran("make", "1 failed"), *ran(hidden, ""), *ran("make", "fine")])
        assert lines[0] == "- shell make: failed: 1 failed (passed later)"


def test_a_failure_that_something_else_made_good_does_not_stand_at_the_end() -> None:
    def called(tool: str, arguments: str, result: str) -> list[Message]:
        return [Message("assistant", (ToolCall("c", tool, arguments),)), tool_result("c", result)]

    query = called("query", '{"sql": "SELEC 1"}', "ERROR: syntax error")
    assert written(query)[-1] == "Failing at the end: query sql SELEC 1: failed: ERROR: syntax error"
    assert written([*query, *called("query", '{"sql": "SELECT 1"}', "1")])[-1] == "- query sql SELECT 1: 1"
    edit = called("edit", '{"path": "a.py", "old": "1", "new": "2"}', "No match found")
    done = called("write", '{"path": "a.py", "content": "2"}', "ok")
    assert written([*edit, *done])[-1] == "Files changed: a.py (#2)"
    script = ran("cat > a.py <<E\n1\nE\npython a.py", "1 failed")
    assert written([*script, *done])[-1].startswith("Failing at the end: shell cat > a.py; python a.py")


def test_all_files_of_a_patch_were_changed() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch"
    history = [Message("assistant", (ToolCall("c", "apply_patch", patch),)), tool_result("c", "Done!")]
    assert written(history) == ["- apply_patch a.py, b.py: + y z", "Files changed: a.py (#0), b.py (#0)"]


def test_a_call_that_was_stopped_mends_nothing() -> None:
    for result in ([], [tool_result("c", "[Cancelled by the user]")]):
        lines = written([*ran("make", "1 failed"), ran("make", "")[0], *result])
        assert lines[0] == "- shell make: failed: 1 failed"
        assert lines[-1] == "Failing at the end: shell make: failed: 1 failed"


def test_any_call_that_is_made_again_may_pass_later() -> None:
    def asked(result: str) -> list[Message]:
        call = ToolCall("c", "book", json.dumps({"seat": "4A"}))
        return [Message("assistant", (call,)), tool_result("c", result)]

    lines = written([*asked("Error: try again"), *asked("Error: try later"), *asked("booked")])
    assert lines == ["- book seat 4A: failed: Error: try later (2 times) (passed later)", "- book seat 4A: booked"]


def test_a_system_message_in_the_middle_is_told_verbatim_and_leaves_last() -> None:
    rule = Message("system", (Text("Answer in French.\n- User: no"),))
    history = [user_text("Go."), said("ok " * 80), rule, said("oui " * 80), user_text("On.")]
    assert written(history)[2:4] == ["#2 System: Answer in French.", "  - User: no"]
    assert [line.split()[0] for line in written(history, 40)] == ["#0", "#2", "-", "#4"]
    assert written(history, 16)[:1] == ["(2 messages left out: #0 to #2)"]
    assert not any("French" in line for line in written([rule, *history[:2]]))


def test_the_line_of_what_is_left_out_names_no_message_that_is_told() -> None:
    short, long = user_text("Do it."), user_text("Look at each part of it in turn, and say what you see. " * 6)
    history = [long, long, short, long, said("ok"), long, short]
    for most_tokens in range(20, 400, 5):
        lines = written(history, most_tokens)
        told = {int(line[1:].split()[0]) for line in lines if " User: " in line}
        left = {
            entry
            for first, last in re.findall(r"#(\d+)(?: to #(\d+))?", lines[0] if lines[0][0] == "(" else "")
            for entry in range(int(first), int(last or first) + 1)
            if history[entry].role == "user"
        }
        assert told | left == {0, 1, 2, 3, 5, 6}
        assert not told & left


def test_an_edit_that_failed_changed_nothing() -> None:
    assert [line for line in written([user_text("Go."), *edited("a.py", is_error=True)]) if "Files" in line] == []


def test_of_many_changed_files_the_last_are_named() -> None:
    history = [message for at in range(40) for message in edited(f"part_{at}.py")]
    state = written(history)[-1]
    assert state.startswith("Files changed: 28 earlier, part_28.py (#56), ")
    assert state.endswith(", part_39.py (#78)")


def test_calls_of_which_only_the_target_is_told_share_a_line() -> None:
    history = [user_text("Go.")]
    for path in ("a.py", "b.py", "a.py"):
        call = ToolCall("c", "read", json.dumps({"path": path}))
        history += [Message("assistant", (call,)), tool_result("c", "ok")]
    assert written(history) == ["#0 User: Go.", "- read a.py x2, b.py"]
    assert written([*history, user_text("Go on.")]) == ["#0 User: Go.", "- read a.py x2, b.py", "#7 User: Go on."]
    checked = [*history[:1], *ran("make check", "fine"), user_text("Go on.")]
    assert written(checked) == ["#0 User: Go.", "#3 User: Go on."]


def turns(number: int) -> list[Message]:
    """Turns of a user, each with a command and an answer."""
    history: list[Message] = []
    for at in range(number):
        history.append(user_text(f"Please look into the part of number {at}."))
        history += ran(f"check part_{at}", f"Error: part_{at} is broken in a way that takes words")
        history.append(said(f"I fixed part_{at} because its cause was known. " * 6))
    return history


def test_calls_shorten_first_then_the_assistant_s_words_and_the_user_s_leave_last_oldest_first() -> None:
    history = turns(12)
    users = {line for line in written(history) if " User: " in line}
    assert len(users) == 12
    shares: list[tuple[float, float, float]] = []
    full = _chars(written(history))
    for most_tokens in range(60, 2_400, 60):
        lines = written(history, most_tokens)
        kept = [line for line in lines if " User: " in line]
        assert kept == sorted(users, key=lambda line: int(line[1:].split()[0]))[12 - len(kept) :]
        left = 12 - len(kept)
        if left == 1:
            assert lines[0] == "(1 user message left out: #0)"
        elif left:
            assert lines[0] == f"({left} user messages left out: #0 to #{4 * (left - 1)})"
        shares.append(_shares(_chars(lines), full))
        user, assistant, calls = shares[-1]
        assert user == 1 or assistant == calls == 0
    assert shares[0][0] < 1
    assert list(shares[-1]) == [1, 1, 1]
    assert sum(assistant > calls for _, assistant, calls in shares) > 5


def _chars(lines: list[str]) -> tuple[int, int, int]:
    kinds = (" User: ", " Assistant: ", "- shell")
    user, assistant, calls = (sum(len(line) for line in lines if kind in line[:20]) for kind in kinds)
    return user, assistant, calls


def _shares(some: tuple[int, int, int], full: tuple[int, int, int]) -> tuple[float, float, float]:
    return some[0] / full[0], some[1] / full[1], some[2] / full[2]


def test_the_user_s_words_outlive_the_state_lines() -> None:
    history = [user_text("Keep port 8080."), *(message for at in range(30) for message in edited(f"long_{at}.py"))]
    assert written(history, 30)[0] == "#0 User: Keep port 8080."


def test_what_is_too_much_at_the_end_leaves_in_the_same_order() -> None:
    notes = noted([message for _ in range(50) for message in (said("ok"), user_text("yes"))])
    lines = write_record(notes, most_tokens=750, count=len).splitlines()
    assert sum(" User: yes" in line for line in lines) == 50
    assert 0 < sum(" Assistant: ok" in line for line in lines) < 50


def test_where_nothing_fits_nothing_is_written() -> None:
    assert write_record(noted(turns(3)), most_tokens=0, count=tokens) == ""
    assert write_record([], most_tokens=PLENTY, count=tokens) == ""


def test_failures_and_open_ends_are_unresolved_the_newest_first() -> None:
    history = [
        *ran("one", "1 failed"),
        *ran("two", "1 failed"),
        *ran("one | tail", "fine"),
        said("TODO: a"),
        said("TODO: b\nNext steps: c"),
        *ran("three", "2 failed"),
    ]
    # The record shows the newest failure by itself.
    assert list_unresolved(noted(history)) == [
        "Open: TODO: b",
        "Open: Next steps: c",
        "Failed: shell two: failed: 1 failed",
    ]


@given(st.one_of(histories(), paired()), st.integers(0, 200))
def test_a_record_keeps_to_its_limit_and_is_the_same_each_time(history: list[Message], most_tokens: int) -> None:
    text = write_record(noted(history), most_tokens=most_tokens, count=tokens)
    assert not text or tokens(text) <= most_tokens
    assert text == write_record(noted(history), most_tokens=most_tokens, count=tokens)


@given(st.one_of(histories(), paired()), st.integers(0, 300))
def test_each_line_has_a_speaker_and_each_word_stands_in_the_log(history: list[Message], most_tokens: int) -> None:
    log = " ".join(piece for message in history for piece in _texts(message))
    heard = {
        f"#{entry} User: {line}" if first else line
        for entry, message in enumerate(history)
        if message.role == "user"
        for first, line in _user_lines(entry, message)
    }
    for line in write_record(noted(history), most_tokens=most_tokens, count=tokens).split("\n"):
        if not line or line in heard or LEFT_OUT.fullmatch(line):
            continue
        mark = re.match(r"#(\d+) Assistant: |- |Files changed: |Failing at the end: ", line)
        assert mark is not None, line
        assert mark[1] is None or history[int(mark[1])].role == "assistant"
        for word in re.sub(r" x\d+\b| \(#\d+\)|\[(?:\d+ x )?image[^\]]*, #\d+\]", "", line[mark.end() :]).split():
            bare = word.rstrip(":;,")
            assert word in log or bare in log or bare in FIXED, line


def test_the_user_s_words_leave_after_how_things_stand() -> None:
    result = "E assert 14990 == 149.9 in test_amount\n1 failed"
    history = [
        user_text("Keep the old importer. " * 12),
        user_text("And test it."),
        *ran("pytest tests/unit/test_billing.py -x --tb=short", result),
        *edited("src/a.py"),
    ]
    for most_tokens in range(20, 200):
        text = write_record(noted(history), most_tokens=most_tokens, count=tokens)
        assert tokens(text) <= most_tokens
        assert "And test it." in text
        assert not (FILES in text and "message left out" in text)
    assert FILES in text


def _user_lines(entry: int, message: Message) -> list[tuple[bool, str]]:
    kinds = Counter(f"image {part.media_type}".strip() for part in message.parts if isinstance(part, Image))
    shown = (f" [{f'{times} x ' if times > 1 else ''}{kind}, #{entry}]" for kind, times in kinds.items())
    text = f"{indent_lookalikes(message.text.strip())}{''.join(shown)}".strip()
    return [(at == 0, line) for at, line in enumerate(text.split("\n"))]


def _texts(message: Message) -> list[str]:
    texts = [message.text, *(result.text for result in message.results)]
    for call in message.calls:
        texts += [call.name, call.arguments, *(piece for leaf in read_leaves(call.arguments) for piece in leaf)]
    return texts


def many(number: int, message: str) -> list[Note]:
    """Notes of many short messages."""
    history = [user_text(message) if message else said("ok") for _ in range(number)]
    history += [part for at in range(number // 4) for part in ran(f"make {at}", "1 failed")]
    return noted(history)


@pytest.mark.parametrize(("message", "per_note"), quick_first([("ok", 3), ("", 3), ("ok", 0), ("ok", 100)], 2))
def test_writing_is_linear(message: str, per_note: int) -> None:
    # A counter without framing takes each line for shorter than it is: most must leave at the end.
    def work(notes: list[Note]) -> None:
        write_record(notes, most_tokens=per_note * len(notes), count=len)

    assert_linear(work, many(100, message), many(1_000, message))


def test_a_record_that_holds_all_is_counted_once() -> None:
    counted: list[int] = []

    def counting(text: str) -> int:
        counted.append(len(text))
        return tokens(text)

    history = [message for number in range(200) for message in ran(f"make part{number}", "ok")]
    text = write_record(noted(history), most_tokens=PLENTY, count=counting)
    assert "part0" in text
    assert "part199" in text
    assert sum(counted) == len(text)

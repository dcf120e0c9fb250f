from __future__ import annotations

from lading.evaluate.layers import TokenTotal, count_layers
from lading.evaluate.tooluse import (
    LEAST_REPEAT_TOKENS,
    NO_CALL,
    Location,
    ToolUse,
    cut_first_words,
    find_largest,
    find_repeats,
    find_tool_use,
    group_by_content,
    group_by_tool,
)
from lading.messages import Image, Message, Text, ToolResult
from lading.sources import Recording
from lading.tokens.meter import RESULT_TOKENS, Meter
from tests.evaluate.sessions import WORDS, asks, gives, recorded, said

LONG = "word " * LEAST_REPEAT_TOKENS


def use_of(recording: Recording, *, carried: int = 0) -> ToolUse:
    weights = [count_layers(message, Meter(WORDS)) for message in recording.messages]
    return find_tool_use(recording, weights, carried=[carried] * len(weights))


def test_results_bear_the_name_of_the_call_they_answer() -> None:
    use = use_of(
        recorded(
            said("user", "go"),
            asks(("1", "read", '{"path":"a"}'), ("2", "run", "{}")),
            gives("2", "ran well", is_error=True),
            gives("1", "hello"),
        ),
        carried=3,
    )
    run, read = use.results
    assert run.place == Location("s", 2, "run")
    assert (run.tokens, run.sent_tokens, run.is_error) == (2 + RESULT_TOKENS, 3 * (2 + RESULT_TOKENS), True)
    assert (read.place.tool, read.first_words, read.is_error) == ("read", "hello", False)
    assert (use.unanswered, use.open_calls, use.orphans) == ((), (), ())


def test_calls_and_results_that_do_not_pair() -> None:
    use = use_of(
        recorded(
            said("user", "go"),
            asks(("1", "read", "{}"), ("2", "run", "{}")),
            gives("2", ""),
            said("user", "stop"),
            gives("9", "from nowhere", name="ghost"),
            gives("8", "from nowhere"),
            asks(("2", "run", "{}")),
            asks(("2", "run", "{}")),
            gives("2", "x"),
            asks(("3", "read", "{}")),
        )
    )
    assert use.unanswered == (Location("s", 1, "read"), Location("s", 6, "run"))
    assert use.open_calls == (Location("s", 9, "read"),)
    assert use.orphans == (Location("s", 4, "ghost"), Location("s", 5, NO_CALL))
    assert use.duplicate_ids == (Location("s", 6, "run"), Location("s", 7, "run"))
    assert use.empty == (Location("s", 2, "run"),)


def test_what_is_read_again() -> None:
    use = use_of(
        recorded(
            said("user", "go"),
            asks(("1", "read", '{"path":"a"}')),
            gives("1", LONG),
            asks(("2", "read", '{"path":"a"}')),
            gives("2", LONG),
            asks(("3", "read", '{"path":"a"}')),
            gives("3", "changed"),
            asks(("4", "read", '{"path":"b"}')),
            gives("4", LONG),
            asks(("5", "touch", "{}")),
            gives("5", "changed"),
        ),
        carried=2,
    )
    tokens = LEAST_REPEAT_TOKENS + RESULT_TOKENS
    found = find_repeats(use)
    assert found.same_content == TokenTotal(2, 2 * tokens, 4 * tokens)
    short = 1 + RESULT_TOKENS
    assert found.same_call == TokenTotal(2, tokens + short, 2 * (tokens + short))
    assert found.either == TokenTotal(3, 2 * tokens + short, 2 * (2 * tokens + short))


def test_rows_by_tool_count_arguments_too() -> None:
    use = use_of(
        recorded(
            asks(("1", "write", "one two three four five six seven")),
            gives("1", "ok"),
            asks(("2", "read", "a")),
            gives("2", "a b c"),
            asks(("3", "read", "b")),
            gives("3", "a", is_error=True),
            asks(("4", "noop", "c")),
        )
    )
    read, write, noop = group_by_tool(use)
    assert [row.name for row in (read, write, noop)] == ["read", "write", "noop"]
    assert (read.calls, read.results) == (TokenTotal(2, 4, 0), TokenTotal(2, 4 + 2 * RESULT_TOKENS, 0))
    assert (read.errors, read.largest_tokens, read.mean_tokens) == (1, 3 + RESULT_TOKENS, 2 + RESULT_TOKENS)
    assert (noop.results, noop.largest_tokens, noop.mean_tokens) == (TokenTotal(), 0, 0.0)
    assert sum(row.share for row in (read, write, noop)) == 1.0


def test_rows_by_content_count_results_alone() -> None:
    use = use_of(
        recorded(
            asks(("1", "json", "x"), ("2", "json", "x"), ("3", "shot", "x")),
            gives("1", '{"a": 1}'),
            gives("2", "ok"),
            Message("tool", (ToolResult("3", (Image(url="https://example.org/a.png"),)),)),
        )
    )
    rows = group_by_content(use)
    assert [row.name for row in rows] == ["image", "json", "text"]
    assert all(row.calls == TokenTotal() for row in rows)
    assert group_by_content(ToolUse()) == group_by_tool(ToolUse()) == ()


def test_a_result_with_words_and_pictures_is_judged_by_its_words() -> None:
    parts = (Text("ok"), Image(url="https://example.org/a.png"))
    assert use_of(recorded(Message("tool", (ToolResult("1", parts),)))).results[0].content_type == "text"


def test_largest_first_and_no_more_than_asked_for() -> None:
    use = use_of(recorded(gives("1", "a b"), gives("2", "a b c"), gives("3", "x y"), gives("4", "")))
    assert [result.place.message_index for result in find_largest(use, 3)] == [1, 0, 2]


def test_tool_uses_add_up() -> None:
    one, other = use_of(recorded(gives("1", "a"))), use_of(recorded(asks(("2", "read", "")), id="t"))
    both = one + other
    assert (both.results, both.calls) == (one.results, other.calls)
    assert (both.orphans, both.open_calls) == (one.orphans, other.open_calls)


def test_first_words_are_safe_to_print() -> None:
    assert cut_first_words("a\n\n  b\t\x1b[31mc\ud83d") == "a b \ufffd[31mc\ufffd"
    assert len(cut_first_words("word " * 500)) == 80

from __future__ import annotations

from lading.shrink import Target
from lading.shrink.logs import SHRINKER
from lading.tokens.estimate import ESTIMATE


def reduced(text: str, most_tokens: int, *terms: str) -> str:
    shrunk = SHRINKER.reduce(text, Target(most_tokens, terms, "artifact://t/s/log/7"), ESTIMATE.count)
    assert shrunk is not None
    assert shrunk.form == "log.kinds"
    return shrunk.text


def served(number: int, *, user: str = "ann") -> str:
    second = f"{number // 60 % 60:02}:{number % 60:02}"
    return f"2024-03-01T12:{second}.{number:03}Z INFO cart served /items/{number * 7} to {user} in {number % 9}ms"


LOG = [served(number, user=("ann", "bob", "cyd")[number % 3]) for number in range(400)]


def test_lines_alike_are_one_kind_with_its_count_and_first_line() -> None:
    shown = reduced("\n".join(["start of the day", *LOG]), 200).split("\n")
    assert shown[0].startswith(
        "[Log of 401 lines: their kinds (<*> is what varies), then lines with their numbers; "
    )
    assert shown[1] == "400x from line 2: <*> INFO cart served <*> to <*> in <*>"
    assert shown[2:4] == ["1: start of the day", f"2: {LOG[0]}"]
    assert shown[-1] == f"401: {LOG[-1]}"


def test_errors_rare_lines_and_lines_with_terms_stay_with_their_numbers() -> None:
    lines = LOG.copy()
    lines[50] = "2024-03-01T12:00:50Z ERROR cart refused order 17"
    lines[60] = "2024-03-01T12:01:00Z WARN stock of tea is low"
    lines[70] = "2024-03-01T12:01:10Z INFO uploaded artifact shop-4711"
    lines[80] = lines[80].replace("ann", "dee").replace("cyd", "dee").replace("bob", "dee")
    shown = reduced("\n".join(lines), 400, "dee").split("\n")
    for place in (50, 60, 70, 80):
        assert f"{place + 1}: {lines[place]}" in shown
    assert sum(line[0].isdigit() for line in shown) < 40


def test_a_trace_below_an_error_stays_before_quiet_lines() -> None:
    trace = [f"    at step_{letter} (cart.js)" for letter in "abc"]
    lines = [*LOG[:200], "2024-03-01T12:03:20Z ERROR no price", *trace, *LOG[200:]]
    shown = reduced("\n".join(lines), 260)
    assert all(line in shown for line in trace)


def test_an_error_that_comes_often_does_not_hide_the_one_that_came_once() -> None:
    errors = [f"2024-03-01T12:00:00Z ERROR cannot reach stock {number}" for number in range(500)]
    errors[250] = "2024-03-01T12:00:00Z FATAL disk full"
    assert "251: 2024-03-01T12:00:00Z FATAL disk full" in reduced("\n".join(errors), 200)


def test_words_of_errors_below_a_quiet_level_are_no_errors() -> None:
    lines = [f"12:00:{number % 60:02} INFO run {number}: 0 failed" for number in range(300)]
    lines[100] = "12:01:40 ERROR run 100: lost"
    lines[200] = "12:03:20 run 200: panic"
    shown = reduced("\n".join(lines), 150)
    assert "101: 12:01:40 ERROR run 100: lost\n" in shown
    assert "201: 12:03:20 run 200: panic\n" in shown


def test_many_kinds_are_said_to_be_left_out() -> None:
    words = ("tea", "cup", "pot", "milk", "sugar", "spoon")
    lines = [f"INFO {a} {b} {c}" for a in words for b in words for c in words for _ in range(3)]
    assert " more of the kinds left out]" in reduced("\n".join(lines), 200)


def test_times_are_said_once_without_loss() -> None:
    text = "\n".join(f"2024-03-01T12:00:{second:02}Z served {second}" for second in range(60))
    (found,) = SHRINKER.reshape(text)
    assert found.text.startswith("[60 lines below start with] 2024-03-01T12:00:\n00Z served 0\n")
    assert ESTIMATE.count(found.text) < 0.6 * ESTIMATE.count(text)
    assert SHRINKER.decode(found.text, found.form) == text

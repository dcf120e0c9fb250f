"""Which values of a summary its source has, or lets follow."""

from __future__ import annotations

import pytest

from lading.compaction.summary_values import KnownValues

SOURCE = KnownValues(
    """\
/repo holds src/dates.py and tests/test_dates.py::test_leap; lading/compaction/priced.py has parse_date(text, utc).
It ran 1200 rows in 90 s on 2024-03-05T10:47:12Z; 1187 were kept. The build took 412s and 6324583 bytes.
37 passed, 3 failed of 40
retry_limit = 8, ratio 0.8834, version 3.11.4, order W3522457, amounts 618.98 and 774.83 and 305.50
the encoder and the decoder
class Container { invalidate() } interface DefaultTextStyle { color } error TS2304 in theme.ts, bold
chalk.gray("x") chalk.dim("x") chalk.bold("x") theme.fg("muted", "x") src/ui/Markdown.ts
"""
)


@pytest.mark.parametrize(
    "line",
    [
        "src/dates.py and /repo/src/dates.py, dates.py too",
        "test_leap in tests/test_dates.py, that is tests/test_dates.py::test_leap",
        "lading.compaction.priced is the module; `parse_date()` is its function",
        "1,200 rows, 1.200 rows, about 1,190 kept, ~1.2k rows",
        "90 s are 1.5 minutes, 1.5 min, 90,000 ms; 412 s are about 7 minutes",
        "on 5 March 2024, on March 5, 2024, on 05.03.2024, on 2024/03/05, at 10:47",
        "6.3 MB, 6,324,583 bytes",
        "12 files, 3 of 12 steps, the 23rd try, 5x",
        "37 of 40 passed (92.5 %), 7.5 % failed, 88 % of it",
        "34 more passed than failed",
        "version 3.11, order W3522457",
        "a 5-minute wait, UTF-8, GitHub, and/or, read/write, encoder/decoder, well-known",
        "lines 37-40",
        "`Container.invalidate()` reaches it, and `DefaultTextStyle.color` is a function (TS2304)",
        'chalk.gray/dim became `theme.fg("muted", ...)`, chalk.bold `theme.bold()`',
    ],
)
def test_what_follows_from_the_source_is_known(line: str) -> None:
    assert SOURCE.find_unknown(line) == ""


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("it is in src/invented.py", "src/invented.py"),
        ("it is in lib/dates.py", "lib/dates.py"),
        ("it calls parse_dates", "parse_dates"),
        ("it calls parseDate", "parseDate"),
        ("4711 rows", "4711"),
        ("4,711 rows", "4711"),
        ("on port 443", "443"),
        ("line 88", "88"),
        ("pull request #17", "17"),
        ("order W3522458", "W3522458"),
        ("on 2024-03-06", "2024-03-06"),
        ("ticket DATES-12", "DATES-12"),
        ("it took 45 seconds", "45"),
        ("71 % of it", "71"),
        ("version 3.12.1", "3.12.1"),
        ("https://example.org/x", "https://example.org/x"),
        ("Container.remove() is called", "Container.remove"),
        ("chalk.gray/red", "chalk.gray/red"),
        ("it is in container.ts", "container.ts"),
        ("it is in Container.py", "Container.py"),
        ("it is in ui/container", "ui/container"),
        ("it is in src/ui/container.color", "src/ui/container.color"),
    ],
)
def test_what_nobody_named_is_unknown(line: str, value: str) -> None:
    assert SOURCE.find_unknown(line) == value


def test_amounts_of_the_same_text_may_be_added_up() -> None:
    shown = "618.98, 774.83 and 305.50 come to 1,699.31, the first two to 1393.81"
    assert SOURCE.find_unknown(shown, shown=shown) == ""
    assert SOURCE.find_unknown("1700.00", shown=shown) == "1700.00"


def test_a_value_is_known_whole_only() -> None:
    assert KnownValues("12x" * 2_000).has("12")
    assert not KnownValues("12x" * 10).has("12")

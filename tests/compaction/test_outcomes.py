from __future__ import annotations

from lading.compaction.outcomes import demands, error_line


def test_of_many_demands_the_first_are_quoted() -> None:
    text = "".join(f"You must never touch file number {number} there. NEVER.\n" for number in range(99))
    said = demands(text)
    assert said.startswith('it says "You must never touch file number 0 there. NEVER" "You must')
    assert 300 < len(said) < 500
    assert demands("IMPORTANT\nx = MUST\nwe must not do it here\n") == ""


def test_the_first_line_that_tells_of_a_failure_is_found() -> None:
    assert error_line("fine\n  error: one\nerror: two") == "error: one"
    assert error_line("0 errors, 0 failed\nexit code 0\nno error here") == ""
    assert error_line("✓ throws an Error\n  PASS error: is shown\nok 3 - no error\nreturned 404 rows") == ""
    assert error_line("Errors: 0\nerror: 0\nFailed: 0\nfailures = 0\nFound 0 errors") == ""
    assert error_line("a\nsrc/x.ts(4,2): error TS2304: no name") == "src/x.ts(4,2): error TS2304: no name"

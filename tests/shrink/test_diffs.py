from __future__ import annotations

from lading.shrink import Target
from lading.shrink.diffs import SHRINKER
from lading.tokens.estimate import ESTIMATE


def changed(name: str, hunks: int, *, word: str = "cup") -> str:
    around = "".join(f" line_{number} = {number}\n" for number in range(3))
    return f"diff --git a/{name} b/{name}\nindex 1a2b3c4..5d6e7f8 100644\n--- a/{name}\n+++ b/{name}\n" + "".join(
        f"@@ -{number * 20 + 1},7 +{number * 20 + 1},8 @@\n{around}-old_{word} = {number}\n+new_{word} = {number}\n"
        f"+more_{word} = {number}\n{around}"
        for number in range(hunks)
    )


def reduced(text: str, most_tokens: int, *terms: str) -> list[str]:
    shrunk = SHRINKER.reduce(text, Target(most_tokens, terms, "artifact://t/s/log/7"), ESTIMATE.count)
    assert shrunk is not None
    assert shrunk.form == "diff.changes"
    return shrunk.text.split("\n")


def test_files_are_listed_with_what_changed_in_each() -> None:
    shown = reduced(changed("src/cart.py", 4) + changed("src/tea.py", 9), 260)
    assert shown[0].startswith("[Diff of 2 files, +26 -13; ")
    assert shown[0].endswith(" of 138 lines left out. Original: artifact://t/s/log/7]")
    assert shown[1:3] == ["src/cart.py +8 -4", "src/tea.py +18 -9"]


def test_changed_lines_stay_before_the_lines_around_them() -> None:
    shown = reduced(changed("src/cart.py", 10), 500)
    assert [f"+new_cup = {number}" in shown for number in range(10)] == [True] * 10
    assert shown[0].startswith("[Diff of 1 file, +20 -10; ")
    assert "diff --git a/src/cart.py b/src/cart.py" in shown
    assert sum(line.startswith(" line") for line in shown) < 60


def test_a_hunk_with_a_term_stays_before_others_with_its_headers() -> None:
    text = changed("src/cart.py", 40) + changed("src/tea.py", 1, word="zebra") + changed("src/pot.py", 40)
    shown = reduced(text, 190, "more_zebra")
    place = shown.index("diff --git a/src/tea.py b/src/tea.py")
    assert "@@ -1,7 +1,8 @@" in shown[place:]
    assert {"-old_zebra = 0", "+new_zebra = 0", "+more_zebra = 0"} <= set(shown[place:])


def test_generated_files_are_counted_unless_asked_for() -> None:
    text = changed("package-lock.json", 30) + changed("src/cart.py", 30)
    shown = reduced(text, 900)
    assert "package-lock.json +60 -30" in shown
    assert "[300 lines about generated content left out]" in shown
    assert "+new_cup = 17" in reduced(changed("go.sum", 30), 120, "new_cup = 17")


def test_names_come_from_plain_diffs_too() -> None:
    old = "--- a/cart.py\t2024-03-01\n+++ /dev/null\n@@ -1 +0,0 @@\n-total = 1\n"
    sql = "--- shop.sql\n+++ shop.sql\n@@ -1,2 +1,3 @@\n--- a comment\n+++ two\n+more\n same\n\\ No newline\n"
    shown = reduced(old + sql + changed("tea.py", 30), 200)
    assert shown[1:4] == ["cart.py +0 -1", "shop.sql +2 -1", "tea.py +60 -30"]


def test_words_of_a_commit_stay() -> None:
    shown = reduced("commit 1a2b3c\nAuthor: Ann\n\n    Price tea anew\n\n" + changed("tea.py", 40), 700)
    assert "    Price tea anew" in shown


def test_of_very_many_files_changes_are_shown_too() -> None:
    shown = reduced("".join(changed(f"src/part_{number}.py", 1) for number in range(400)), 2_500)
    assert any(line.startswith("[") and "more of the files left out]" in line for line in shown)
    assert "+new_cup = 0" in shown


def test_what_is_no_diff_is_refused() -> None:
    assert SHRINKER.reduce("tea\n" * 500 + "@@ -1 +1 @@\n", Target(20), ESTIMATE.count) is None


def test_names_that_repeat_those_above_them_are_left_out_without_loss() -> None:
    text = changed("src/cart.py", 1) + changed("src/tea.py", 1).replace("--- a/src/tea.py", "--- /dev/null")
    (found,) = SHRINKER.reshape(text)
    assert "--- a/src/cart.py" not in found.text
    assert "--- /dev/null\n+++ b/src/tea.py\n" in found.text
    assert SHRINKER.decode(found.text, found.form) == text
    assert list(SHRINKER.reshape(found.text)) == []

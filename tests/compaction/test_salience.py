from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.salience import GAP, Label, label_sentence, remove_filler, select_sentences
from tests.compaction.hostile import HOSTILE
from tests.examples import quick_first
from tests.growth import assert_linear, ladder


def selected(text: str, *, most_tokens: int, count: Callable[[str], int]) -> str:
    """What is selected for one size."""
    (shown,) = select_sentences(text, sizes=[most_tokens], count=count)
    return shown


def words(text: str) -> int:
    """A counter that people can check: words of at most four characters, rounded up."""
    return sum(-(-len(word) // 4) for word in text.split())


CODING = """Perfect! Now I understand the problem. The queue hangs because nobody calls `task_done()`.

I decided to use a context manager instead of a second lock. I fixed it in `src/queue/worker.py`, line 88.

```python
with queue.item() as item:
    handle(item)
```

The handler module has a long docstring and several constants. Latency went from 1,240 ms to 35 ms.

Next, I'll port the second consumer. Let me know if you have any questions!"""

SUPPORT = """Thank you for your patience. I looked at your account and at the orders of this year. \
The refund of $1,249.50 for order W4810275 was issued today. \
You can see all of your orders in the portal as well, under the tab of that name. \
Should I cancel the second order, too?"""

JAPANESE = """設定ファイルを確認しました。
この部分は以前からあります。
注文番号はW4810275、金額は1,249円です。
残りは明日対応します。"""


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("It hangs because nobody calls `task_done()`.", {"cause"}),
        ("The root cause is a stale lock.", {"cause"}),
        ("Let me take the local copy since it is newer.", {"cause"}),
        ("Turns out the file was empty.", {"cause"}),
        ("I chose SQLite for the cache.", {"decision"}),
        ("I'll use a queue instead of a lock.", {"decision", "open"}),
        ("All 42 tests passed.", {"result"}),
        ("Fixed the off-by-one in `pages.py`.", {"result"}),
        ("The p99 fell from 70 to 30 ms.", {"result"}),
        ("TODO: delete the shim.", {"open"}),
        ("Two call sites remain.", {"open"}),
        ("Two call sites are still open.", {"open"}),
        ("Shall I merge it?", {"open"}),
        ("続けますか？", {"open"}),
        ("هل تريد المتابعة؟", {"open"}),
        ("Perfect!", {"filler"}),
        ("**Great question!**", {"filler"}),
        ("Let me look at the parser.", {"filler"}),
        ("Let me know which flight you prefer.", {"open"}),
        ("Let me know if anything is still unclear.", {"filler"}),
        ("I'll check the logs.", {"filler"}),
        ("If you need further assistance, please let me know!", {"filler"}),
        ("Great, the build passes.", {"result"}),
        ("Travel insurance cannot be added later.", set()),
        ("The parser reads one line at a time.", set()),
        ("Der Fehler liegt in config.yaml.", set()),
    ],
)
def test_a_sentence_is_labelled_by_its_words(sentence: str, expected: set[Label]) -> None:
    assert label_sentence(sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "We might have decided to use Redis.",
        "Maybe I'll use a queue instead of a lock.",
        "Probably the team chose Postgres.",
        "I think the decision was to drop Python 3.10.",
        "It could be that they settled on YAML.",
        "I suggest using a queue instead of a lock.",
        "If so, I will use the card ending in 5018.",
        "This should fix it; I used a lock rather than a queue, I believe.",
    ],
)
def test_a_hypothesis_is_no_decision_and_no_result(sentence: str) -> None:
    found = label_sentence(sentence)
    assert "hypothesis" in found
    assert not found & {"decision", "result"}


def test_a_decision_comes_before_the_same_words_as_a_hypothesis() -> None:
    text = (
        "We read the notes. Maybe we'll use Redis instead of files. We'll use Redis instead of files. It was late."
    )
    assert selected(text, most_tokens=12, count=words) == "We'll use Redis instead of files."


def test_a_text_that_fits_is_kept_whole() -> None:
    assert selected(f"\n{CODING}\n", most_tokens=1_000, count=words) == CODING


def test_of_a_coding_agent_causes_decisions_and_results_are_kept() -> None:
    assert selected(CODING, most_tokens=37, count=words) == (
        "The queue hangs because nobody calls `task_done()`. … Latency went from 1,240 ms to 35 ms.\n"
        "Next, I'll port the second consumer."
    )
    assert selected(CODING, most_tokens=75, count=words) == (
        "The queue hangs because nobody calls `task_done()`.\n"
        "I decided to use a context manager instead of a second lock. I fixed it in `src/queue/worker.py`, line 88."
        " … Latency went from 1,240 ms to 35 ms.\n"
        "Next, I'll port the second consumer."
    )


def test_of_a_support_agent_amounts_ids_and_questions_are_kept() -> None:
    assert selected(SUPPORT, most_tokens=40, count=words) == (
        "The refund of $1,249.50 for order W4810275 was issued today. … Should I cancel the second order, too?"
    )


def test_in_other_languages_values_the_first_and_the_last_are_kept() -> None:
    assert selected(JAPANESE, most_tokens=15, count=words) == (
        "設定ファイルを確認しました。 … 注文番号はW4810275、金額は1,249円です。\n残りは明日対応します。"
    )


def test_a_table_rule_is_no_gap() -> None:
    text = "| file | size |\n|---|---|\n| a.py | 120 |\n\nThe other files are as they had been before the change."
    assert selected(text, most_tokens=14, count=words) == "| file | size |\n| a.py | 120 |"


def test_filler_is_kept_where_there_is_nothing_else() -> None:
    assert selected("Great! Perfect!", most_tokens=2, count=words) == "Perfect!"


def test_a_message_without_its_filler_is_verbatim() -> None:
    assert remove_filler(JAPANESE) == JAPANESE
    assert remove_filler("Great! Let me look.\n\n- The pool is full.\n\n- It leaks.\n\nLet me fix it:") == (
        "- The pool is full.\n- It leaks."
    )
    assert remove_filler("Perfect! Now let's run the tests:") == remove_filler("---") == remove_filler("") == ""


def test_where_no_sentence_fits_one_is_cut_between_words() -> None:
    text = "The timeout in worker.py was raised from 3.14 to 31.4 seconds because the disk is slow."
    assert selected(text, most_tokens=10, count=words) == "The timeout in worker.py was …"
    assert selected(text, most_tokens=1, count=words) == ""
    text = "設定ファイルを確認し、古い値を3.14から2.71に更新しました。"
    assert selected(text, most_tokens=5, count=words) == "設定ファイルを確認し、 …"


def test_nothing_is_selected_from_nothing() -> None:
    assert selected("", most_tokens=0, count=words) == ""
    assert selected("---\n***\n", most_tokens=0, count=words) == ""


def test_a_counter_that_finds_joined_text_longer_is_respected() -> None:
    def squared(text: str) -> int:
        return len(text) ** 2

    text = "One is here. Two is here. Three is here. Four is here. Five is here."
    assert squared(selected(text, most_tokens=700, count=squared)) <= 700


TEXTS = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from([*CODING.splitlines(keepends=True), *SUPPORT.split(". "), JAPANESE, "```\n", "- a\n"])
    ).map("".join),
)


@given(TEXTS, st.integers(-2, 60))
def test_a_selection_is_verbatim_in_order_and_within_the_budget(text: str, most_tokens: int) -> None:
    shown = selected(text, most_tokens=most_tokens, count=words)
    assert words(shown) <= max(most_tokens, 0)
    assert shown == selected(text, most_tokens=most_tokens, count=words)
    at = 0
    for word in shown.split():
        if word != GAP.strip():
            at = text.index(word, at) + len(word)


@pytest.mark.parametrize("name", quick_first(sorted(HOSTILE), 4))
def test_selecting_is_linear(name: str) -> None:
    assert_linear(lambda text: selected(text, most_tokens=50, count=len), *ladder(HOSTILE[name]))

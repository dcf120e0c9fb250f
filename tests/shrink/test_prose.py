from __future__ import annotations

import pytest

from lading.shrink import Shrunk, Target
from lading.shrink.prose import SHRINKER, read_units
from lading.tokens.estimate import ESTIMATE

STORY = """# The harbour

The harbour of Saltmouth opens at six in the morning. Dr. Vale wrote its rules in 1923. It is quiet there.
The pilot boat leaves first. Then the gulls come. Somebody always forgets the rope. It rains a lot.

## Fees

Every ship in the harbour pays a fee to the harbour office. The clerk likes tea. He has a cat.
The cat sleeps on the ledger. Nobody minds it. The windows are green. A zebra was seen once.

- The fee must be paid before noon.
- Fishing boats pay half.

```sh
pay --ship "$SHIP" --fee 12
```
"""


def reduced(text: str, most_tokens: int, *terms: str, whole: str = "") -> Shrunk:
    shrunk = SHRINKER.reduce(text, Target(most_tokens, terms, whole), ESTIMATE.count)
    assert shrunk is not None
    return shrunk


def said(text: str) -> list[str]:
    return [unit.text for unit in read_units(text)]


def test_sentences_stay_as_they_are_in_their_order_with_gaps_marked() -> None:
    shown = reduced(STORY, 120, whole="artifact://t/s/log/9").text
    first, *lines = shown.splitlines()

    assert first.endswith("of 19 sentences and items left out. Original: artifact://t/s/log/9]")
    assert lines[0] == "# The harbour"
    assert "[...]" in shown
    every = said(STORY)
    kept = [text for text in every if text in shown]
    assert 5 < len(kept) < 17
    assert [shown.index(text) for text in kept] == sorted(shown.index(text) for text in kept)
    assert int(first[1:].split()[0]) == len(every) - len(kept)


def test_telling_sentences_come_before_idle_ones() -> None:
    shown = reduced(STORY, 110).text

    assert "Every ship in the harbour pays a fee to the harbour office." in shown
    assert "Somebody always forgets the rope." not in shown
    assert "The cat sleeps on the ledger." not in shown


def test_words_of_the_request_come_first() -> None:
    assert "A zebra was seen once." in reduced(STORY, 45, "zebra").text


def test_a_sentence_comes_with_its_heading() -> None:
    text = "# One\n\n" + "It rains. " * 40 + "\n\n## Fees\n\nShips pay 12 euros a day for the harbour.\n"

    assert "## Fees\nShips pay 12 euros a day for the harbour." in reduced(text, 60).text


def test_what_is_said_again_comes_last() -> None:
    text = "The harbour opens at 6. " * 30 + "The pilot of the harbour leaves at 7. Gulls of the harbour come."

    shown = reduced(text, 60).text

    assert "The pilot of the harbour leaves at 7." in shown
    assert shown.count("opens at 6.") < 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("船在等待。它们运送粮食！为什么？", ["船在等待。", "它们运送粮食！", "为什么？"]),
        ("Суда ждут. Никто не знает.", ["Суда ждут.", "Никто не знает."]),
        ("जहाज़ रुके हैं। ज्वार आएगा।", ["जहाज़ रुके हैं।", "ज्वार आएगा।"]),
        (
            'He said "go." Then he left... Dr. J. Lee paid 3.5 euros.',
            ['He said "go."', "Then he left...", "Dr. J. Lee paid 3.5 euros."],
        ),
        ("It was late (very late!) Yes.", ["It was late (very late!)", "Yes."]),
        ("No end here", ["No end here"]),
        ("One\n\nTwo", ["One", "Two"]),
    ],
)
def test_sentences_end_in_many_scripts(text: str, expected: list[str]) -> None:
    assert said(text) == expected


def test_markdown_has_units_of_its_own() -> None:
    text = "Title\n=====\nText here.\n- one\n2. two\n| a | b |\n```\ncode. here\n\nmore\n```\n### Three\nlast\n"
    text += "~~~\nopen"

    assert [(unit.level, unit.opens, unit.text) for unit in read_units(text)] == [
        (1, False, "Title\n====="),
        (0, True, "Text here."),
        (0, False, "- one"),
        (0, False, "2. two"),
        (0, False, "| a | b |"),
        (0, False, "```\ncode. here\n\nmore\n```"),
        (3, False, "### Three"),
        (0, True, "last"),
        (0, False, "~~~\nopen"),
    ]
    assert [(unit.level, unit.starts_line) for unit in read_units("**Why**\nAs it is. So.\n----\n")] == [
        (4, True), (0, True), (0, False), (0, True),
    ]  # fmt: skip


def test_what_is_very_long_is_cut_at_blanks() -> None:
    found = said("word " * 400)

    assert all(len(text) <= 600 for text in found)
    assert "".join(found).split() == ["word"] * 400
    assert "".join(said("x" * 2_000)) == "x" * 2_000
    assert [len(text.splitlines()) for text in said("```\n" + "a = 1 + b\n" * 99 + "```")] == [60, 42]


def test_scripts_without_blanks_are_weighed_too() -> None:
    text = (
        "港口的船等待潮水。"
        + "天气很好。今天有风。我喜欢茶。猫在睡觉。窗户是绿色的。"
        + "港口的船在潮水后离开港口。潮水决定港口的船。" * 2
    )

    shown = reduced(text, 70).text

    assert "潮水决定港口的船。" in shown


def test_of_a_huge_text_start_end_and_matching_lines_are_read() -> None:
    lines = "\n\n".join(f"Ship number {n} waits for the tide. It rains." for n in range(9_000))

    shown = reduced(f"# Ships\n\n{lines}\n\nThe end is near the harbour.", 300, "5432").text

    assert "Ship number 5432 waits for the tide." in shown
    assert " characters left out" in shown.splitlines()[0]
    assert "# Ships" in shown


@pytest.mark.parametrize("text", ["", "One sentence alone, and no other.", "Two. Only."])
def test_what_has_hardly_any_sentences_gives_none(text: str) -> None:
    assert SHRINKER.reduce(text, Target(50), ESTIMATE.count) is None


def test_nothing_fits_gives_none() -> None:
    assert SHRINKER.reduce(STORY, Target(8), ESTIMATE.count) is None
    assert list(SHRINKER.reshape(STORY)) == []
    with pytest.raises(ValueError, match=r"prose\.extract"):
        SHRINKER.decode(STORY, "prose.extract")


def test_a_text_may_begin_with_a_line_end() -> None:
    assert [unit.text for unit in read_units("\n0")] == ["0"]

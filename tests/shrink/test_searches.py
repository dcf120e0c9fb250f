from __future__ import annotations

from lading.shrink import Wish
from lading.shrink.searches import SHRINKER
from lading.tokens.estimate import ESTIMATE

HITS = [f"src/part_{number // 20}.py:{number % 20 + 1}:def total_{number}(items):" for number in range(200)]


def reduced(text: str, most_tokens: int, *terms: str) -> list[str]:
    shrunk = SHRINKER.reduce(text, Wish(most_tokens, terms, "artifact://t/s/log/7"), ESTIMATE.count)
    assert shrunk is not None
    assert shrunk.form == "search.hits"
    return shrunk.text.split("\n")


def test_each_file_stands_once_above_its_hits_without_loss() -> None:
    text = "\n".join(
        [
            "src/cart.py:3:def total(items):",
            "src/cart.py-4-    return 0",
            "--",
            "src/cart.py:9:total(())",
            "src/tea-2-go.py:1:total = 7",
            "C:\\shop\\pot.py:2:total",
            "C:\\shop\\pot.py:3:total",
        ]
    )
    (found,) = SHRINKER.reshape(text)
    assert found.text.split("\n") == [
        "== src/cart.py",
        "3:def total(items):",
        "4-    return 0",
        "--",
        "9:total(())",
        "src/tea-2-go.py:1:total = 7",
        "== C:\\shop\\pot.py",
        "2:total",
        "3:total",
    ]
    assert SHRINKER.decode(found.text, found.form) == text


def test_what_would_decode_to_something_else_is_not_offered() -> None:
    assert list(SHRINKER.reshape("\n".join([*HITS, "12:a line that only looks like a hit"]))) == []
    assert list(SHRINKER.reshape("\n".join([*HITS, "== src/part_9.py"]))) == []


def test_files_with_their_counts_and_the_first_hits_of_each() -> None:
    shown = reduced("\n".join(["200 matches", *HITS, "(cut)"]), 400)
    assert shown[0].startswith("[200 hits in 10 files; ")
    assert shown[0].endswith(" of 202 lines left out. Original: artifact://t/s/log/7]")
    for part in range(10):
        place = shown.index(f"== src/part_{part}.py: 20 hits")
        assert shown[place + 1] == f"1:def total_{part * 20}(items):"
    assert shown.index("200 matches") == 1
    assert shown[-1] == "(cut)"


def test_hits_with_terms_stay_below_their_file() -> None:
    shown = reduced("\n".join(HITS), 80, "total_77")
    assert shown[shown.index("== src/part_3.py: 20 hits") :][:2] == [
        "== src/part_3.py: 20 hits",
        "18:def total_77(items):",
    ]


def test_hits_of_a_file_come_together_and_lines_around_hits_last() -> None:
    lines = [line for hit in HITS for line in (hit, hit.replace(":", "-", 2).replace("def", "around"), "--")]
    shown = reduced("\n".join(lines[::2] + lines[1::2]), 2_400)
    assert "20:def total_199(items):" in shown
    assert "--" not in shown
    assert sum("around" in line for line in shown) < 200 <= sum("def" in line for line in shown)
    assert shown.count("== src/part_0.py: 20 hits") == 1


def test_a_long_hit_is_clipped_around_the_term() -> None:
    shown = reduced("\n".join([*HITS, f"dist/a.js:1:{'x' * 5000} zebra {'y' * 5000}"]), 500, "zebra")
    (line,) = [line for line in shown if "zebra" in line]
    assert len(line) < 400


def test_what_holds_no_hit_is_refused() -> None:
    assert SHRINKER.reduce("tea\n" * 500, Wish(20), ESTIMATE.count) is None

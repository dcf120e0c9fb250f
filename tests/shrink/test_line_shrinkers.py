"""What holds for every shrinker that goes by lines, whatever the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.shrink import Shrinker, Target
from lading.shrink.blobs import SHRINKER as BLOBS
from lading.shrink.diffs import SHRINKER as DIFFS
from lading.shrink.listings import SHRINKER as LISTINGS
from lading.shrink.logs import SHRINKER as LOGS
from lading.shrink.traces import SHRINKER as TRACES
from lading.tokens.estimate import ESTIMATE

SHRINKERS = (BLOBS, DIFFS, LISTINGS, LOGS, TRACES)
LINES = {
    "blob": [
        "Here it is:",
        "QUJDREVGR0hJ" * 30,
        "00ff17" * 60,
        "\ufffd\ufffdab\x00\x01\ufffd",
        "iVBORw0KGgoAAAANSUhEUg+/" * 14,
    ],
    "diff": [
        "diff --git a/cart.py b/cart.py",
        "index 1a2b..3c4d 100644",
        "--- a/cart.py",
        "+++ b/cart.py",
        "@@ -1,3 +1,3 @@ def total():",
        " tea = 1",
        "-old = 2",
        "+new = 3",
        "\\ No newline at end of file",
        "diff --git a/go.sum b/go.sum",
        "commit 1a2b3c",
    ],
    "listing": [
        "/srv/shop/cart/a.py",
        "/srv/shop/cart/b.py",
        "/srv/shop/tea/",
        "README.md",
        "./cart:",
        ".",
        "├── cart",
        "│   ├── a.py",
        "│   └── b.py",
        "└── tea",
        "    └── c.md",
        "-rw-r--r-- 1 ann ann 512 Mar  4 10:00 a.py",
        "total 24",
    ],
    "log": [
        "2024-03-01 12:00:01 INFO cart served request 17 in 23 ms",
        "2024-03-01 12:00:02 INFO cart served request 18 in 4 ms",
        "2024-03-01 12:00:03 WARN cart is slow",
        "2024-03-01 12:00:03 ERROR cannot open /srv/shop/17.json",
        "  at line 7",
        "Mar  4 10:00:00 host sshd[17]: session opened",
    ],
    "trace": [
        "Traceback (most recent call last):",
        '  File "/srv/shop/cart.py", line 3, in total',
        "    return walk(child)",
        '  File "/usr/lib/python3.11/json/decoder.py", line 3, in decode',
        "ValueError: bad price",
        "    at total (/srv/shop/cart.js:3:4)",
        "main.total(0x1)",
        "\t/srv/shop/main.go:12 +0x1d",
        "tests/test_cart.py::test_total PASSED [ 10%]",
        "tests/test_cart.py::test_price FAILED [ 20%]",
        "=== 1 failed, 1 passed in 0.1s ===",
        "[1 line above, 99999999999 more times]",
        "[3 lines below start with] tea",
    ],
}

HOSTILE = {
    "empty lines": "\n",
    "one word": "a",
    "slashes": "/",
    "frames": " at",
    "brackets": "[",
    "surrogates": "\ud800 1:",
    "spaces": "    ",
    "marks": "-1-",
    "summaries": "= failed ",
    "branches": "├── ",
    "tests": " (a",
    "numbers": "0x1f ",
    "hits": "x:1:a\n",
    "long hunks": f"@@ -1,{'9' * 5_000} +1 @@\n",
    "endless hunks": "--- a\n+++ b\n@@ -1,999999999 +1 @@\n",
    "notes": f"[{'9' * 5_000} lines above, 2 more times]\n",
    "endless notes": "[1 line above, 999999999 more times]\n",
}


def texts(name: str) -> st.SearchStrategy[str]:
    """Lines of the kind, some many times in a row, between arbitrary ones."""
    line = st.one_of(st.sampled_from(LINES[name]), st.sampled_from(LINES[name]), st.text(max_size=40))
    runs = st.lists(st.tuples(st.lists(line, min_size=1, max_size=4), st.sampled_from((1, 1, 2, 30))), max_size=12)
    return st.builds(
        lambda parts, end: end.join(line for group, times in parts for line in group * times),
        runs,
        st.sampled_from(("\n", "\n", "\r\n")),
    )


each_lossless = pytest.mark.parametrize(
    "shrinker", [shrinker for shrinker in SHRINKERS if shrinker is not BLOBS], ids=lambda shrinker: shrinker.name
)
each_shrinker = pytest.mark.parametrize("shrinker", SHRINKERS, ids=lambda shrinker: shrinker.name)


@each_lossless
@given(data=st.data())
def test_lossless_forms_decode_to_the_very_text_and_are_shorter(shrinker: Shrinker, data: st.DataObject) -> None:
    text = data.draw(texts(shrinker.name))
    for candidate in shrinker.reshape(text):
        assert candidate.lossless
        assert len(candidate.text) < len(text)
        assert shrinker.decode(candidate.text, candidate.form) == text


@each_shrinker
@given(data=st.data(), most_tokens=st.integers(-1, 400))
def test_a_lossy_form_keeps_to_its_tokens_and_says_where_the_whole_is(
    shrinker: Shrinker, data: st.DataObject, most_tokens: int
) -> None:
    text = data.draw(texts(shrinker.name))
    target = Target(most_tokens, ("total", "tea"), "artifact://t/s/log/7")
    shrunk = shrinker.reduce(text, target, ESTIMATE.count)
    assert shrunk == shrinker.reduce(text, target, ESTIMATE.count)
    if shrunk is not None:
        assert not shrunk.lossless
        assert ESTIMATE.count(shrunk.text) <= most_tokens < ESTIMATE.count(text)
        assert "Original: artifact://t/s/log/7" in shrunk.text.split("\n")[0]


@each_shrinker
@given(data=st.data())
def test_a_line_with_a_term_survives(shrinker: Shrinker, data: st.DataObject) -> None:
    sample = LINES[shrinker.name][: 5 if shrinker.name == "diff" else 2]
    before = [*sample, *data.draw(st.lists(st.sampled_from(LINES[shrinker.name]), min_size=100, max_size=140))]
    place = data.draw(st.integers(5, len(before)))
    before.insert(place, "the Straße of zebra 4711")
    shrunk = shrinker.reduce("\n".join(before), Target(160, ("strasse of zebra",)), ESTIMATE.count)
    assert shrunk is not None
    assert "Straße of zebra 4711" in shrunk.text


@each_shrinker
def test_no_text_is_left_as_it_is(shrinker: Shrinker) -> None:
    assert list(shrinker.reshape("")) == []
    assert shrinker.reduce("", Target(10), ESTIMATE.count) is None


@each_shrinker
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_keep_to_the_promises(shrinker: Shrinker, piece: str) -> None:
    text = piece * (6_000 if len(piece) < 10 else 30)
    assert all(shrinker.decode(found.text, found.form) == text for found in shrinker.reshape(text))
    shrunk = shrinker.reduce(text, Target(100), ESTIMATE.count)
    assert shrunk is None or ESTIMATE.count(shrunk.text) <= 100

"""What every lossy form of code, markup and prose keeps to, whatever the text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.shrink import Shrinker, Target, code, markup, prose
from lading.tokens.estimate import ESTIMATE

SHRINKERS = [code.SHRINKER, markup.SHRINKER, prose.SHRINKER]
PLANTED = "quagmirezebra"

PIECES = {
    "code": (
        "def collect(rows, limit=3):\n    total = 0\n    for row in rows:\n        total += row\n    return 1\n",
        "class Store(Base):\n    size: int = 0\n\n    def put(self, key: str) -> None:\n        self[key] = 1\n",
        "import os\nfrom typing import Any\n\nLIMIT = 30\n",
        "export const pick = (user: User): void => {\n  log(user);\n};\n\ninterface User {\n  id: string;\n}\n",
        "func (s *Store) Put(key string) error {\n\ts.items[key] = 1\n\treturn nil\n}\n",
        "pub fn put(&mut self, key: &str) {\n    self.items.insert(key, 1);\n}\n",
        "public class Store {\n    private int size;\n    void put(String key) {\n        size++;\n    }\n}\n",
        "    12\tx = 1\n    13\ty = 2\n    14\tdef f(a):\n    15\t    return a\n",
        "((([[[{{{\n",
        "def broken(:\n    '''",
    ),
    "html": (
        "<html><head><title>Ships</title><script>var a = '<p>';</script></head>",
        "<nav><ul><li><a href='/home'>Home</a></ul></nav>",
        "<main><h1>Harbours</h1><p>Ships <b>wait</b> &amp; leave. They carry grain and timber.</p>",
        "<table><tr><th>Port<td>Ships<tr><td>Hull<td>12</table>",
        "<ul><li>one<ul><li>two</ul></ul><pre>a\n  b</pre>",
        "<div class='cookie-banner'><p>We like cookies</div></div>",
        "<?xml version='1.0'?><feed><entry id='1'><title>A</title></entry><entry/>",
        "<![CDATA[raw <b>]]><!-- gone -->",
        "<a b=\"<p '><!-- <![CDATA[ </x>",
        "<footer>Imprint</footer></main>",
    ),
    "prose": (
        "# Harbours\n\nShips wait for the tide. Dr. Lee counted 40 of them in 2019. Nobody knows why.\n\n",
        "- The pilot must be aboard.\n- `make_fast` is called twice.\n1. First\n",
        "```sh\nls -l\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n",
        "船在港口等待潮水。它们运送粮食！为什么？没有人知道。\n\n",
        "Tides\n=====\n\nThe harbour opens at six... or seven! It closes late? Yes.\n",
        "Суда ждут прилива. Никто не знает почему.\n\n",
    ),
}
MARKS = {
    "code": "    quagmirezebra = 1\n",
    "html": "<p>see quagmirezebra there</p>",
    "prose": "See quagmirezebra.\n\n",
}
TERMS = ["store", "id", "ship", "港口", "<", " ", "\n", "x"]
GUTTERS = r"( {0,6}[0-9]{1,3}[\t→|].{0,9}\n){3,9}"
HOSTILE = ["", " ", "x", "\0\ud800", "(" * 5_000, "<div>" * 5_000, "<?xml?>" + "<a>" * 5_000, "<!--" * 5_000]


@st.composite
def texts(draw: st.DrawFn, kind: str) -> str:
    """Pieces of a kind in any order, with anything between them."""
    noise = st.text(max_size=40)
    pieces = draw(st.lists(st.one_of(st.sampled_from(PIECES[kind]), noise), max_size=30))
    return "".join(pieces)


@pytest.mark.parametrize("shrinker", SHRINKERS, ids=lambda one: one.name)
@given(data=st.data())
def test_a_form_keeps_to_the_wish_and_is_smaller_than_the_text(shrinker: Shrinker, data: st.DataObject) -> None:
    text = data.draw(texts(data.draw(st.sampled_from(sorted(PIECES)))))
    most = data.draw(st.integers(0, 400))
    terms = tuple(data.draw(st.lists(st.sampled_from(TERMS), max_size=3)))
    target = Target(most, terms, whole=data.draw(st.sampled_from(["", "artifact://t/s/log/7"])))

    shrunk = shrinker.reduce(text, target, ESTIMATE.count)

    assert shrunk == shrinker.reduce(text, target, ESTIMATE.count)
    if shrunk is not None:
        assert not shrunk.lossless
        assert 0 < ESTIMATE.count(shrunk.text) <= most
        assert ESTIMATE.count(shrunk.text) < ESTIMATE.count(text)
        assert target.whole in shrunk.text.split("\n", 1)[0]
        assert shrunk.text.startswith("[")


@pytest.mark.parametrize("shrinker", SHRINKERS, ids=lambda one: one.name)
@given(data=st.data())
def test_a_word_of_the_request_survives(shrinker: Shrinker, data: st.DataObject) -> None:
    pieces: Sequence[str] = data.draw(
        st.lists(st.sampled_from(PIECES[shrinker.name][:6]), min_size=30, max_size=60)
    )
    at = data.draw(st.integers(0, len(pieces)))
    text = "".join([*pieces[:at], MARKS[shrinker.name], *pieces[at:]])

    shrunk = shrinker.reduce(text, Target(data.draw(st.integers(90, 300)), (PLANTED,)), ESTIMATE.count)

    assert shrunk is not None
    assert PLANTED in shrunk.text


@pytest.mark.parametrize("shrinker", SHRINKERS, ids=lambda one: one.name)
@given(text=st.one_of(texts("code"), st.text(), st.from_regex(GUTTERS, fullmatch=True)))
def test_a_lossless_form_decodes_to_the_same_text(shrinker: Shrinker, text: str) -> None:
    for shrunk in shrinker.reshape(text):
        assert shrunk.lossless
        assert len(shrunk.text) < len(text)
        assert shrinker.decode(shrunk.text, shrunk.form) == text


@pytest.mark.parametrize("shrinker", SHRINKERS, ids=lambda one: one.name)
@pytest.mark.parametrize(
    "text",
    [*HOSTILE, "." * 5_000, "`" * 5_000 + ". a. b."],
    ids=lambda text: text[:8].encode("ascii", "backslashreplace").decode(),
)
def test_what_is_no_content_or_hostile_raises_nothing(shrinker: Shrinker, text: str) -> None:
    shrunk = shrinker.reduce(text, Target(50), ESTIMATE.count)

    assert shrunk is None or ESTIMATE.count(shrunk.text) <= 50

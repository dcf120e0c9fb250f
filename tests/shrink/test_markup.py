from __future__ import annotations

import pytest

from lading.shrink import Shrunk, Target
from lading.shrink.markup import SHRINKER
from lading.shrink.pages import read_page
from lading.tokens.estimate import ESTIMATE

PAGE = """<!DOCTYPE html>
<html lang="en"><head>
<meta charset="utf-8"><title>Harbour &amp; tides</title>
<style>body { color: red; } p::after { content: "<p>styled</p>"; }</style>
<script>if (a < b) { document.write("<p>scripted</p>"); }</script>
<script src="x.js"></script>
</head><body>
<div id="cookie-banner" class="x"><div><p>We value your privacy.</p></div><button>Accept</button></div>
<header><nav><ul><li><a href="/">Home</a></li><li><a href="/about">About</a></li></ul></nav></header>
<main>
<h1>Opening   hours</h1>
<p>The harbour opens at <b>six</b>. See <a href="/tides">the tide table</a>
and <a href="https://example.org/a/very/long/address/that/nobody/wants/to/read/in/full">the rules</a>.</p>
<!-- <p>commented</p> -->
<h2>Fees</h2>
<table><caption>In euros</caption>
<tr><th>Length</th><th>Fee</th></tr>
<tr><td><p>10 m</p></td><td>12</td></tr>
<tr><td>20 m<td>30
</table>
<ul><li>Pay at the office<ul><li>in cash</li></ul></li><li>Ring twice</li></ul>
<pre>make
  fast</pre>
<p hidden>secret</p>
<img src="a.png" alt="A crane"><br>
</main>
<aside><p>Related: lighthouses.</p></aside>
<footer>Imprint and zebra</footer>
<iframe src="ad.html">No frames</iframe>
</body></html>
"""

FEED = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE feed [ <!ELEMENT feed ANY> ]>
<feed xmlns="http://www.w3.org/2005/Atom">
  <title>Ships</title>
  <entry id="1"><title>Grain &lt;dry&gt;</title><port code="HUL"/></entry>
  <entry id="2"><title><![CDATA[Timber & rope]]></title><port code="RTM"/></entry>
  <entry id="3"><title>Zebra crossing</title><port code="ANR"/><note lang="nl"/></entry>
</feed>
"""


def reduced(text: str, most_tokens: int, *terms: str, whole: str = "") -> Shrunk:
    target = Target(min(most_tokens, ESTIMATE.count(text) - 1), terms, whole)
    shrunk = SHRINKER.reduce(text, target, ESTIMATE.count)
    assert shrunk is not None
    return shrunk


def test_a_page_is_its_main_text() -> None:
    shrunk = reduced(PAGE, 400, whole="artifact://t/s/log/2")

    assert shrunk.form == "html.text"
    assert shrunk.text.splitlines() == [
        "[Page as text; 1 style, 2 scripts, 1 cookie banner, 1 nav, 1 hidden element, 1 aside, 1 footer, 1 iframe "
        "left out. Original: artifact://t/s/log/2]",
        "# Harbour & tides",
        "# Opening hours",
        "The harbour opens at six. See the tide table (/tides) and the rules.",
        "## Fees",
        "In euros",
        "Length | Fee",
        "10 m | 12",
        "20 m | 30",
        "- Pay at the office",
        "  - in cash",
        "- Ring twice",
        "make",
        "  fast",
        "[image: A crane]",
    ]


def test_with_little_room_headings_come_first_and_gaps_are_marked() -> None:
    shown = reduced(PAGE, 75).text

    assert "# Opening hours" in shown
    assert "## Fees" in shown
    assert "\n[...]\n" in shown
    assert " pieces of text left out]" in shown
    assert "- Ring twice" not in shown


@pytest.mark.parametrize(
    ("term", "line"),
    [
        ("zebra", "[footer] Imprint and zebra"),
        ("privacy", "[cookie banner] We value your privacy."),
        ("secret", "[hidden element] secret"),
        ("scripted", '[script] if (a < b) { document.write("<p>scripted</p>"); }'),
    ],
)
def test_words_of_the_request_are_found_in_what_is_left_out(term: str, line: str) -> None:
    assert line in reduced(PAGE, 400, term).text.splitlines()


def test_a_page_that_is_all_menu_is_shown_all_the_same() -> None:
    text = (
        "<html><body><nav>"
        + "".join(f"<p>Ship <i class='x'>{n}</i></p>" for n in range(40))
        + "</nav></body></html>"
    )

    assert "[nav] Ship 0" in reduced(text, 200).text


def test_an_element_never_closed_does_not_swallow_the_page() -> None:
    text = (
        "<body><nav><a href='/'>Home</a><main><p class='first'>Ships wait.</p><p class='x'>They leave.</p></main>"
    )

    assert reduced(text, 60).text.splitlines()[1:] == ["Ships wait.", "They leave."]


def test_links_come_after_text() -> None:
    links = "".join(f"<p class='link'><a href='/ship/{n}'>Ship number {n}</a></p>" for n in range(40))
    text = f"<html><body><div>{links}</div><p>Ships wait for the tide and then they leave.</p></body></html>"

    shown = reduced(text, 60).text

    assert "Ships wait for the tide and then they leave." in shown


def test_main_comes_before_what_stands_around_it() -> None:
    around = "".join(f"<p class='around'>Notice number {n} of the board.</p>" for n in range(20))
    inside = "".join(f"<p class='inside'>Ships of the day {n} are waiting.</p>" for n in range(20))
    text = f"<html><body>{around}<article>{inside}</article></body></html>"

    shown = reduced(text, 120).text

    assert "Ships of the day 0 are waiting." in shown
    assert "Notice number" not in shown


def test_roles_and_upper_case_are_read_as_browsers_do() -> None:
    text = (
        "<HTML><BODY><DIV ROLE='navigation'><DIV>Menu</DIV></DIV><SCRIPT>var a;</SCRIPT>"
        "<P CLASS=one>Ships wait.</P><P>They leave. a < b and c > d</P></BODY></HTML>"
    )

    assert reduced(text, 60).text.splitlines() == [
        "[Page as text; 1 nav, 1 script left out]",
        "Ships wait.",
        "They leave. a < b and c > d",
    ]


def test_quotes_hide_brackets_in_tags() -> None:
    text = "<html><body><p title='a > b' class=\"<x>\">Ships wait.</p><p class='y'>They leave.</p></body></html>"

    assert reduced(text, 60).text.splitlines()[1:] == ["Ships wait.", "They leave."]


def test_xml_is_an_outline_and_its_texts() -> None:
    shrunk = reduced(FEED, 155)

    assert shrunk.form == "html.outline"
    assert shrunk.text.splitlines()[1:8] == [
        "feed",
        "  title",
        "  entry x3",
        "    title x3",
        "    port x3",
        "    note",
        'feed: xmlns="http://www.w3.org/2005/Atom"',
    ]
    assert "feed/title: Ships" in shrunk.text
    assert "feed/entry/title: Grain <dry>" in shrunk.text


def test_xml_keeps_what_holds_words_of_the_request() -> None:
    shown = reduced(FEED, 60, "zebra", "rtm").text

    assert "feed/entry/title: Zebra crossing" in shown
    assert 'feed/entry/port: code="RTM"' in shown
    assert " texts left out]" in shown.splitlines()[0]


def test_end_tags_that_close_nothing_or_much_are_survived() -> None:
    text = "<?xml version='1.0'?><a><b><c>one</c></x></b><d><e>two</a><f>three</f>"
    text += "<!-- what is no element -->" * 9

    lines = reduced(text, 80).text.splitlines()
    assert lines[1:] == ["a", "  b", "    c", "  d", "    e", "f", "a/b/c: one", "a/d/e: two", "f: three"]


def test_of_a_huge_page_start_end_and_matching_pieces_are_read() -> None:
    rows = "".join(f"<p class='row'>Ship number {n} waits for the tide.</p>" for n in range(16_000))
    text = f"<html><body><h1>Ships</h1>{rows}<p>The end.</p></body></html>"

    shown = reduced(text, 400, "11999").text

    assert "Ship number 11999 waits" in shown
    assert " characters left out" in shown.splitlines()[0]
    assert "# Ships" in shown


def test_deep_nesting_is_no_matter() -> None:
    text = "<html>" + "<div>" * 50_000 + "Ships wait." + "</div>" * 50_000

    assert "Ships wait." in reduced(text, 50).text


@pytest.mark.parametrize("text", ["", "Ships wait.", "a < b, c > d " * 20, "<a>", "<!-- <p> <p> <p> -->"])
def test_what_has_no_elements_gives_none(text: str) -> None:
    assert SHRINKER.reduce(text, Target(30), ESTIMATE.count) is None


def test_nothing_fits_gives_none() -> None:
    assert SHRINKER.reduce(PAGE, Target(6), ESTIMATE.count) is None
    assert SHRINKER.reduce(FEED, Target(6), ESTIMATE.count) is None
    assert list(SHRINKER.reshape(PAGE)) == []
    with pytest.raises(ValueError, match=r"html\.text"):
        SHRINKER.decode(PAGE, "html.text")


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("<del>107</del><ins>55</ins> EUR", "107 55 EUR"),
        ("<span>Item 4</span><b>31 EUR</b>", "Item 4 31 EUR"),
        ("<b>29</b><sup>99</sup>", "29 99"),
        ('<a href="/i/4">Item</a><b>81</b>', "Item (/i/4) 81"),
        ("<datalist><option>Item 1</option><option>Item 2</option></datalist>", "Item 1 Item 2"),
        ("H<sub>2</sub>O", "H2O"),
        ("<b>W</b>ord", "Word"),
    ],
)
def test_two_values_side_by_side_are_two(markup: str, shown: str) -> None:
    blocks = read_page(f"<html><body><p>{markup}</p></body></html>").blocks
    assert [block.text for block in blocks] == [shown]

"""The page in a real browser: open a call, see what left it, follow a pointer, search, at any width and colour.

Needs Chromium; LADING_CHROMIUM names it where it is not on the PATH.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, expect, sync_playwright

from lading.economics import Usage
from lading.history.view import rebuild
from lading.messages import user_text
from lading.report.data import SessionData
from lading.report.stored import read_session
from lading.stores.memory import MemoryStore
from tests.engines import run, settings
from tests.examples import share_of_examples
from tests.histories import called
from tests.report.histories import HOSTILE, NEEDLE, dialogue, hostile_history, live_store, session_of, written
from tests.waiting import PATIENCE_S

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_MS = 1000 * PATIENCE_S
CHROMIUM = os.environ.get("LADING_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        CHROMIUM is None,
        reason="no Chromium: install it (Debian: apt-get install chromium), or name it in LADING_CHROMIUM",
    ),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as tools:
        # Containers run as root and have no namespaces of their own; the page is the tests' own.
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def session() -> SessionData:
    return session_of(hostile_history())


@pytest.fixture(scope="module")
def path(session: SessionData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("report"), session)


class Watched:
    """A page that was opened, and everything it said or asked for on the way."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.complaints.append(request.url))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def open(self, path: Path, place: str = "") -> Page:
        """Go to the file; asking for it is no complaint."""
        self.page.goto(path.as_uri() + place)
        expect(self.page.locator("main h1")).to_be_visible()
        self.complaints = [text for text in self.complaints if not text.startswith(path.as_uri())]
        return self.page


Look: TypeAlias = tuple[Literal["light", "dark"], int]
"""Colour scheme, and width in pixels."""
LIGHT: Look = ("light", 1400)
DARK: Look = ("dark", 1400)
NARROW: Look = ("light", 400)
everywhere = pytest.mark.parametrize(
    "watched", [LIGHT, DARK, NARROW], ids=["light", "dark", "narrow"], indirect=True
)


@pytest.fixture
def watched(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Watched]:
    look: Look = getattr(request, "param", LIGHT)
    scheme, width = look
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(PATIENCE_MS)
    watched = Watched(context.new_page())
    yield watched
    assert watched.complaints == []
    context.close()


def first_edited(session: SessionData) -> int:
    """The number of the first call with a compaction."""
    return next(call.call for call in session.calls if call.shows.edits)


@everywhere
def test_a_call_opens_to_what_the_model_saw(watched: Watched, path: Path, session: SessionData) -> None:
    page = watched.open(path)
    number = first_edited(session)
    expect(page.locator(".request h2")).to_contain_text(f"Call {number}")
    page.locator(".port").evaluate("port => { port.scrollTop = 0; }")
    page.locator('.row[data-call="2"]').click()
    expect(page.locator(".request h2")).to_contain_text("Call 2")
    expect(page.locator('.block[data-entry="2"]')).to_contain_text("Step 0.")
    expect(page.locator(".request .block.edit")).to_have_count(0)
    page.locator(".port").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".request h2")).to_contain_text("Call 3")
    assert page.url.endswith("#0/3")
    page.keyboard.press("n")
    expect(page.locator(".request h2")).to_contain_text(f"Call {number}")


@everywhere
def test_what_was_removed_stands_in_place(watched: Watched, path: Path, session: SessionData) -> None:
    page = watched.open(path, f"#0/{len(session.calls)}")
    edit = page.locator(".block.edit.forced, .block.edit.voluntary").first
    expect(edit.locator(".why")).to_contain_text("at call")
    expect(edit.locator(".why")).to_contain_text("tokens, ")
    assert NEEDLE not in page.locator(".request").inner_text()
    edit.locator(".removed > summary").click()
    expect(edit.locator(".removed")).to_contain_text(NEEDLE)
    expect(edit.locator('[data-raw="7"]')).to_contain_text("result 2")


@everywhere
def test_a_pointer_leads_to_its_text_and_back_to_a_call(watched: Watched, path: Path, session: SessionData) -> None:
    page = watched.open(path, f"#0/{len(session.calls)}")
    page.locator(".block.edit .pointers .pointer").first.click()
    pointed = page.locator("#pointed")
    expect(pointed).to_be_visible()
    expect(pointed.locator("h2")).to_contain_text("artifact://default/session/log/")
    expect(pointed).to_contain_text(NEEDLE)
    pointed.get_by_role("button", name="call ").first.click()
    expect(pointed).to_be_hidden()
    expect(page.locator(".request h2")).not_to_contain_text(f"Call {len(session.calls)} ")


@everywhere
def test_search_finds_and_jumps(watched: Watched, path: Path, session: SessionData) -> None:
    page = watched.open(path)
    page.keyboard.press("/")
    page.keyboard.type("NEEDLE is")
    expect(page.locator("#count")).to_have_text("1 place in 1 session")
    expect(page.locator(".hit mark")).to_have_text("needle is")
    gone = first_edited(session)
    expect(page.locator(".hit .when")).to_contain_text(f"calls 4 to {gone - 1}")
    page.keyboard.press("Enter")
    expect(page.locator("#found")).to_be_hidden()
    expect(page.locator(".request h2")).to_contain_text(f"Call {gone - 1}")
    expect(page.locator('.block.focus[data-entry="7"] mark')).to_be_in_viewport()


def test_each_request_is_the_one_of_the_view(watched: Watched, tmp_path: Path) -> None:
    store = MemoryStore()
    lost = [called("lost"), user_text("Go on.")]  # a call without its result, which is repaired
    run(settings(1_500), [*hostile_history(12), *lost, *hostile_history(12)[2:]], store)
    at_rest = store.load("default", "session")
    assert {edit.kind for edit in at_rest.edits} > {"repaired", "dropped"}
    session = read_session(store, tenant="default", session="session", source="")
    views = [
        rebuild(at_rest.entries[: s.entries], at_rest.edits[: s.edits]) for s in (c.shows for c in session.calls)
    ]
    page = watched.open(written(tmp_path, session))
    shown = page.evaluate(
        "open.session.calls.map((call) => requestOf(open.session, call).map((item) => [item.entry, item.tokens]))"
    )
    for items, view in zip(shown, views, strict=True):
        expected: dict[int, int] = {}
        for item in view.items:
            expected[item.entry] = expected.get(item.entry, 0) + item.tokens
        assert {entry: tokens for entry, tokens in items if tokens} == expected


def test_search_for_what_is_nowhere(watched: Watched, path: Path) -> None:
    page = watched.open(path)
    page.keyboard.press("/")
    page.keyboard.type("(.*)+$ no such words")
    expect(page.locator("#count")).to_contain_text("Nothing found")
    page.keyboard.press("Escape")
    expect(page.locator("#found")).to_be_hidden()


def test_charts_are_chosen_from_and_zoomed(watched: Watched, path: Path, session: SessionData) -> None:
    page = watched.open(path)
    chart = page.locator("#chart-tokens > svg")
    box = chart.bounding_box()
    assert box is not None
    chart.click(position={"x": box["width"] / 4, "y": 100})
    expect(page.locator(".which")).not_to_have_text(f"call {first_edited(session)}")
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 100, steps=4)
    page.mouse.up()
    expect(page.locator(".calls .count")).to_contain_text(" to ")
    page.get_by_role("button", name="All calls").click()
    expect(page.locator(".calls .count")).to_have_text("")
    slider = page.get_by_role("slider", name="Call")
    slider.focus()
    page.keyboard.press("End")
    expect(slider).to_have_attribute("aria-valuenow", str(len(session.calls)))


@everywhere
def test_nothing_reaches_beyond_the_screen(watched: Watched, path: Path) -> None:
    page = watched.open(path)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("/")
    page.keyboard.type("result")
    expect(page.locator("#found")).to_be_visible()
    assert page.evaluate("document.querySelector('#found').getBoundingClientRect().left >= 0")


@everywhere
def test_long_names_push_no_figure_off_the_screen(watched: Watched, tmp_path: Path) -> None:
    long = session_of(hostile_history(), model="m" * 20_000, name="S" * 128)
    for place in ("", "#0", "#0/1"):
        page = watched.open(path := written(tmp_path, long, long), place)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.locator(".figures")).to_contain_text("voluntary tokens removed")
    last = watched.open(path).locator("tbody tr:first-child td:visible").last
    assert last.evaluate("(cell) => cell.getBoundingClientRect().right <= innerWidth")


def test_hostile_words_are_words(watched: Watched, path: Path) -> None:
    page = watched.open(path, "#0/1")
    words = page.locator('.block[data-entry="1"] .session-text')
    shown = HOSTILE.replace("\u202e", "U+202E").replace("\u202c", "U+202C")
    shown = shown.replace("\x1b", "ESC").replace("\x00", "NUL").replace("\ud800", "U+D800")
    expect(words).to_have_text(f"Fix it. {shown}")
    assert page.title() == "session - Lading"
    assert page.locator("img").count() == 0


@everywhere
def test_a_record_shows_who_said_what_and_leads_to_the_messages(watched: Watched, tmp_path: Path) -> None:
    session = session_of(dialogue())
    page = watched.open(written(tmp_path, session), f"#0/{len(session.calls)}")
    expect(page.locator(".request .facts")).to_contain_text("tokens, shortened to")
    said = page.locator('.line[data-kind="user"]')
    expect(said).to_have_count(1)
    expect(said).to_contain_text("#12user")
    expect(said).to_contain_text("  #4 Assistant: I deleted it.\n  - shell rm -rf /\n  Files changed: a (#1)")
    assert page.locator("img").count() == 0
    record = page.locator(".record").filter(has=said)
    expect(record.locator("h3")).to_contain_text("tokens shortened to")
    calls, assistant = record.locator('[data-kind="call"].line'), record.locator('[data-kind="assistant"].line')
    expect(calls.first).to_be_visible()
    record.get_by_role("button", name="user 1 of 1, verbatim").click()
    expect(calls.first).to_be_hidden()
    expect(assistant.first).to_be_hidden()
    expect(said).to_be_visible()
    said.get_by_role("button", name="Read entry 12").click()
    expect(page.locator("#pointed-title")).to_have_text("artifact://default/session/log/12")
    expect(page.locator('#pointed [data-raw="12"]')).to_contain_text("Mind port 8080.")
    page.get_by_role("button", name="Close").click()
    record.get_by_text("the text as the model reads it").click()
    expect(record.locator(".as-read")).to_contain_text("[Record of messages ")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_words_are_found_in_a_record_and_marked_there(watched: Watched, tmp_path: Path) -> None:
    session = session_of(dialogue())
    page = watched.open(written(tmp_path, session), f"#0/{len(session.calls)}")
    page.keyboard.press("/")
    page.keyboard.type("port 8080")
    page.locator(".hit").filter(has_text="replacement by edit (summarised)").first.click()
    expect(page.locator('.line[data-kind="user"] mark')).to_be_in_viewport()


def test_usage_that_was_reported_is_shown_beside_what_was_simulated(watched: Watched, tmp_path: Path) -> None:
    session = read_session(live_store(hostile_history()), tenant="default", session="session", source="./store")
    page = watched.open(written(tmp_path, session))
    expect(page.locator(".figures")).to_contain_text("as billed")
    expect(page.locator("#chart-error")).to_contain_text("counted against reported")
    expect(page.locator(".request .facts").first).to_contain_text("reported")


def test_the_recorded_bill_is_shown_beside_what_was_simulated(watched: Watched, tmp_path: Path) -> None:
    session = session_of(hostile_history(40), billed=1.5)
    assert session.bill is not None
    page = watched.open(written(tmp_path, session))
    bill = page.locator(".figures .bill")
    expect(bill).to_contain_text("as billed in the recorded run")
    bill.locator("summary").click()
    rows = bill.locator("tr")
    expect(rows.first).to_contain_text("everything sent, simulated")
    for said, part in zip(session.bill_words, session.bill.differences, strict=True):
        if part.tokens:
            expect(bill).to_contain_text(said)
    expect(page.locator("#chart-total")).to_contain_text("recorded bill")
    expect(page.locator("#chart-cost")).to_contain_text("recorded bill")


def test_several_sessions_have_an_overview(watched: Watched, session: SessionData, tmp_path: Path) -> None:
    small = session_of(hostile_history(4), name="small")
    page = watched.open(written(tmp_path, session, small))
    expect(page.locator(".overview tbody tr")).to_have_count(2)
    page.get_by_role("link", name="small").click()
    expect(page.locator(".verdict")).to_contain_text("Nothing was removed")
    page.keyboard.press("/")
    page.keyboard.type(NEEDLE)
    expect(page.locator("#count")).to_have_text("2 places in 2 sessions")
    page.locator(".hit").first.click()
    expect(page.locator("main h1")).to_have_text("session")
    page.go_back()
    expect(page.locator("main h1")).to_have_text("small")
    page.get_by_role("link", name="all sessions").click()
    expect(page.locator(".overview")).to_be_visible()


def test_no_gain_is_said(watched: Watched, tmp_path: Path) -> None:
    session = session_of(hostile_history(19))  # its one edit comes too late to pay
    assert session.calls[-1].shows.edits
    page = watched.open(written(tmp_path, session))
    expect(page.locator(".verdict")).to_contain_text("% more expensive than everything sent (no gain).")


def test_calls_without_a_request_say_why(watched: Watched, tmp_path: Path) -> None:
    session = session_of(hostile_history(3), window=150)
    assert any(call.error for call in session.calls)
    number = next(call.call for call in session.calls if call.error)
    page = watched.open(written(tmp_path, session), f"#0/{number}")
    expect(page.locator(".request")).to_contain_text("No request could be built")
    expect(page.locator(".request")).to_contain_text("has room for 150")
    expect(page.locator(".verdict").first).to_contain_text("have no request, so the cost cannot be compared")
    expect(page.locator(".calls .row.error .cost").first).to_have_text("\u2013")
    expect(page.locator("#chart-cost .missing")).not_to_have_count(0)


OUTSIDE = """() => [...document.querySelectorAll('.figures > div')].flatMap((tile) => {
  const edge = tile.getBoundingClientRect().right + 1;
  return [...tile.querySelectorAll('*')].filter((inner) => inner.getBoundingClientRect().right > edge);
}).map((inner) => inner.outerHTML)"""


CUT = """() => [...document.querySelectorAll('.calls .row > .call, .calls .row > .cost, .calls .row > .full')]
  .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.outerHTML)"""


def grown_by(factor: int, usage: Usage) -> Usage:
    return Usage(*(getattr(usage, name) * factor for name in usage.__struct_fields__))


@pytest.mark.fuzz
@share_of_examples(0.2, thorough=0.1)
@given(st.integers(320, 1700), st.integers(0, 9), st.booleans())
def test_tiles_do_not_collide_and_no_cost_is_cut(browser: Browser, width: int, power: int, is_priced: bool) -> None:
    session = session_of(hostile_history(19), model="claude-sonnet-4-5" if is_priced else "nobody-knows-it")
    grown = [replace(call, simulated=grown_by(10**power, call.simulated)) for call in session.calls]
    with TemporaryDirectory() as folder, browser.new_page(viewport={"width": width, "height": 900}) as page:
        page.goto(written(Path(folder), replace(session, calls=tuple(grown))).as_uri())
        assert page.evaluate(OUTSIDE) == []
        assert page.evaluate(CUT) == []


def test_the_overview_says_what_all_cost_also_on_a_telephone(
    watched: Watched, session: SessionData, tmp_path: Path
) -> None:
    failed = session_of(hostile_history(3), window=150, name="failed")
    page = watched.open(written(tmp_path, session, session_of(hostile_history(25), name="other")))
    expect(page.locator(".verdict")).to_contain_text("% cheaper than everything sent.")
    expect(page.locator("tfoot tr")).to_contain_text("total")
    page.set_viewport_size({"width": 390, "height": 800})
    shown = [cell.bounding_box() for cell in page.locator("tbody tr:first-child td:not(.minor)").all()]
    assert [box for box in shown if box is None or box["x"] + box["width"] > 390] == []
    expect(page.locator("tbody tr:first-child td:not(.minor)").nth(2)).to_contain_text("% cheaper")
    watched.open(written(tmp_path, session, failed))
    expect(page.locator(".verdict")).to_contain_text("have no request, so the cost cannot be compared")
    expect(page.locator("tr.failed small")).to_contain_text("failed")


def test_two_calls_lie_side_by_side(watched: Watched, path: Path, session: SessionData) -> None:
    number = first_edited(session)
    page = watched.open(path, f"#0/{number}")
    page.get_by_role("button", name="side by side with call").click()
    expect(page.locator(".difference .head")).to_have_text(f"call {number - 1}call {number}")
    expect(page.locator(".side.gone").first).to_be_visible()
    expect(page.locator(".side.added").first).to_be_visible()
    page.get_by_label("Number of the other call").fill(str(number))
    page.get_by_label("Number of the other call").press("Tab")
    expect(page.locator(".difference")).to_contain_text("both requests show the same messages")
    page.get_by_role("button", name="side by side with call").click()
    expect(page.locator(".messages .block").first).to_be_visible()

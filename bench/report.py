"""The report of a session of 1,000 calls: the page's size, and how it behaves in Chromium where there is one."""

from __future__ import annotations

import shutil
import tempfile
import time
from itertools import islice
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from bench.figures import Figure, below, plain
from bench.histories import head, rounds
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.replay import replay
from lading.messages import Message, Text
from lading.report.data import FORMAT, ReportData
from lading.report.page import render_page
from lading.report.replayed import read_replay
from lading.sources import Recording
from lading.stores.memory import MemoryStore

CALLS = 1_000
AT_ONCE_MS = 100
"""Below this a reader takes an answer for immediate."""
FRAME_MS = 50
BEST_OF = 5

SETTLED = "await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
OPEN = f"async (position) => {{ selectCall(position); {SETTLED}; }}"
SEARCH = "(words) => { findWords(allSessions(), words); }"
FRAMES = """async (where) => {
  const port = where === "table" ? document.querySelector(".port") : document.scrollingElement;
  const frames = [];
  for (let last = performance.now(), count = 0; count < 60; count++) {
    port.scrollTop += 300;
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - last);
    last = performance.now();
  }
  return frames.sort((one, other) => one - other)[30];
}"""


def run() -> list[Figure]:
    """Size and time of making the page; where Chromium is there, of opening, reading and searching it."""
    store = MemoryStore()
    history = [*head(), *(message for pair in islice(rounds(lines=40), CALLS - 1) for message in pair)]
    history.append(Message("assistant", (Text("Done."),)))
    recording = Recording("long", tuple(history), tuple(range(len(history))), model="claude-sonnet-4-5")
    plan, _ = plan_replay(recording, PlanOptions(window_tokens=64_000, counter="estimate"))
    calls = list(replay(recording, plan, session="long", store=store))
    started = time.perf_counter()
    data = render_page(
        ReportData(FORMAT, tuple(read_replay(store, calls, recording=recording, plan=plan, session="long")))
    )
    seconds = time.perf_counter() - started
    raw = sum(len(getattr(part, "text", "")) for message in history for part in message.parts)
    figures = [
        plain(f"page of {len(calls):,} calls", f"{len(data) / 1e6:.1f} MB, {len(data) / raw:.2f} x its texts"),
        plain("making it, after the replay", f"{seconds:.2f} s"),
    ]
    chromium = shutil.which("chromium")
    if chromium is None:
        return [*figures, plain("in a browser", "no chromium on the PATH")]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tools:
        path = Path(folder) / "report.html"
        path.write_bytes(data)
        browser = tools.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        figures += _in_browser(browser, path)
        browser.close()
    return figures


def _in_browser(browser: Browser, path: Path) -> list[Figure]:
    drawn = []
    for _ in range(BEST_OF):
        # Each in a tab of its own, whose thread has done nothing before.
        shown = browser.new_page(viewport={"width": 1400, "height": 900})
        clock = _Clock(shown)
        shown.goto(path.as_uri())
        shown.evaluate(f"async () => {{ {SETTLED}; }}")
        drawn.append(clock.now_ms())
    opened = max(clock.spent_ms(OPEN, position) for position in (10, CALLS // 2, CALLS - 1))
    searched = clock.spent_ms(SEARCH, "no such words")
    frames = {where: min(shown.evaluate(FRAMES, where) for _ in range(BEST_OF)) for where in ("table", "page")}
    return [
        below("opening the file: charts, table and a request drawn (CPU)", min(drawn), 1000, unit="ms", digits=0),
        below("opening a call, the slowest of three (CPU)", opened, AT_ONCE_MS, unit="ms", digits=0),
        below("searching everything for what is nowhere (CPU)", searched, AT_ONCE_MS, unit="ms", digits=0),
        below("a frame while scrolling the table", frames["table"], FRAME_MS, unit="ms", digits=0),
        below("a frame while scrolling a request", frames["page"], FRAME_MS, unit="ms", digits=0),
    ]


class _Clock:
    """The time that the page's own thread works, which other programs on the machine do not lengthen."""

    def __init__(self, shown: Page) -> None:
        self._shown = shown
        self._tools = shown.context.new_cdp_session(shown)
        self._tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def now_ms(self) -> float:
        """What it has worked so far: programs, style, layout and painting."""
        metrics = self._tools.send("Performance.getMetrics")["metrics"]
        return next(1000 * float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")

    def spent_ms(self, program: str, argument: object) -> float:
        """The least that running a program took."""
        spent = []
        for _ in range(BEST_OF):
            before = self.now_ms()
            self._shown.evaluate(program, argument)
            spent.append(self.now_ms() - before)
        return min(spent)

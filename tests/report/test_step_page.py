"""What the page shows of the step of a task, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from lading import Memory, Session, TaskOptions
from lading.report.stored import read_session
from lading.stores.memory import MemoryStore
from tests.report import test_browser
from tests.report.histories import HOSTILE, written
from tests.report.test_browser import LIGHT, OUTSIDE, Watched
from tests.task.samples import TASK

pytestmark = test_browser.pytestmark
browser, watched = test_browser.browser, test_browser.watched


@pytest.mark.parametrize("watched", [LIGHT, ("dark", 390)], ids=["wide", "narrow"], indirect=True)
def test_a_step_shows_its_layers_its_acceptance_and_what_was_left_out(watched: Watched, tmp_path: Path) -> None:
    store, memories = MemoryStore(), [Memory(f"mem_{at}", HOSTILE * 9, at / 100) for at in range(60)]
    with Session("gpt-4o", store=store, window=16_000, output_reserve=500) as opened:
        opened.add("Compare.")
        opened.begin("step-3", task=TASK, options=TaskOptions(memory=lambda _: memories))
        opened.pack()
        opened.add({"role": "assistant", "content": "Nothing."})
        opened.check_acceptance()
        opened.pack()
    session = read_session(store, tenant="default", session="session", source="")
    page = watched.open(written(tmp_path, session), "#0/1")
    step = page.locator(".request .step")
    expect(step.locator("h3")).to_contain_text("Step step-3 of task 42")
    expect(step.locator("tbody tr")).to_have_count(7)
    expect(step).to_contain_text("sources failed: no evidence is cited")
    step.locator(".left-out > summary").first.click()
    expect(step.locator(".left-out").first).to_contain_text("mem_0")
    expect(page.locator(".block.edit.voluntary, .block.edit.forced")).to_have_count(0)
    assert page.evaluate(OUTSIDE) == []

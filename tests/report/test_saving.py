"""The page and the command line give one saving, also of a session with requests that only Lading made."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from lading.clients import wrap
from lading.evaluate.tally import describe_saving
from lading.report.stored import read_session
from lading.stores.sqlite import open_sqlite
from lading.testing import StrictProvider
from tests.cli.commands import lading
from tests.clients.agents import openai_client
from tests.evaluate import restoring_agent as agent
from tests.report.histories import written
from tests.report.test_browser import CHROMIUM, PATIENCE_MS, pytestmark

__all__ = ["pytestmark"]


@pytest.mark.parametrize("least", [1_024, 1_000_000])
def test_the_saving_is_that_of_the_command_line(tmp_path: Path, least: int) -> None:
    """A provider that caches nothing shorter than a million tokens has no cache."""
    model = agent.script(12, at=12)
    with StrictProvider(model, window_tokens=10_000, min_prefix_tokens=least) as provider:
        client = wrap(openai_client(provider), store=str(tmp_path / "store"))
        agent.run(client.lading.session("work"), 12)
        client.close()
    out = lading("top", tmp_path / "store", "--once").out
    [seen] = lading("top", tmp_path / "store", "--once", "--json").data["sessions"]
    costs = seen["costs"]
    with open_sqlite(tmp_path / "store", create=False) as store:
        session = read_session(store, tenant="default", session="work", source="")
    assert any(not call.simulated.tokens for call in session.calls)
    assert any(call.sent and call.sent.cause == "restore" for call in session.calls)
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE_MS)
        page = browser.new_page()
        page.goto(written(tmp_path, session).as_uri())
        totals, verdict = page.evaluate("allSessions()[0].totals"), page.inner_text(".verdict")
        browser.close()
    assert totals["ratio"] == pytest.approx(costs["ratio"])
    assert totals["full"] == pytest.approx(costs["append_only_usd"])
    assert totals["cost"] == pytest.approx(costs["simulated_usd"])
    assert totals["reportedCost"] / totals["reportedFull"] == pytest.approx(costs["billed_ratio"])
    for ratio in (costs["ratio"], costs["billed_ratio"]):
        assert describe_saving(ratio) in out
        assert describe_saving(ratio).removesuffix(" than everything sent") in verdict

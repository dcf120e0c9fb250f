"""The page as bytes: nothing of a session is markup in it, and nothing in it asks for a network."""

from __future__ import annotations

import base64
import hashlib
import json
import re

from msgspec.structs import replace

from lading.report.data import FORMAT, ReportData
from lading.report.page import render_page
from tests.report.histories import HOSTILE, NEEDLE, hostile_history, session_of


def parts(data: bytes) -> tuple[str, str, str, str]:
    """Policy, style, data and program."""
    text = data.decode("utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    program = re.search(r"<script>(.*?)</script>\n</body>", text, re.DOTALL)
    assert policy is not None
    assert style is not None
    assert embedded is not None
    assert program is not None
    return policy[1], style[1], embedded[1], program[1]


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_a_hostile_session_is_data_only() -> None:
    policy, style, embedded, program = parts(render_page(ReportData(FORMAT, (session_of(hostile_history()),))))
    assert "<" not in embedded
    read = json.loads(embedded)
    assert read["sessions"][0]["entries"][1]["message"]["pieces"][0]["text"] == f"Fix it. {HOSTILE}"
    assert NEEDLE not in style + program
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{digest(style)}'" in policy
    assert f"script-src 'sha256-{digest(program)}'" in policy
    assert "unsafe" not in policy


def test_nothing_in_it_is_fetched() -> None:
    _, style, _, program = parts(render_page(ReportData(FORMAT, ())))
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg)", style + program)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", program)


def test_a_title_is_text() -> None:
    renamed = replace(session_of(hostile_history(1)), name="<b>&{{style}}")
    assert "<title>&lt;b&gt;&amp;{{style}} - Lading</title>" in render_page(ReportData(FORMAT, (renamed,))).decode(
        "utf-8"
    )


def test_the_same_session_gives_the_same_bytes() -> None:
    first, second = (render_page(ReportData(FORMAT, (session_of(hostile_history(8)),))) for _ in range(2))
    assert first == second

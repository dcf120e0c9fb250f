"""The page: data, style and program in one HTML file that asks no network for anything.

What sessions said is in it as JSON only and is shown as text, never as markup; a content security policy
allows nothing but the style and the program written here, by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from importlib.resources import files

import msgspec

from lading import jsonbytes
from lading.report.data import ReportData

STYLES = ("page", "charts", "request")
PROGRAMS = (
    "session",
    "text",
    "scales",
    "panels",
    "charts",
    "calls",
    "summary",
    "record",
    "difference",
    "request",
    "pointers",
    "search",
    "page",
)
"""Files of ``assets``, in the order in which they are in the page."""


def render_page(data: ReportData) -> bytes:
    """The page, in UTF-8. Raises ValueError when a session holds a number that is NaN or infinite."""
    sessions = dict.fromkeys(session.name for session in data.sessions)
    title = f"{next(iter(sessions))} - Lading" if len(sessions) == 1 else f"{len(sessions)} sessions - Lading"
    style = join_assets(STYLES, "css")
    program = join_assets(PROGRAMS, "js")
    policy = (
        f"default-src 'none'; style-src '{digest_source(style)}'; script-src '{digest_source(program)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    pieces = {"policy": policy, "title": html.escape(title), "style": style, "program": program}
    before, _, after = read_asset("page.html").partition("{{data}}")
    return fill(before, pieces) + embed(data) + fill(after, pieces)


def embed(data: ReportData) -> bytes:
    """The data as JSON that ends no HTML element and opens none, whatever a session said."""
    return jsonbytes.dump(msgspec.to_builtins(data)).replace(b"<", b"\\u003c")


def fill(text: str, pieces: Mapping[str, str]) -> bytes:
    """The text in UTF-8, each ``{{name}}`` in it replaced by the piece of that name."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: pieces[place[1]], text).encode("utf-8", "replace")


def join_assets(names: tuple[str, ...], ending: str) -> str:
    """Assets of one kind, one after the other."""
    return "\n".join(read_asset(f"{name}.{ending}") for name in names)


def read_asset(name: str) -> str:
    """The text of a file in ``assets``."""
    return (files("lading.report") / "assets" / name).read_text(encoding="utf-8")


def digest_source(text: str) -> str:
    """How a content security policy names an inline element with this text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

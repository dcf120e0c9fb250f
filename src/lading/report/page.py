"""Render a report as one HTML file with data, style and script, which needs no network.

Texts of sessions are included as JSON only and shown as text, never as markup; a content security policy allows
only the page's own style and script, by their digests.
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
    "step",
    "request",
    "pointers",
    "search",
    "page",
)
"""Files of ``assets``, in their order in the page."""


def render_page(data: ReportData) -> bytes:
    """Render the page in UTF-8. Raises ValueError when a session holds a number that is NaN or infinite."""
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
    return fill_template(before, pieces) + embed_json(data) + fill_template(after, pieces)


def embed_json(data: ReportData) -> bytes:
    """Encode the data as JSON that cannot open or close an HTML element, whatever the texts of a session are."""
    return jsonbytes.dump(msgspec.to_builtins(data)).replace(b"<", b"\\u003c")


def fill_template(text: str, pieces: Mapping[str, str]) -> bytes:
    """Replace each ``{{name}}`` in a text by the piece of that name, and encode it in UTF-8."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: pieces[place[1]], text).encode("utf-8", "replace")


def join_assets(names: tuple[str, ...], ending: str) -> str:
    """Concatenate assets of one kind."""
    return "\n".join(read_asset(f"{name}.{ending}") for name in names)


def read_asset(name: str) -> str:
    """Read a text file of ``assets``."""
    return (files("lading.report") / "assets" / name).read_text(encoding="utf-8")


def digest_source(text: str) -> str:
    """Return the source expression for an inline element with this text in a content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

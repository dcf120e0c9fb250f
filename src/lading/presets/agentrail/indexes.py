"""The texts of Agentrail's default stack: who and when, and indexes of notes, documents, skills and a workspace.

An index names what there is and how large it is; a tool reads it. Each function reads the folder when it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from lading.effects import RequestContext
from lading.folder import Folder, FoundFile, newest, show_name

SUMMARY_BYTES = 512
"""Bytes of a note, document or skill that are read for its line."""
BYTES_PER_TOKEN = 3
RECENT_DOCUMENTS = 5
MOST_LINES = 50
"""Lines of one index; the rest is counted."""
_LINE_CHARS = 200
_SUMMARY = re.compile(r"<!--\s*summary:(.*?)-->", re.DOTALL)
_HEADING = re.compile(r"^#+[ \t]+(.+)", re.MULTILINE)
_DESCRIPTION = re.compile(r"^description:[ \t]*(.+)", re.MULTILINE)
# No locale: the same day has the same text everywhere.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def describe_user(context: RequestContext) -> str:
    """Return tenant and user."""
    return f"[User Identity]\nTenant: {show_name(context.tenant_id)}\nUser: {show_name(context.user_id)}"


def describe_date(now_s: float) -> str:
    """Return the local date."""
    today = datetime.fromtimestamp(now_s)
    return f"[Context] Today is {_WEEKDAYS[today.weekday()]} {today.date().isoformat()}."


def index_memory(data: Folder, context: RequestContext, *, now_s: float) -> str:
    """List the notes of a session and of its user, with their own summaries; empty without any."""
    tenant = ("tenants", context.tenant_id)
    places = {
        "NOTES.md": (*tenant, "sessions", context.session_id),
        "TODO.md": (*tenant, "sessions", context.session_id),
        "USER.md": (*tenant, "users", context.user_id),
    }
    lines = []
    for name, place in places.items():
        if (folder := data.enter(*place)) and (read := folder.read_start(name, most_bytes=SUMMARY_BYTES)):
            file, text = read
            found = _SUMMARY.search(text)
            lines.append(f"- {name} ({place[-2][:-1]}): {_describe_size(file, now_s)}{_add(found and found[1])}")
    return _write_index("Memory Index", lines, "Read a note by its name with your file tool.")


def index_knowledge(knowledge: Folder | None) -> str:
    """List knowledge bases, a folder of Markdown each: documents, topics, and the newest; empty without any."""
    lines = []
    for name in knowledge.list_names() if knowledge else ():
        if (base := knowledge and knowledge.enter(name)) is None:
            continue
        recent, count = newest(base.list_files(suffix=".md"), RECENT_DOCUMENTS)
        topics = dict.fromkeys(topic for file in recent if (topic := _read_topic(base, file)))
        told = f"; topics: {', '.join(topics)}" if topics else ""
        last = f"; recent: {', '.join(file.shown for file in recent)}" if recent else ""
        lines.append(_cut(f"- {show_name(name)}: {count:,} documents{told}{last}", 3 * _LINE_CHARS))
    return _write_index("Knowledge Base Index", lines, "Access: KbList, then KbRead; KbSearch finds words.")


def index_skills(skills: Folder | None) -> str:
    """List skills, a folder with a ``SKILL.md`` each, by name and description; empty without any."""
    lines = []
    for name in skills.list_names() if skills else ():
        folder = skills and skills.enter(name)
        if folder and (read := folder.read_start("SKILL.md", most_bytes=4 * SUMMARY_BYTES)):
            found = _DESCRIPTION.search(read[1])
            lines.append(f"- {show_name(name)}{_add(found and found[1])}")
    return _write_index("Skills Index", lines, "Read a skill with the tool Skill before using it.")


def list_workspace(workspace: Folder | None) -> str:
    """List the files of a workspace with their sizes; empty without any."""
    files = sorted(workspace.list_files()) if workspace else []
    return _write_index("Sandbox Workspace", [f"- {file.shown}: {file.size_bytes:,} bytes" for file in files])


def _write_index(title: str, lines: list[str], advice: str = "") -> str:
    if not lines:
        return ""
    more = [f"- and {len(lines) - MOST_LINES:,} more"] if len(lines) > MOST_LINES else []
    return "\n".join([f"[{title}]", *lines[:MOST_LINES], *more, *([advice] if advice else [])])


def _describe_size(file: FoundFile, now_s: float) -> str:
    minutes = max(int((now_s - file.modified_s) // 60), 0)
    return f"~{-(-file.size_bytes // BYTES_PER_TOKEN):,} tokens, updated {minutes:,} min ago"


def _read_topic(base: Folder, file: FoundFile) -> str:
    read = base.read_start(file.path, most_bytes=SUMMARY_BYTES)
    found = _HEADING.search(read[1]) if read else None
    return _cut(" ".join(_words(found[1])), 60) if found else ""


def _add(text: str | None) -> str:
    return f": {_cut(' '.join(_words(text)), _LINE_CHARS)}" if text and text.strip() else ""


def _words(text: str) -> Iterator[str]:
    return (show_name(word) for word in text.strip("\"' \t\r\n").split())


def _cut(text: str, most_chars: int) -> str:
    return text if len(text) <= most_chars else f"{text[: most_chars - 1]}…"

"""Agentrail's notes of a session: each summary of its compaction is appended to ``NOTES.md``.

The edit in the log has the summary too; the file is for people and for the memory index of the default stack
(``indexes.py``), which lists it, and from which an agent reads it with its file tool.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from lading.addresses import check_name
from lading.events import CompactionApplied
from lading.history.log import Edit

NOTES = "NOTES.md"
MOST_BYTES = 1_000_000
"""Nothing is appended to a larger file."""
_log = logging.getLogger("lading")


class NotedSession(Protocol):
    """A ``Session``, as far as it is used here."""

    @property
    def settings(self) -> Any:
        """Its settings, whose ``owner`` are tenant and name."""

    @property
    def edits(self) -> Sequence[Edit]:
        """Its edits so far."""

    def subscribe(self, of: type[CompactionApplied], function: Callable[[CompactionApplied], object]) -> object:
        """Call a function with each event of a type; return a function that ends it."""


def keep_notes(session: NotedSession, data_dir: str | os.PathLike[str]) -> object:
    """Append each summary that replaces messages of a session from now on to
    ``data_dir/tenants/TENANT/sessions/SESSION/NOTES.md``. A file that cannot be written costs a line in the log of
    the program only. Return a function that ends it. Raises AddressError for a name that is none of a file."""
    tenant, name = session.settings.owner
    check_name(tenant, what="tenant")
    check_name(name, what="session")
    folder = Path(data_dir, "tenants", tenant, "sessions", name)

    def note(event: CompactionApplied) -> None:
        edit = session.edits[event.edit]
        if edit.kind == "summarised":
            text = "\n\n".join(message.text for message in edit.replacement if message.text)
            _append(folder, f"## Messages {edit.first} to {edit.last}\n\n{text}\n\n")

    return session.subscribe(CompactionApplied, note)


def _append(folder: Path, text: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        with open(os.open(folder / NOTES, flags, 0o600), "ab") as file:
            if os.fstat(file.fileno()).st_size < MOST_BYTES:
                file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        _log.warning("A summary was not appended to %s: %s", NOTES, type(error).__name__)

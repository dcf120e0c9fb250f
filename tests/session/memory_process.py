"""One process of a long session: it writes notes by the tool ``recall``, and works between them until requests are
compacted. Arguments: a folder, the first and the last note (not included)."""

from __future__ import annotations

import sys
from pathlib import Path

from lading import Session
from lading.memory import open_memory
from tests.session.memories import TOOLS, note_text, reply

ROUNDS = 2
"""Of work for each note."""


def work(folder: Path, first: int, last: int) -> None:
    """Write the notes."""
    with (
        open_memory(folder / "memory", user="ada") as memory,
        Session("gpt-4o", store=folder / "log", name="long", memory=memory, window=9_000) as session,
    ):
        for at in range(first, last):
            session.add(f"Go on with part {at}.")
            for part in range(ROUNDS):
                session.pack(TOOLS)
                page = f"page {at}.{part}: " + "the ledger of the harbour is kept in ink. " * 40
                calls = [(f"p{at}-{part}", "look", {"page": page})]
                calls += [(f"n{at}", "recall", {"key": f"note-{at}", "content": note_text(at)})] if not part else []
                answers = reply(session, calls)
                assert all(one["saved"] for one in answers)
            session.pack(TOOLS)
            reply(session, text=f"Part {at} is done.")


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

"""How tables name sessions and places in them: short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lading.cli import terminal
from lading.cli.plaintables import sign
from lading.evaluate.tooluse import Place

_NAME_CHARS, _NARROW_NAME_CHARS = 36, 20


def short_names(sessions: Iterable[str]) -> dict[str, str]:
    """A shorter name for each session: without the folder that all share, and the end of what is still long."""
    known = list(dict.fromkeys(sessions))
    folders = {name.rpartition("/")[0] for name in known}
    shared = folders.pop() if len(known) > 1 and len(folders) == 1 else ""
    chars = _NAME_CHARS if terminal.is_wide() else _NARROW_NAME_CHARS
    shorter = {name: name.removeprefix(f"{shared}/") if shared else name for name in known}
    return {
        name: short if len(short) <= chars else sign("…", "~") + short[1 - chars :]
        for name, short in shorter.items()
    }


def where(place: Place, names: Mapping[str, str]) -> str:
    """The message, and the session's short name where there are several."""
    index = f"#{place.message_index}" if place.message_index >= 0 else "(outside the list)"
    return f"{names[place.session]} {index}" if len(names) > 1 else index

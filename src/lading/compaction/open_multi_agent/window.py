"""``sliding-window``: the newest messages stay, a notice takes the place of all others behind the head."""

from __future__ import annotations

from lading.compaction import Draft, Pressure
from lading.compaction.cutting import carried
from lading.compaction.open_multi_agent.turns import behind_cuts, legal_cut, said, turns
from lading.messages import user_text
from lading.view import View


def cut_to_window(view: View, max_turns: int, *, pressure: Pressure) -> Draft | None:
    """The draft that keeps the newest turns of ``2 * max_turns`` messages or one more; None while there are no
    more of them, and where ``max_turns`` is 0 or less."""
    rest = said(view.messages, behind_cuts(view))
    most = 2 * max_turns
    if max_turns <= 0 or len(rest) <= most:
        return None
    found = turns(rest)
    wanted, kept, older = len(view), 0, list(found)
    while kept < most:
        wanted, size = older.pop()
        kept += size
    position = legal_cut(view, wanted, pressure=pressure)
    if position is None:
        return None
    first, last = view.items[view.head].entry, view.last_entry(position)
    pointer = pressure.address(f"{first}-{last}")
    removed = sum(start < position for start, _ in found)
    notice = (
        f"[Earlier conversation history truncated — {removed} turn(s) removed] "
        f"With those before, {last - first + 1} messages, kept at {pointer}"
    )
    shown = (user_text(notice), *carried(view, position, pressure=pressure))
    return Draft("dropped", first, last, shown, f"sliding-window: more than {max_turns} turns", (pointer,))

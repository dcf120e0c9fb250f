"""Cap a tool result at a number of characters: its relevant parts, a note about the cut, a pointer."""

from __future__ import annotations

from msgspec.structs import replace

from lading.compaction import Arrival, Pressure
from lading.compaction.admission import find_admission_cap, find_terms
from lading.compaction.clipping import clip
from lading.history.log import Draft
from lading.messages import Part, Text, ToolResult
from lading.models.profiles import ProfileLike, find_profile
from lading.shrink import Target
from lading.shrink.shrinking import reduce

HEAD_SHARE = 0.7
"""Share of a cut text that comes from its start; the rest comes from its end."""


def cap_text(text: str, most_chars: int, *, pointer: str, terms: tuple[str, ...] = ()) -> str:
    """Cut the text to ``most_chars`` characters, including note and pointer, preferring parts with one of
    ``terms`` (casefolded). If the note alone is longer, return it, or the text if that is shorter."""
    if len(text) <= most_chars:
        return text
    found = reduce(text, Target(most_chars, terms, pointer), count=len)
    if found is not None and len(found.text) <= most_chars and pointer in found.text:
        return found.text
    note = f"[… cut, {len(text):,} chars in all. Original: {pointer}]"
    room = max(most_chars - len(note) - 2, 0)
    head = int(room * HEAD_SHARE)
    tail = text[len(text) - (room - head) :]
    shown = "\n".join(piece for piece in (text[:head], note, tail) if piece)
    return shown if len(shown) < len(text) else text


def draft_cap(arrival: Arrival, pressure: Pressure, *, most_chars: int) -> Draft | None:
    """Draft the cut of each text result to ``most_chars`` characters, and further if that does not fit the room;
    None if none is longer. Restored content stays unchanged."""
    item, view = arrival.item, arrival.view
    if not item.clearable_tokens:
        if not item.is_late_result:
            return None
        return clip(view, item, cap_tokens=find_admission_cap(arrival, pressure), pressure=pressure)
    pointer, wanted = pressure.address(str(item.entry)), tuple(find_terms(view))
    message = item.message.with_parts(
        tuple(_cap_part(part, most_chars, pointer, wanted) for part in item.message.parts)
    )
    cap_tokens = find_admission_cap(arrival, pressure)
    if pressure.count(message) > cap_tokens:
        return clip(view, item, cap_tokens=cap_tokens, pressure=pressure)
    if message == item.message:
        return None
    reason = f"a result above {most_chars} characters"
    return Draft("clipped", item.entry, item.entry, view.with_message(item, message), reason, (pointer,))


def admit_capped(arrival: Arrival, pressure: Pressure, *, profile: ProfileLike | None = None) -> Draft | None:
    """Cut results above the profile's ``tool_result_max_chars``; without a profile, that of the model's tier."""
    most_chars = find_profile(profile, tier=pressure.tier).tool_result_max_chars
    return draft_cap(arrival, pressure, most_chars=most_chars)


def _cap_part(part: Part, most_chars: int, pointer: str, wanted: tuple[str, ...]) -> Part:
    if not isinstance(part, ToolResult) or len(part.text) <= most_chars:
        return part
    text = cap_text(part.text, most_chars, pointer=pointer, terms=wanted)
    others = tuple(inner for inner in part.parts if not isinstance(inner, Text))
    return replace(part, parts=(Text(text), *others))

"""A tool result of at most so many characters: what matters of it, a note of what is missing, a pointer."""

from __future__ import annotations

from msgspec.structs import replace

from lading.compaction import Arrival, Pressure
from lading.compaction.admission import admission_cap, terms
from lading.compaction.clipping import clip, is_late_result
from lading.history.log import Draft
from lading.messages import Part, Text, ToolResult
from lading.models.profiles import CONTEXT_PROFILES, Profile
from lading.shrink import Wish
from lading.shrink.shrinking import reduce

HEAD_SHARE = 0.7
"""Of a text that is cut, so much comes from its start and the rest from its end."""


def capped(text: str, most_chars: int, *, pointer: str, terms: tuple[str, ...] = ()) -> str:
    """The text in at most ``most_chars`` characters, note and pointer included; what holds one of ``terms``
    (casefolded) stays first. Where not even the note fits, the note, or the text when that is shorter."""
    if len(text) <= most_chars:
        return text
    found = reduce(text, Wish(most_chars, terms, pointer), count=len)
    if found is not None and len(found.text) <= most_chars and pointer in found.text:
        return found.text
    note = f"[… cut, {len(text):,} chars in all. Original: {pointer}]"
    room = max(most_chars - len(note) - 2, 0)
    head = int(room * HEAD_SHARE)
    tail = text[len(text) - (room - head) :]
    shown = "\n".join(piece for piece in (text[:head], note, tail) if piece)
    return shown if len(shown) < len(text) else text


def cap(arrival: Arrival, pressure: Pressure, *, most_chars: int) -> Draft | None:
    """A draft that brings each text result of what arrived down to ``most_chars`` characters, and further where
    even that does not fit the room; None where nothing is above it. What was restored stays as it is."""
    item, view = arrival.item, arrival.view
    if not item.clearable_tokens:
        if not is_late_result(item):
            return None
        return clip(view, item, cap_tokens=admission_cap(arrival, pressure), pressure=pressure)
    pointer, wanted = pressure.address(str(item.entry)), tuple(terms(view))
    message = item.message.with_parts(
        tuple(_capped(part, most_chars, pointer, wanted) for part in item.message.parts)
    )
    cap_tokens = admission_cap(arrival, pressure)
    if pressure.count(message) > cap_tokens:
        return clip(view, item, cap_tokens=cap_tokens, pressure=pressure)
    if message == item.message:
        return None
    reason = f"a result above {most_chars} characters"
    return Draft("clipped", item.entry, item.entry, view.with_message(item, message), reason, (pointer,))


def admit_capped(arrival: Arrival, pressure: Pressure, *, profile: Profile | None = None) -> Draft | None:
    """Cut results above the ``tool_result_max_chars`` of a profile; without one, of the model's tier."""
    chosen = profile or CONTEXT_PROFILES[pressure.tier]
    return cap(arrival, pressure, most_chars=chosen.tool_result_max_chars)


def _capped(part: Part, most_chars: int, pointer: str, wanted: tuple[str, ...]) -> Part:
    if not isinstance(part, ToolResult) or len(part.text) <= most_chars:
        return part
    text = capped(part.text, most_chars, pointer=pointer, terms=wanted)
    others = tuple(inner for inner in part.parts if not isinstance(inner, Text))
    return replace(part, parts=(Text(text), *others))

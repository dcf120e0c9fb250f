"""Explain answers of ``why`` and differences between requests in sentences; the first is the answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from lading.audit.verdicts import Explanation, Occurrence, Removal
from lading.cli.tables import format_count
from lading.evaluate.differences import Difference, EditSummary, RequestId
from lading.history.log import EditKind

_REPLACEMENTS: dict[EditKind | None, str] = {
    "clipped": "It was in the part that was left out; the rest is still shown",
    "digested": "The digest of its result is",
    "payload": "The payload of its step is",
    "reshaped": "All of it is still shown in a shorter form",
    "summarised": "The record of the messages it was in is",
}
"""The replacement of a removed text, by the kind of the edit."""


def explain_answer(answer: Explanation) -> tuple[str, ...]:
    """Explain what became of the text, one or two sentences a line. Quoted texts are not escaped for terminals."""
    lines = [_explain_verdict(answer)]
    if answer.result_cut and answer.result_cut.pointers:
        lines.append(f"The whole result is at {', '.join(answer.result_cut.pointers)}")
    if answer.match == "loose":
        lines.append("It differs there in case or spacing.")
    # The verdict names the edit of the first place.
    named = [place.removal for place in answer.places[:1] if place.removal and answer.verdict == "removed"]
    for place in answer.places:
        lines.extend(_explain_place(place))
        if place.removal is None:
            lines += [f"  Raw at {place.address}"] if place.address else []
            continue
        known = [removal for removal in named if removal.edit == place.removal.edit]
        if place is not answer.places[0] and known:
            lines.append("  By the same edit.")
        else:
            lines.extend(_explain_removal(place, place.removal, is_named=bool(known)))
        named.append(place.removal)
    if (more := answer.found - len(answer.places)) > 0:
        lines.append(f"And in {format_count(more, 'more place')}.")
    if answer.closest:
        lines.append("Closest in the log:")
        lines.extend(
            f"  {near.score:.0f} of 100, entry {near.entry}: {_join_lines(near.text)}" for near in answer.closest
        )
    return (*lines, answer.note) if answer.note else tuple(lines)


def explain_difference(difference: Difference) -> tuple[str, ...]:
    """Explain what changed between the requests, the cause first."""
    one, other = difference.one, difference.other
    lines = [f"{_format_request(one)} and {_format_request(other)}: {difference.why}."]
    if parting := difference.parting:
        lines.append(f"The first difference is at byte {parting.offset_bytes:,}, in {parting.path}:")
        lines += [f"  first:  ...{_join_lines(parting.before)}", f"  second: ...{_join_lines(parting.after)}"]
    for layer, (before, after) in difference.counts.items():
        if before != after:
            lines.append(f"{layer}: {before:,} tokens, then {after:,} ({after - before:+,}).")
    for which, side in (("first", difference.only_one), ("second", difference.only_other)):
        if side.entries:
            last = side.first_entry + side.entries - 1
            entries = format_count(side.entries, "entry")
            lines.append(f"Only the {which} has {entries}: {side.first_entry} to {last}.")
        lines += [f"Only the {which} shows {_format_edit(edit)}" for edit in side.edits]
        if side.tools:
            lines.append(f"Tools as only the {which} declares them: {', '.join(side.tools)}.")
    for kind, changes in (("field", difference.fields), ("setting", difference.settings)):
        for change in changes:
            lines.append(f"{kind} {change.name}: {change.before or 'absent'}, then {change.after or 'absent'}.")
    return tuple(lines)


def format_time(at_s: float | None) -> str:
    """Format seconds since 1970 as date and time in UTC; empty if None or out of the calendar's range."""
    if at_s is not None:
        with suppress(ValueError, OverflowError, OSError):
            return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S}"
    return ""


def _explain_verdict(answer: Explanation) -> str:
    call = f"call {answer.call} of {answer.session}"
    first = answer.places[0] if answer.places else None
    match answer.verdict:
        case "present" if cut := answer.result_cut:
            return (
                f"In part: the call with this id is in the request of {call}. Its result was cut at call "
                f"{cut.call} by edit {cut.edit} ({cut.kind}): {cut.reason}."
            )
        case "present":
            return f"Yes: it is in the request of {call}."
        case "removed" if first and first.removal:
            removal = first.removal
            by = f"edit {removal.edit} ({removal.kind})" if removal.edit >= 0 else "no edit"
            return (
                f"No: it is not in the request of {call}. It left at call {removal.call} by {by}: {removal.reason}."
            )
        case "unsent":
            return f"No: it is in the log, but the request of {call} does not hold it in any form."
        case "later":
            when = f"first in call {first.first_call}" if first and first.first_call else "in no request so far"
            return f"No: it came only after {call}, {when}."
        case _ if first:
            return f"No: in {answer.session} it occurs only in the model's own calls of restore."
        case _:
            return f"No: it was never in the log of {answer.session}, nor in the tools and settings of its calls."


def _explain_place(place: Occurrence) -> Iterator[str]:
    if place.entry >= 0:
        source = f"entry {place.entry} ({place.role}, {place.part})"
    elif place.edit >= 0 and place.kind == "restated":
        source = f"a system message that the caller restated, in edit {place.edit}"
    elif place.edit >= 0:
        source = f"text written by Lading in edit {place.edit}"
    else:
        source = f"{place.layer}, {place.part}"
    since = f", first sent with call {place.first_call}" if place.first_call else ""
    where = f" at {place.path}" if place.path else ""
    match place.state:
        case "present":
            how = f", as edit {place.edit} ({place.kind}) shows it" if place.edit >= 0 and place.entry >= 0 else ""
            yield f"- Shown{where}, layer {place.layer}: {source}{how}{since}."
        case "removed":
            yield f"- Removed: {source}{since}."
        case "unsent":
            yield f"- Left out by this provider format: {source}{where}."
        case _:
            yield f"- Later: {source}{since or ', not sent yet'}."
    yield f"  ...{_join_lines(place.excerpt)}..."


def _explain_removal(place: Occurrence, removal: Removal, *, is_named: bool) -> Iterator[str]:
    gone = removal.tokens_before - removal.tokens_after
    usd = f" (${removal.price_usd:.4f})" if removal.price_usd is not None else ""
    if removal.edit >= 0:
        if not is_named:
            yield f"  It left at call {removal.call} by edit {removal.edit} ({removal.kind}): {removal.reason}."
        when = f" at {at} UTC" if (at := format_time(removal.at_s)) else ""
        forced = f"{removal.forced_tokens:,} forced, {max(gone - removal.forced_tokens, 0):,} voluntary"
        yield f"  {removal.tokens_before:,} tokens became {removal.tokens_after:,}{when}; {forced}."
    paid = f"paid {removal.price:,.0f} base input tokens{usd}"
    yield f"  The request of call {removal.call} {paid}, because the cache held another start."
    if place.path:
        yield f"  {_REPLACEMENTS.get(place.kind, 'Its replacement is')} at {place.path}."
    if removal.partly:
        yield "  Part of it is still shown, at the edge of what was left out."
    if removal.pointers:
        yield f"  It is now at {', '.join(removal.pointers)}"


def _format_edit(edit: EditSummary) -> str:
    return (
        f"edit {edit.edit} ({edit.kind} entries {edit.first} to {edit.last}, call {edit.call}): {edit.reason}; "
        f"{edit.tokens_before:,} tokens became {edit.tokens_after:,}, {edit.forced_tokens:,} of them forced."
    )


def _format_request(named: RequestId) -> str:
    return f"{named.session} call {named.call}"


def _join_lines(text: str) -> str:
    return " ".join(text.split())

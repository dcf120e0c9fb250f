"""Compare two requests: their differences, the first byte that differs, and the cause.

Both are ``Snapshot`` values, of one session in either order, or of two sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.audit.snapshots import SentMessage, Snapshot
from lading.history.log import Edit
from lading.shrink.folding import count_shared

Cause: TypeAlias = Literal[
    "nothing", "growth", "frame", "tools", "system", "fields", "edit", "history", "wire", "tail"
]
"""nothing: the bytes are equal; growth: messages were added at the end; frame: another provider format or model;
tools, system, fields: the caller changed them, or the tool schemas were reduced; edit: an edit; history: the logs
differ; wire: new messages were joined to the last one in the body; tail: only text for one request differs."""

EXCERPT_BYTES = 60


class FieldChange(Struct, frozen=True):
    """A setting or field that differs between the requests."""

    name: str
    before: str
    after: str


class EditSummary(Struct, frozen=True):
    """An edit that only one of the requests shows."""

    edit: int
    kind: str
    first: int
    """First entry that it covers; ``last`` is included."""
    last: int
    call: int
    """First call with this edit."""
    reason: str
    tokens_before: int
    tokens_after: int
    forced_tokens: int


class RequestId(Struct, frozen=True):
    """Tenant, session and call of a request."""

    tenant: str
    session: str
    call: int


class Divergence(Struct, frozen=True):
    """The first byte that differs."""

    offset_bytes: int
    path: str
    """Path in the second body, such as ``messages.7.content``; in the first body where the second is shorter."""
    before: str
    """Excerpt of the first body around the byte; ``after``: of the second."""
    after: str


class Side(Struct, frozen=True):
    """The entries, edits and tools that only one of the requests has."""

    entries: int
    """Number of its newest log entries that the other lacks."""
    first_entry: int
    """Index of the first of them; where there are none, the index of the next entry."""
    edits: tuple[EditSummary, ...]
    tools: tuple[str, ...]
    """Names of tools; a changed tool is on both sides."""


class Difference(Struct, frozen=True):
    """The changes from one request to another."""

    one: RequestId
    other: RequestId
    cause: Cause
    why: str
    """The cause in a sentence."""
    parting: Divergence | None
    """None: the bytes are equal."""
    counts: dict[str, tuple[int, int]]
    """Tokens of both requests, by layer."""
    bytes: tuple[int, int]
    only_one: Side
    only_other: Side
    fields: tuple[FieldChange, ...]
    """Fields of the body other than system, tools and messages."""
    settings: tuple[FieldChange, ...]
    """Settings of the frame: wire, model, budget, counter, rates."""


def diff(one: Snapshot, other: Snapshot) -> Difference:
    """Compare one request with the other."""
    parting = _find_divergence(one, other)
    cause, why = _find_cause(one, other, parting)
    before, after = one.manifest.counts, other.manifest.counts
    return Difference(
        _identify(one),
        _identify(other),
        cause,
        why,
        parting,
        {layer: (before.get(layer, 0), after.get(layer, 0)) for layer in dict.fromkeys((*before, *after))},
        (len(one.body), len(other.body)),
        _build_side(one, other),
        _build_side(other, one),
        _compare_fields(_list_fields(one), _list_fields(other)),
        _compare_fields(_list_settings(one), _list_settings(other)),
    )


def _find_cause(one: Snapshot, other: Snapshot, parting: Divergence | None) -> tuple[Cause, str]:
    if parting is None:
        return "nothing", "the bytes are equal"
    if (one.frame.wire, one.frame.card.name) != (other.frame.wire, other.frame.card.name):
        before, after = (f"{side.frame.card.name} on {side.frame.wire}" for side in (one, other))
        return "frame", f"another model or provider format: {before}, then {after}"
    changed = [each.name for each in _compare_fields(_encode_fields(one.envelope), _encode_fields(other.envelope))]
    if (marks := one.layout.marks) and bool(one.manifest.sent.transient) != bool(other.manifest.sent.transient):
        # A tail moves the request's own mark.
        changed = [key for key in changed if key != marks.field]
    if changed:
        key = next((key for key in changed if parting.path.split(".")[0] == key), changed[0])
        return _find_envelope_cause(key, one, other)
    shown = tuple([item for item in of.shown if item.entry >= 0] for of in (one, other))
    position = _count_shared_items(*([item.message for item in side] for side in shown))
    if position == len(shown[0]) == len(shown[1]):
        return "tail", "only text for one request differs: the tail, or the text before the history"
    if position in map(len, shown):
        return _describe_growth(one, other)
    here = shown[0][position], shown[1][position]
    if edit := _find_edit(here[1], here[0], _select_new_edits(other.edits, one.edits)):
        return "edit", _describe_edit(edit)
    if edit := _find_edit(here[0], here[1], _select_new_edits(one.edits, other.edits)):
        return "edit", f"only the first request shows this edit: {_describe_edit(edit)}"
    if here[1].layer == "system":
        return "system", "the caller's system messages differ"
    return "history", f"the logs differ: entry {here[0].entry} of the first, entry {here[1].entry} of the second"


def _find_envelope_cause(key: str, one: Snapshot, other: Snapshot) -> tuple[Cause, str]:
    if key == one.layout.system:
        return "system", "the system message changed"
    if key != one.layout.tools.field:
        return "fields", f"the caller changed {key}"
    before, after = one.manifest.tool_detail, other.manifest.tool_detail
    if before != after and one.frame.tools == other.frame.tools:
        return "tools", f"the tool schemas changed their detail, {before} to {after}, to fit the window"
    gone, come = _list_other_tools(one, other), _list_other_tools(other, one)
    words = [f"{'changed' if name in gone else 'added'} {name}" for name in come]
    words += [f"removed {name}" for name in gone if name not in come]
    return "tools", f"the caller changed the tools: {', '.join(words)[:200] or 'their order'}"


def _describe_growth(one: Snapshot, other: Snapshot) -> tuple[Cause, str]:
    same = _count_shared_items(one.messages, other.messages)
    added = len(other.messages) - len(one.messages)
    if same < min(len(one.messages), len(other.messages)):
        return "wire", f"the next message was joined to {one.layout.items.field}.{same}"
    shorter, longer = ("first", "second") if added > 0 else ("second", "first")
    follow = "1 message follows" if abs(added) == 1 else f"{abs(added)} messages follow"
    return "growth", f"only growth: the {longer} request starts with all messages of the {shorter}; {follow}"


def _find_edit(shown: SentMessage, against: SentMessage, edits: Sequence[Edit]) -> Edit | None:
    """Find the newest edit that wrote a message, or else removed what the other request shows there."""
    made = [edit for edit in edits if edit.index == shown.edit]
    covering = [edit for edit in edits if edit.first <= against.entry <= edit.last]
    return next(reversed(made or covering), None)


def _describe_edit(edit: Edit) -> str:
    return f"edit {edit.index} ({edit.kind} entries {edit.first} to {edit.last}, call {edit.call}): {edit.reason}"


def _find_divergence(one: Snapshot, other: Snapshot) -> Divergence | None:
    if one.body == other.body:
        return None
    offset = count_shared(one.body, other.body)
    paths = [_find_path({**of.envelope, of.layout.items.field: list(of.messages)}, offset) for of in (other, one)]
    items = other.layout.items.field
    path = next((path for path in paths if path not in ("", items)), items)
    return Divergence(offset, path, _cut_excerpt(one.body, offset), _cut_excerpt(other.body, offset))


def _find_path(value: Any, offset: int) -> str:
    """Return the path to byte ``offset`` in the text of a JSON value; a comma belongs to the member after it."""
    path: list[str] = []
    while isinstance(value, dict | list):
        end = 0
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            start = end + 1 + (len(jsonbytes.dump(key)) + 1 if isinstance(value, dict) else 0)
            end = start + len(jsonbytes.dump(member))
            if offset < end:
                path.append(str(key))
                value, offset = member if offset >= start else None, offset - start
                break
        else:
            break
    return ".".join(path)


def _cut_excerpt(body: bytes, offset: int) -> str:
    return body[max(offset - EXCERPT_BYTES // 2, 0) : offset + EXCERPT_BYTES].decode("utf-8", "replace")


def _build_side(of: Snapshot, than: Snapshot) -> Side:
    entries = _count_shared_items([entry.digest for entry in of.entries], [entry.digest for entry in than.entries])
    names = ("index", "kind", "first", "last", "call", "reason", "tokens_before", "tokens_after", "forced_tokens")
    edits = (EditSummary(*attrgetter(*names)(edit)) for edit in _select_new_edits(of.edits, than.edits))
    return Side(len(of.entries) - entries, entries, tuple(edits), _list_other_tools(of, than))


def _list_other_tools(of: Snapshot, than: Snapshot) -> tuple[str, ...]:
    return tuple(tool.name for tool in of.tools if tool not in than.tools)


def _select_new_edits(edits: Sequence[Edit], known: Sequence[Edit]) -> Sequence[Edit]:
    return edits[_count_shared_items(edits, known) :]


def _count_shared_items(one: Sequence[object], other: Sequence[object]) -> int:
    """Count the equal items at the start of two sequences."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1] or pair[0] == pair[1], pairs))


def _compare_fields(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[FieldChange, ...]:
    names = dict.fromkeys((*before, *after))
    return tuple(
        FieldChange(name, before.get(name, ""), after.get(name, ""))
        for name in names
        if before.get(name, "") != after.get(name, "")
    )


def _encode_fields(value: Mapping[str, Any]) -> dict[str, str]:
    return {key: jsonbytes.dump(inner).decode() for key, inner in value.items()}


def _list_fields(of: Snapshot) -> dict[str, str]:
    known = of.layout.system, of.layout.tools.field
    return _encode_fields({key: value for key, value in of.envelope.items() if key not in known})


def _list_settings(of: Snapshot) -> dict[str, str]:
    """List the frame's fields by dotted name, without digests, which mean nothing to people."""
    flat: dict[str, Any] = {"tool_detail": of.manifest.tool_detail}
    open_values = [("", msgspec.to_builtins(of.frame, str_keys=True))]
    while open_values:
        prefix, value = open_values.pop()
        for key, inner in value.items():
            if isinstance(inner, dict):
                open_values.append((f"{prefix}{key}.", inner))
            elif f"{prefix}{key}" not in ("tools", "template"):
                flat[f"{prefix}{key}"] = inner
    return _encode_fields(flat)


def _identify(of: Snapshot) -> RequestId:
    place = of.manifest.place
    return RequestId(place.tenant, place.session, place.call)

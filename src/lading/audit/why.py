"""Explain why a text was or was not in a request: which edit removed it, when, at what price, where it is now.

The request's body decides whether a text was in it; the log shows its origin, the edits its removal.
``cli/explanations.py`` words the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from lading.addresses import Address
from lading.audit import text_search
from lading.audit.replay import load_frame
from lading.audit.restore import is_offered
from lading.audit.snapshots import AuditTrail, Layer, Snapshot, build_snapshot, load_trail
from lading.audit.text_search import Matcher
from lading.audit.verdicts import Explanation, Match, Occurrence, Removal, Verdict
from lading.history.log import NO_COMPACTIONS, Edit, Entry
from lading.messages import Conversation, Message
from lading.models.profiles import Detail
from lading.request.manifest import Manifest
from lading.request.tools import reduce_tools
from lading.request.transient import read_transient
from lading.shrink.folding import count_shared
from lading.stores import SessionStore
from lading.validation import check
from lading.wire import WIRES, find_wire

MOST_PLACES = 12
"""Places listed in an explanation; the others are counted only."""

_WEIGHT: tuple[Verdict, ...] = ("present", "removed", "unsent", "later", "never")
"""Precedence of the states of several places for the verdict."""


_REASONS = {
    "reduced": "the tool schemas were reduced to fit the window",
    "changed": "the caller changed its tools or fields",
    "transient": "it was text for one request alone",
}


def why(store: SessionStore, text: str, *, tenant: str, session: str, call: int | None = None) -> Explanation:
    """Explain what happened to a text in a stored session, as of a call (None: the newest).

    Raises like ``explain``, StoreError when there is no such session, TamperedError when it was changed.
    """
    return explain(load_trail(store, tenant=tenant, session=session), text, call=call)


def explain(trail: AuditTrail, text: str, *, call: int | None = None) -> Explanation:
    """Explain what happened to a text in a session, as of a call (None: the newest).

    Raises InputError for a blank text or when there is no such call.
    """
    check(text, str, advice="give the text to look for")
    finds: tuple[tuple[Match, Matcher], ...] = (
        ("exact", text_search.make_exact_matcher(text)),
        ("loose", text_search.make_loose_matcher(text)),
    )
    snapshot = build_snapshot(trail, call)
    result = Explanation(text, trail.tenant, trail.session, snapshot.call, "never")
    for match, find in finds:
        search = _Search(trail, snapshot, find)
        found = _build_explanation(result, match, search.places())
        if found.verdict == "present":
            return replace(found, result_cut=search.find_cut(call_id=text))
        if found.verdict != "never":
            return found
        result = result if result.places else found
    if result.places or not text_search.is_available():
        return result if result.places else replace(result, note=text_search.INSTALL)
    newest_first = reversed(trail.entries)
    log = (
        (entry.index, string)
        for entry in newest_first
        for _, string in text_search.iter_message_strings(entry.message)
    )
    return replace(result, closest=text_search.find_near_misses(text, log))


def _build_explanation(result: Explanation, match: Match, places: list[Occurrence]) -> Explanation:
    ordered = sorted(places, key=lambda place: (place.part == "query", _WEIGHT.index(place.state), -place.entry))
    shown = tuple(ordered[:MOST_PLACES])
    verdict = next((place.state for place in shown if place.part != "query"), "never")
    return replace(result, verdict=verdict, match=match if shown else "", places=shown, found=len(places))


class _Hit(NamedTuple):
    part: str
    excerpt: str


class _Search:
    """Search for one text, with one matcher, in a request and its session."""

    def __init__(self, trail: AuditTrail, snapshot: Snapshot, find: Matcher) -> None:
        self._trail, self._snapshot, self._find = trail, snapshot, find
        self._layout = snapshot.layout
        self._system = snapshot.envelope.get(self._layout.system)
        self._offers: dict[tuple[str, str, Detail], tuple[Layer, str, str] | None] = {}
        wire_messages = enumerate(snapshot.messages)
        self._body_hits = {at: hit for at, item in wire_messages if (hit := self._search_json(item, "field"))}
        self._restores = is_offered(load_frame(snapshot.frame, trail.blobs.__getitem__)[0])
        self._deep = False
        self._logged = self._search_log()
        if not self._logged:
            # Fields of a message outside its parts appear only in the encoding of its provider format.
            self._deep = True
            self._logged = self._search_log()

    def places(self) -> list[Occurrence]:
        """Return every place where the text is or was."""
        found = [*self._find_shown(), *self._find_in_envelope()]
        if not found:
            hits = self._body_hits.items()
            found = [
                Occurrence("present", "conversation", *hit, f"{self._layout.items.field}.{at}") for at, hit in hits
            ]
            if hit := self._search_json(self._system, "field"):
                found.append(Occurrence("present", "system", *hit, self._layout.system))
        shown = {entry for place in found for entry in self._find_sources(place)}
        found += [self._explain_absence(self._trail.entries[entry]) for entry in self._logged if entry not in shown]
        if all(place.state == "later" or place.part == "query" for place in found):
            found += [*self._find_in_edits(), *self._find_in_other_calls()]
        return found

    def find_cut(self, *, call_id: str) -> Removal | None:
        """Return what cut the newest result of this call; None: the result is whole, or there is none."""
        named = (
            (entry, result)
            for entry in reversed(self._snapshot.entries)
            for result in entry.message.results
            if result.call_id == call_id
        )
        entry, result = next(named, (None, None))
        if entry is None or result is None:
            return None
        covering = [edit for edit in self._snapshot.edits if edit.first <= entry.index <= edit.last]
        cut = next((edit for edit in reversed(covering) if edit.kind not in NO_COMPACTIONS), None)
        if cut is None or cut.kind == "reshaped":
            return None
        shown = (one.text for message in cut.replacement for one in message.results)
        return None if result.text in shown else self._build_removal(cut, cut.pointers)

    def _search_log(self) -> dict[int, _Hit]:
        return {entry.index: hit for entry in self._trail.entries if (hit := self._search_message(entry.message))}

    def _search_message(self, message: Message) -> _Hit | None:
        for part, string in text_search.iter_message_strings(message):
            if span := self._find(string):
                kind = "arguments" if part == "query" and not self._restores else part
                return _Hit(kind, text_search.cut_excerpt(string, span))
        return self._search_encoded(message) if self._deep else None

    def _search_encoded(self, message: Message) -> _Hit | None:
        name = message.origin if message.origin in WIRES else self._snapshot.frame.wire
        wire = find_wire(name)
        if wire.layout.leading([message]):
            return self._search_json(wire.envelope(Conversation((message,), origin=name)), "field")
        return self._search_json(wire.write([message], self._snapshot.frame.card), "field")

    def _search_json(self, value: Any, part: str) -> _Hit | None:
        found = ((string, span) for string in text_search.iter_strings(value) if (span := self._find(string)))
        return next((_Hit(part, text_search.cut_excerpt(string, span)) for string, span in found), None)

    def _find_shown(self) -> Iterator[Occurrence]:
        """Yield the messages of the request that show the text."""
        in_system = self._search_json(self._system, "field")
        for item in self._snapshot.shown:
            at = next((at for at in range(item.start, item.end) if at in self._body_hits), None)
            if not (hit := self._search_message(item.message)):
                continue
            # Arguments are always sent, but a provider format may rewrite their JSON with other spaces and escapes.
            if at is None and hit.part not in ("arguments", "query") and not (item.start < 0 and in_system):
                continue
            place = Occurrence(
                "present",
                item.layer,
                *hit,
                item.path if at is None else f"{self._layout.items.field}.{at}",
                entry=item.entry,
                role=item.message.role,
                edit=item.edit,
                kind=self._snapshot.edits[item.edit].kind if item.edit >= 0 else None,
            )
            entry = max(self._find_sources(place), default=-1)
            if place.kind and entry in self._logged:
                role = self._trail.entries[entry].message.role
                place = replace(place, role=role, part=self._logged[entry].part)
            is_restated = entry < 0 and place.kind == "restated"
            since = self._snapshot.edits[place.edit].call if is_restated else self._find_first_call(entry)
            yield replace(place, entry=entry, address=self._format_address(entry), first_call=since)

    def _find_sources(self, place: Occurrence) -> list[int]:
        """Return the entries that hold the text and that the place shows."""
        if place.edit < 0:
            return [place.entry]
        return self._find_origins(self._snapshot.edits[place.edit])

    def _find_in_envelope(self) -> Iterator[Occurrence]:
        """Yield the places outside the messages that hold the text."""
        for key, value in self._snapshot.envelope.items():
            if key == self._layout.tools.field and isinstance(value, list):
                for at, tool in enumerate(value):
                    if hit := self._search_json(tool, "schema"):
                        yield Occurrence("present", "tools", *hit, f"{key}.{at}")
            elif key != self._layout.system and (hit := self._search_json(value, "field")):
                yield Occurrence("present", "fields", *hit, key)

    def _explain_absence(self, entry: Entry) -> Occurrence:
        """Describe what happened to an entry that holds the text but is not shown."""
        hit = self._logged[entry.index]
        place = Occurrence(
            "later",
            "system" if entry.message.role == "system" and not entry.round else "conversation",
            *hit,
            entry=entry.index,
            role=entry.message.role,
            address=self._format_address(entry.index),
            first_call=self._find_first_call(entry.index),
        )
        if entry.index >= len(self._snapshot.entries):
            return place
        remover, current = self._follow_edits(entry.index)
        number = current.index if current else -1
        place = replace(place, path=self._find_path(number, entry.index), kind=current.kind if current else None)
        if remover is None:
            return replace(place, state="unsent")
        holds_entry = current is not None and current.first <= entry.index <= current.last
        pointers = current.pointers if current and holds_entry and current.pointers else (place.address,)
        return replace(place, state="removed", removal=self._build_removal(remover, pointers, entry.message))

    def _follow_edits(self, entry: int) -> tuple[Edit | None, Edit | None]:
        """Return the edit that removed an entry's text from view (None: still shown), and the edit now shown in its
        place."""
        remover: Edit | None = None
        current: Edit | None = None
        at = entry
        for edit in self._snapshot.edits:
            covers = edit.first <= at <= edit.last
            # A repair removes a misplaced result from its own entry and shows it as text at a later one.
            moves = remover is not None and remover.kind == "repaired" and entry in self._find_origins(edit)
            if not covers and not moves:
                continue
            still = any(self._search_message(message) for message in edit.replacement)
            if covers or still:
                at, current = edit.first, edit
                remover = None if still else remover or edit
        return remover, current

    def _find_origins(self, edit: Edit) -> list[int]:
        """Return the entries in an edit's span that hold the text; for a repair without any, the last before it."""
        inside = [entry for entry in self._logged if edit.first <= entry <= edit.last]
        before = [entry for entry in self._logged if entry < edit.first] if edit.kind == "repaired" else []
        return inside or before[-1:]

    def _find_path(self, edit: int, entry: int) -> str:
        """Return the path in the request of an entry or of the edit that replaces it."""
        for item in self._snapshot.shown:
            if item.edit == edit and (edit >= 0 or item.entry == entry):
                return item.path
        return ""

    def _build_removal(self, edit: Edit, pointers: tuple[str, ...], message: Message | None = None) -> Removal:
        manifest = self._get_manifest(edit.call)
        return Removal(
            edit=edit.index,
            kind=edit.kind,
            reason=edit.reason,
            call=edit.call,
            at_s=manifest.place.at_s,
            tokens_before=edit.tokens_before,
            tokens_after=edit.tokens_after,
            forced_tokens=edit.forced_tokens,
            price=manifest.prefix.price,
            price_usd=self._to_usd(manifest.prefix.price),
            pointers=pointers,
            partly=edit.kind == "clipped" and message is not None and self._is_partly_shown(edit, message),
        )

    def _is_partly_shown(self, edit: Edit, message: Message) -> bool:
        shown = [string for after in edit.replacement for _, string in text_search.iter_message_strings(after)]
        for _, raw in text_search.iter_message_strings(message):
            if span := self._find(raw):
                starts = (count_shared(raw, kept) for kept in shown)
                ends = (len(raw) - count_shared(raw[::-1], kept[::-1]) for kept in shown)
                return any(span[0] < cut < span[1] for cut in (*starts, *ends))
        return False

    def _find_in_edits(self) -> Iterator[Occurrence]:
        """Yield edits that wrote the text though no entry holds it, such as a note that a later edit removed."""
        for edit in self._trail.edits:
            hit = next((hit for message in edit.replacement if (hit := self._search_message(message))), None)
            if hit is None or self._find_origins(edit):
                continue
            since = edit.call if edit.call <= len(self._trail.manifests) else None
            place = Occurrence("later", "conversation", *hit, edit=edit.index, kind=edit.kind, first_call=since)
            if edit.index < len(self._snapshot.edits):
                place = replace(place, state="unsent")
                after = self._snapshot.edits[edit.index + 1 :]
                covering = [later for later in after if later.first <= edit.last and edit.first <= later.last]
                if covering:
                    removal = self._build_removal(covering[0], covering[-1].pointers)
                    place = replace(place, state="removed", removal=removal)
            yield place

    def _find_in_other_calls(self) -> Iterator[Occurrence]:
        """Yield the text's place in tools, fields and tails of other calls, or in this call's unreduced tools."""
        holding = [call for call in range(1, len(self._trail.manifests) + 1) if self._search_frame(call)]
        now = self._snapshot.call
        before, after = [call for call in holding if call < now], [call for call in holding if call > now]
        if before and (hit := self._search_frame(before[-1])):
            gone = before[-1] + 1
            same = self._trail.frame(gone).tools == self._trail.frame(gone - 1).tools
            reduced = same and self._get_manifest(gone).tool_detail != self._get_manifest(gone - 1).tool_detail
            kind = "transient" if hit[0] in ("front", "tail") else "reduced" if reduced else "changed"
            removal = Removal(
                -1,
                kind,
                _REASONS[kind],
                gone,
                self._get_manifest(gone).place.at_s,
                price=self._get_manifest(gone).prefix.price,
                price_usd=self._to_usd(self._get_manifest(gone).prefix.price),
            )
            yield Occurrence("removed", *hit, first_call=before[0], removal=removal)
        elif after and (hit := self._search_frame(after[0])):
            yield Occurrence("later", *hit, first_call=after[0])
        elif hit := self._search_frame(now, in_full=True):
            yield Occurrence("unsent", *hit)

    def _search_frame(self, call: int, *, in_full: bool = False) -> tuple[Layer, str, str] | None:
        """Return layer, kind of part and excerpt of the text in a call's tools, other fields and tail."""
        frame = self._trail.frame(call)
        detail: Detail = "full" if in_full else self._get_manifest(call).tool_detail
        text = read_transient(self._get_manifest(call).sent.transient, self._trail.blobs.__getitem__)
        transient: tuple[tuple[Layer, str], ...] = (("tail", text.tail), ("front", text.front))
        for layer, string in transient:
            if found := self._search_json(string, "text"):
                return (layer, *found)
        key = (frame.tools, frame.template, detail)
        if key not in self._offers:
            tools, fields = load_frame(frame, self._trail.blobs.__getitem__)
            wire = find_wire(frame.wire)
            body = wire.envelope(Conversation((), reduce_tools(tools, detail), frame.wire, fields))
            schema = self._search_json(body.pop(wire.layout.tools.field, None), "schema")
            field = self._search_json([*body.values()], "field")
            hit = schema or field
            self._offers[key] = ("tools" if schema else "fields", *hit) if hit else None
        return self._offers[key]

    def _get_manifest(self, call: int) -> Manifest:
        return self._trail.manifests[call - 1]

    def _to_usd(self, price: float) -> float | None:
        input_usd = self._snapshot.frame.card.prices.input_usd
        return price * input_usd / 1e6 if input_usd else None

    def _format_address(self, entry: int) -> str:
        trail = self._trail
        return str(Address(trail.tenant, trail.session, "log", str(entry))) if entry >= 0 else ""

    def _find_first_call(self, entry: int) -> int | None:
        return self._trail.first_call(entry) if entry >= 0 else None

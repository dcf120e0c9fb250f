"""Was this text in that request; if not, which edit took it away, when, at what price, and where is it now.

The request's own body decides whether a text was in it. The log says where it came from, the edits where it
went. ``explanations.py`` puts an answer in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from lading.addresses import Address
from lading.audit import text_search
from lading.audit.replay import offered
from lading.audit.restore import is_offered
from lading.audit.snapshots import Layer, Record, Snapshot, recorded, snapshot
from lading.audit.text_search import Find
from lading.audit.verdicts import Answer, Match, Place, Removal, Verdict
from lading.history.log import Edit, Entry
from lading.messages import Conversation, Message
from lading.models.profiles import Detail
from lading.request.manifest import Manifest
from lading.request.tools import reduce_tools
from lading.shrink.folding import count_shared
from lading.stores import SessionStore
from lading.wire import WIRES, find_wire

MOST_PLACES = 12
"""Places named in an answer; the others are counted."""

_WEIGHT: tuple[Verdict, ...] = ("present", "removed", "unsent", "later", "never")
"""Which of several places decides the verdict."""


def why(store: SessionStore, text: str, *, tenant: str, session: str, call: int | None = None) -> Answer:
    """What became of the text in a stored session, as of a call (None: the newest).

    Raises like ``answer``, StoreError when there is no such session, TamperedError when it was changed.
    """
    return answer(recorded(store, tenant=tenant, session=session), text, call=call)


def answer(record: Record, text: str, *, call: int | None = None) -> Answer:
    """What became of the text in a session, as of a call (None: the newest).

    Raises InputError for a blank text or when there is no such call.
    """
    finds: tuple[tuple[Match, Find], ...] = (
        ("exact", text_search.exactly(text)),
        ("loose", text_search.loosely(text)),
    )
    seen = snapshot(record, call)
    asked = Answer(text, record.tenant, record.session, seen.call, "never")
    for match, find in finds:
        found = _found(asked, match, _Search(record, seen, find).places())
        if found.verdict != "never":
            return found
        asked = asked if asked.places else found
    if asked.places or not text_search.available():
        return asked if asked.places else replace(asked, note=text_search.INSTALL)
    newest_first = reversed(record.entries)
    log = (
        (entry.index, string) for entry in newest_first for _, string in text_search.message_strings(entry.message)
    )
    return replace(asked, closest=text_search.near_misses(text, log))


def _found(asked: Answer, match: Match, places: list[Place]) -> Answer:
    ordered = sorted(places, key=lambda place: (place.part == "query", _WEIGHT.index(place.state), -place.entry))
    shown = tuple(ordered[:MOST_PLACES])
    verdict = next((place.state for place in shown if place.part != "query"), "never")
    return replace(asked, verdict=verdict, match=match if shown else "", places=shown, found=len(places))


class _Hit(NamedTuple):
    part: str
    excerpt: str


class _Search:
    """One text, found in one way, in one request and in the session around it."""

    def __init__(self, record: Record, seen: Snapshot, find: Find) -> None:
        self._record, self._seen, self._find = record, seen, find
        self._offers: dict[tuple[str, str, Detail], tuple[Layer, str, str] | None] = {}
        wire_messages = enumerate(seen.messages)
        self._in_body = {at: hit for at, item in wire_messages if (hit := self._within(item, "field"))}
        self._restores = is_offered(offered(seen.frame, record.blobs.__getitem__)[0])
        self._deep = False
        self._logged = self._hits()
        if not self._logged:
            # What stands beside the parts of a message shows only in the form that a wire gives it.
            self._deep = True
            self._logged = self._hits()

    def places(self) -> list[Place]:
        """Every place where the text stands or stood."""
        found = [*self._shown(), *self._envelope()]
        if not found:
            hits = self._in_body.items()
            found = [Place("present", "conversation", *hit, f"messages.{at}") for at, hit in hits]
            if hit := self._within(self._seen.envelope.get("system"), "field"):
                found.append(Place("present", "system", *hit, "system"))
        told = {entry for place in found for entry in self._sources(place)}
        found += [self._past(self._record.entries[entry]) for entry in self._logged if entry not in told]
        if all(place.state == "later" or place.part == "query" for place in found):
            found += [*self._made_before(), *self._offered()]
        return found

    def _hits(self) -> dict[int, _Hit]:
        return {entry.index: hit for entry in self._record.entries if (hit := self._hit(entry.message))}

    def _hit(self, message: Message) -> _Hit | None:
        for part, string in text_search.message_strings(message):
            if span := self._find(string):
                kind = "arguments" if part == "query" and not self._restores else part
                return _Hit(kind, text_search.excerpt(string, span))
        return self._written(message) if self._deep else None

    def _written(self, message: Message) -> _Hit | None:
        name = message.origin if message.origin in WIRES else self._seen.frame.wire
        wire = find_wire(name)
        if wire.leading([message]):
            return self._within(wire.envelope(Conversation((message,), origin=name)), "field")
        return self._within(wire.encode_group([message], self._seen.frame.card), "field")

    def _within(self, value: Any, part: str) -> _Hit | None:
        found = ((string, span) for string in text_search.strings(value) if (span := self._find(string)))
        return next((_Hit(part, text_search.excerpt(string, span)) for string, span in found), None)

    def _shown(self) -> Iterator[Place]:
        """The messages of the request that show it."""
        in_system = self._within(self._seen.envelope.get("system"), "field")
        for item in self._seen.shown:
            at = next((at for at in range(item.start, item.end) if at in self._in_body), None)
            if not (hit := self._hit(item.message)):
                continue
            # Arguments are always sent, but a wire may write their JSON anew, with other spaces and escapes.
            if at is None and hit.part not in ("arguments", "query") and not (item.start < 0 and in_system):
                continue
            place = Place(
                "present",
                item.layer,
                *hit,
                item.path if at is None else f"messages.{at}",
                entry=item.entry,
                role=item.message.role,
                edit=item.edit,
                kind=self._seen.edits[item.edit].kind if item.edit >= 0 else None,
            )
            entry = max(self._sources(place), default=-1)
            if place.kind and entry in self._logged:
                role = self._record.entries[entry].message.role
                place = replace(place, role=role, part=self._logged[entry].part)
            is_restated = entry < 0 and place.kind == "restated"
            since = self._seen.edits[place.edit].call if is_restated else self._first_call(entry)
            yield replace(place, entry=entry, address=self._address(entry), first_call=since)

    def _sources(self, place: Place) -> list[int]:
        """The entries that hold it and that the place stands for."""
        if place.edit < 0:
            return [place.entry]
        return self._origins(self._seen.edits[place.edit])

    def _envelope(self) -> Iterator[Place]:
        """Where it stands outside the messages."""
        for key, value in self._seen.envelope.items():
            if key == "tools" and isinstance(value, list):
                for at, tool in enumerate(value):
                    if hit := self._within(tool, "schema"):
                        yield Place("present", "tools", *hit, f"tools.{at}")
            elif key != "system" and (hit := self._within(value, "field")):
                yield Place("present", "fields", *hit, key)

    def _past(self, entry: Entry) -> Place:
        """What became of an entry that holds it and does not show it."""
        hit = self._logged[entry.index]
        place = Place(
            "later",
            "system" if entry.message.role == "system" and not entry.round else "conversation",
            *hit,
            entry=entry.index,
            role=entry.message.role,
            address=self._address(entry.index),
            first_call=self._first_call(entry.index),
        )
        if entry.index >= len(self._seen.entries):
            return place
        taken, over = self._followed(entry.index)
        stands = over.index if over else -1
        place = replace(place, path=self._path_of(stands, entry.index), kind=over.kind if over else None)
        if taken is None:
            return replace(place, state="unsent")
        holds_entry = over is not None and over.first <= entry.index <= over.last
        pointers = over.pointers if over and holds_entry and over.pointers else (place.address,)
        return replace(place, state="removed", removal=self._removal(taken, pointers, entry.message))

    def _followed(self, entry: int) -> tuple[Edit | None, Edit | None]:
        """The edit that took an entry's text from view (None: it is still shown), and the one that stands
        there now."""
        taken: Edit | None = None
        over: Edit | None = None
        at = entry
        for edit in self._seen.edits:
            covers = edit.first <= at <= edit.last
            # A result out of place is taken from its own entry, and shown as text at a later one.
            moves = taken is not None and taken.kind == "repaired" and entry in self._origins(edit)
            if not covers and not moves:
                continue
            still = any(self._hit(message) for message in edit.replacement)
            if covers or still:
                at, over = edit.first, edit
                taken = None if still else taken or edit
        return taken, over

    def _origins(self, edit: Edit) -> list[int]:
        """The entries that hold it and that an edit stands for; for a repair that holds none, the one before."""
        inside = [entry for entry in self._logged if edit.first <= entry <= edit.last]
        before = [entry for entry in self._logged if entry < edit.first] if edit.kind == "repaired" else []
        return inside or before[-1:]

    def _path_of(self, edit: int, entry: int) -> str:
        """Where the request shows what stands for an entry."""
        for item in self._seen.shown:
            if item.edit == edit and (edit >= 0 or item.entry == entry):
                return item.path
        return ""

    def _removal(self, edit: Edit, pointers: tuple[str, ...], message: Message | None = None) -> Removal:
        manifest = self._manifest(edit.call)
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
            price_usd=self._usd(manifest.prefix.price),
            pointers=pointers,
            partly=edit.kind == "clipped" and message is not None and self._partly(edit, message),
        )

    def _partly(self, edit: Edit, message: Message) -> bool:
        shown = [string for after in edit.replacement for _, string in text_search.message_strings(after)]
        for _, raw in text_search.message_strings(message):
            if span := self._find(raw):
                cuts = (cut for kept in shown for cut in _cuts(raw, kept))
                return any(span[0] < cut < span[1] for cut in cuts)
        return False

    def _made_before(self) -> Iterator[Place]:
        """Where an edit said it that no entry said, such as a note that a later edit took away."""
        for edit in self._record.edits:
            hit = next((hit for message in edit.replacement if (hit := self._hit(message))), None)
            if hit is None or self._origins(edit):
                continue
            since = edit.call if edit.call <= len(self._record.manifests) else None
            place = Place("later", "conversation", *hit, edit=edit.index, kind=edit.kind, first_call=since)
            if edit.index < len(self._seen.edits):
                place = replace(place, state="unsent")
                after = self._seen.edits[edit.index + 1 :]
                over = [later for later in after if later.first <= edit.last and edit.first <= later.last]
                if over:
                    removal = self._removal(over[0], over[-1].pointers)
                    place = replace(place, state="removed", removal=removal)
            yield place

    def _offered(self) -> Iterator[Place]:
        """Where the tools and other fields of another call hold it, or those of this one before they gave way."""
        holding = [call for call in range(1, len(self._record.manifests) + 1) if self._offer_hit(call)]
        now = self._seen.call
        before, after = [call for call in holding if call < now], [call for call in holding if call > now]
        if before and (hit := self._offer_hit(before[-1])):
            gone = before[-1] + 1
            same = self._record.frame(gone).tools == self._record.frame(gone - 1).tools
            reduced = same and self._manifest(gone).tool_detail != self._manifest(gone - 1).tool_detail
            removal = Removal(
                -1,
                "reduced" if reduced else "changed",
                "the tool schemas gave way to the conversation" if reduced else "the caller changed what it offers",
                gone,
                self._manifest(gone).place.at_s,
                price=self._manifest(gone).prefix.price,
                price_usd=self._usd(self._manifest(gone).prefix.price),
            )
            yield Place("removed", *hit, first_call=before[0], removal=removal)
        elif after and (hit := self._offer_hit(after[0])):
            yield Place("later", *hit, first_call=after[0])
        elif hit := self._offer_hit(now, in_full=True):
            yield Place("unsent", *hit)

    def _offer_hit(self, call: int, *, in_full: bool = False) -> tuple[Layer, str, str] | None:
        """Layer, kind of part and excerpt of what a call's tools and other fields say of it."""
        frame = self._record.frame(call)
        detail: Detail = "full" if in_full else self._manifest(call).tool_detail
        key = (frame.tools, frame.template, detail)
        if key not in self._offers:
            tools, template = offered(frame, self._record.blobs.__getitem__)
            body = find_wire(frame.wire).envelope(
                Conversation((), reduce_tools(tools, detail), frame.wire, template)
            )
            schema = self._within(body.get("tools"), "schema")
            field = self._within([body[name] for name in body if name != "tools"], "field")
            layer: Layer = "tools" if schema else "fields"
            hit = schema or field
            self._offers[key] = (layer, *hit) if hit else None
        return self._offers[key]

    def _manifest(self, call: int) -> Manifest:
        return self._record.manifests[call - 1]

    def _usd(self, price: float) -> float | None:
        input_usd = self._seen.frame.card.prices.input_usd
        return price * input_usd / 1e6 if input_usd else None

    def _address(self, entry: int) -> str:
        record = self._record
        return str(Address(record.tenant, record.session, "log", str(entry))) if entry >= 0 else ""

    def _first_call(self, entry: int) -> int | None:
        return self._record.first_call(entry) if entry >= 0 else None


def _cuts(raw: str, kept: str) -> tuple[int, int]:
    """Where the start that two strings share ends in the first, and where the end that they share begins."""
    return count_shared(raw, kept), len(raw) - count_shared(raw[::-1], kept[::-1])

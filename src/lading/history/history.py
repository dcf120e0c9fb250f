"""The history of one session: raw entries, frozen edits, and the view that both give.

Messages enter through the sanitizer (``repair.py``). Edits are staged in a ``Plan``, which has the view with them
applied, and become part of the history by ``commit``. Dropping a plan changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from lading import jsonbytes
from lading.addresses import parse, relative
from lading.errors import InputError
from lading.events import Event, Repaired
from lading.history.log import NO_COMPACTIONS, Draft, Edit, Entry, Log, Reported, log_chain
from lading.history.plan import UNLIMITED, Plan
from lading.history.repair import LEFT_OUT, UNNAMED_CALL, Admitted, Needs, Placement, Repair, Sanitizer, trim_end
from lading.history.view import ONLY_RESTORE, View, append_message, apply_edit, rebuild
from lading.messages import File, Image, Message, Reasoning, Template, ToolResult, is_spoken

CLOSING = "before the request: "
"""Starts the reason of a repair made at the end of the history, for a request."""
REFITTED = "for another model: "
"""Starts the reason of an edit that shows what was shown before in another provider format."""
_STAYING = frozenset({None, *NO_COMPACTIONS} - {"payload"})
"""Kinds of edits after which an entry is shown in full, and as nothing but itself."""


class History:
    """Entries, edits and view of one session. Entries and edits are only appended."""

    def __init__(
        self,
        needs: Needs,
        count: Callable[[Message], int],
        *,
        session: tuple[str, str] = ("default", "session"),
        own_tools: frozenset[str] = ONLY_RESTORE,
    ) -> None:
        """``session``: tenant and session that pointers refer to. ``own_tools``: as for ``View``."""
        self._needs, self._session, self._own_tools = needs, session, own_tools
        self._sanitizer = Sanitizer(needs)
        self._count = count
        self.entries = Log()
        self.edits: list[Edit] = []
        self.view = View(self.entries, own_tools=own_tools)
        self.log = ""
        """Chain digest over the entries (``log.log_chain``)."""
        self.withdrawn: set[int] = set()
        """Entries that the caller removed from the history."""
        self.restated: dict[int, Message] = {}
        """By entry, the newest form of a message that the caller changed."""
        self.has_media = False
        """Whether any entry has an image or a document: their tokens cannot be counted from text."""
        self.has_reasoning = False
        """Whether any entry has reasoning: a provider may drop it, and then reports fewer tokens."""
        self._round = self._turn = 0
        self._refitted: int | None = None
        self._recounted: tuple[Sequence[Entry], Sequence[Edit]] = (), ()
        """The stored entries and edits, counted anew by this counter; empty where their counts apply."""

    @property
    def is_recounted(self) -> bool:
        """Whether the stored counts are another counter's. The view has this counter's."""
        return bool(self._recounted[0])

    @property
    def known(self) -> Iterator[Entry]:
        """The entries that the caller knows."""
        return filter(self._is_known, self.entries)

    def _is_known(self, entry: Entry) -> bool:
        return entry.known_as != "" and entry.index not in self.withdrawn

    def list_newest_known(self, last: int) -> list[Entry]:
        """List the ``last`` newest entries that the caller knows, in time proportional to them."""
        return list(islice(filter(self._is_known, reversed(self.entries)), last))[::-1]

    def find_form(self, entry: Entry) -> Message:
        """Return the message of an entry in the caller's newest form."""
        return self.restated.get(entry.index, entry.message)

    @property
    def is_unanswered(self) -> bool:
        """Whether the caller's newest message, system messages aside, is no reply."""
        newest = (entry.message.role for entry in filter(self._is_known, reversed(self.entries)))
        return next((role != "assistant" for role in newest if role != "system"), False)

    def rebuild_view(self, entries: int, edits: int, *, readings: dict[object, Any] | None = None) -> View:
        """Return the view of the first ``entries`` entries and ``edits`` edits, with these readings."""
        of_entries, of_edits = self._recounted
        return rebuild(
            [*of_entries[:entries], *self.entries[len(of_entries) : entries]],
            [*of_edits[:edits], *self.edits[len(of_edits) : edits]],
            readings=readings,
            log=self.entries,
            own_tools=self._own_tools,
        )

    def append(
        self,
        message: Message,
        *,
        call: int,
        at_s: float | None = None,
        usage: Reported | None = None,
        known_as: str | None = None,
    ) -> list[Event]:
        """Append one raw message. A repair becomes its first edit, valid from ``call`` on; returns its events.

        Raises IllegalRequest for a NaN or infinite number and InputError for a value that is no Message; the
        history is then unchanged.
        """
        given: object = message
        if not isinstance(given, Message):
            raise InputError(
                f"A {type(given).__name__} was given as a message. Decode a provider's body first: "
                "lading.wire.find_wire(name).decode(body).messages."
            )
        if name := self._needs.name_issuer:
            message = name(message)
        index = len(self.entries)
        data = jsonbytes.dump_at(f"messages.{index}", msgspec.to_builtins(message))
        digest = jsonbytes.digest(data)
        self._round += message.role == "assistant"
        self._turn += is_spoken(message)
        tokens, used_tools = self._count(message), self._sanitizer.uses_tools
        self._add_entry(Entry(index, message, digest, tokens, self._round, self._turn, at_s, usage, known_as))
        append_message(self.view, message, entry=index, tokens=tokens)
        admitted = self._sanitizer.admit(message, entry=index)
        if admitted.messages != (message,):
            self.apply(_draft_repair(admitted, admitted.messages, "", entry=index), call=call)
        earlier = []
        if self._needs.looks_at_calls and used_tools != self._sanitizer.uses_tools:
            earlier = self.refit(call=call)
        return earlier + [
            Repaired(item.rule, index, item.detail) for item in admitted.repairs if item.rule != UNNAMED_CALL
        ]

    def plan(self, *, call: int, fields: Template | None = None) -> Plan:
        """Start the edits of one call. The plan repairs the end of the history for a request with these body
        fields: calls without results, a final assistant message that the model would not continue."""
        plan = Plan(self.view, self.edits, make=partial(self._make_edit, call=call))
        admitted = self._sanitizer.find_closing(fields)
        if admitted.messages or admitted.repairs:
            entry = self.entries[-1].index if admitted.messages else self.view.items[-1].entry
            start, end = self.view.span(entry, entry)
            shown = [item.message for item in self.view.items[start:end]]
            if not admitted.messages:
                shown[-1] = trim_end(shown[-1])
            shown += admitted.messages
            if shown != [self.find_form(self.entries[entry])]:
                plan.apply(_draft_repair(admitted, tuple(shown), CLOSING, entry=entry))
            plan.closing = admitted
            plan.repairs = [Repaired(item.rule, entry, item.detail) for item in admitted.repairs]
        return plan

    def commit(self, plan: Plan) -> None:
        """Apply the edits of a plan. Nothing may have been appended since ``plan`` returned it."""
        if plan.edits[len(self.edits) :]:
            self.edits += plan.edits[len(self.edits) :]
            self.view = plan.view
            self.entries.pack(self.view.find_unfolded())
        self._sanitizer.close(plan.closing)

    def apply(self, draft: Draft, *, call: int, room_tokens: int = UNLIMITED) -> int:
        """Apply a draft without a plan. Returns the first position that changed."""
        edit = self._make_edit(draft, self.view, len(self.edits), call=call, room_tokens=room_tokens)
        self._add_edit(edit)
        return apply_edit(self.view, edit)

    def _make_edit(self, draft: Draft, view: View, index: int, *, call: int, room_tokens: int) -> Edit:
        """Make an edit of a draft. The tokens by which the view exceeds ``room_tokens`` count as forced."""
        start, end = view.span(draft.first, draft.last)
        before = sum(item.tokens for item in view.items[start:end])
        tokens = tuple(self._count(message) for message in draft.replacement)
        overflow = max(view.tokens - room_tokens, 0)
        return Edit(
            index=index,
            call=call,
            kind=draft.kind,
            first=draft.first,
            last=draft.last,
            replacement=draft.replacement,
            replacement_tokens=tokens,
            tokens_before=before,
            reason=draft.reason,
            forced_tokens=max(min(before - sum(tokens), overflow), 0),
            pointers=tuple(str(parse(pointer, within=self._session)) for pointer in draft.pointers),
            summary=draft.summary,
        )

    def restate(self, entry: int, message: Message, *, call: int) -> int | None:
        """Show an entry as this message from ``call`` on, because the caller changed it.

        Returns the first position that changed: none where a strategy replaced the entry, whose edit stays. None:
        nothing changed, as the entry is shown together with messages that a repair added.
        """
        start, end = self.view.span(entry, entry)
        items = self.view.items[start:end]
        if message.role != "system" and (not items or not _STAYING.issuperset(item.kind for item in items)):
            return len(self.view)
        placement = Placement(self.view.items[start - 1].message if start else None, entry)
        admitted = self._sanitizer.readmit(message, [item.message for item in items], placement=placement)
        if admitted is None:
            return None
        self.apply(Draft("restated", entry, entry, (message,), "the caller changed the message", ()), call=call)
        if admitted.messages != (message,):
            self.apply(_draft_repair(admitted, admitted.messages, "", entry=entry), call=call)
        if items and items[0].kind == "pinned":
            self.pin(entry, call=call)
        return start

    def refit(self, *, call: int) -> list[Event]:
        """Repair all that is shown once more, from ``call`` on: for another provider format or model, or because
        calls changed what is taken back. Entries without an edit of a strategy are repaired from their raw form.
        Returns the events of repairs that change what is sent."""
        events: list[Event] = []
        names: dict[str, str] = {}
        position = 0
        while position < len(self.view):
            end = self.view.span(entry := self.view.items[position].entry, entry)[1]
            draft, repairs = self._draft_refit(position, end, names)
            if draft is not None:
                changed = self.apply(draft, call=call)
                self._refitted = changed if self._refitted is None else min(self._refitted, changed)
            events += [Repaired(one.rule, entry, one.detail) for one in repairs if one.rule != UNNAMED_CALL]
            position = end
        self._sanitizer.show_as(names)
        return events

    def take_refitted(self) -> int:
        """Return the first position that ``refit`` changed since this was asked last; else the view's length."""
        position, self._refitted = self._refitted, None
        return len(self.view) if position is None else position

    def _draft_refit(self, start: int, end: int, names: dict[str, str]) -> tuple[Draft | None, Sequence[Repair]]:
        """Return the draft for the items of one entry or edit, and its repairs; None where nothing changes.
        ``names``: ids of calls that got others so far."""
        first, shown = self.view.items[start], tuple(item.message for item in self.view.items[start:end])
        is_raw = len(shown) == 1 and first.kind in (None, "repaired")
        before = self.view.items[start - 1].message if start else None
        repairs: list[Repair] = []
        found: list[Message] = []
        for now in shown:
            form = self.find_form(self.entries[first.entry]) if is_raw else now
            placement = Placement(before, first.entry, self._sanitizer.uses_tools)
            admitted = self._sanitizer.readmit(form, [now], placement=placement) or Admitted((now,))
            repairs += admitted.repairs
            found += [self._sanitizer.rename(one, names, repairs=repairs) for one in admitted.messages]
            before = found[-1]
        if tuple(found) == shown:
            # The encoder leaves out reasoning of another format: the message is the same, and shows less.
            return None, repairs if first.kind is None else ()
        if first.edit < 0 or first.kind in ("repaired", "restated"):
            return _draft_repair(Admitted((), tuple(repairs)), tuple(found), REFITTED, entry=first.entry), repairs
        edit = self.edits[first.edit]
        reason = edit.reason if edit.reason.startswith(REFITTED) else REFITTED + edit.reason
        replaced = tuple(found)
        return Draft(edit.kind, edit.first, edit.last, replaced, reason, edit.pointers, edit.summary), repairs

    def pin(self, entry: int, *, call: int) -> None:
        """Keep an entry verbatim from ``call`` on, also where its neighbours are compacted."""
        start, end = self.view.span(entry, entry)
        shown = tuple(item.message for item in self.view.items[start:end])
        self.apply(Draft("pinned", entry, entry, shown, "the caller pinned it", ()), call=call)

    def is_replaced_with_earlier(self, entry: int) -> bool:
        """Whether one edit replaces this entry together with one before it."""
        return any(edit.first < entry <= edit.last for edit in self.edits if not edit.withdraws)

    def withdraw(self, entry: int, *, call: int) -> int | None:
        """Hide this entry and all later ones from ``call`` on, because the caller continues from before it.

        Returns the first position that changed. None: nothing changed, as one edit replaces entries on both sides:
        the record would still show what was withdrawn, or a call without its result.
        """
        if self.is_replaced_with_earlier(entry):
            return None
        last = len(self.entries) - 1
        pointer = relative(str(entry) if entry == last else f"{entry}-{last}")
        draft = Draft("restated", entry, last, (), "the caller went on from before it", (pointer,))
        position = self.apply(draft, call=call)
        shown = self._replay_sanitizer()
        readings = self.view.readings
        for key in [*readings]:
            if hasattr(readings[key], "forget"):
                readings[key].forget(entry)
            else:
                del readings[key]
        self._refresh_view(shown)
        return position

    def restore(self, entries: Sequence[Entry], edits: Sequence[Edit], *, recount: bool = False) -> None:
        """Continue a stored session with the same view and repairs. ``recount``: the stored counts may be another
        counter's; the log keeps them and the view is counted anew."""
        for entry in entries:
            self._add_entry(entry)
        if entries:
            self._round, self._turn = entries[-1].round, entries[-1].turn
        for edit in edits:
            self._add_edit(edit)
        shown = self._replay_sanitizer()
        if recount:
            self._recount()
        self._refresh_view(shown)

    def _recount(self) -> None:
        entries = [replace(entry, tokens=self._count(entry.message)) for entry in self.entries]
        edits = [replace(edit, replacement_tokens=tuple(map(self._count, edit.replacement))) for edit in self.edits]
        if self.entries != entries or edits != self.edits:
            self._recounted = entries, edits

    def _refresh_view(self, replayed: Mapping[int, Sequence[str]]) -> None:
        """Build the view anew. ``replayed``: by entry, the ids of its calls after the replay. Those of the view
        stand: another provider format may have needed others."""
        self.view = self.rebuild_view(len(self.entries), len(self.edits), readings=self.view.readings)
        names: dict[str, str] = {}
        for item in self.view.items:
            calls, before = item.message.calls, replayed.get(item.entry, ())
            is_alone = item.edit < 0 or self.edits[item.edit].first == self.edits[item.edit].last
            if is_alone and len(calls) == len(before):
                names |= {old: part.id for old, part in zip(before, calls, strict=True) if old != part.id}
        self._sanitizer.show_as(names)

    def _replay_sanitizer(self) -> dict[int, list[str]]:
        """Replay the history through a new sanitizer. Returns by entry the ids of its calls as that shows them."""
        calls: dict[int, list[str]] = {}
        closed: dict[int, Message] = {}
        for edit in self.edits:
            if edit.withdraws:
                span = range(edit.first, edit.last + 1)
                closed = {entry: message for entry, message in closed.items() if entry not in span}
                self.withdrawn.update(span)
            elif edit.kind == "repaired" and edit.reason.startswith(CLOSING):
                closed[edit.first] = edit.replacement[-1]
        self._sanitizer = Sanitizer(self._needs)
        for entry in self.entries:
            if entry.index not in self.withdrawn:
                admitted = self._sanitizer.admit(entry.message)
                if entry.message.calls:
                    calls[entry.index] = [part.id for message in admitted.messages for part in message.calls]
            if entry.index in closed:
                self._sanitizer.close(Admitted((closed[entry.index],)))
        return calls

    def _add_edit(self, edit: Edit) -> None:
        self.edits.append(edit)
        if edit.kind == "restated" and not edit.withdraws:
            self.restated[edit.first] = edit.replacement[0]

    def _add_entry(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.log = log_chain(self.log, entry)
        self.has_media = self.has_media or has_media(entry.message)
        self.has_reasoning |= any(isinstance(part, Reasoning) for part in entry.message.parts)


def _draft_repair(admitted: Admitted, shown: tuple[Message, ...], when: str, *, entry: int) -> Draft:
    # Without a rule, the message shows an orphan result that waited for the results around it.
    rules = dict.fromkeys(item.rule for item in admitted.repairs) or ([] if when == REFITTED else ["orphan_result"])
    pointers = (relative(str(entry)),) if LEFT_OUT in rules else ()
    return Draft("repaired", entry, entry, shown, when + ", ".join(rules), pointers)


def has_media(message: Message) -> bool:
    """Whether the message or one of its results has an image or a document."""
    inner = (part.parts if isinstance(part, ToolResult) else (part,) for part in message.parts)
    return any(isinstance(part, Image | File) for parts in inner for part in parts)

"""The history of one session: raw entries, frozen edits, and the view that both give.

Messages enter through the repairer (``repair.py``). Edits are staged in a ``Plan``, which has the view with them
applied, and become part of the history by ``commit``. Dropping a plan changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from lading.history.pairing import find_calls, find_unanswered, name_results, pair
from lading.history.plan import UNLIMITED, Plan
from lading.history.refitting import REFITTED, draft_repair, fit, refit
from lading.history.repair import UNNAMED_CALL, Repairer, trim_end
from lading.history.repair_rules import Needs, Placement, RepairStep
from lading.history.replaying import CLOSING, find_renamed, find_withdrawn, replay
from lading.history.view import ONLY_RESTORE, View, append_message, apply_edit, rebuild
from lading.messages import UNNAMED, File, Image, Message, Reasoning, Template, ToolResult, is_spoken

_STAYING = frozenset({None, *NO_COMPACTIONS} - {"payload"})
"""Kinds of edits after which an entry is shown in full, and as nothing but itself."""
_SHORTENED = frozenset({"reshaped", "clipped", "digested"})
"""Kinds of edits after which it is shown in part."""


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
        self._repairer = Repairer(needs)
        self._count = count
        self.entries = Log()
        self.edits: list[Edit] = []
        self.view = View(self.entries, own_tools=own_tools)
        self.log = ""
        """Chain digest over the entries (``log.log_chain``)."""
        self.withdrawn: set[int] = set()
        """Entries that the caller removed from the history."""
        self.has_media = False
        """Whether any entry has an image or a document: their tokens cannot be counted from text."""
        self.has_reasoning = False
        """Whether any entry has reasoning: a provider may drop it, and then reports fewer tokens."""
        self._round = self._turn = 0
        self._refitted: int | None = None
        self._fitted = 0
        """As of ``Plan``, by the last request whose fields asked for it."""
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
        return self.view.changed.get(entry.index, entry.message)

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
        reply_id: str = "",
        is_issued: bool = False,
    ) -> list[Event]:
        """Append one raw message. A repair becomes its first edit, valid from ``call`` on; returns its events.
        ``is_issued``: as in ``Placement``.

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
        for result in message.results:
            if result.call_id.startswith(UNNAMED):
                shown = (one for one in reversed(self.entries) if one.index not in self.withdrawn)
                message = name_results(message, (entry.message for entry in shown))
                break
        index = len(self.entries)
        data = jsonbytes.dump_at(f"messages.{index}", msgspec.to_builtins(message))
        digest = jsonbytes.digest(data)
        self._round += message.role == "assistant"
        self._turn += is_spoken(message)
        tokens, used_tools = self._count(message), self._repairer.uses_tools
        counts = tokens, self._round, self._turn
        self._add_entry(Entry(index, message, digest, *counts, at_s, usage, known_as, reply_id))
        append_message(self.view, message, entry=index, tokens=tokens)
        repaired = self._repairer.repair(message, entry=index, is_issued=is_issued)
        if repaired.messages != (message,):
            self.apply(draft_repair(repaired, repaired.messages, entry=index), call=call)
        earlier = []
        if self._needs.looks_at_calls and used_tools != self._repairer.uses_tools:
            earlier = self.refit(call=call)
        return earlier + [
            Repaired(item.rule, index, item.detail) for item in repaired.repairs if item.rule != UNNAMED_CALL
        ]

    def plan(self, *, call: int, fields: Template | None = None, step: RepairStep | None = None) -> Plan:
        """Start the edits of one call. The plan repairs the end of the history for a request with these body
        fields: calls without results, a final assistant message that the model would not continue. ``step``: the
        repair that these fields ask of all messages."""
        plan = Plan(self.view, self.edits, make=partial(self._make_edit, call=call))
        plan.fitted = self._fitted
        if step:
            fit(plan, step, entries=len(self.entries))
        if self._needs.calls.may_be_apart and (unanswered := self._repairer.unanswered):
            newest_first = (item.message for item in reversed(plan.view.items))
            start = len(plan.view) - find_calls(newest_first, unanswered)
            pair(plan, self._needs.calls, when=CLOSING, start=start)
        given = (entry.message.role for entry in reversed(self.entries) if entry.index not in self.withdrawn)
        repaired = self._repairer.find_closing(
            fields,
            newest_first=(item.message for item in reversed(plan.view.items)),
            replied=next(given, "assistant") == "assistant",
        )
        if repaired.messages or repaired.repairs:
            entry = self.entries[-1].index if repaired.messages else plan.view.items[-1].entry
            start, end = plan.view.span(entry, entry)
            shown = [item.message for item in plan.view.items[start:end]]
            if not repaired.messages:
                shown[-1] = trim_end(shown[-1])
            shown += repaired.messages
            if shown != [self.find_form(self.entries[entry])]:
                plan.apply(draft_repair(repaired, tuple(shown), entry=entry, when=CLOSING))
            plan.closing = repaired
            plan.repairs += [Repaired(item.rule, entry, item.detail) for item in repaired.repairs]
        return plan

    def commit(self, plan: Plan) -> None:
        """Apply the edits of a plan. Nothing may have been appended since ``plan`` returned it."""
        if new := plan.edits[len(self.edits) :]:
            self.edits += new
            self.view = plan.view
            self.entries.compress(self.view.find_unfolded())
        self._repairer.close(plan.closing)
        self._fitted = plan.fitted

    def apply(self, draft: Draft, *, call: int, room_tokens: int = UNLIMITED) -> int:
        """Apply a draft without a plan. Returns the first position that changed."""
        edit = self._make_edit(draft, self.view, len(self.edits), call=call, room_tokens=room_tokens)
        self.edits.append(edit)
        return apply_edit(self.view, edit)

    def _make_edit(self, draft: Draft, view: View, index: int, *, call: int, room_tokens: int) -> Edit:
        """Make an edit of a draft. The tokens by which the view exceeds ``room_tokens`` count as forced."""
        start, end = view.span(draft.first, draft.last)
        before = sum(item.tokens for item in view.items[start:end])
        shown = draft.replacement
        tokens = tuple(map(self._count, shown))
        overflow = max(view.tokens - room_tokens, 0)
        return Edit(
            index=index,
            call=call,
            kind=draft.kind,
            first=draft.first,
            last=draft.last,
            replacement=shown,
            replacement_tokens=tokens,
            tokens_before=before,
            reason=draft.reason,
            forced_tokens=max(min(before - sum(tokens), overflow), 0),
            pointers=tuple(str(parse(pointer, within=self._session)) for pointer in draft.pointers),
            summary=draft.summary,
        )

    def is_folded(self, entry: int) -> bool:
        """Whether an edit shows the entry together with others, or not at all."""
        start, end = self.view.span(entry, entry)
        return start == end or self.view.last_shown(entry) > entry

    def restate(self, entry: int, message: Message, *, call: int, is_other: bool = False) -> int | None:
        """Show an entry as this message from ``call`` on, because the caller changed it.

        Returns the first position that changed: none where a strategy replaced the entry, whose edit stays.
        ``is_other``: the message says something else; then only an edit stays that folds or clears the entry, and
        strategies read the message in place of the first. None: nothing changed, as the entry is shown together
        with messages that a repair added.
        """
        start, end = self.view.span(entry, entry)
        items = self.view.items[start:end]
        staying = _STAYING | _SHORTENED if is_other and not self.is_folded(entry) else _STAYING
        if message.role != "system" and (not items or not staying.issuperset(item.kind for item in items)):
            return len(self.view)
        before = self.view.items[start - 1].message if start else None
        placement = Placement(before, entry, is_issued=self._is_issued(entry, message))
        repaired = self._repairer.repair_again(message, [item.message for item in items], placement=placement)
        if repaired is None:
            return None
        self._fitted = min(self._fitted, entry)
        self.apply(Draft("restated", entry, entry, (message,), "the caller changed the message", ()), call=call)
        if repaired.messages != (message,):
            self.apply(draft_repair(repaired, repaired.messages, entry=entry), call=call)
        if items and items[0].kind == "pinned":
            self.pin(entry, call=call)
        if is_other:
            self._forget(entry)
            self._refresh_view()
        return start

    def refit(self, *, call: int, same_format: bool = True) -> list[Event]:
        """Repair all that is shown once more, from ``call`` on: for another model or (not ``same_format``) provider
        format, or because calls changed what is taken back. Returns events of repairs that change what is sent."""
        plan = Plan(self.view, self.edits, make=partial(self._make_edit, call=call))
        refit(
            plan,
            self._repairer,
            find_form=lambda entry: self.find_form(self.entries[entry]),
            is_issued=self._is_issued,
            same_format=same_format,
        )
        pair(plan, self._needs.calls, when=REFITTED, waiting=self._repairer.unanswered)
        self._settle(plan.view)
        self._fitted = 0
        if new := plan.edits[len(self.edits) :]:
            self.edits += new
            self.view = plan.view
        changed = min(plan.changed, len(self.view))
        self._refitted = changed if self._refitted is None else min(self._refitted, changed)
        return plan.repairs

    def take_refitted(self) -> int | None:
        """Return the first position that ``refit`` changed since this was asked last; None: it changed none."""
        position, self._refitted = self._refitted, None
        return position

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
        self._forget(entry)
        self._refresh_view()
        return position

    def _forget(self, entry: int) -> None:
        """Forget what strategies read of this entry and later ones."""
        readings = self.view.readings
        for key in [*readings]:
            if hasattr(readings[key], "forget"):
                readings[key].forget(entry)
            else:
                del readings[key]

    def restore(self, entries: Sequence[Entry], edits: Sequence[Edit], *, recount: bool = False) -> None:
        """Continue a stored session with the same view and repairs. ``recount``: the stored counts may be another
        counter's; the log keeps them and the view is counted anew."""
        for entry in entries:
            self._add_entry(entry)
        if entries:
            self._round, self._turn = entries[-1].round, entries[-1].turn
        self.edits += edits
        if recount:
            self._recount()
        self._refresh_view()

    def _recount(self) -> None:
        entries = [replace(entry, tokens=self._count(entry.message)) for entry in self.entries]
        edits = [replace(edit, replacement_tokens=tuple(map(self._count, edit.replacement))) for edit in self.edits]
        if self.entries != entries or edits != self.edits:
            self._recounted = entries, edits

    def _refresh_view(self) -> None:
        """Build the view anew, and repair what comes as in the history so far."""
        self._repairer, replayed = replay(self._needs, self.entries, edits=self.edits)
        self.withdrawn = find_withdrawn(self.edits)
        self.view = self.rebuild_view(len(self.entries), len(self.edits), readings=self.view.readings)
        self._repairer.show_as(find_renamed(self.view, self.edits, replayed=replayed))
        self._settle(self.view)

    def _is_issued(self, entry: int, message: Message) -> bool:
        """Whether a message has the reasoning of a reply of this session."""
        raw = self.entries[entry]
        return raw.usage is not None and _list_reasoning(message) == _list_reasoning(raw.message)

    def _settle(self, view: View) -> None:
        """Wait only for results of calls that a view shows without, and go on behind its last message: the replay
        may have answered others, and results that were apart are before it."""
        if view.items:
            self._repairer.last = view.items[-1].message
        if unanswered := self._repairer.unanswered:
            self._repairer.settle(find_unanswered((item.message for item in view.items), unanswered))

    def _add_entry(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.log = log_chain(self.log, entry)
        self.has_media = self.has_media or has_media(entry.message)
        self.has_reasoning |= any(isinstance(part, Reasoning) for part in entry.message.parts)


def _list_reasoning(message: Message) -> list[tuple[str, str | None, str | None]]:
    return [(part.text, part.signature, part.data) for part in message.parts if isinstance(part, Reasoning)]


def has_media(message: Message) -> bool:
    """Whether the message or one of its results has an image or a document."""
    inner = (part.parts if isinstance(part, ToolResult) else (part,) for part in message.parts)
    return any(isinstance(part, Image | File) for parts in inner for part in parts)

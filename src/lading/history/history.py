"""A session's log at work: raw entries, frozen edits, and the view they give, kept in step.

Messages enter through the sanitizer (``repair``). Edits are decided in a ``Plan``, which shows the view as it would
be with them, and are made by ``commit``; a plan that is dropped has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import takewhile

import msgspec
from msgspec.structs import replace

from lading import jsonbytes
from lading.addresses import parse, relative
from lading.errors import InputError
from lading.events import Event, Repaired
from lading.history.log import Draft, Edit, Entry, Reported, log_chain
from lading.history.plan import UNLIMITED, Plan
from lading.history.repair import LEFT_OUT, Admitted, Needs, Sanitizer, trimmed
from lading.history.view import View, rebuild
from lading.messages import File, Image, Message, Reasoning, Template, ToolResult, is_spoken

CLOSING = "before the request: "
"""Starts the reason of a repair that was made when a request was due, not when a message came."""


class History:
    """Entries, edits and view of one session. Append-only but for edits that were never sent."""

    def __init__(
        self, needs: Needs, count: Callable[[Message], int], *, session: tuple[str, str] = ("default", "session")
    ) -> None:
        """``session``: the tenant and the session to which pointers lead."""
        self._needs, self._session = needs, session
        self._sanitizer = Sanitizer(needs)
        self._count = count
        self.entries: list[Entry] = []
        self.edits: list[Edit] = []
        self.view = View()
        self.log = ""
        """Chain digest over the entries (``manifest.log_chain``)."""
        self.withdrawn: set[int] = set()
        """Entries that the caller said are not part of the history any more."""
        self.holds_media = False
        """Whether a picture or document was ever taken in: their tokens are no matter of words."""
        self.holds_reasoning = False
        """Whether reasoning was ever taken in, which a provider may leave out of what it is sent."""
        self._round = self._turn = 0
        self._recounted: tuple[Sequence[Entry], Sequence[Edit]] = (), ()
        """The first entries and edits as this counter counts them, where another one counted them before."""

    @property
    def is_recounted(self) -> bool:
        """Whether the log holds counts of another counter; the view has none."""
        return bool(self._recounted[0])

    @property
    def known(self) -> Iterator[Entry]:
        """The entries that the caller knows."""
        return (entry for entry in self.entries if entry.known_as != "" and entry.index not in self.withdrawn)

    @property
    def unanswered(self) -> list[Entry]:
        """The entries that the caller knows after the last reply, without system messages."""
        newest = takewhile(lambda entry: entry.message.role != "assistant", reversed(self.entries))
        known = [entry for entry in newest if entry.known_as != "" and entry.index not in self.withdrawn]
        return [entry for entry in reversed(known) if entry.message.role != "system"]

    def rebuilt(self, entries: int, edits: int) -> View:
        """The view of the first so many entries and edits."""
        of_entries, of_edits = self._recounted
        return rebuild(
            [*of_entries[:entries], *self.entries[len(of_entries) : entries]],
            [*of_edits[:edits], *self.edits[len(of_edits) : edits]],
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
        """Take in one raw message; what had to be mended becomes its first edit, valid from ``call`` on.

        Raises IllegalRequest, before anything is taken in, for a NaN or infinite number, InputError for
        what is no Message.
        """
        _check_message(message)
        data = jsonbytes.dump_at(f"messages.{len(self.entries)}", msgspec.to_builtins(message))
        digest = jsonbytes.digest(data)
        self._round += message.role == "assistant"
        self._turn += is_spoken(message)
        index, tokens = len(self.entries), self._count(message)
        self._take(Entry(index, message, digest, tokens, self._round, self._turn, at_s, usage, known_as))
        admitted = self._sanitizer.admit(message, pointer=relative(str(index)))
        if draft := self._repair(admitted, admitted.messages, "", entry=index):
            self.apply(draft, call=call)
        return [Repaired(item.rule, index, item.detail) for item in admitted.repairs]

    def plan(self, *, call: int, fields: Template | None = None) -> Plan:
        """Begin the edits of a call whose request has these body fields, with what such a request would break now
        mended: calls without results, an assistant message at the end that the model does not continue."""
        plan = Plan(self.view, self.edits, make=partial(self._edit, call=call))
        admitted = self._sanitizer.closing(fields)
        if admitted.messages or admitted.repairs:
            entry = self.entries[-1].index if admitted.messages else self.view.items[-1].entry
            start, end = self.view.span(entry, entry)
            shown = [item.message for item in self.view.items[start:end]]
            if not admitted.messages:
                shown[-1] = trimmed(shown[-1])
            if draft := self._repair(admitted, (*shown, *admitted.messages), CLOSING, entry=entry):
                plan.apply(draft)
            plan.closing = admitted
            plan.repairs = [Repaired(item.rule, entry, item.detail) for item in admitted.repairs]
        return plan

    def commit(self, plan: Plan) -> None:
        """Make the edits of a plan; nothing may have been added since it was begun."""
        self.edits += plan.edits[len(self.edits) :]
        self.view = plan.view
        self._sanitizer.close(plan.closing)

    def apply(self, draft: Draft, *, call: int, room_tokens: int = UNLIMITED) -> int:
        """Make a draft an edit of the view at once; returns the first position that changed."""
        edit = self._edit(draft, self.view, len(self.edits), call=call, room_tokens=room_tokens)
        self.edits.append(edit)
        return self.view.apply(edit)

    def _edit(self, draft: Draft, view: View, index: int, *, call: int, room_tokens: int) -> Edit:
        """Of what it frees, as much counts as forced as the view stands above ``room_tokens``."""
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
        )

    def restate(self, entry: int, message: Message, *, call: int) -> None:
        """From ``call`` on an entry is seen as this message, because the caller says it differently now."""
        draft = Draft("restated", entry, entry, (message,), "the caller changed the message", ())
        self.apply(draft, call=call)

    def pin(self, entry: int, *, call: int) -> None:
        """From ``call`` on an entry is kept verbatim, whatever leaves the view around it."""
        start, end = self.view.span(entry, entry)
        shown = tuple(item.message for item in self.view.items[start:end])
        self.apply(Draft("pinned", entry, entry, shown, "the caller pinned it", ()), call=call)

    def withdraw(self, entry: int, *, call: int) -> int:
        """From ``call`` on nothing from this entry on is seen, because the caller goes on from before it.
        Returns the first position that changed."""
        last = len(self.entries) - 1
        pointer = relative(str(entry) if entry == last else f"{entry}-{last}")
        draft = Draft("restated", entry, last, (), "the caller went on from before it", (pointer,))
        position = self.apply(draft, call=call)
        self._sanitize_again()
        readings = self.view.readings
        for key in [*readings]:
            if hasattr(readings[key], "forget"):
                readings[key].forget(entry)
            else:
                del readings[key]
        self._show()
        return position

    def splits(self, entry: int) -> bool:
        """Whether an edit shows this entry and ones before it in one piece."""
        return any(edit.first < entry <= edit.last for edit in self.edits if not edit.withdraws)

    def restore(self, entries: Sequence[Entry], edits: Sequence[Edit], *, recount: bool = False) -> None:
        """Continue a stored session: same view, same repairs. Nothing is counted again, unless the counts may be
        another counter's; then they stay in the log, and the view gets its own."""
        for entry in entries:
            self._note(entry)
        if entries:
            self._round, self._turn = entries[-1].round, entries[-1].turn
        self.edits.extend(edits)
        self._sanitize_again()
        if recount:
            self._recount()
        self._show()

    def _recount(self) -> None:
        entries = [replace(entry, tokens=self._count(entry.message)) for entry in self.entries]
        edits = [replace(edit, replacement_tokens=tuple(map(self._count, edit.replacement))) for edit in self.edits]
        if entries != self.entries or edits != self.edits:
            self._recounted = entries, edits

    def _show(self) -> None:
        readings = self.view.readings
        self.view = self.rebuilt(len(self.entries), len(self.edits))
        self.view.readings = readings

    def _sanitize_again(self) -> None:
        """Bring the sanitizer to where it is after all that is part of the history."""
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
                self._sanitizer.admit(entry.message)
            if entry.index in closed:
                self._sanitizer.close(Admitted((closed[entry.index],)))

    def _take(self, entry: Entry) -> None:
        self._note(entry)
        self.view.append(entry.message, entry=entry.index, tokens=entry.tokens)

    def _note(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.log = log_chain(self.log, entry)
        self.holds_media = self.holds_media or holds_media(entry.message)
        self.holds_reasoning |= any(isinstance(part, Reasoning) for part in entry.message.parts)

    def _repair(self, admitted: Admitted, shown: tuple[Message, ...], when: str, *, entry: int) -> Draft | None:
        if shown == (self.entries[entry].message,):
            return None
        # Nothing mended here, and yet more is shown: an orphan that waited for the results around it.
        rules = dict.fromkeys(item.rule for item in admitted.repairs) or ["orphan_result"]
        pointers = (relative(str(entry)),) if LEFT_OUT in rules else ()
        return Draft("repaired", entry, entry, shown, when + ", ".join(rules), pointers)


def holds_media(message: Message) -> bool:
    """Whether a picture or document stands in the message or in one of its results."""
    inner = (part.parts if isinstance(part, ToolResult) else (part,) for part in message.parts)
    return any(isinstance(part, Image | File) for parts in inner for part in parts)


def _check_message(message: object) -> None:
    if not isinstance(message, Message):
        raise InputError(
            f"A {type(message).__name__} was given as a message. Decode a provider's body first: "
            "lading.find_wire(name).decode(body).messages."
        )

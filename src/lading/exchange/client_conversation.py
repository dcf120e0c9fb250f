"""One conversation of a client: whether a history continues it or diverges from it, and what is new in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any
from weakref import WeakMethod

from lading import jsonbytes
from lading.exchange.changed_past import skip_changed
from lading.exchange.history import Opening, RequestHistory, name_conversation
from lading.exchange.marks import limit_marks, place_marks
from lading.exchange.regrouped import RegroupedHistory, regroup
from lading.exchange.withdrawn_replies import WithdrawnReplies
from lading.exchange.wrapping import SharedSession
from lading.messages import Template, Tool
from lading.session.matching import Matched, fingerprint_entry, match
from lading.session.regrouping import Run
from lading.stores.leases import Lease
from lading.wire.declarations import read_tools


class ClientConversation:
    """One conversation of a client: its session and the digests of its last request."""

    def __init__(self, session: SharedSession, head: str, *, parent: ClientConversation | None = None) -> None:
        """``parent``: the conversation of which it is a copy."""
        self.session, self.head = session, head
        self.opening: Opening | None = None  # Of the last request.
        self.leave: WeakMethod[Callable[[], None]] | None = None  # Ends the call whose answer is streamed.
        self.busy = self.is_closed = False  # Closed: the next request opens it again from the store.
        self._given = b""  # Digests of the messages of the last request, after its opening system messages.
        self._runs: Sequence[Run] = ()  # Those of them that the log has as others.
        self._settled = session.shown  # Number of messages that cannot change; later ones may be replaced once.
        self.withdrawn: WithdrawnReplies = WithdrawnReplies(session, parent.withdrawn if parent else None)
        self.spent: dict[str, Any] = {}  # Usage of requests whose answers the caller has not seen.
        self._tools_given: Any = None
        self._tools: tuple[Tool, ...] = ()

    @property
    def default_name(self) -> str:
        """The name of its session if the caller gave it none."""
        return name_conversation(self.head)

    def lease(self) -> Lease:
        """Return a lease for one call, which has to release it."""
        # Kept: a lease that is collected with the answer would end before the reply is recorded.
        self.busy, self.leave, self._lease = True, None, Lease(self._free)
        return self._lease

    def _free(self) -> None:
        try:
            self.session.let_go()
        finally:
            self.busy = False

    def end_abandoned_call(self, history: RequestHistory) -> bool:
        """End a streaming call that the history continues: its caller is gone. Return whether it is free."""
        end = self.leave() if self.leave else None
        if end and self.find_continuation(history) not in (None, len(history.regrouped.get(self, history))):
            end()
        return not self.busy

    def find_continuation(self, history: RequestHistory, *, answered: bool = False) -> int | None:
        """Return the position of the first new message; None if the history does not continue this conversation.
        ``answered``: nor if the history has replies that this conversation does not have."""
        matched = self._match(history)
        if matched is None or matched.kind != "continues":
            return None
        position = max(matched.position, len(history.opening.leading))
        new = history.regrouped.get(self, history).read(position) if answered else ()
        return None if any(message.role == "assistant" for message, _ in new) else position

    def count_shared(self, history: RequestHistory) -> int:
        """Count the messages at the start that a history shares with this conversation, up to its last reply."""
        matched = self._match(history)
        return min(matched.position, history.regrouped.get(self, history).find_last_reply()) if matched else 0

    def find_change(self, history: RequestHistory, *, named: bool) -> int | None:
        """Return the position from which on a history is new, though it differs from this conversation: only its
        last call (``find_divergence``), or old messages at their places; or the end of this conversation, if it is
        the start of the history. None if it is another one."""
        position = self.find_divergence(history, named=named)
        position = self.find_renewed(history, named=named) if position is None else position
        return self.find_continuation(history) if position is None else position

    def find_divergence(self, history: RequestHistory, *, named: bool) -> int | None:
        """Return the position at which a history diverges, if only the last call differs: a reply requested again
        or rewritten, a last message edited, text that was for one request alone. None if it is another one."""
        matched, leading = self._match(history), history.opening.leading
        if matched is None or matched.position <= len(leading) or not self._may_part(history, matched.position):
            return None
        if named or history.has_reply_before(matched.position):
            return matched.position
        # Before the first reply, another conversation may have the same start; unless the caller named this one.
        is_instructed = [known_as for _, known_as in leading] == self.session.known[: len(leading)]
        return matched.position if is_instructed and matched.position < len(history) else None

    def find_renewed(self, history: RequestHistory, *, named: bool) -> int | None:
        """Return the position up to which a history is this conversation with old messages changed at their places,
        if it goes on from there, or only the last call differs. None if it is another one."""
        matched, session = self._match(history), self.session
        if matched is None or matched.kind != "differs" or not history.has_reply_before(len(history)):
            return None
        position = skip_changed(history.regrouped.get(self, history), session, at=matched.position, named=named)
        is_same = position and (position == len(session.known) or self._may_part(history, position))
        return position if is_same else None

    def _may_part(self, history: RequestHistory, position: int) -> bool:
        """Whether the history may have otherwise, from a position on, no more than the last call."""
        return position >= self._settled or not self._has_other_answers(history, position)

    def _has_other_answers(self, history: RequestHistory, position: int) -> bool:
        """Whether messages from a position on have other replies here than the newest alone, or none; the newest
        may be in place of one that was withdrawn."""
        known = self.session.list_newest_known(len(self.session.known) - position)
        replies = [fingerprint_entry(one) for one in known if one.message.role == "assistant"]
        read = history.regrouped.get(self, history).read(position)
        given = next((one for one in read if one[0].role == "assistant"), None)
        if known and not replies:
            return False
        is_newest = len(replies) == 1 and replies == [fingerprint_entry(known[-1])]
        return not is_newest or given is None or (given[1] != replies[0] and not self.withdrawn.has(*given))

    def withdraw(self, history: RequestHistory, position: int) -> bool:
        """Remove the messages from a position of ``find_divergence``; False if one edit covers both sides of it."""
        if is_withdrawn := self.session.withdraw(position):
            self._settled, self._given, self._runs = len(history.regrouped.get(self, history)), b"", ()
        return is_withdrawn

    def take(self, body: dict[str, Any], history: RequestHistory, *, position: int) -> None:
        """Add the messages from a position on to the session, and the request's tools and other fields."""
        session, wire, leading = self.session, self.session.wire, history.opening.leading
        history = history.regrouped.get(self, history)
        opening, is_first = [message for message, _ in leading], not session.entries
        if not is_first:
            if self.opening is None or self.opening.leading != leading:
                session.instruct(opening)
            start = min(history.count_same(self._given), position)
            again = [message for message, _ in history.read(start)]
            # Opened again, it may have messages with cache marks that the caller did not give through a client.
            position = session.update(again, start=start, end=position, marked=self.opening is None)
        new = [*(leading if is_first else []), *history.read(position)]
        self._settled = max(self._settled, len(session.known) if new else 0)
        issued = set[str]()
        if any(message.role == "assistant" for message, _ in new):
            new, issued = self.withdrawn.bring_back(new)
        self.withdrawn.copied = None
        messages = [message for message, _ in new]
        session.extend(messages, known_as=[known_as for _, known_as in new], stored=False, issued=issued)
        self.opening, self._given, self._runs = history.opening, history.digests, history.runs
        tools, fields, end_mark = body.get(wire.layout.tools.field), *self._mark(body, history)
        if tools != self._tools_given:
            self._tools_given, self._tools = tools, read_tools(tools, wire=wire)
        # Whatever choice is forced: another list of tools would be another prefix, which the provider writes anew.
        own_tools = not wire.layout.demands(body).is_several
        session.offer(self._tools, fields, own_tools=own_tools, end_mark=end_mark)

    def _mark(self, body: dict[str, Any], history: RequestHistory) -> tuple[Template, object]:
        """Place the request's cache marks; return its other fields, and the mark at its end that is not in them."""
        session, layout, fields = self.session, self.session.wire.layout, self.session.wire.read_fields(body)
        if (scheme := layout.marks) is None:
            return fields, None
        beside = (body.get(layout.tools.field), body.get(layout.system))
        given, own = limit_marks(
            history.marks, history.items, scheme=scheme, beside=beside, own=fields.pop(scheme.field, None)
        )
        marks = place_marks(
            given, history.items, find=lambda at: session.find_entry(history.find_position(at)).index
        )
        session.mark(marks)
        fields |= {} if own is None else {scheme.field: own}
        return fields, next((jsonbytes.load(one.mark) for one in marks if one.entry is None), None)

    def _match(self, history: RequestHistory) -> Matched | None:
        """Match a history with the session's, ignoring texts of opening system messages; None if fewer or more."""
        if self._runs and self not in history.regrouped and history.digests.startswith(self._given):
            history.regrouped[self] = RegroupedHistory(history, self._runs)
        read, known = history.regrouped.get(self, history), self.session.known
        leading, start = len(history.opening.leading), read.count_same(self._given)
        if sum(1 for _ in takewhile(lambda entry: entry.message.role == "system", self.session.entries)) != leading:
            return None
        matched = match(known, [known_as for _, known_as in read.read(start)], start=start)
        if matched.kind == "differs" and (other := regroup(read, self.session, position=matched.position)):
            history.regrouped[self] = other
            matched = match(known, [known_as for _, known_as in other.read(start)], start=start)
        return matched

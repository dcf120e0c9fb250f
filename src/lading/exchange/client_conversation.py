"""One conversation of a client: whether a history continues it or diverges from it, and what is new in one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any, Literal
from weakref import WeakMethod

from lading.exchange.bodies import DIGEST_BYTES
from lading.exchange.history import Opening, RequestHistory, name_conversation
from lading.exchange.marks import PlacedMarks, arrange, find_last_place, list_moving
from lading.exchange.stored_marks import StoredMarks
from lading.exchange.wrapping import SharedSession
from lading.messages import Message, Template, Tool
from lading.session.forms import has_form
from lading.session.matching import Matched, fingerprint_entry, match
from lading.stores.leases import Lease
from lading.wire.declarations import read_tools


class ClientConversation:
    """One conversation of a client: its session and the digests of its last request."""

    def __init__(self, session: SharedSession, head: str, *, parent: ClientConversation | None = None) -> None:
        """``parent``: the conversation from which its first request parts."""
        self.session, self.head, self._is_branch = session, head, parent is not None
        self.has_dropped: bool = parent is not None and parent.has_dropped
        """Whether the caller has dropped answered text of its last request, and does so perhaps at each."""
        self.opening: Opening | None = None  # Of the last request.
        self.leave: WeakMethod[Callable[[], None]] | None = None  # Ends the call whose answer is streamed.
        self.busy = self.is_closed = False  # Closed: the next request opens it again from the store.
        self._given = b""  # Digests of the messages of the last request, after its opening system messages,
        self._given_marks: PlacedMarks = {}  # and its cache marks.
        self._settled = session.shown  # Number of messages that cannot change; later ones may be replaced once.
        self._issued: dict[str, Message] = {}  # Replies that were withdrawn, by fingerprint.
        self.spent: dict[str, Any] = {}  # Usage of requests whose answers the caller has not seen.
        self._marks = StoredMarks(session)
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
        if self.leave and (end := self.leave()) and self.find_continuation(history) not in (None, len(history)):
            end()
        return not self.busy

    def find_continuation(self, history: RequestHistory, *, answered: bool = False) -> int | None:
        """Return the position of the first new message; None if the history does not continue this conversation.
        ``answered``: nor if the history has replies and this conversation has none."""
        matched = self._match(history)
        if matched is None or matched.kind != "continues":
            return None
        is_short = answered and history.has_reply_before(len(history))
        return None if is_short and not history.has_reply_before(matched.position) else matched.position

    def count_shared(self, history: RequestHistory) -> int:
        """Count the messages at the start that a history shares with this conversation."""
        matched = self._match(history)
        return matched.position if matched else 0

    def find_divergence(self, history: RequestHistory, *, named: bool) -> int | None:
        """Return the position at which a history diverges, if only the last call differs: a reply requested again
        or rewritten, a last message edited, text that was for one request alone. None if it is another one."""
        matched, leading = self._match(history), history.opening.leading
        if matched is None or matched.position <= len(leading):
            return None
        if matched.position < self._settled and self._compare_answers(history, matched.position) == "other":
            return None
        if named or history.has_reply_before(matched.position):
            return matched.position
        # Before the first reply, another conversation may have the same start; unless the caller named this one.
        is_instructed = [known_as for _, known_as in leading] == self.session.known[: len(leading)]
        return matched.position if is_instructed and matched.position < len(history) else None

    def _compare_answers(self, history: RequestHistory, position: int) -> Literal["same", "none", "other"]:
        """Compare the replies from a position on. Same: the newest alone. None: there is none here."""
        known = self.session.list_newest_known(len(self.session.known) - position)
        replies = [fingerprint_entry(one) for one in known if one.message.role == "assistant"]
        given = next((known_as for one, known_as in history.read(position) if one.role == "assistant"), "")
        if known and not replies:
            return "none"
        return "same" if replies == [given] and fingerprint_entry(known[-1]) == given else "other"

    def withdraw(self, history: RequestHistory, position: int) -> bool:
        """Remove the messages from a position of ``find_divergence``; False if one edit covers both sides of it."""
        gone, drops = self.session.known[position:], self._compare_answers(history, position) == "same"
        self._issued = dict(self.session.find_replies({*gone}, last=len(gone)))
        if is_withdrawn := self.session.withdraw(position):
            self._settled, self._given, self.has_dropped = len(history), b"", self.has_dropped or drops
            self._marks.forget()
        return is_withdrawn

    def take(self, body: dict[str, Any], history: RequestHistory, *, position: int) -> None:
        """Add the messages from a position on to the session, and the request's tools and other fields."""
        session, wire, leading, marks = self.session, self.session.wire, history.opening.leading, history.marks
        if self._given:  # Nothing was withdrawn since.
            self.has_dropped = False
        opening = [message for message, _ in leading]
        if session.entries:
            if self.opening is None or self.opening.leading != leading:
                session.instruct(opening)
            # The marks of a request without an answer may still change.
            marked = session.is_unanswered and marks != self._given_marks
            start = len(leading) if marked else min(self._count_same(history), position)
            again = [message for message, _ in history.read(start)]
            position = session.update(again, start=start, end=position, marked=marked)
        is_first = not session.entries
        new = [*(leading if is_first else []), *history.read(position, is_first=is_first)]
        issued, self._issued = self._issued, {}
        if issued:
            new = [(self._choose(message, issued.get(known_as)), known_as) for message, known_as in new]
        self._settled = max(self._settled, len(session.known) if new else 0)
        tools, messages = body.get(wire.layout.tools.field), [message for message, _ in new]
        fields = wire.read_fields(body)
        if marks and not is_first:
            has_own = bool(wire.layout.marks and fields.get(wire.layout.marks.field))
            messages = self._marks.strip_surplus(
                messages, leading=opening, tools=tools, given=marks, has_own=has_own
            )
        if messages and messages[0].role == "assistant":
            session.hide_unseen(messages[0])
        session.extend(messages, known_as=[known_as for _, known_as in new], stored=False, issued=issued.keys())
        self.opening, self._given, self._given_marks = history.opening, history.digests, marks
        if scheme := wire.layout.marks:
            kept = self._marks.give_way(marks, leading=opening, tools=tools, fields=fields)
            if marks or fields.get(scheme.field):
                session.mark_behind(
                    self._find_place(history, fields, kept),
                    always=self.has_dropped or self._is_branch,
                    marks_before=self.has_dropped and len(list_moving(marks, kept)) > 1,
                )
            fields, tools = arrange(fields, tools, scheme=scheme, given=marks, kept=kept)
        if tools != self._tools_given:
            self._tools_given, self._tools = tools, read_tools(tools, wire=wire)
        self._is_branch = False
        # Whatever choice is forced: another list of tools would be another prefix, which the provider writes anew.
        session.offer(self._tools, fields, own_tools=not wire.layout.demands(body).is_several)

    def _find_place(self, history: RequestHistory, fields: Template, kept: PlacedMarks) -> int | None:
        """Find the position of the message behind which the caller's marks end; None: it is the newest, or the
        request has a mark of its own and the caller drops nothing."""
        scheme, drops = self.session.wire.layout.marks, self.has_dropped
        if scheme is None or (fields.get(scheme.field) and not drops):
            return None
        items = len(history) + history.offset
        place = find_last_place(history.marks, kept, items=items)
        return None if place is None else place - history.offset

    def _choose(self, given: Message, issued: Message | None) -> Message:
        """Return a reply as the provider gave it, unless the caller marked it or has it in another form."""
        wire, card = self.session.wire, self.session.settings.card
        if issued is None or (wire.layout.marks and wire.layout.marks.strip_message(given) is not given):
            return given
        return issued if has_form(given, issued, wire=wire, card=card, marked=True) else given

    def _match(self, history: RequestHistory) -> Matched | None:
        """Match a history with the session's, ignoring texts of opening system messages; None if fewer or more."""
        leading, start = len(history.opening.leading), self._count_same(history)
        if sum(1 for _ in takewhile(lambda entry: entry.message.role == "system", self.session.entries)) != leading:
            return None
        return match(self.session.known, [known_as for _, known_as in history.read(start)], start=start)

    def _count_same(self, history: RequestHistory) -> int:
        """Count the messages at the start that have the bytes of the last request, cache marks aside."""
        same = self._given if history.digests.startswith(self._given) else b""
        return len(history.opening.leading) + len(same) // DIGEST_BYTES

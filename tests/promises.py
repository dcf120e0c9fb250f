"""What is promised of every strategy on every wire: a table of promises, each with what finds that it is broken.

``tests/contract.py`` plays histories and judges by this table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from lading.addresses import parse, relative
from lading.audit.replay import verify
from lading.compaction.user_rules import RESTATED
from lading.engine import Engine
from lading.errors import WindowExceeded
from lading.history.log import NO_COMPACTIONS, Edit, Entry
from lading.jsonbytes import digest, dump, dump_value, load
from lading.messages import Message, Text, ToolResult
from lading.request.pack import Pack
from lading.stores.memory import MemoryStore
from lading.wire import check, find_wire

REFUSED = WindowExceeded.__name__
"""Starts what stands for a request that no cut makes fit."""
LEAST_FOR_RULES = 600
"""Tokens of a window a quarter of which holds the rules stated in a play."""

Outcome: TypeAlias = Pack | str
"""A request, or the typed error in its place."""


class Moment(NamedTuple):
    """What a promise is judged by: an engine after a request, beside what came before it."""

    engine: Engine
    store: MemoryStore
    outcome: Outcome
    last: Outcome = ""
    """The request before, if any; of one that is made again the first of both."""
    beside: Outcome | None = None
    """What the second engine made of the same."""
    edits: Sequence[Edit] = ()
    """New since the last request."""
    pinned: Sequence[str] = ()
    """Texts that the caller pinned."""
    rules: Sequence[str] = ()
    """Texts in which the user laid down rules."""
    is_input_kept: bool = True
    """Whether all that was handed in is as it was."""
    keeps_newest: bool = True
    """Whether the strategy leaves the results of the newest block alone."""

    @property
    def pack(self) -> Pack:
        """The request, where there is one."""
        assert isinstance(self.outcome, Pack)
        return self.outcome


When: TypeAlias = Literal["decided", "sent", "looked at", "refused", "again", "end"]
"""At each request, or only where one was sent, is looked at as a whole, was refused, is made once more; and at the
end, of the last one that was sent."""
Finding: TypeAlias = Callable[[Moment], Iterator[str]]


class Promise(NamedTuple):
    """A promise by what breaks it."""

    broken: Finding
    """Says in words what is wrong, each fault once."""
    when: tuple[When, ...]


def _illegal(at: Moment) -> Iterator[str]:
    chosen = at.engine.settings
    found = check(load(at.pack.body), find_wire(chosen.wire), card=chosen.card, strict=True)
    yield from (f"{broken.rule} at {broken.path}: {broken.detail}" for broken in (*found, *at.pack.violations))


def _too_long(at: Moment) -> Iterator[str]:
    chosen, tokens = at.engine.settings, at.pack.tokens
    written = find_wire(chosen.wire).decode(load(at.pack.body)).messages
    recounted = sum(map(chosen.meter.count_message, written)) + at.pack.manifest.counts["tools"]
    if max(recounted, tokens) > chosen.budget.window_tokens:
        yield f"{recounted} tokens, {tokens} by the manifest, of {chosen.budget.window_tokens}"


def _unforeseen(at: Moment) -> Iterator[str]:
    """Another error than that no cut makes the request fit."""
    if not str(at.outcome).startswith(REFUSED):
        yield str(at.outcome)


def _kept_though_refused(at: Moment) -> Iterator[str]:
    """An edit of a strategy that a call decided which failed."""
    yield from (told(edit) for edit in at.edits if edit.kind not in NO_COMPACTIONS)


def _differing(at: Moment) -> Iterator[str]:
    """An engine says otherwise than one that was reopened."""
    if at.beside is not None and _identity(at.outcome) != _identity(at.beside):
        yield f"{_size(at.outcome)} here, {_size(at.beside)} beside it"


def _changed_again(at: Moment) -> Iterator[str]:
    """A request that is made again differs, or something more was decided."""
    if isinstance(at.outcome, Pack) and isinstance(at.last, Pack):
        if at.outcome.body != at.last.body:
            yield "other bytes"
    elif isinstance(at.outcome, Pack) or isinstance(at.last, Pack):
        yield f"{_size(at.last)}, then {_size(at.outcome)}"
    yield from (f"a further edit: {told(edit)}" for edit in at.edits)


def _changed_input(at: Moment) -> Iterator[str]:
    if not at.is_input_kept:
        yield "a message or a tool was changed in place"


def _other_prefix(at: Moment) -> Iterator[str]:
    """A request is not the last one and new messages, and the manifest does not say so or not why."""
    if not isinstance(at.last, Pack):
        return
    prefix = at.pack.manifest.prefix
    if at.last.manifest.sent.transient:
        # The tail is not part of what the next request begins with; the chain is without it.
        kept = list(at.pack.chain[: len(at.last.chain)]) == list(at.last.chain)
    else:
        kept = at.pack.body.startswith(at.last.body[: -len(b"]}")])
    if kept != (prefix.first_changed == "") or not (kept or prefix.why):
        yield f"{kept=}, the manifest says {prefix.first_changed!r}, {prefix.why!r}"
    if at.pack.chain[: prefix.units] != at.last.chain[: prefix.units]:
        yield f"not the {prefix.units} units that the manifest names"


def _without_pointer(at: Moment) -> Iterator[str]:
    """An edit does not lead to what it removes."""
    for edit in at.edits:
        for pointer in edit.pointers:
            first, last, _ = parse(pointer).log_span()
            if not first <= edit.first <= edit.last <= last < len(at.engine.history.entries):
                yield f"{pointer} does not lead to {told(edit)}"
        if not edit.pointers and edit.kind not in NO_COMPACTIONS:
            yield told(edit)


def _head_or_newest(at: Moment) -> Iterator[str]:
    """An edit takes out the head or the newest block."""
    messages = [entry.message for entry in at.engine.history.entries]
    removed = [edit for edit in at.edits if edit.kind in ("cleared", "dropped")]
    if not removed:
        return
    replies = [index for index, message in enumerate(messages) if message.role == "assistant"]
    # Without calls the newest block is what follows the reply.
    newest = replies[-1] + (not messages[replies[-1]].calls)
    for edit in removed:
        is_newest = edit.last >= newest and (at.keeps_newest or edit.kind == "dropped")
        if edit.first < replies[0] or is_newest:
            yield f"{told(edit)} of {len(messages)}"


def _unpinned(at: Moment) -> Iterator[str]:
    yield from (text[:80] for text in at.pinned if dump(text)[1:-1] not in at.pack.body)


def _lost_rule(at: Moment) -> Iterator[str]:
    if at.engine.settings.budget.window_tokens >= LEAST_FOR_RULES:
        yield from (rule for rule in at.rules if dump(rule)[1:-1] not in at.pack.body)


def _forged_rule(at: Moment) -> Iterator[str]:
    """What is restated as the user's, line by line, the user never said."""
    history = at.engine.history
    said = "\n".join(
        text for entry in history.entries if entry.message.role == "user" for text in texts(entry.message)
    )
    for item in history.view.items:
        if item.edit >= 0 and item.message.text.startswith(RESTATED):
            yield from (line for line in item.message.text.split("\n")[1:] if line not in said)


def _not_raw(at: Moment) -> Iterator[str]:
    """Before the first compaction a text that was said is not in the request."""
    history = at.engine.history
    if all(edit.kind in NO_COMPACTIONS for edit in history.edits):
        for entry in history.entries[: at.engine.shown]:
            said = [part.text for part in entry.message.parts if isinstance(part, Text) and part.text.strip()]
            yield from (text for text in said if dump(text)[1:-1] not in at.pack.body)


def _unverified(at: Moment) -> Iterator[str]:
    owner = at.engine.settings.owner
    if isinstance(at.outcome, Pack):
        yield from filter(None, (found.problem for found in verify(at.store, tenant=owner[0], session=owner[1])))


def _unreachable(at: Moment) -> Iterator[str]:
    """Entries that are not stored as they were said, or that the last request could show, does not show whole, and
    gives no address of: addresses count in what edits show, not in what a tool's output happens to say."""
    engine, history = at.engine, at.engine.history
    if list(at.store.load(*engine.settings.owner, verify=True).entries) != history.entries:
        yield "what is stored is not what was said"
    if not isinstance(at.outcome, Pack):
        return
    shown = history.rebuild_view(engine.shown, len(history.edits)).items
    whole = {item.entry for item in shown if item.edit < 0}
    led: set[int] = set()
    spans = re.compile(rb"%b(\d+)(?:-(\d+))?(?!\.?\d)" % re.escape(relative("")).encode())
    in_body = set(spans.findall(at.outcome.body))
    for said in (dump_value(item.message) for item in shown if item.edit >= 0):
        for first, final in in_body.intersection(spans.findall(said)):
            led.update(range(int(first), int(final or first) + 1))
    for entry in history.entries[: engine.shown]:
        if entry.index not in whole and entry.index not in led and not _stands(entry, history.edits, at.outcome):
            yield f"entry {entry.index} ({entry.message.role})"


PROMISES: dict[str, Promise] = {
    "illegal": Promise(_illegal, ("looked at",)),
    "too long": Promise(_too_long, ("looked at",)),
    "other error": Promise(_unforeseen, ("refused",)),
    "edits of a failed call": Promise(_kept_though_refused, ("refused",)),
    "not deterministic": Promise(_differing, ("decided", "again")),
    "not idempotent": Promise(_changed_again, ("again",)),
    "input changed": Promise(_changed_input, ("end",)),
    "prefix changed": Promise(_other_prefix, ("sent",)),
    "no pointer": Promise(_without_pointer, ("decided",)),
    "head or newest changed": Promise(_head_or_newest, ("sent",)),
    "not pinned": Promise(_unpinned, ("looked at",)),
    "rule lost": Promise(_lost_rule, ("looked at",)),
    "rule forged": Promise(_forged_rule, ("looked at",)),
    "not raw": Promise(_not_raw, ("looked at",)),
    "not verified": Promise(_unverified, ("end",)),
    "not reachable": Promise(_unreachable, ("end",)),
}


def texts(message: Message) -> list[str]:
    """What a message says, results included."""
    inner = [part for part in message.parts if not isinstance(part, ToolResult)]
    parts = [*inner, *(part for result in message.results for part in result.parts)]
    return [part.text for part in parts if isinstance(part, Text)]


def told(edit: Edit) -> str:
    """An edit in words."""
    return f"{edit.kind} {edit.first}-{edit.last}: {edit.reason}"


def _stands(entry: Entry, edits: Sequence[Edit], last: Pack) -> bool:
    """Whether all that an entry says, as it was repaired by the repairer, stands in the request, but for blank
    texts: Anthropic refuses them, so they are not sent there."""
    repaired = [edit for edit in edits if edit.first == edit.last == entry.index and edit.kind == "repaired"]
    messages = repaired[-1].replacement if repaired else (entry.message,)
    said = (text for message in messages for text in texts(message) if text.strip())
    return all(dump(text)[1:-1] in last.body for text in said)


def _identity(outcome: Outcome) -> str | tuple[str, str]:
    return outcome if isinstance(outcome, str) else (digest(outcome.body), outcome.manifest.checksum)


def _size(outcome: Outcome) -> str:
    return f"{len(outcome.body)} bytes" if isinstance(outcome, Pack) else outcome

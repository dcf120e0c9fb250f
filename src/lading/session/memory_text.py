"""Text that a session's memory adds to requests: standing instructions, said once, and hits for the newest message.

An instruction stays as it was said until the user or the program changes it: then the message that has it is
restated without it, and what is new is said anew. Hits are found once a turn and are volatile: they are at the end
of each request of the turn, and in no log. Whatever goes wrong with a memory costs its own text only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lading.addresses import SCHEME, parse
from lading.engine import Engine
from lading.errors import LadingError
from lading.events import ContextLeftOut, MemoryShown
from lading.guard import attempt, describe_error
from lading.history.log import NO_COMPACTIONS
from lading.memory.agent_memory import DAY_S, AgentMemory
from lading.memory.records import KINDS, Kind, MemoryRecord
from lading.memory.retrieval import Retrieval
from lading.memory.shown import show_hit, write_background
from lading.messages import is_own, own_words
from lading.stores import SessionStore
from lading.task.evidence import Memory, write_bullets
from lading.task.packing import StepContext
from lading.task.record import ShownMemory, dump_shown

IN_FORCE = "Standing instructions, in force for the whole conversation:"
REVOKED = "Standing instructions that are no longer in force:"
_NONE_LEFT = "[standing instructions that are no longer in force]"
_NAME = "memory"
_REASON_CHARS = 400
_QUERY_CHARS = 4_000
_FOUND_KINDS: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind != "instruction")
_WHOLE = frozenset({None, *NO_COMPACTIONS})


class MemoryText:
    """The text of one session's memory."""

    def __init__(self, memory: AgentMemory, store: SessionStore) -> None:
        self._memory, self._store = memory, store
        self._asked = -1
        """The entry of the user's message that was searched for last."""
        self._text = self._digest = ""
        """The hits for it, and their digest."""
        self._ids: tuple[str, ...] = ()
        self._said: list[int] = []
        """Log entries that say or take back instructions."""
        self._read = 0
        """Number of log entries in which they were looked for."""

    def say_instructions(self, engine: Engine, *, extend: Callable[..., None]) -> None:
        """Add the standing instructions that the log does not have yet, pinned, and take back those that are no
        longer in force."""
        read = attempt(lambda: [write_bullets([one.text]) for one in self._memory.instructions])
        if isinstance(read, Exception):
            _report(engine, read)
            return
        rules = dict.fromkeys(read)
        stuck: dict[str, None] = {}
        for entry, said in self._find_said(engine).items():
            kept = [rule for rule in said if rule in rules]
            if len(kept) < len(said) and not _restate(engine, entry, kept):
                stuck |= dict.fromkeys(rule for rule in said if rule not in rules)
            for rule in kept:
                rules.pop(rule, None)
        texts = [_write(IN_FORCE, [*rules])] if rules else []
        texts += [_write(REVOKED, [*stuck])] if stuck else []
        items = engine.history.view.items
        # A prefill stays last.
        for text in texts if not items or items[-1].message.role != "assistant" else ():
            extend([own_words(text)], known_as=[""], pin=True, stored=False)

    def find_hits(self, engine: Engine) -> str:
        """Return the text of the hits for the user's newest message; empty without any."""
        asked = engine.history.view.newest_request
        if asked is not None and (asked[0] != self._asked or attempt(self._are_kept) is not True):
            self._asked, self._text, self._digest, self._ids = asked[0], "", "", ()
            shown = attempt(partial(self._search, engine, asked[1].text))
            if isinstance(shown, Exception):
                _report(engine, shown)
            elif shown:
                self._text = write_background(shown)
                self._digest, data = dump_shown(shown)
                self._store.append(*engine.settings.owner, blobs={self._digest: data})
                ids, scores, reasons = zip(*((one.id, one.score, one.reason) for one in shown), strict=True)
                self._ids = ids
                engine.pending.append(MemoryShown(engine.call, ids, scores, reasons))
        engine.recorder.memory = self._digest
        return self._text

    def _are_kept(self) -> bool:
        """Whether no hit was forgotten, superseded or expired since it was found."""
        memory = self._memory
        found = memory.store.get(memory.namespace, self._ids) if self._ids else {}
        return len(found) == len(self._ids) and all(one.is_shown(memory.now_s) for one in found.values())

    def show_none(self, engine: Engine) -> str:
        """Return no text: the payload of a step has the hits."""
        engine.recorder.memory = ""
        return ""

    def drop(self, engine: Engine) -> None:
        """Leave the hits out of this request, because the rest leaves no room."""
        engine.recorder.memory = ""
        engine.pending.append(ContextLeftOut(engine.call, _NAME, "the request has no room beside its other layers"))

    def list_candidates(self, engine: Engine, context: StepContext) -> list[Memory]:
        """Return the hits for a step and those for the request, as candidates of the step's payload."""
        # Of both together the words of one would count as missing in what answers the other.
        asked, memory = self._find(context.request), self._memory
        if asked.events:  # What failed is not waited for again.
            memory = AgentMemory(memory.store, memory.namespace, clock=lambda: self._memory.now_s)
        of_step = self._find("\n".join(context.step.text), memory)
        engine.pending += [*asked.events, *of_step.events]
        hits = sorted((*asked.hits, *of_step.hits), key=lambda hit: hit.score)
        best = [*{hit.record.id: hit for hit in hits}.values()]
        found = []
        for hit in sorted(best, key=lambda hit: -hit.score)[: self._memory.options.most_hits]:
            shown = show_hit(hit)
            age_days = max(self._memory.now_s - hit.record.created_s, 0.0) / DAY_S
            found.append(Memory(shown.id, shown.text, shown.score, shown.date, age_days, shown.reason))
        return found

    def complete(self, step: str) -> None:
        """Keep the working notes of a completed step."""
        self._memory.checkpoint(step)

    def _find(self, query: str, memory: AgentMemory | None = None) -> Retrieval:
        options = self._memory.options
        if not options.most_hits or not query.strip():
            return Retrieval()
        return (memory or self._memory).retrieve(
            query[:_QUERY_CHARS], kinds=_FOUND_KINDS, limit=options.most_hits, least_score=options.threshold
        )

    def _search(self, engine: Engine, query: str) -> list[ShownMemory]:
        """Return the best hits that fit together, without what the conversation shows anyway."""
        found = self._find(query)
        engine.pending += found.events
        chosen: list[ShownMemory] = []
        for hit in found.hits:
            tried = [*chosen, show_hit(hit)]
            is_new = not _is_in_conversation(engine, hit.record)
            if is_new and engine.count(own_words(write_background(tried))) <= self._memory.options.hit_tokens:
                chosen = tried
        return chosen

    def _find_said(self, engine: Engine) -> dict[int, list[str]]:
        """Return the instructions that the log has, as they are shown now, by the entry of their message."""
        history = engine.history
        for entry in history.entries[self._read :]:
            if is_own(entry.message) and entry.message.text.startswith((IN_FORCE, REVOKED)):
                self._said.append(entry.index)
        self._read = len(history.entries)
        said: dict[int, list[str]] = {}
        for at in self._said:
            if at in history.withdrawn:
                continue
            header, *rules = history.find_form(history.entries[at]).text.split("\n- ")
            if header == IN_FORCE:
                said[at] = [f"- {rule}" for rule in rules]
            elif header == REVOKED:
                said = {entry: [one for one in of if one[2:] not in rules] for entry, of in said.items()}
        return said


def _restate(engine: Engine, entry: int, rules: list[str]) -> bool:
    """Show the message of an entry with these instructions alone; False where an edit shows it with others."""
    view = engine.history.view
    start, end = view.span(entry, entry)
    items = view.items[start:end]
    if not items or any(item.entry != entry or item.kind not in _WHOLE for item in items):
        return False
    return engine.restate(entry, own_words(_write(IN_FORCE, rules) if rules else _NONE_LEFT))


def _write(header: str, rules: list[str]) -> str:
    return "\n".join([header, *rules])


def _is_in_conversation(engine: Engine, record: MemoryRecord) -> bool:
    """Whether the message by which a record was written in this session is still shown as it was."""
    if not record.origin.source.startswith(SCHEME):
        return False
    place = parse(record.origin.source, within=engine.settings.owner)
    if (place.tenant, place.session) != engine.settings.owner or place.kind != "log":
        return False
    entry, view = place.log_span()[0], engine.history.view
    start, end = view.span(entry, entry)
    return any(item.entry == entry and item.kind in _WHOLE for item in view.items[start:end])


def _report(engine: Engine, error: Exception) -> None:
    why = str(error) if isinstance(error, LadingError) else describe_error(error)
    event = ContextLeftOut(engine.call, _NAME, why[:_REASON_CHARS])
    engine.pending += [] if event in engine.pending else [event]

"""What every preset promises, judged from outside: one history through one preset, in two engines at once.

The second engine keeps its session in a store of its own and is reopened in the midst; both must say the same,
byte for byte. A request that is made again without anything new must be the same, and without a further edit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import parse, relative
from lading.audit.replay import verify
from lading.compaction import Strategy
from lading.effects import Summarizer, attempted
from lading.engine import Engine, reopen
from lading.errors import WindowExceeded
from lading.history.log import NO_COMPACTIONS, Edit, Entry, Reported
from lading.jsonbytes import digest, dump, dump_value, load
from lading.messages import Message, Text, Tool, ToolResult, user_text
from lading.request.pack import Pack
from lading.settings import Settings
from lading.stores.memory import MemoryStore
from lading.wire import check, find_wire
from tests.engines import TOOLS, settings, template

Kind: TypeAlias = Literal[
    "illegal",
    "too long",
    "other error",
    "not deterministic",
    "not idempotent",
    "input changed",
    "prefix changed",
    "no pointer",
    "head or newest changed",
    "not pinned",
    "rule lost",
    "not verified",
    "not reachable",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
PINNED = "The password of the staging host is {}-heron."
MOST_PINNED_CHARS = 1_000
RULES = (
    "Never push to the branch release-{}.",
    "You must not push release-{}!",
    "Please do not guess at release-{}.",
    "Always run it \ud83d\\ release-{}.",
)
REFUSED = WindowExceeded.__name__
"""Starts what stands for a request that no cut makes fit."""
LEAST_FOR_RULES = 600
"""Tokens of a window a quarter of which holds the rules stated here."""


class Preset(NamedTuple):
    """A strategy as somebody configures it."""

    strategy: str | Strategy
    summarizer: Summarizer | None = None
    strict: bool = True
    """Its own failures are errors; False for functions of a caller's, which may fail."""
    keeps_newest: bool = True
    """False where its numbers allow less of the newest results than the newest block has."""


class Step(NamedTuple):
    """What is said before one request."""

    messages: tuple[Message, ...]
    pin: bool = False
    """The last of them is pinned when it comes in."""
    rule: str = ""
    """What the user lays down in them."""
    tools: tuple[Tool, ...] = TOOLS
    at_s: float | None = None


class Fault(NamedTuple):
    """A promise that was not kept."""

    kind: Kind
    what: str


class Verdict(Struct, frozen=True):
    """What one play came to."""

    requests: int = 0
    edits: int = 0
    """Decided by the strategy, or in its place."""
    refused: int = 0
    """Requests in place of which there was a typed error."""
    faults: tuple[Fault, ...] = ()

    @property
    def by_kind(self) -> Counter[str]:
        """How many faults there are of each kind."""
        return Counter(fault.kind for fault in self.faults)


def steps(
    messages: Sequence[Message],
    *,
    tools: Sequence[tuple[Tool, ...]] = (),
    times_s: Sequence[float | None] = (),
    laid_down: bool = True,
) -> list[Step]:
    """A request before each assistant message after the first user message, and one at the end. ``tools``: those
    known before each message. ``laid_down``: at a quarter and at half of them the user states a rule, and
    something that is pinned; what comes in at a third is pinned where it is short."""
    cuts = [
        position
        for position, message in enumerate(messages)
        if message.role == "assistant" and any(earlier.role == "user" for earlier in messages[:position])
    ]
    made: list[Step] = []
    before = 0
    for cut in [*cuts, len(messages)]:
        known = tools[min(cut, len(tools) - 1)] if tools else TOOLS
        at_s = times_s[min(cut, len(times_s) - 1)] if times_s else None
        made.append(Step(tuple(messages[before:cut]), tools=known, at_s=at_s))
        before = cut
    if laid_down:
        third = made[len(made) // 3]
        is_short = 0 < sum(map(len, map(_all_text, third.messages[-1:]))) <= MOST_PINNED_CHARS
        made[len(made) // 3] = third._replace(pin=is_short)
        for number, place in enumerate(sorted({len(made) // 4, len(made) // 2})):
            rule = RULES[(number + len(messages)) % len(RULES)].format(number)
            note = user_text(PINNED.format(number))
            added = (user_text(f"Good. {rule}"), note)
            made[place] = made[place]._replace(messages=(*made[place].messages, *added), pin=True, rule=rule)
    return made


class _Line:
    """One engine on its way through a script."""

    def __init__(self, chosen: Settings, *, reopened_at: int = -1) -> None:
        self.store = MemoryStore()
        self.engine = Engine(chosen, self.store)
        self.reopened_at = reopened_at
        self.tokens = 0

    def take(self, step: Step, number: int) -> list[str]:
        """Take in what a step says; the texts that are pinned with it."""
        engine = self.engine
        if number == self.reopened_at:
            engine.save()
            if self.store.sessions():
                self.engine = engine = reopen(engine.settings, self.store)
        for message in step.messages:
            answers = message.role == "assistant" and self.tokens
            engine.append([message], usage=Reported(self.tokens) if answers else None)
            self.tokens = 0 if answers else self.tokens
        if not step.pin:
            return []
        pinned = len(engine.history.entries) - 1
        engine.history.pin(pinned, call=engine.call)
        start, end = engine.history.view.span(pinned, pinned)
        shown = engine.history.view.messages[start:end]
        return [text for message in shown for text in _texts(message) if text.strip()]

    def request(self, step: Step) -> Pack | str:
        """The next request, or the typed error in its place."""
        fields = template(self.engine.settings.wire)
        made = attempted(partial(self.engine.pack, tools=step.tools, template=fields, at_s=step.at_s))
        if isinstance(made, Exception):
            return f"{type(made).__name__}: {made}"
        self.tokens = made.tokens
        return made


def play(
    script: Sequence[Step], preset: Preset, *, window: int, wire: str, twice: bool = True, every: int = 1
) -> Verdict:
    """A script through a preset. ``twice``: beside a second engine that is reopened. ``every``: of the requests
    that extend the one before them, each so-manieth is judged; all others always are."""
    chosen = replace(
        settings(window, wire=wire, strategy=preset.strategy, strict=preset.strict), summarizer=preset.summarizer
    )
    before = _fingerprint(script)
    line = _Line(chosen)
    twin = _Line(chosen, reopened_at=max(len(script) // 2, 1)) if twice else None
    playing = _Play(line, twin, keeps_newest=preset.keeps_newest)
    for number, step in enumerate(script):
        playing.step(step, number, is_judged=(len(script) - 1 - number) % every == 0)
    playing.end()
    if _fingerprint(script) != before:
        playing.fault("input changed", "a message or a tool was changed in place")
    return Verdict(playing.requests, playing.edits, playing.refused, tuple(playing.faults))


class _Play:
    """A script at work in two engines."""

    def __init__(self, line: _Line, twin: _Line | None, *, keeps_newest: bool = True) -> None:
        self.line, self.twin, self.keeps_newest = line, twin, keeps_newest
        self.requests = self.edits = self.refused = 0
        self.faults: list[Fault] = []
        self.pinned: list[str] = []
        self.rules: list[str] = []
        self.last: Pack | None = None

    def fault(self, kind: Kind, what: str) -> None:
        """Take note of a fault, and of the call."""
        self.faults.append(Fault(kind, f"call {self.line.engine.call - 1}: {what}"))

    def step(self, step: Step, number: int, *, is_judged: bool) -> None:
        """Make the next request, judge it, and where it was decided anew make it again."""
        engine, mark = self.line.engine, len(self.line.engine.history.edits)
        self.pinned += self.line.take(step, number)
        self.rules += [step.rule] if step.rule else []
        outcome = self.line.request(step)
        self._compare(outcome, self._by_twin(step, number))
        decided = sum(edit.reason != "the caller pinned it" for edit in engine.history.edits[mark:])
        if decided or is_judged or isinstance(outcome, str):
            self._judge(outcome)
        for edit in engine.history.edits[mark:]:
            self._judge_edit(edit, is_sent=isinstance(outcome, Pack))
        if isinstance(outcome, Pack):
            self._judge_prefix(outcome)
            self.requests += 1
            self.last = outcome
            self.edits += len(outcome.manifest.decisions)
        if decided or not isinstance(outcome, Pack):
            self._again(outcome, step)

    def _by_twin(self, step: Step, number: int) -> Pack | str | None:
        if self.twin is None:
            return None
        self.twin.take(step, number)
        return self.twin.request(step)

    def _compare(self, one: Pack | str, other: Pack | str | None) -> None:
        if other is None:
            return
        if _said(one) != _said(other):
            self.fault("not deterministic", f"{_told(one)} here, {_told(other)} beside it")

    def _judge(self, outcome: Pack | str) -> None:
        if isinstance(outcome, str):
            self.refused += outcome.startswith(REFUSED)
            if not outcome.startswith(REFUSED):
                self.fault("other error", outcome)
            return
        chosen = self.line.engine.settings
        wire, window = find_wire(chosen.wire), chosen.budget.window_tokens
        body = load(outcome.body)
        found = check(body, wire, card=chosen.card, strict=True)
        for broken in (*found, *outcome.violations):
            self.fault("illegal", f"{broken.rule} at {broken.path}: {broken.detail}")
        recounted = sum(map(chosen.meter.count_message, wire.decode(body).messages))
        recounted += outcome.manifest.counts["tools"]
        if max(recounted, outcome.tokens) > window:
            self.fault("too long", f"{recounted} tokens, {outcome.tokens} by the manifest, of {window}")
        for text in self.pinned:
            if dump(text)[1:-1] not in outcome.body:
                self.fault("not pinned", text[:80])
        if window >= LEAST_FOR_RULES:
            for rule in self.rules:
                if dump(rule)[1:-1] not in outcome.body:
                    self.fault("rule lost", rule)

    def _judge_prefix(self, outcome: Pack) -> None:
        """Between two edits of what was sent, a request is the last one and new messages; where it is not, the
        manifest says so and why."""
        if self.last is None:
            return
        prefix = outcome.manifest.prefix
        kept = outcome.body.startswith(self.last.body[: -len(b"]}")])
        if kept != (prefix.first_changed == "") or not (kept or prefix.why):
            self.fault("prefix changed", f"{kept=}, the manifest says {prefix.first_changed!r}, {prefix.why!r}")
        if outcome.chain[: prefix.units] != self.last.chain[: prefix.units]:
            self.fault("prefix changed", f"not the {prefix.units} units that the manifest names")

    def _judge_edit(self, edit: Edit, *, is_sent: bool) -> None:
        """An edit leads to what it removes; nothing takes out the head or the newest block."""
        messages = [entry.message for entry in self.line.engine.history.entries]
        for pointer in edit.pointers:
            first, last, _ = parse(pointer).log_span()
            if not first <= edit.first <= edit.last <= last < len(messages):
                self.fault("no pointer", f"{pointer} does not lead to {edit.first}-{edit.last}")
        if not edit.pointers and edit.kind not in NO_COMPACTIONS:
            self.fault("no pointer", f"{edit.kind} {edit.first}-{edit.last}")
        if edit.kind not in ("cleared", "dropped") or not is_sent or not self.keeps_newest:
            return
        replies = [at for at, message in enumerate(messages) if message.role == "assistant"]
        # Without calls the newest block is what follows the reply.
        newest = replies[-1] + (not messages[replies[-1]].calls)
        if edit.first < replies[0] or edit.last >= newest:
            self.fault("head or newest changed", f"{edit.kind} {edit.first}-{edit.last} of {len(messages)}")

    def _again(self, outcome: Pack | str, step: Step) -> None:
        """The same request once more: nothing new was said."""
        edits = list(self.line.engine.history.edits)
        again = self.line.request(step)
        if isinstance(outcome, Pack) and isinstance(again, Pack):
            if again.body != outcome.body:
                self.fault("not idempotent", "other bytes")
        elif isinstance(outcome, Pack) or isinstance(again, Pack):
            self.fault("not idempotent", f"{_told(outcome)}, then {_told(again)}")
        if self.line.engine.history.edits != edits:
            self.fault("not idempotent", f"a further edit: {_reasons(self.line.engine.history.edits, edits)}")
        if self.twin is not None:
            self._compare(again, self.twin.request(step))

    def end(self) -> None:
        """Judge what is stored, and where the last request leads."""
        engine, store = self.line.engine, self.line.store
        engine.save()
        name = engine.settings.tenant, engine.settings.session
        if self.requests:
            for outcome in verify(store, tenant=name[0], session=name[1]):
                if outcome.problem:
                    self.fault("not verified", outcome.problem)
        entries = store.load(*name, verify=True).entries
        if list(entries) != engine.history.entries:
            self.fault("not reachable", "what is stored is not what was said")
        if self.last is not None:
            for what in _unreachable(engine, self.last):
                self.fault("not reachable", what)


def _unreachable(engine: Engine, last: Pack) -> Iterable[str]:
    """Entries that the last request could show, does not show whole, and gives no address of: addresses count in
    what edits show, not in what a tool's output happens to say."""
    history, log = engine.history, relative("")
    shown = history.rebuilt(engine.shown, len(history.edits)).items
    whole = {item.entry for item in shown if item.edit < 0}
    led: set[int] = set()
    spans = re.compile(rb"%b(\d+)(?:-(\d+))?(?!\.?\d)" % re.escape(log).encode())
    in_body = set(spans.findall(last.body))
    for said in (dump_value(item.message) for item in shown if item.edit >= 0):
        for first, final in in_body.intersection(spans.findall(said)):
            led.update(range(int(first), int(final or first) + 1))
    for entry in history.entries[: engine.shown]:
        if entry.index not in whole and entry.index not in led and not _stands(entry, history.edits, last):
            yield f"entry {entry.index} ({entry.message.role})"


def _stands(entry: Entry, edits: Sequence[Edit], last: Pack) -> bool:
    """Whether all that an entry says, as it was mended at the border, stands in the request."""
    mended = [edit for edit in edits if edit.first == edit.last == entry.index and edit.kind == "repaired"]
    messages = mended[-1].replacement if mended else (entry.message,)
    return all(dump(text)[1:-1] in last.body for message in messages for text in _texts(message))


def _all_text(message: Message) -> str:
    return "".join(_texts(message))


def _texts(message: Message) -> list[str]:
    """What a message says, results included."""
    inner = [part for part in message.parts if not isinstance(part, ToolResult)]
    parts = [*inner, *(part for result in message.results for part in result.parts)]
    return [part.text for part in parts if isinstance(part, Text)]


def _said(outcome: Pack | str) -> str | tuple[str, str]:
    return outcome if isinstance(outcome, str) else (digest(outcome.body), outcome.manifest.checksum)


def _told(outcome: Pack | str | None) -> str:
    return f"{len(outcome.body)} bytes" if isinstance(outcome, Pack) else str(outcome)


def _reasons(edits: Sequence[Edit], known: Sequence[Edit]) -> list[str]:
    return [f"{edit.kind} {edit.first}-{edit.last}: {edit.reason}" for edit in edits[len(known) :]]


def _fingerprint(script: Sequence[Step]) -> str:
    """A digest of all that is handed in."""
    return digest(dump([msgspec.to_builtins((step.messages, step.tools)) for step in script]))

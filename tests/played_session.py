"""One played session: what is handed in, and what its requests are judged by."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from msgspec import Struct

from lading import Session, SessionOptions
from lading.errors import ContextOverflow, Violation, WindowExceeded
from lading.events import FieldLeftOut, Repaired, RuleBroken, ToolsReduced
from lading.jsonbytes import dump, dump_value, load
from lading.messages import tool_result
from lading.request.pack import Pack
from lading.stores.memory import MemoryStore
from lading.testing.anthropic import split_pieces
from lading.testing.legality import find_unpaired
from lading.wire import check, find_wire
from tests.drawn import Fault
from tests.engines import TOOLS
from tests.played_replies import ANSWERS, Call, Mint, find_running, write_results, write_user
from tests.preset_cases import PRESETS
from tests.rule_tables import Known, find_broken

FAULTS = {
    "illegal": "requests that break a rule of their provider without an event",
    "illegal by the tables": "the same, by tests/rule_tables.py",
    "too long": "requests over the window",
    "lost": "texts and calls that are neither in the request nor behind a pointer in it",
    "leaked": "withdrawn texts, old tails and the reasoning of another provider in a request",
    "prefix": "requests that diverge from the last one without an edit, or without saying so",
    "unverified": "requests that cannot be rebuilt",
    "input changed": "messages, tools or fields that were changed in place",
    "error": "exceptions that the caller's steps do not explain",
}
"""What may be wrong, by kind."""
MODELS = (
    ("claude-sonnet-4-5", "anthropic"),
    ("claude-opus-5-5", "anthropic"),
    ("claude-3-5-haiku", "anthropic"),
    ("anthropic.claude-3-7-sonnet-20250219-v1:0", "anthropic"),
    ("gpt-4o", "openai_chat"),
    ("deepseek-v4-pro", "openai_chat"),
    ("qwen3", "openai_chat"),
    ("mistral-large", "openai_chat"),
    ("gpt-5-mini", "openai_responses"),
    ("gpt-4o", "openai_responses"),
    ("gemini-3-pro", "gemini"),
    ("gemini-2.5-flash", "gemini"),
)
WINDOWS = (2_500, 4_000, 8_000, 30_000, 30_000)
RESERVE = 200
ROUNDS = (2, 4, 6, 10)
SYSTEM = {"anthropic": "system", "openai_responses": "instructions"}
EXPLAINED = {"A23"}
"""Rules that the caller's own fields and tools break: here, no tools beside a history that uses some."""
_JOINED = "new messages joined the last one"
_ADDRESS = re.compile(rb"log/(\d+)(?:-(\d+))?")
_LEAVES = ("text", "content", "arguments", "output", "description", "thinking", "instructions", "system", "name")


class Given(Struct):
    """What was handed in at once."""

    items: list[Any]
    marks: list[str]
    known: int
    """Number of messages in the caller's history before it."""


class Play:
    """One session on its way."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store, self.requests, self.refused = MemoryStore(), 0, 0
        self.repairs: set[tuple[str, int]] = set()
        self.faults: list[Fault] = []
        self.broken: list[str] = []
        self.log: list[str] = []
        """The steps so far, in words."""
        self.given: list[Given] = []
        self.gone: set[str] = set()
        """Marks of what no later request may show."""
        self.waiting: list[Call] = []
        self.tools: Sequence[Any] = TOOLS
        self.fields: dict[str, Any] | None = None
        self.last: Pack | None = None
        self.is_plain = True
        """Whether nothing but new messages came since the last request."""
        self.edits = 0
        self.model, self.wire = self.chance.choice(MODELS)
        self.window = self.chance.choice(WINDOWS)
        self.preset = self.chance.choice(sorted(PRESETS))
        self.factor = self.chance.choice((1.0, 1.0, 0.8, 1.3))
        """What the provider counts for one token of ours."""
        self.shows_reasoning = self.chance.random() < 0.1
        self.has_provider = self.chance.random() < 0.2
        self.mint = Mint(self.chance, self.window)
        self.names: dict[str, None] = {}
        """Names of the sessions so far."""
        self.session = self.open("session")

    def open(self, name: str) -> Session:
        """The session of a name, with the model, window and strategy of now."""
        chosen, self.names[name] = PRESETS[self.preset], None
        self.note(f"open {name}: {self.model} {self.wire} {self.window} {self.preset}")
        return Session(
            self.model,
            store=self.store,
            name=name,
            strategy=chosen.strategy,
            summarizer=chosen.summarizer,
            providers=[lambda _context: self.tail()] if self.has_provider else [],
            window=self.window,
            output_reserve=RESERVE,
            wire=self.wire,
            options=SessionOptions(
                counter="tests.engines:QUARTER", strict=chosen.strict, force_reasoning_text=self.shows_reasoning
            ),
        )

    def note(self, step: str) -> None:
        """Write down a step."""
        self.log.append(step)

    def tail(self) -> str:
        """Text for one request alone."""
        mark = self.mint.mark()
        self.gone.add(mark)
        return f"It is {mark} o'clock."

    # What comes in.

    def add(self, items: list[Any], *, as_reply: Any = None, whole: bool | None = None, pin: bool = False) -> None:
        """Hand in new items: alone, at the end of the whole history, in a body, or as the reply that they are."""
        known, told = len(self.session.known), [item for one in self.given for item in one.items]
        given: Any = items
        if as_reply is None and (self.mint.likely(0.25) if whole is None else whole):
            given = self.write_body([*told, *items]) if self.mint.likely(0.5) else [*told, *items]
        self.note(f"add {'reply' if as_reply else 'whole' if given is not items else 'new'} {str(items)[:300]}")
        self.given.append(Given(items, self.mint.take(), known))
        kept = deepcopy(as_reply or given)
        if as_reply is not None:
            self.session.reply(as_reply)
        else:
            self.session.add(given, pin=pin)
        if kept != (as_reply or given):
            self.fault("input changed", "messages")

    def write_body(self, items: list[Any]) -> Any:
        """Items as the body of a request, where all are of this format."""
        field = find_wire(self.wire).layout.items.field
        if self.wire == "openai_chat":
            return {"model": self.model, field: items}
        if items[0].get("role") != "system" or not all(map(self.is_own, items[1:])):
            return items
        text = items[0]["content"]
        system = (
            {"systemInstruction": {"parts": [{"text": text}]}}
            if self.wire == "gemini"
            else {SYSTEM[self.wire]: text}
        )
        return {"model": self.model, **system, field: items[1:]}

    def is_own(self, item: Any) -> bool:
        """Whether an item is certainly of the format of the session."""
        if not isinstance(item, dict):
            return False
        if self.wire == "gemini":
            return "parts" in item
        return "parts" not in item and item.get("role") not in ("tool", "system") and "type" not in item

    def answer(self, pack: Pack) -> None:
        """The model answers a request."""
        body, conduct = pack.request, self.session.settings.card.conduct
        thinks = conduct.reasoning_echo != "none" or (self.wire == "openai_responses" and self.model != "gpt-4o")
        if self.wire == "anthropic":
            thinks = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
        pointers = _ADDRESS.findall(dump({**body, "tools": []})) if "restore" in self.session.own_tools else []
        self.mint.tools = ("read", "shell", *(("restore",) if pointers else ()))
        self.mint.address = f"artifact://log/{self.chance.choice(pointers)[0].decode()}" if pointers else ""
        self.mint.running = find_running(body["messages"]) if self.wire == "anthropic" else ""
        reply = ANSWERS[self.wire](self.mint, thinks=thinks, usage=int(pack.tokens * self.factor))
        is_reply = (self.mint.likely(0.6) or not reply.items) and not reply.outputs
        self.waiting = reply.calls
        self.add([*reply.items, *reply.outputs], as_reply=reply.body if is_reply else None)

    def go_on(self) -> None:
        """The results of the calls, in any order and number, and perhaps words of the user."""
        calls = [call for call in self.waiting if not self.mint.likely(0.04) and call.name != "restore"]
        if len(calls) < len(self.waiting) and any(call.name == "restore" for call in self.waiting):
            self.add([*self.session.handle(self.session.entries[-1].message)], whole=False)
        if self.mint.likely(0.1):
            self.chance.shuffle(calls)
        if calls and self.mint.likely(0.05):
            calls.append(calls[0])
        late: list[Call] = []
        if calls and self.mint.likely(0.25 if self.wire == "openai_responses" else 0.06):
            calls, late = calls[1:], calls[:1]
        if calls:
            self.add_results(calls)
        if not calls or self.mint.likely(0.1):
            self.add([write_user(self.mint, self.chance.choice((self.wire, self.wire, self.wire, "openai_chat")))])
        if late:
            if self.mint.likely(0.5):
                self.request()
            self.add_results(late)

    def add_results(self, calls: list[Call]) -> None:
        """Hand in results in the format of the call, in another one, or as our own values."""
        own = all(call.wire == self.wire for call in calls)
        form = self.chance.choice((calls[0].wire, calls[0].wire, self.wire, "openai_chat"))
        if not all(call.id for call in calls):
            form = "gemini"
        if self.mint.likely(0.1) and all(call.id for call in calls) and own:
            self.add([tool_result(call.id, self.mint.text()) for call in calls], whole=False)
            return
        items = write_results(self.mint, calls, form)
        if len(items) > 1 and self.mint.likely(0.2):
            marks = self.mint.take()
            for item in items:
                self.mint.said = [mark for mark in marks if mark in str(item)]
                self.add([item], whole=False)
            return
        self.add(items)

    # What goes out.

    def request(self) -> Pack | None:
        """The next request, judged; None where no cut makes it fit."""
        session, tail = self.session, ""
        old = set(self.gone)
        if self.mint.likely(0.15):
            tail = self.tail()
        fields, tools = deepcopy(self.fields), deepcopy(self.tools)
        self.note(f"request {fields} {[getattr(tool, 'name', tool) for tool in tools]} {tail}")
        try:
            pack = session.pack(tools, fields=fields, tail=tail)
        except WindowExceeded as error:
            self.note(f"refused: {error}")
            self.refused += 1
            return None
        if (fields, tools) != (self.fields, self.tools):
            self.fault("input changed", "tools or fields")
        self.judge(pack, old)
        if int(pack.tokens * self.factor) > self.window:
            return self.retry(pack, old)
        if not tail and not self.has_provider and self.mint.likely(0.1):
            again = session.pack(tools, fields=fields)
            self.requests += 1
            if again.body != pack.body:
                self.fault("prefix", "the same request once more has other bytes")
            self.last = pack = again
        return pack

    def retry(self, pack: Pack, old: set[str]) -> Pack | None:
        """The provider counts more than the window has."""
        words = f"prompt is too long: {int(pack.tokens * self.factor)} tokens > {self.window} maximum"
        self.note(words)
        self.is_plain = False
        try:
            smaller = self.session.retry(words)
        except (WindowExceeded, ContextOverflow):
            self.refused += 1
            return None
        self.judge(smaller, old)
        if smaller.tokens >= pack.tokens:
            self.fault("too long", f"{smaller.tokens} after {pack.tokens} were refused")
        return smaller

    def judge(self, pack: Pack, old: set[str]) -> None:
        """Look for faults of a request. ``old``: marks that it may not show."""
        self.requests += 1
        self.repairs |= {(event.rule, event.entry) for event in pack.events if isinstance(event, Repaired)}
        told = {item.rule for item in pack.violations} & {e.rule for e in pack.events if isinstance(e, RuleBroken)}
        self.broken += sorted(told)
        for rule in sorted(told - EXPLAINED):
            self.fault("illegal", f"{rule}, with an event")
        body, card, wire = load(pack.body), self.session.settings.card, self.wire
        strict = [*check(body, find_wire(wire), card=card, strict=True), *find_unpaired(wire, body)]
        for item in strict:
            if item.rule not in told:
                self.fault("illegal", _say(item))
        for rule, place in find_broken(wire, body, Known(card.conduct, self.mint.issued)):
            if rule not in told:
                self.fault("illegal by the tables", f"{rule} at {place}")
        self.judge_size(pack, body)
        self.judge_ledger(body, old)
        self.judge_prefix(pack)
        self.last, self.is_plain = pack, not any(isinstance(event, FieldLeftOut) for event in pack.events)

    def judge_size(self, pack: Pack, body: Any) -> None:
        """A count of our own, of the texts alone, and the session's, against the window."""
        budget = self.session._engine.settings.budget
        least = sum(-(-len(text) // 4) for text in _leaves(body))
        # What the provider reported lets more of our tokens in, where it counts fewer.
        if max(least, pack.tokens) * min(self.factor, 1) > budget.window_tokens - budget.output_reserve_tokens:
            self.fault("too long", f"{least} of texts, {pack.tokens} by the manifest, of {budget}")
        if least > pack.tokens * 1.02 + 20 and self.factor >= 1:
            self.fault("too long", f"{pack.tokens} tokens are told and the texts alone have {least}")

    def judge_ledger(self, body: Any, old: set[str]) -> None:
        """Where each text is that was handed in."""
        card = self.session.settings.card
        prompt = dump({key: value for key, value in body.items() if key != "tools"})
        spans = [(int(first), int(last or first)) for first, last in _ADDRESS.findall(prompt)]
        for mark in [mark for one in self.given for mark in one.marks]:
            if mark.encode() in prompt or mark in self.gone:
                continue
            places = [e.index for e in self.session.entries if mark.encode() in dump_value(e.message)]
            if not any(first <= place <= last for place in places for first, last in spans):
                self.fault("lost", f"{mark} of entries {places}")
        for mark in sorted(old):
            if mark.encode() in prompt:
                self.fault("leaked", f"{mark} is of another request or withdrawn")
        for mark, issuer in self.mint.thought.items():
            is_taken = self.shows_reasoning or card.conduct.reasoning_echo == "reasoning_content"
            if issuer != self.wire and not is_taken and mark.encode() in prompt:
                self.fault("leaked", f"the reasoning {mark} of {issuer}")

    def judge_prefix(self, pack: Pack) -> None:
        """Whether the request goes on from the last one, or says why not."""
        edits, last, said = len(self.session.edits), self.last, pack.manifest.prefix
        if last is not None:
            kept = list(pack.chain[: len(last.chain)]) == list(last.chain)
            # A reopened session that cannot build the last request with its new fields says that all changed.
            if not kept and not (said.first_changed and said.why):
                self.fault("prefix", f"{kept=}, the manifest says {said.first_changed!r}, {said.why!r}")
            is_told = any(isinstance(event, FieldLeftOut | ToolsReduced) for event in pack.events)
            if self.is_plain and not is_told and edits == self.edits and said.why != _JOINED:
                has_text = last.manifest.sent.transient or pack.manifest.sent.transient
                if said.first_changed or not (has_text or _goes_on(last, pack)):
                    self.fault("prefix", f"nothing was edited, and {said.first_changed!r}: {said.why!r}")
        self.edits = edits

    def fault(self, kind: str, what: str) -> None:
        """Write down a fault, once."""
        if (found := Fault(kind, f"{what} ({self.wire})")) not in self.faults:
            self.note(f"FAULT {found}")
            self.faults.append(found)


def _goes_on(last: Pack, pack: Pack) -> bool:
    """Whether a request starts with all of the last one; cache marks are no part of what a provider reads."""
    if last.manifest.sent.marks or pack.manifest.sent.marks:
        before, now = ([piece.value for piece in split_pieces(load(one.body))] for one in (last, pack))
        return now[: len(before)] == before
    return pack.body.startswith(last.body[: -len(b"]}")])


def _say(broken: Violation) -> str:
    return f"{broken.rule} at {broken.path}: {broken.detail}"


def _leaves(value: Any, field: str = "") -> Iterator[str]:
    if isinstance(value, str):
        yield from ([value] if field in _LEAVES else [])
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, field)

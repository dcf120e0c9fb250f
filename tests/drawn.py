"""A random history under one format, strategy and window, all drawn from a seed, and the faults of its requests.

Every second history is spoilt as agents, proxies and recorders spoil them; the others are legal, in Responses with
results apart. Every second one was written in some format before, so that parts have templates and foreign origins.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lading.engine import Engine
from lading.errors import Violation, WindowExceeded, WireError
from lading.events import Repaired
from lading.history.log import NO_COMPACTIONS
from lading.history.repair import UNNAMED_CALL
from lading.history.replaying import CLOSING
from lading.jsonbytes import dump, load
from lading.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    user_text,
)  # fmt: skip
from lading.models.card import Card, Conduct, Dialect
from lading.request.pack import Pack
from lading.settings import Settings
from lading.testing.legality import find_unpaired
from lading.wire import WIRES, check, encode, find_wire
from tests.contract import Preset
from tests.engines import TOOLS, settings, template
from tests.histories import set_apart
from tests.preset_cases import PRESETS

WINDOWS = (400, 800, 1_500, 3_000, 8_000, 200_000)
ROUNDS = (1, 1, 2, 3, 4, 8)
DIALECTS: dict[str, Sequence[Dialect]] = {
    "anthropic": ("first_party", "first_party", "bedrock", "strict"),
    "openai_chat": ("first_party", "first_party", "chat_template", "strict"),
    "openai_responses": ("first_party",),
    "gemini": ("first_party", "first_party", "strict"),
}
ECHOES = {
    "anthropic": ("signed", "none"),
    "openai_chat": ("none", "reasoning_content"),
    "gemini": ("signed", "none"),
}
SAID = (
    "Yes.", "Look at it.", "I decided to use the second index.", "中 is é🙂", '{"a": [1]}', "Never push to main.",
)  # fmt: skip
THINKING = {"max_tokens": 2_000, "thinking": {"type": "enabled", "budget_tokens": 1_024}}
BLANKS = ("", " ", "\n\t")
ODD_IDS = ("", "a:b é", "call-with-a-rather-long-identifier-of-some-provider-or-other", "c0", "x" * 70)
ODD_NAMES = ("mcp: do.it", "", "é", "read" * 20)
ODD_ARGUMENTS = ("", "{broken", "[1]", "null", '{"text": "\\ud83d"}', '{"n": 1e400}')
PICTURE = Image(data="aGVsbG8=", media_type="image/png")
MEDIA: tuple[Part, ...] = (
    PICTURE,
    Image(url="https://x.example/a.png"),
    File(data="aGk=", media_type="application/pdf"),
)
HOSTED: tuple[Opaque, ...] = (
    Opaque({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
    Opaque({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
    Opaque({"type": "compaction", "content": "All was well."}),
    Opaque({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}),
    Opaque({"type": "brand_new", "x": 1}),
    Opaque({"executableCode": {"code": "1", "language": "PYTHON"}}),
)


class Drawn(Struct, frozen=True):
    """One drawn history and what it goes through."""

    wire: str
    preset: str
    settings: Settings
    messages: tuple[Message, ...]
    kind: str
    """``legal`` or ``spoilt``, and the format that it was written in before."""
    thinks: int = 0
    """From which message on requests ask for thinking, where the format has a field for that."""


FAULTS = {
    "illegal": "requests that break a rule of their provider",
    "unpaired": "calls and results that do not match, by another check",
    "too long": "requests over the window",
    "untold": "repairs without an event, texts lost without an edit",
    "error": "exceptions other than that no cut makes a request fit",
}
"""What may be wrong, by kind."""


class Fault(NamedTuple):
    """What is wrong with a history, by its kind in ``FAULTS``."""

    kind: str
    what: str


class Verdict(Struct, frozen=True):
    """What one history came to."""

    requests: int = 0
    repairs: int = 0
    edits: int = 0
    refused: int = 0
    """Typed errors in the place of a request: no cut makes it fit."""
    faults: tuple[Fault, ...] = ()


def draw(seed: int) -> Drawn:
    """The history of a seed."""
    chance = random.Random(seed)
    wire, preset = chance.choice(_WIRES), chance.choice(_PRESETS)
    chosen = _settings(wire, preset, chance.choice(WINDOWS), _conduct(chance, wire))
    messages = list(_legal(chance, chosen.budget.window_tokens, chosen.card))
    if wire == "openai_responses":
        messages = set_apart(messages, random.Random(~seed).choices((0, 0, 0, 1, 2, 4), k=len(messages)))
    kind = "legal"
    if chance.random() < 0.5:
        kind = "spoilt"
        for _ in range(chance.choice((1, 1, 2, 5))):
            chance.choice(SPOILERS)(chance, messages)
    if chance.random() < 0.5:
        origin = wire if chance.random() < 0.4 else chance.choice(_WIRES)
        kind, messages = f"{kind}, {origin}", _written(messages, origin, chosen.card)
    return Drawn(wire, preset, chosen, tuple(messages), kind, chance.randint(0, 2 * len(messages)))


_WIRES = sorted(WIRES)
_PRESETS = sorted(PRESETS)


def _conduct(chance: random.Random, wire: str) -> Conduct:
    return Conduct(
        dialect=chance.choice(DIALECTS[wire]),
        mid_system=chance.random() < 0.3,
        prefill=chance.random() < 0.3,
        reasoning_echo=chance.choice(ECHOES.get(wire, ("none",))),  # type: ignore[arg-type]
    )


@cache
def _settings(wire: str, preset: str, window: int, conduct: Conduct) -> Settings:
    chosen: Preset = PRESETS[preset]
    made = settings(window, wire=wire, strategy=chosen.strategy, strict=chosen.strict, conduct=conduct)
    return replace(made, summarizer=chosen.summarizer)


def _legal(chance: random.Random, window: int, row: Card) -> Iterator[Message]:
    """A history that any provider takes, in our own values."""
    if chance.random() < 0.7:
        yield Message("system", (Text("You are an agent."),))
    yield user_text("Do the task. " + chance.choice(SAID))
    signs = row.conduct.reasoning_echo == "signed"
    number = 0
    for _ in range(chance.choice(ROUNDS)):
        parts: list[Part] = []
        if chance.random() < 0.3:
            parts.append(Reasoning("Hm.", "c2ln" if signs or chance.random() < 0.5 else None))
        if chance.random() < 0.7:
            parts.append(Text(_text(chance, window)))
        calls = [
            ToolCall(f"c{number + at}", chance.choice(("read", "shell")), f'{{"path": "f{number + at}.py"}}')
            for at in range(chance.choice((0, 1, 1, 1, 2, 3)))
        ]
        number += len(calls)
        if not parts and not calls:
            parts.append(Text("Done."))
        yield Message("assistant", (*parts, *calls))
        results = [_result(chance, call, window) for call in calls]
        if chance.random() < 0.3 and len(results) > 1:
            chance.shuffle(results)
        if results and chance.random() < 0.3:
            yield Message("user", tuple(results))
        else:
            yield from (Message("tool", (result,)) for result in results)
        if not calls or chance.random() < 0.2:
            media = (chance.choice(MEDIA),) if chance.random() < 0.1 else ()
            yield Message("user", (Text(_text(chance, window)), *media))


def _text(chance: random.Random, window: int) -> str:
    long = chance.random() < 0.15
    return chance.choice(SAID) * (chance.choice((20, min(window // 20, 200))) if long else 1)


def _result(chance: random.Random, call: ToolCall, window: int) -> ToolResult:
    size = chance.choice((1, 1, 3, 20, 20, min(window // 5, 300)))
    text = "\n".join(f"{at} {call.name} line of {call.id}: value {at * 7}" for at in range(size))
    name = call.name if chance.random() < 0.5 else ""
    return ToolResult(call.id, (Text(text),), is_error=chance.random() < 0.1, name=name)


def _drop(chance: random.Random, messages: list[Message]) -> None:
    if len(messages) > 1:
        del messages[chance.randrange(len(messages))]


def _double(chance: random.Random, messages: list[Message]) -> None:
    at = chance.randrange(len(messages))
    messages.insert(chance.randint(0, len(messages)), messages[at])


def _swap(chance: random.Random, messages: list[Message]) -> None:
    at = chance.randrange(len(messages))
    messages[at], messages[at - 1] = messages[at - 1], messages[at]


def _cut_front(chance: random.Random, messages: list[Message]) -> None:
    del messages[: chance.randrange(len(messages))]


def _change(chance: random.Random, messages: list[Message], change: Callable[[Part], Part | None]) -> None:
    at = chance.randrange(len(messages))
    changed = (change(part) for part in messages[at].parts)
    messages[at] = messages[at].with_parts(tuple(part for part in changed if part is not None))


def _blank(chance: random.Random, messages: list[Message]) -> None:
    blank = Text(chance.choice(BLANKS))

    def change(part: Part) -> Part:
        if isinstance(part, ToolResult):
            return replace(part, parts=chance.choice(((), (blank,), (*part.parts, blank))))
        return blank if isinstance(part, Text) else part

    _change(chance, messages, change)


def _odd_ids(chance: random.Random, messages: list[Message]) -> None:
    odd = chance.choice(ODD_IDS)

    def change(part: Part) -> Part:
        if isinstance(part, ToolCall):
            return replace(part, id=odd)
        return replace(part, call_id=odd) if isinstance(part, ToolResult) else part

    for _ in range(chance.choice((1, 2, 4))):
        _change(chance, messages, change)


def _odd_calls(chance: random.Random, messages: list[Message]) -> None:
    def change(part: Part) -> Part:
        if isinstance(part, ToolCall):
            return (
                replace(part, name=chance.choice(ODD_NAMES))
                if chance.random() < 0.5
                else replace(part, arguments=chance.choice(ODD_ARGUMENTS))
            )
        return part

    _change(chance, messages, change)


def _part_gone(chance: random.Random, messages: list[Message]) -> None:
    _change(chance, messages, lambda part: part if chance.random() < 0.5 else None)


def _add_part(chance: random.Random, messages: list[Message]) -> None:
    added = chance.choice((*MEDIA, *HOSTED, Text("Beside it."), Text("\ud83d half"), Reasoning("", None, "ZW5j")))
    at = chance.randrange(len(messages))
    parts = list(messages[at].parts)
    place = chance.randint(0, len(parts))
    if parts and isinstance(held := parts[place - 1], ToolResult) and not isinstance(added, Reasoning):
        parts[place - 1] = replace(held, parts=(*held.parts, added))
    else:
        parts.insert(place, added)
    messages[at] = messages[at].with_parts(tuple(parts))


def _add_message(chance: random.Random, messages: list[Message]) -> None:
    added = chance.choice(
        (
            Message("system", (Text("Be brief."),)),
            Message("assistant", (Text("I go on. "),)),
            Message("assistant", (Reasoning("Only thought.", "c2ln"),)),
            Message("assistant", ()),
            Message("assistant", (chance.choice(HOSTED),)),
            Message("user", ()),
            Message("tool", (ToolResult("nobody", (Text("x"),)),)),
            user_text("More."),
        )
    )
    messages.insert(chance.randint(0, len(messages)), added)


SPOILERS: tuple[Callable[[random.Random, list[Message]], None], ...] = (
    _drop, _drop, _double, _swap, _cut_front, _blank, _odd_ids, _odd_calls, _part_gone, _add_part, _add_part,
    _add_message, _add_message,
)  # fmt: skip


def _written(messages: list[Message], origin: str, row: Card) -> list[Message]:
    """The messages as they come back from a body of a format; as they are, where it takes no such body."""
    wire = find_wire(origin)
    try:
        return list(wire.decode(encode(Conversation(tuple(messages)), wire, card=row)).messages)
    except WireError:
        return messages


def play(seed: int) -> Verdict:
    """Send the history of a seed request by request, and judge each."""
    drawn = draw(seed)
    playing = _Play(drawn)
    try:
        return playing.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed tells
        return Verdict(faults=(Fault("error", f"{type(error).__name__}: {error}"[:300]),))


class _Play:
    """One history on its way through an engine."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn, self.engine = drawn, Engine(drawn.settings)
        self.requests = self.refused = 0
        self.told: set[tuple[str, int]] = set()
        self.faults: list[Fault] = []

    def run(self) -> Verdict:
        """Make a request before each message of the assistant, and one at the end."""
        had_user = False
        for message in self.drawn.messages:
            if message.role == "assistant" and had_user:
                self._request()
            had_user = had_user or message.role in ("user", "tool")
            self.engine.append([message])
        if had_user:
            self._request()
        self._judge_repairs()
        compactions = sum(edit.kind not in NO_COMPACTIONS for edit in self.engine.history.edits)
        return Verdict(self.requests, len(self.told), compactions, self.refused, tuple(self.faults))

    def _request(self) -> None:
        wire, has_begun = self.drawn.wire, len(self.engine.history.entries) >= self.drawn.thinks
        thinking = THINKING if wire == "anthropic" and has_begun else {}
        try:
            pack = self.engine.pack(tools=TOOLS, template=template(wire) | thinking)
        except WindowExceeded:
            self.refused += 1
            return
        self.requests += 1
        self.told |= {(event.rule, event.entry) for event in pack.events if isinstance(event, Repaired)}
        self.faults += self._find_faults(pack)

    def _find_faults(self, pack: Pack) -> Iterator[Fault]:
        drawn, body = self.drawn, load(pack.body)
        found = check(body, find_wire(drawn.wire), card=drawn.settings.card, strict=True)
        yield from (Fault("illegal", _told(item)) for item in (*found, *pack.violations))
        yield from (Fault("unpaired", _told(item)) for item in find_unpaired(drawn.wire, body))
        if pack.tokens > drawn.settings.budget.window_tokens:
            yield Fault("too long", f"{pack.tokens} tokens")
        # Gemini's neighbouring texts of the model are one text of ours.
        written = pack.body.replace(b'"},{"text":"', b"")
        for item in self.engine.history.view.items:
            if item.edit < 0:
                lost = (text for text in _texts(item.message) if not _stands(text, written))
                yield from (Fault("untold", f"lost: {text[:40]!r}") for text in lost)

    def _judge_repairs(self) -> None:
        """Each edit that repairs must have its event."""
        told = {rule for rule, _ in self.told} | {UNNAMED_CALL}
        for edit in self.engine.history.edits if self.requests and not self.refused else ():
            rules = set(edit.reason.removeprefix(CLOSING).split(", ")) if edit.kind == "repaired" else set()
            self.faults += [Fault("untold", f"{rule} at {edit.first}") for rule in sorted(rules - told)]


def _told(broken: Violation) -> str:
    return f"{broken.rule} at {broken.path}: {broken.detail}"


def _stands(text: str, body: bytes) -> bool:
    return dump(text)[1:-1] in body


def _texts(message: Message) -> list[str]:
    inner = [part for result in message.results for part in result.parts]
    texts = [part.text for part in (*message.parts, *inner) if isinstance(part, Text)]
    names = [call.name for call in message.calls]
    return [text for text in (*texts, *names) if text.strip()]

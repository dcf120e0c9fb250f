"""How far calibrated counts are from the provider's: simulated, and on a session with recorded usage.

Simulated: messages cut from the repository's own files. The truth is a real tokenizer's count of the texts,
some tokens for each message and a constant; the counter under test sees the texts alone. Recorded: what the
provider billed. An error is that of a whole request, relative to the truth.
"""

from __future__ import annotations

import gzip
import math
import random
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate, compress, product
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figure, below, plain
from bench.sessions import LONG_SESSION, ROOT, SHARED
from lading.messages import Message, ToolCall, ToolResult
from lading.models.catalog import find_card
from lading.sources import Recording, read
from lading.tokens import counter
from lading.tokens.calibration import Calibration
from lading.tokens.meter import Meter
from lading.tokens.plausibility import RequestCount

KEPT_GOAL, REPACKED_GOAL = 2.5, 6.0
"""p95 of the error, in percent."""
FIRST = 5
"""Requests of a session before its errors count."""

FILES = {
    "code": ("src/**/*.py",),
    "text": ("*.md", "docs/**/*.md", "changelog.d/*.md"),
    "json": ("examples/sessions/*.gz",),
}
MIXES = {"mostly code": (8, 1, 1), "mostly text": (1, 8, 1), "mostly json": (1, 1, 8), "even": (1, 1, 1)}
"""How often a message is of which kind."""
TRUTHS = {"estimate": ("o200k", "cl100k"), "cl100k": ("o200k",)}
"""Counters under test, and what is true in turn."""
UNSEEN_TOKENS = (350, 2_350)
FRAMING_TOKENS = 4
MESSAGES_OF_A_KIND = 250
SESSIONS, REQUESTS = 20, 41
INITIAL_MARGIN = 0.25
"""Share of the prediction that the caller leaves free before residuals are known."""
CUT_SESSIONS = 60


class Sent(NamedTuple):
    """One request of a session: what a counter says of it, and what it takes."""

    counted: RequestCount
    true_tokens: int
    kept: bool = False


class Outcome(NamedTuple):
    """How a request was predicted."""

    error: float
    beyond: bool
    """Whether it took more than prediction and margin."""
    margin: float
    """As a share of the prediction."""


class World(NamedTuple):
    """One setting of the simulation."""

    counter: str
    truth: str
    unseen_tokens: int
    mix: str


def run() -> list[Figure]:
    """Figures of the simulation, then of the recorded session where it is there."""
    figures = [figure for name in TRUTHS for figure in _simulated(name)]
    if not (SHARED / LONG_SESSION).exists():
        return [*figures, plain("recorded usage", "not there: LADING_SHARED names its folder")]
    recording = next(item for item in read(SHARED / LONG_SESSION) if isinstance(item, Recording))
    return [*figures, *(figure for name in TRUTHS for figure in _recorded(recording, name))]


def _simulated(name: str) -> Iterator[Figure]:
    for kept, what, goal in ((True, "prefix kept", KEPT_GOAL), (False, "re-packed", REPACKED_GOAL)):
        p95s: dict[str, float] = {}
        everything: list[Outcome] = []
        for mix, truth, unseen in product(MIXES, TRUTHS[name], UNSEEN_TOKENS):
            outcomes: list[Outcome] = []
            for number in range(SESSIONS):
                chance = random.Random(f"{mix}, {number}")
                requests = _session(World(name, truth, unseen, mix), chance, kept=kept)
                outcomes += _outcomes(requests)
            p95s[mix] = max(p95s.get(mix, 0.0), _p95(outcomes))
            everything += outcomes
        yield below(f"simulated, {what}, by {name}: p95 of the worst mix", max(p95s.values()), goal, unit="%")
        yield plain("  p95 by mix, %", ", ".join(f"{mix} {p95:.1f}" for mix, p95 in p95s.items()))
        yield plain("  more than prediction and margin", _beyond(everything))


def _session(world: World, chance: random.Random, *, kept: bool) -> Iterator[Sent]:
    """Requests that grow by two messages each, or of 3 to 60 other messages each."""
    kinds = [_messages(kind) for kind in FILES]
    shown: list[dict[str, int]] = []
    for number in range(REQUESTS):
        if not kept:
            shown = []
        new = 2 if kept else chance.randint(3, 60)
        shown += [chance.choice(kind) for kind in chance.choices(kinds, MIXES[world.mix], k=new)]
        counted = RequestCount(sum(message[world.counter] for message in shown), len(shown))
        true = sum(message[world.truth] + FRAMING_TOKENS for message in shown) + world.unseen_tokens
        yield Sent(counted, true, kept and number > 0)


@cache
def _messages(kind: str) -> list[dict[str, int]]:
    """Tokens, by counter, of pieces of the kind's files, 100 to 8,000 characters, short ones more often."""
    files = [path for pattern in FILES[kind] for path in sorted(ROOT.glob(pattern))]
    text = "\n".join(_text(path) for path in files)
    chance = random.Random(kind)
    pieces = []
    for _ in range(MESSAGES_OF_A_KIND):
        length = int(100 * 80 ** chance.random())
        start = chance.randrange(max(1, len(text) - length))
        pieces.append(text[start : start + length])
    names = {name for pair in TRUTHS.items() for name in (pair[0], *pair[1])}
    return [{name: counter(name).count(piece) for name in sorted(names)} for piece in pieces]


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def _recorded(recording: Recording, name: str) -> Iterator[Figure]:
    grown = list(_billed(recording, name))
    kept = _outcomes(grown)
    yield below(f"recorded, prefix kept, by {name}: p95", _p95(kept), KEPT_GOAL, unit="%")
    yield plain("  more than prediction and margin", _beyond(kept))
    alone = _outcomes(request._replace(kept=False) for request in grown)
    yield below(f"recorded, by the fit alone, by {name}: p95", _p95(alone), REPACKED_GOAL, unit="%")
    calls = _sound(grown)
    cuts = [outcome for number in range(CUT_SESSIONS) for outcome in _outcomes(_cuts(calls, random.Random(number)))]
    yield below(f"cut from it anew each time, by {name}: p95", _p95(cuts), REPACKED_GOAL, unit="%")
    yield plain("  more than prediction and margin", _beyond(cuts))
    first = [
        outcome for number in range(CUT_SESSIONS // 10) for outcome in _first_cuts(calls, random.Random(number))
    ]
    yield below(f"cut from it for the first time, by {name}: p95", _p95(first), REPACKED_GOAL, unit="%")


def _billed(recording: Recording, name: str) -> Iterator[Sent]:
    """The recorded calls: what had been said by then, and what was billed as input.

    A reply none of whose calls has a result was interrupted; the bill of the next call shows that it was not
    sent again. System prompt and tools are not in the recording.
    """
    facts = find_card(recording.model)[0].tokens
    meter = Meter(counter(name), 1.0, facts.call_tokens, facts.plain_arguments)
    parts = [part for message in recording.messages for part in message.parts]
    answered = {part.call_id for part in parts if isinstance(part, ToolResult)}
    sent = [not _interrupted(message, answered) for message in recording.messages]
    tokens = [meter.count_message(message) for message in recording.messages]
    position = {index: at for at, index in enumerate(recording.raw_indices)}
    for number, usage in enumerate(recording.usage):
        shown = sent[: position[usage.message_index]]
        counted = RequestCount(sum(compress(tokens, shown)), sum(shown))
        yield Sent(counted, usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens, number > 0)


def _interrupted(message: Message, answered: set[str]) -> bool:
    calls = [part.id for part in message.parts if isinstance(part, ToolCall)]
    return bool(calls) and answered.isdisjoint(calls)


def _sound(grown: list[Sent]) -> list[Sent]:
    """The calls billed no less than all before them. The others lacked something that the recording does not
    tell."""
    highest = accumulate((request.true_tokens for request in grown), max)
    return [request for request, most in zip(grown, highest, strict=True) if request.true_tokens == most]


def _between(head: Sent, first: Sent, last: Sent) -> Sent:
    """A request of the first call's messages and those between two later calls. What it would have been billed
    is the first bill and the difference of the others."""
    tokens = head.counted.tokens + last.counted.tokens - first.counted.tokens
    messages = head.counted.messages + last.counted.messages - first.counted.messages
    return Sent(RequestCount(tokens, messages), head.true_tokens + last.true_tokens - first.true_tokens)


def _cuts(calls: list[Sent], chance: random.Random) -> Iterator[Sent]:
    """A session of requests that share nothing but the head."""
    for _ in range(REQUESTS):
        first = chance.randrange(1, len(calls) - 1)
        wanted = calls[first].counted.messages + chance.randint(3, 60)
        last = next((call for call in calls[first + 1 :] if call.counted.messages >= wanted), calls[-1])
        yield _between(calls[0], calls[first], last)


def _first_cuts(calls: list[Sent], chance: random.Random) -> Iterator[Outcome]:
    """The recorded session cut for the first time, at each call in turn."""
    calibration = Calibration()
    for number, (counted, true_tokens, kept) in enumerate(calls):
        most = counted.messages - chance.randint(3, 60)
        first = next((call for call in reversed(calls[1:number]) if call.counted.messages <= most), None)
        if first is not None and number > FIRST:
            yield _outcome(calibration, _between(calls[0], first, calls[number]))
        calibration = calibration.learn(counted, true_tokens, kept=kept)


def _outcomes(requests: Iterable[Sent]) -> list[Outcome]:
    """How a session's requests are predicted after the first few, each learned from when it was predicted."""
    outcomes: list[Outcome] = []
    calibration = Calibration()
    for request in requests:
        outcomes.append(_outcome(calibration, request))
        calibration = calibration.learn(request.counted, request.true_tokens, kept=request.kept)
    return outcomes[FIRST:]


def _outcome(calibration: Calibration, request: Sent) -> Outcome:
    predicted = calibration.predict(request.counted, kept=request.kept)
    initial = round(INITIAL_MARGIN * predicted)
    margin = compute_margin(calibration, predicted, initial_margin_tokens=initial, kept=request.kept)
    error = abs(predicted / request.true_tokens - 1)
    return Outcome(error, request.true_tokens > predicted + margin, margin / predicted)


def compute_margin(
    calibration: Calibration, predicted_tokens: int, *, initial_margin_tokens: int, kept: bool
) -> int:
    """Return the tokens that are left free beside a prediction."""
    share = calibration.compute_margin_share(kept=kept)
    margin = initial_margin_tokens if share is None else math.ceil(share * predicted_tokens)
    return min(margin, initial_margin_tokens)


def _p95(outcomes: list[Outcome]) -> float:
    errors = sorted(outcome.error for outcome in outcomes)
    return 100 * errors[len(errors) * 95 // 100]


def _beyond(outcomes: list[Outcome]) -> str:
    beyond = sum(outcome.beyond for outcome in outcomes)
    margin = sum(outcome.margin for outcome in outcomes) / len(outcomes)
    return f"{beyond} of {len(outcomes):,}, margins of {100 * margin:.1f} % on average"

"""Requests of a step: how long one takes beside a long history and many candidates, and what its payload costs.

Times are of the processor: the session is in memory, and waits for nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import islice
from random import Random
from statistics import median
from time import process_time
from typing import NamedTuple

import lading
from bench.figures import Figure, below, plain
from bench.histories import head, rounds
from lading.economics import Rates

MODEL, WINDOW_TOKENS, OUTPUT_TOKENS = "claude-sonnet-4-5", 200_000, 8_000
LOG_TOKENS = 1_000_000
CANDIDATES = 200
EVIDENCE_LINES, LINE_WORDS = 40, 14
PACKS, PAYLOADS = 100, 7
CALLS = 30
RATES = Rates(0.1, 1.25)
SEED = 20_261_125
WORDS = (
    *(
        "acme",
        "blip",
        "vendor",
        "price",
        "support",
        "market",
        "risk",
        "gap",
        "source",
        "report",
        "growth",
        "latency",
    ),
    *("budget", "churn", "region", "quarter", "share", "margin", "licence", "contract", "team", "plan", "release"),
)
QUESTION = "Compare the vendors by price and risk."
STEP = {
    "id": "step-1",
    "text": ["Extract the price and the risk of each vendor."],
    "checklist": [
        {"id": "price", "text": "Price with source", "proof": "evidence"},
        {"id": "gaps", "text": "Risk and gap of each region", "proof": "evidence"},
        "Churn by quarter",
    ],
}


class StepCost(NamedTuple):
    """Tokens of the requests of a step, by what they cost."""

    fresh: int
    read: int

    @property
    def cost(self) -> float:
        """Cost in tokens of uncached input."""
        return self.fresh * RATES.write + self.read * RATES.read


def make_candidates(count: int = CANDIDATES) -> tuple[list[lading.Evidence], list[lading.Memory]]:
    """Make evidence of about 700 tokens each, and memories."""
    random = Random(SEED)
    evidence = [
        lading.Evidence(
            f"artifact://tasks/bench/step-0/report_{at}.md",
            "\n".join(_say(LINE_WORDS, random) for _ in range(EVIDENCE_LINES)),
        )
        for at in range(count)
    ]
    return evidence, [lading.Memory(f"m{at}", _say(15, random), random.random()) for at in range(count)]


def _say(words: int, random: Random) -> str:
    return " ".join(
        random.choice(WORDS) + ("" if random.random() < 0.7 else str(random.randrange(99))) for _ in range(words)
    )


def begin(session: lading.Session, *, candidates: int = CANDIDATES) -> None:
    """Begin the step with candidates."""
    evidence, memory = make_candidates(candidates)
    options = lading.TaskOptions(evidence=lambda _: evidence, memory=lambda _: memory)
    session.begin(STEP, options=options)


def make_session(log_tokens: int) -> tuple[lading.Session, Iterator[tuple[lading.Message, lading.Message]]]:
    """Make a session whose log holds about so many tokens, with a request every fifty rounds; also the next
    rounds."""
    session = lading.Session(MODEL, window=WINDOW_TOKENS, output_reserve=OUTPUT_TOKENS)
    before = session.add(head()).pack().tokens
    blocks = rounds()
    count = -(-log_tokens // (session.add(next(blocks)).pack().tokens - before))
    for number, block in enumerate(islice(blocks, count - 1)):
        session.add(block)
        if number % 50 == 49:
            session.pack()
    session.pack()
    return session, rounds(count, lines=20)


def time_payloads(session: lading.Session, count: int) -> list[float]:
    """Times in milliseconds of requests that make a payload: the user speaks before each."""
    times = []
    for at in range(count):
        session.add(lading.Message("assistant", (lading.Text("Done."),)))
        session.add(f"{QUESTION} Begin with the {WORDS[at % len(WORDS)]}.")
        times.append(_time_ms(session))
    return times


def _time_ms(session: lading.Session) -> float:
    gc.collect()
    started = process_time()
    session.pack()
    return (process_time() - started) * 1_000


def measure_step(calls: int, *, has_payload: bool) -> tuple[StepCost, int]:
    """Play a step of so many tool calls with one request each; also the tokens of the payload."""
    fresh = read = 0
    with lading.Session(MODEL, window=WINDOW_TOKENS, output_reserve=OUTPUT_TOKENS) as session:
        session.add(head()[:1])
        session.add(QUESTION)
        if has_payload:
            begin(session, candidates=10)
        payload = 0
        for at, block in enumerate(islice(rounds(lines=20), calls)):
            pack = session.pack()
            if at == 0:
                payload = pack.tokens
            shared = pack.manifest.prefix.tokens if at else 0
            fresh, read = fresh + pack.tokens - shared, read + shared
            session.add(block)
    return StepCost(fresh, read), payload


def run() -> list[Figure]:
    """Times of requests in a step, and the cost of its payload."""
    session, more = make_session(LOG_TOKENS)
    with session:
        session.add(QUESTION)
        begin(session)
        first = _time_ms(session)
        payloads = median(time_payloads(session, PAYLOADS))
        warm = []
        for block in islice(more, PACKS):
            session.add(block)
            warm.append(_time_ms(session))
    without, plain_first = measure_step(CALLS, has_payload=False)
    held, first_tokens = measure_step(CALLS, has_payload=True)
    payload = first_tokens - plain_first
    most = payload * (RATES.write + (CALLS - 1) * RATES.read)
    case = f"{CANDIDATES} pieces of evidence, {CANDIDATES} memories, {LOG_TOKENS:,} tokens of history"
    return [
        below(f"{case}: request of a step, p50", median(warm), 10, unit="ms"),
        below("  the first request, with a new payload", first, 150, unit="ms"),
        below("  with a new payload, p50", payloads, 150, unit="ms"),
        below(
            f"a step of {CALLS} calls: tokens written more than without payload",
            held.fresh - without.fresh,
            payload,
            unit="tokens",
            digits=0,
        ),
        below("  cost of its payload, in tokens of input", held.cost - without.cost, most, unit="tokens", digits=0),
        plain("  tokens of the payload", f"{payload:,}"),
    ]

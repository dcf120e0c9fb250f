"""The price rule, which does not know when a session ends, beside the exact optimum, which does.

A session is a head and one append for each call. The only action, at any call: everything older than the newest
10 steps is folded to 60 tokens each, at the price (w - r)(b + e), where b is what stands behind the first step
newly folded and e the new folds. Input cost only; the cache is always warm. The optimum over the same action is
found by dynamic programming: what a session costs up to an edit depends on the edit before it alone.

Sessions are shaped like TraceLab's: a head of 20k tokens, 66 calls on average, 1.6k tokens appended at a call, two
thirds of them in appends of 10k or more. Hostile ones end right after the rule's edits, stop growing, or come in
bursts that stand in the kept tail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from random import Random
from typing import NamedTuple

from bench.figures import Figure, below, plain
from lading.economics import Rates, edit_price, is_due, is_worth_waiting, rent

TABLES = (
    Rates(0.10, 1.25),
    Rates(0.05, 1.25),
    Rates(0.025, 1.25),
    Rates(0.10, 1.0),
    Rates(0.10, 2.0),
    Rates(0.02, 1.0),
)
DIAL = (0.5, 1.0, 1.5, 2.0, 3.0)
SESSIONS = 2_000
HOSTILE_SESSIONS = 200
SEED = 20_261_120

HEAD_TOKENS = 20_000
KEPT_STEPS = 10
FOLD_TOKENS = 60
LONGEST_WAIT = 2.0
"""Times the regret: a rent that has reached it ends a wait."""

MEAN_CALLS = 66
LARGE_SHARE, LARGE_TOKENS, SMALL_TOKENS = 0.0533, 10_000, 563
"""Large appends: how many, and what each has at least and beyond that on average; the mean of small ones."""


class Session:
    """A session's appends with the sums that cost is read from. ``[i]``: of the first i steps."""

    def __init__(self, appended: Sequence[int]) -> None:
        self.appended = tuple(appended)
        self.calls = len(self.appended)
        self.raw = [0, *accumulate(self.appended)]
        self.folded = [0, *accumulate(min(tokens, FOLD_TOKENS) for tokens in self.appended)]
        self.raw_sums = [0, *accumulate(self.raw)]

    def carried(self, start: int, end: int, *, boundary: int) -> int:
        """Tokens read by the calls from ``start`` up to ``end``, the steps before ``boundary`` folded."""
        prefix = HEAD_TOKENS + self.folded[boundary] - self.raw[boundary]
        return (end - start) * prefix + self.raw_sums[end] - self.raw_sums[start]

    def written(self, rates: Rates) -> float:
        """What is paid whatever is done: the head and each append written once, beyond what ``carried`` counts."""
        return (rates.write - rates.read) * HEAD_TOKENS + rates.write * self.raw[-1]

    def price(self, rates: Rates, call: int, *, boundary: int) -> float:
        """Of an edit at a call that moves the boundary from there to where it may stand now."""
        to = boundary_at(call)
        return edit_price(
            rates,
            cached_suffix_tokens=self.raw[call] - self.raw[to],
            inserted_tokens=self.folded[to] - self.folded[boundary],
        )

    def net(self, start: int, end: int) -> int:
        """What folding those steps frees."""
        return self.raw[end] - self.raw[start] - self.folded[end] + self.folded[start]


def boundary_at(call: int) -> int:
    """The steps before it may be folded at a call."""
    return max(call - KEPT_STEPS + 1, 0)


def append_only(session: Session, rates: Rates) -> float:
    """What the session costs when nothing is ever folded."""
    return session.written(rates) + rates.read * session.carried(0, session.calls, boundary=0)


def optimum(session: Session, rates: Rates) -> float:
    """The least the session can cost.

    After an edit at call k, what call i has cost so far is a line in i, but for what all such lines share. The
    folds that an edit wrote are a credit for the next.
    """
    read, span = rates.read, max(rates.write - rates.read, 0.0)
    raw, folded, raw_sums = session.raw, session.folded, session.raw_sums
    lines = [(0.0, read * HEAD_TOKENS, 0.0)]
    for call in range(KEPT_STEPS, session.calls):
        to = boundary_at(call)
        known = span * folded[to]
        best = min([fixed + call * each - credit for fixed, each, credit in lines])
        paid = best + span * (raw[call] - raw[to]) + known
        each = read * (HEAD_TOKENS + folded[to] - raw[to])
        lines.append((paid - call * each, each, known))
    best = min([fixed + session.calls * each for fixed, each, _ in lines])
    return session.written(rates) + read * raw_sums[session.calls] + best


class Ruled(NamedTuple):
    """What the rule did to a session."""

    cost: float
    edits: tuple[int, ...]
    """Calls at which it edited."""


def ruled(session: Session, rates: Rates, *, regret: float = 1.0, waits: bool = True) -> Ruled:
    """The session under the price rule; ``waits`` False: it edits as soon as the rent has reached the price."""
    edits: list[int] = []
    cost, account, boundary, since = session.written(rates), 0.0, 0, 0
    for call in range(KEPT_STEPS, session.calls):
        to = boundary_at(call)
        removable = session.net(boundary, to)
        account += rent(rates, removable_tokens=removable)
        price = session.price(rates, call, boundary=boundary)
        if removable <= 0 or not is_due(account, price, regret=regret):
            continue
        ageing = (session.net(step, step + 1) for step in range(to, call))
        may_wait = waits and not is_due(account, price, regret=LONGEST_WAIT * regret)
        if may_wait and is_worth_waiting(rates, removable_tokens=removable, ageing_tokens=ageing):
            continue
        cost += price + rates.read * session.carried(since, call, boundary=boundary)
        account, boundary, since = 0.0, to, call
        edits.append(call)
    return Ruled(cost + rates.read * session.carried(since, session.calls, boundary=boundary), tuple(edits))


def shaped(count: int, *, seed: int = SEED) -> list[Session]:
    """Sessions of the shape above."""
    random = Random(seed)

    def append() -> int:
        if random.random() < LARGE_SHARE:
            return LARGE_TOKENS + int(random.expovariate(1 / LARGE_TOKENS))
        return 1 + int(random.expovariate(1 / SMALL_TOKENS))

    lengths = (1 + int(random.expovariate(1 / (MEAN_CALLS - 0.5))) for _ in range(count))
    return [Session([append() for _ in range(length)]) for length in lengths]


def ending_at_edits(sessions: Iterable[Session], rates: Rates) -> Iterator[Session]:
    """The same sessions, each ended with the call of each edit of the rule."""
    for session in sessions:
        for call in ruled(session, rates).edits:
            yield Session(session.appended[: call + 1])


def growth_stops(sessions: Iterable[Session]) -> Iterator[Session]:
    """The same sessions; after half of the calls, every append is of 20 tokens."""
    for session in sessions:
        half = session.calls // 2
        yield Session((*session.appended[:half], *[20] * (session.calls - half)))


def bursts(count: int, *, seed: int = SEED) -> Iterator[Session]:
    """Three large appends in a row among tiny ones, at distances of up to two kept tails and more; ended
    anywhere."""
    random = Random(seed)
    for number in range(count):
        period = 4 + number % (2 * KEPT_STEPS)
        large = random.randint(3_000, 30_000)
        steps = [large if step % period < 3 else 30 for step in range(random.randint(1, 3 * MEAN_CALLS))]
        yield Session(steps)


class Outcome(NamedTuple):
    """How the rule did on some sessions."""

    aggregate: float
    """What they cost in all, relative to their optima in all."""
    worst: float
    """Of one session."""
    dearer: float
    """Share of sessions that cost more than append-only."""
    worst_dearer: float
    """What one cost at most, relative to append-only."""


def outcome(costs: Sequence[float], optima: Sequence[float], full: Sequence[float]) -> Outcome:
    """The rule's costs beside the least possible and append-only ones."""
    return Outcome(
        sum(costs) / sum(optima),
        max(cost / best for cost, best in zip(costs, optima, strict=True)),
        sum(cost > whole * (1 + 1e-9) for cost, whole in zip(costs, full, strict=True)) / len(costs),
        max(cost / whole for cost, whole in zip(costs, full, strict=True)),
    )


def measured(sessions: Sequence[Session], rates: Rates, *, regret: float = 1.0, waits: bool = True) -> Outcome:
    """How the rule does on the sessions at these prices."""
    costs = [ruled(session, rates, regret=regret, waits=waits).cost for session in sessions]
    optima = [optimum(session, rates) for session in sessions]
    return outcome(costs, optima, [append_only(session, rates) for session in sessions])


def run() -> list[Figure]:
    """The rule beside the optimum at six price tables, what the dial does, and hostile sessions."""
    sessions = shaped(SESSIONS)
    figures = []
    for rates in TABLES:
        name = f"read {rates.read:g}, write {rates.write:g}"
        with_waits, plainly = (measured(sessions, rates, waits=waits) for waits in (True, False))
        figures.append(below(f"{name}: rule / optimum", with_waits.aggregate, 1.04, unit="", digits=3))
        figures.append(below(f"{name}: of the worst session", with_waits.worst, 1.20, unit="", digits=3))
        figures.append(plain("  share dearer than append-only, and by how much", _dearer(with_waits)))
        shown = f"{plainly.aggregate:.3f}, worst {plainly.worst:.3f}; dearer: {_dearer(plainly)}"
        figures.append(plain("  without waiting", shown))
    return [*figures, *_dial(sessions), *_hostile(sessions[:HOSTILE_SESSIONS])]


def _dial(sessions: Sequence[Session]) -> Iterator[Figure]:
    optima = [optimum(session, rates) for rates in TABLES for session in sessions]
    full = [append_only(session, rates) for rates in TABLES for session in sessions]
    for regret in DIAL:
        costs = [ruled(session, rates, regret=regret).cost for rates in TABLES for session in sessions]
        found = outcome(costs, optima, full)
        shown = f"{found.aggregate:.3f}, worst {found.worst:.3f}; dearer: {_dearer(found)}"
        yield plain(f"regret {regret:g}, all tables: rule / optimum", shown)


def _hostile(sessions: Sequence[Session]) -> Iterator[Figure]:
    kinds: dict[str, Callable[[Rates], Iterable[Session]]] = {
        "ends at an edit": lambda rates: ending_at_edits(sessions, rates),
        "growth stops": lambda _: growth_stops(sessions),
        "bursts": lambda _: bursts(HOSTILE_SESSIONS),
    }
    for name, made in kinds.items():
        found = [measured(list(made(rates)), rates) for rates in TABLES]
        worst = max(item.worst for item in found)
        full = max(item.worst_dearer for item in found)
        yield plain(f"hostile, {name}: worst of all tables", f"{worst:.3f}; of append-only {full:.3f}")


def _dearer(found: Outcome) -> str:
    return f"{found.dearer:.1%}, at most {found.worst_dearer:.3f}"

"""Choice of candidates beside the exact optimum, found by an integer program, and its linear relaxation.

Four kinds of instances in turn: items whose concepts overlap and some of which need others; sources that are worth
nothing alone and that many need; few large items among small ones; and concepts only, covered many times over.
Budgets are 15 to 50 % of all tokens. Times are of the processor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from statistics import fmean, median
from time import process_time
from typing import NamedTuple

from rich.progress import track

from bench.figures import Figure, below, plain
from lading.task.candidates import Candidate
from lading.task.selection import Selection, select

SIZES = {14: 10_000, 60: 500}
"""Numbers of instances by their numbers of candidates."""
MANY = 10_000
MANY_BUDGET_SHARES = (0.01, 0.05, 0.15)
RUNS = 5
LEAST_MEAN, LEAST = 0.995, 0.95
SEED = 20_261_123


class Instance(NamedTuple):
    """A problem of choice."""

    candidates: tuple[Candidate, ...]
    budget_tokens: int


class Bounds(NamedTuple):
    """The exact optimum of an instance, and that of the problem in which candidates can be taken in part."""

    optimum: float
    relaxed: float


class Ratios(NamedTuple):
    """Values of choices, relative to the optimum."""

    to_optimum: list[float]
    to_relaxed: list[float]
    proven: float
    """Share of the choices known to be optimal."""


def make_instances(size: int, count: int, *, seed: int = SEED) -> Iterator[Instance]:
    """Make instances of a number of candidates, the kinds in turn."""
    random = Random(f"{seed} {size}")
    kinds = (_overlapping, _with_sources, _with_large_ones, _covering)
    for number in range(count):
        candidates = tuple(kinds[number % len(kinds)](size, random))
        total = sum(candidate.tokens for candidate in candidates)
        yield Instance(candidates, int(total * random.uniform(0.15, 0.5)))


def _overlapping(size: int, random: Random) -> Iterator[Candidate]:
    for at in range(size):
        concepts = {f"c{random.randrange(size)}": random.uniform(0.2, 1.5) for _ in range(random.randint(1, 4))}
        needs = _pick(at, random) if at and random.random() < 0.35 else ()
        tokens = int(min(4_000, max(20, random.lognormvariate(5.5, 1.0))))
        yield Candidate(f"i{at}", tokens, random.random() ** 2, concepts, needs)


def _with_sources(size: int, random: Random) -> Iterator[Candidate]:
    sources = max(2, size // 6)
    for at in range(sources):
        yield Candidate(f"i{at}", random.randint(500, 3_000))
    for at in range(sources, size):
        concepts = {f"c{random.randrange(size)}": random.random()}
        needs = _pick(sources, random)
        yield Candidate(f"i{at}", random.randint(50, 800), random.random(), concepts, needs)


def _with_large_ones(size: int, random: Random) -> Iterator[Candidate]:
    for at in range(size):
        tokens = random.choice((100, 200, 1_500, 4_000, 9_000)) + random.randint(0, 90)
        concepts = {f"c{random.randrange(size // 2)}": random.random()}
        yield Candidate(f"i{at}", tokens, tokens * random.uniform(0.8, 1.2) / 1_000, concepts)


def _covering(size: int, random: Random) -> Iterator[Candidate]:
    weights = [random.random() ** 2 for _ in range(size)]
    for at in range(size):
        concepts = {f"c{number}": weights[number] for number in random.sample(range(size), max(2, size // 6))}
        needs = (f"i{at - 1}",) if at % 7 and random.random() < 0.3 else ()
        yield Candidate(f"i{at}", random.randint(100, 1_000), 0.0, concepts, needs)


def _pick(below_at: int, random: Random) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"i{random.randrange(below_at)}" for _ in range(random.randint(1, 2))))


def find_bounds(instance: Instance) -> Bounds:
    """Find the optimum by an integer program: a variable for each candidate and for each pair of a concept and a
    candidate that covers it."""
    costs: list[float] = [-candidate.value for candidate in instance.candidates]
    rows: list[dict[int, float]] = [{at: float(item.tokens) for at, item in enumerate(instance.candidates)}]
    limits = [float(instance.budget_tokens)]
    positions = {candidate.id: at for at, candidate in enumerate(instance.candidates)}
    pairs: dict[str, list[int]] = defaultdict(list)
    for at, candidate in enumerate(instance.candidates):
        rows += [{at: 1.0, positions[needed]: -1.0} for needed in candidate.needs]
        for concept, weight in candidate.concepts.items():
            pairs[concept].append(len(costs))
            rows.append({len(costs): 1.0, at: -1.0})
            costs.append(-weight)
    limits += [0.0] * (len(rows) - 1)
    rows += [dict.fromkeys(columns, 1.0) for columns in pairs.values()]
    limits += [1.0] * len(pairs)
    matrix = [[row.get(column, 0.0) for column in range(len(costs))] for row in rows]
    whole = [int(column < len(instance.candidates)) for column in range(len(costs))]
    return Bounds(_solve(costs, matrix, limits, whole=whole), _solve(costs, matrix, limits, whole=[0] * len(costs)))


def _solve(costs: list[float], matrix: list[list[float]], limits: list[float], *, whole: list[int]) -> float:
    # Only this benchmark needs scipy; the others run without it.
    from scipy.optimize import Bounds as Between  # noqa: PLC0415
    from scipy.optimize import LinearConstraint, milp  # noqa: PLC0415

    most = LinearConstraint(matrix, -float("inf"), limits)
    solved = milp(costs, constraints=most, integrality=whole, bounds=Between(0, 1), options={"mip_rel_gap": 1e-9})
    assert solved.success, solved.message
    return -float(solved.fun)


def measure(instances: Sequence[Instance], *, name: str = "") -> Ratios:
    """Choose in each instance, and compare. Where nothing of value fits, the ratio is 1."""
    to_optimum, to_relaxed, proven = [], [], 0
    for instance in track(instances, name, disable=not name):
        chosen, bounds = choose(instance), find_bounds(instance)
        to_optimum.append(compare(chosen.value, bounds.optimum))
        to_relaxed.append(compare(chosen.value, bounds.relaxed))
        proven += chosen.is_optimal
    return Ratios(to_optimum, to_relaxed, proven / len(instances))


def choose(instance: Instance) -> Selection:
    """Make the choice of an instance."""
    return select(instance.candidates, instance.budget_tokens)


def compare(value: float, optimum: float) -> float:
    """Return the value relative to the optimum."""
    return value / optimum if optimum > 1e-9 else 1.0


def run() -> list[Figure]:
    """Values relative to the optimum, and how long the choice among many candidates takes."""
    figures = []
    for size, count in SIZES.items():
        instances = list(make_instances(size, count))
        found = measure(instances, name=f"{count:,} instances of {size}")
        mean, worst = fmean(found.to_optimum), min(found.to_optimum)
        what = f"{count:,} instances of {size} candidates"
        figures += [
            Figure(f"{what}: mean of the optimum", f"{mean:.4f}", f">= {LEAST_MEAN}", mean >= LEAST_MEAN),
            Figure("  worst", f"{worst:.4f}", f">= {LEAST}", worst >= LEAST),
            plain(
                "  mean of the relaxed optimum; proven optimal",
                f"{fmean(found.to_relaxed):.4f}; {found.proven:.1%}",
            ),
            plain("  milliseconds, median and most", _time_all(instances[:200])),
        ]
    candidates = next(make_instances(MANY, 1)).candidates
    total = sum(candidate.tokens for candidate in candidates)
    for share in MANY_BUDGET_SHARES:
        many = Instance(candidates, int(total * share))
        took_ms = median(_time_ms(many) for _ in range(RUNS))
        figures.append(below(f"{MANY:,} candidates, budget {share:.0%} of their tokens", took_ms, 20, unit="ms"))
    return figures


def _time_all(instances: Sequence[Instance]) -> str:
    times = [_time_ms(instance) for instance in instances]
    return f"{median(times):.1f}; {max(times):.1f}"


def _time_ms(instance: Instance) -> float:
    started = process_time()
    choose(instance)
    return (process_time() - started) * 1_000

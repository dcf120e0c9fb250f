"""How tests assert that work is linear without a bound on seconds: the same work at two sizes, in one run.

A function that is linear takes 8 times as long for 8 times as much, on any machine; a quadratic one 64 times.
CPU time of this thread is measured, so that other processes do not count. An absurd constant is not seen here:
``python -m bench hostile`` prints milliseconds.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple, TypeVar

LEAST_FACTOR = 8
"""How many times as large the larger of two inputs is, at least."""
NOISE = 3.0
"""How many times longer than linear work may take: caches, memory and clocks are not ideal."""
ROUNDS = 8
"""How often both are measured before the work is found too slow."""
SMALL_SAMPLES = 3
"""The small work is cheap, and a time that is too long would hide growth."""
MEASURABLE_S = 0.004

Input = TypeVar("Input", bound=Sized)


class Growth(NamedTuple):
    """The least times measured at two sizes."""

    small_size: int
    small_s: float
    large_size: int
    large_s: float

    @property
    def allowed(self) -> float:
        """How many times longer the larger may take."""
        return NOISE * self.large_size / self.small_size

    @property
    def is_linear(self) -> bool:
        """Whether the times are explained by linear work or less."""
        return self.large_s <= self.allowed * self.small_s

    @property
    def power(self) -> float:
        """The exponent that the times suggest: 1 for linear, 2 for quadratic."""
        return math.log(self.large_s / self.small_s) / math.log(self.large_size / self.small_size)

    def __str__(self) -> str:
        factor = self.large_size / self.small_size
        return (
            f"Size {self.small_size:,} took {1000 * self.small_s:.3f} ms and size {self.large_size:,} "
            f"{1000 * self.large_s:.3f} ms: {self.large_s / self.small_s:.1f} times as long for {factor:.1f} times "
            f"as much, where {self.allowed:.1f} are allowed. That suggests work of the power {self.power:.2f} of "
            "the size; linear is 1, quadratic 2."
        )


def assert_linear(work: Callable[[Input], object], *inputs: Input) -> None:
    """Fail unless the work grows at most linearly from each input to the next, larger one."""
    for small, large in pairwise(inputs):
        if len(large) < LEAST_FACTOR * len(small):
            raise ValueError(f"{len(large)} is less than {LEAST_FACTOR} times {len(small)}: noise would decide.")
        growth = measured(work, small, large=large)
        assert growth.is_linear, str(growth)


def ladder(text: str) -> tuple[str, str, str]:
    """A 64th of the text, an eighth, and all: what is capped somewhere between is seen below the cap too."""
    return text[: len(text) // 64], text[: len(text) // 8], text


def measured(work: Callable[[Input], object], small: Input, *, large: Input) -> Growth:
    """The growth of the work, measured until it is linear, and ``ROUNDS`` times at most."""
    small_s = large_s = math.inf
    with _no_collector():
        for _ in range(ROUNDS):
            small_s = min(small_s, *(_sample(work, small) for _ in range(SMALL_SAMPLES)))
            large_s = min(large_s, _sample(work, large))
            growth = Growth(len(small), small_s, len(large), large_s)
            if growth.is_linear:
                break
    return growth


def _sample(work: Callable[[Input], object], value: Input) -> float:
    """Seconds of CPU for the work, repeated until they can be measured."""
    repeats = 1
    while True:
        started = time.thread_time()
        for _ in range(repeats):
            work(value)
        taken_s = time.thread_time() - started
        if taken_s >= MEASURABLE_S:
            return taken_s / repeats
        repeats *= 2


@contextmanager
def _no_collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

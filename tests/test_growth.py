"""Linear work is told from quadratic work by times alone, on measured values and on real work."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.growth import Growth, assert_linear, ladder, measured


def each_once(text: str) -> int:
    """Linear."""
    return sum(map(ord, text))


def little(text: str) -> int:
    """The same for any text: its size is a field of the string."""
    return len(text)


def capped(text: str) -> int:
    """Linear up to 1,000 characters, and as long for any longer text."""
    return each_once(text[:1_000])


def each_with_each(text: str) -> int:
    """Quadratic."""
    return sum(one == other for one in text for other in text)


def runs_that_do_not_end(text: str) -> int:
    """Quadratic where nothing is found: each start reads to the end."""
    return len(re.findall("a+b", text))


def triples_below_a_cap(text: str) -> int:
    """Cubic up to 80 characters; above that, it is as long for any text."""
    text = text[:80]
    return sum(one == other == third for one in text for other in text for third in text)


LINEAR: list[Callable[[str], object]] = [each_once, little, capped, sorted]
QUADRATIC: list[Callable[[str], object]] = [each_with_each, runs_that_do_not_end]


@pytest.mark.parametrize("work", LINEAR)
def test_linear_work_passes(work: Callable[[str], object]) -> None:
    assert_linear(work, *ladder("a" * 64_000))


@pytest.mark.parametrize("work", QUADRATIC)
def test_quadratic_work_is_found_with_sizes_and_times(work: Callable[[str], object]) -> None:
    # 16 times as much: 48 times as long is allowed, and it takes 256 times as long.
    with pytest.raises(AssertionError, match=r"^Size 100 took .* ms and size 1,600 .* power \d\.\d+ of the size"):
        assert_linear(work, "a" * 100, "a" * 1_600)


def test_work_that_grows_below_a_cap_is_found_on_the_ladder() -> None:
    with pytest.raises(AssertionError, match=r"^Size 10 took"):
        assert_linear(triples_below_a_cap, *ladder("a" * 640))


def test_inputs_too_close_to_tell_are_refused() -> None:
    with pytest.raises(ValueError, match="70 is less than 8 times 10"):
        assert_linear(each_once, "a" * 10, "a" * 70)


def test_what_is_measured_has_the_sizes_and_takes_time() -> None:
    growth = measured(each_once, "a" * 100, large="a" * 1_000)
    assert (growth.small_size, growth.large_size) == (100, 1_000)
    assert growth.small_s > 0
    assert growth.large_s > 0


@pytest.mark.parametrize(
    ("large_s", "is_linear"),
    [(0.001, True), (0.008, True), (0.024, True), (0.025, False), (0.064, False), (0.512, False)],
)
def test_three_times_linear_is_allowed(large_s: float, is_linear: bool) -> None:
    assert Growth(1_000, 0.001, 8_000, large_s).is_linear == is_linear


def test_the_error_tells_sizes_times_and_what_they_suggest() -> None:
    growth = Growth(1_000, 0.001, 8_000, 0.064)
    assert growth.power == pytest.approx(2.0)
    assert str(growth) == (
        "Size 1,000 took 1.000 ms and size 8,000 64.000 ms: 64.0 times as long for 8.0 times as much, where 24.0 "
        "are allowed. That suggests work of the power 2.00 of the size; linear is 1, quadratic 2."
    )

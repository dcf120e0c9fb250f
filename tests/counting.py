"""Count the calls of functions: work that follows what is new can be asserted without a clock."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any


def count_calls(step: Callable[[], object], *functions: Any) -> dict[str, int]:
    """Run a step and count, by name, how often it calls these functions in this thread."""
    counted: Counter[CodeType] = Counter()
    codes = {function.__code__: function.__name__ for function in functions if isinstance(function, FunctionType)}

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in codes:
            counted[frame.f_code] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        step()
    finally:
        sys.setprofile(before)
    return {name: counted[code] for code, name in codes.items()}

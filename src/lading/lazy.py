"""An attribute that is computed when it is first read.

``functools.cached_property`` of Python 3.11 takes a lock of the whole class: threads wait for each other's values,
and a child that is forked meanwhile waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class lazy(Generic[V]):  # noqa: N801 - a decorator
    """Decorate a method to be such an attribute. Two threads that read it at once may both compute it."""

    def __init__(self, compute: Callable[[Any], V]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: object, owner: type) -> V:
        value = instance.__dict__[self._compute.__name__] = self._compute(instance)
        return value

"""A plugin of pytest that alters one value of the library, at the path in ``LADING_ALTERED``, before any test of it
is imported."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from tests.documents.rows import STEP


def pytest_configure() -> None:
    """Alter the value."""
    alter(os.environ["LADING_ALTERED"])


def alter(path: str) -> None:
    """Alter the value, or each of those that the path names, in place; a constant in every module that has it."""
    module, _, rest = path.partition(":")
    name, *_ = re.split(r"[.\[]", rest)
    found = getattr(importlib.import_module(f"lading.{module}"), name)
    steps = STEP.findall(rest, len(name))
    for holder, last in _find_holders(found, steps[:-1]) if steps else ():
        attribute, key = steps[-1]
        if key:
            last[key] = _change(last[key])
        else:
            assert isinstance(holder, Struct)
            force_setattr(holder, attribute, _change(getattr(holder, attribute)))
    for each in [*sys.modules.values()] if not steps else ():
        if each.__name__.startswith("lading") and getattr(each, name, None) is found:
            setattr(each, name, _change(found))


def _find_holders(value: Any, steps: list[tuple[str, str]]) -> Iterator[tuple[Any, Any]]:
    if not steps:
        yield value, value
        return
    (attribute, key), *others = steps
    inner = [*value.values()] if key == "*" else [value[key] if key else getattr(value, attribute)]
    for each in inner:
        yield from _find_holders(each, others)


def _change(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value * 2 + 1 if isinstance(value, int) else value * 1.7 if isinstance(value, float) else f"no {value}"

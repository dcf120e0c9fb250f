"""Options under the names of other systems' documents: ``camelCase`` is read as ``camel_case``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lading.errors import InputError

_CAPITAL = re.compile(r"(?<=[a-z0-9])[A-Z]")


def snake_case(options: Mapping[Any, Any], *, nested: bool = False) -> dict[str, Any]:
    """The same options with their names in snake_case; ``nested``: those of options within them too. Raises
    InputError for one given in both spellings."""
    spelled: dict[str, Any] = {}
    for name, value in options.items():
        snake = _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", str(name))
        if snake in spelled:
            raise InputError(f"The option {snake} is given twice, in two spellings. Give it once.")
        spelled[snake] = snake_case(value, nested=True) if nested and isinstance(value, Mapping) else value
    return spelled

"""Options under the names of other systems' documents: ``camelCase`` is read as ``camel_case``, ``aURL`` as
``a_url``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lading.checked import check, did_you_mean
from lading.errors import InputError

# A run of capitals is one word; its last one begins the next word where a small letter follows.
_CAPITALS = re.compile(r"(?<=[a-z0-9])[A-Z]+(?![a-z])|(?<=[a-zA-Z0-9])[A-Z](?=[a-z])")


def snake_case(options: Mapping[Any, Any], *, nested: bool = False) -> dict[str, Any]:
    """The same options with their names in snake_case; ``nested``: those of options within them too. Raises
    InputError for one given in both spellings."""
    spelled: dict[str, Any] = {}
    for name, value in options.items():
        snake = _snake(str(name))
        if snake in spelled:
            raise InputError(f"The option {snake} is given twice, in two spellings. Give it once.")
        spelled[snake] = snake_case(value, nested=True) if nested and isinstance(value, Mapping) else value
    return spelled


def check_options(options: object, names: Iterable[str], *, of: str) -> None:
    """Raises InputError for what is no mapping, and for an option that is none of these names (in snake_case) in
    either spelling: it is told as it was typed, and the names in the same spelling."""
    check(options, Mapping, advice=f"give the options of {of} by name, as a mapping")
    assert isinstance(options, Mapping)
    known = set(names)
    for name in map(str, options):
        if _snake(name) not in known:
            has_capitals = name != name.lower() or "_" not in name
            spelled = sorted(map(_camel, known) if has_capitals else known)
            raise InputError(
                f"{of} has no option {name!r}.{did_you_mean(name, spelled)} There are: {', '.join(spelled)}."
            )


def _snake(name: str) -> str:
    return _CAPITALS.sub(lambda capitals: f"_{capitals[0].lower()}", name)


def _camel(name: str) -> str:
    return re.sub("_([a-z])", lambda found: found[1].upper(), name)

"""Validate arguments of callers: their types, and the names of options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import Struct

from lading.errors import InputError
from lading.structs import convert

_MOST = 2**53


def check(value: object, kind: type[Any] | tuple[type[Any], ...], *, advice: str) -> None:
    """Raise InputError with the advice for a value of another type."""
    if not isinstance(value, kind):
        raise InputError(f"A {type(value).__name__} cannot be used here: {advice}.")


def check_count(value: object, *, name: str, least: int = 0) -> None:
    """Raise InputError for a value that is no whole number from ``least`` on."""
    if type(value) is not int or not least <= value < _MOST:
        raise InputError(f"{name} is {value!r}; give a whole number from {least} on.")


def check_fields(options: Struct) -> None:
    """Raise InputError for the first field of options whose value is not of its declared type."""
    for field in msgspec.structs.fields(options):
        value = getattr(options, field.name)
        try:
            convert(value, field.type)
        except msgspec.ValidationError as error:
            of = f"{field.name} of {type(options).__name__}"
            raise InputError(f"{of} cannot be {value!r}: {error}.") from error


def did_you_mean(name: str, names: Iterable[str], *, old: Mapping[str, str] = {}) -> str:
    """Return a question with the most similar name; empty where none is similar. ``old``: the current names by
    earlier ones, which may be meant too."""
    spelled = [*old.items(), *((part, other) for other in names for part in (other, other.rpartition("/")[2]))]
    alike = {part.lower().replace("_", "-"): other for part, other in spelled}
    found = get_close_matches(name.lower().replace("_", "-"), alike, n=1)
    return f" Did you mean {alike[found[0]]!r}?" if found else ""


# A run of capitals is one word; its last one begins the next word where a small letter follows.
_CAPITALS = re.compile(r"(?<=[a-z0-9])[A-Z]+(?![a-z])|(?<=[a-zA-Z0-9])[A-Z](?=[a-z])")


def snake_case(options: Mapping[Any, Any], *, nested: bool = False) -> dict[str, Any]:
    """Convert the names of options to snake_case; ``nested``: those of inner mappings too. Raises InputError for
    one that is given in both spellings."""
    spelled: dict[str, Any] = {}
    for name, value in options.items():
        snake = _to_snake(str(name))
        if snake in spelled:
            raise InputError(f"The option {snake} is given twice, in two spellings. Give it once.")
        spelled[snake] = snake_case(value, nested=True) if nested and isinstance(value, Mapping) else value
    return spelled


def check_options(options: object, names: Iterable[str], *, of: str) -> None:
    """Raise InputError for a value that is no mapping, and for an option that is none of these names (snake_case)
    in either spelling. The error uses the spelling of the caller."""
    check(options, Mapping, advice=f"give the options of {of} by name, as a mapping")
    assert isinstance(options, Mapping)
    known = set(names)
    for name in map(str, options):
        if _to_snake(name) not in known:
            has_capitals = name != name.lower() or "_" not in name
            spelled = sorted(map(_to_camel, known) if has_capitals else known)
            raise InputError(
                f"{of} has no option {name!r}.{did_you_mean(name, spelled)} There are: {', '.join(spelled)}."
            )


def _to_snake(name: str) -> str:
    return _CAPITALS.sub(lambda capitals: f"_{capitals[0].lower()}", name)


def _to_camel(name: str) -> str:
    return re.sub("_([a-z])", lambda found: found[1].upper(), name)

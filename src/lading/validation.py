"""What a caller handed in, checked where it is handed in: its types, and the names of options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import Struct

from lading.errors import InputError


def check(value: object, kind: type[Any] | tuple[type[Any], ...], *, advice: str) -> None:
    """Raises InputError with the advice for a value of another kind."""
    if not isinstance(value, kind):
        raise InputError(f"A {type(value).__name__} cannot be used here: {advice}.")


def check_fields(options: Struct) -> None:
    """Raises InputError naming the field of options whose value is not of the type that it is declared with."""
    for field in msgspec.structs.fields(options):
        value = getattr(options, field.name)
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            of = f"{field.name} of {type(options).__name__}"
            raise InputError(f"{of} cannot be {value!r}: {error}.") from error


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question with the name that this one is almost; empty where none is."""
    alike = {other.lower().replace("_", "-"): other for other in names}
    found = get_close_matches(name.lower().replace("_", "-"), alike, n=1)
    return f" Did you mean {alike[found[0]]!r}?" if found else ""


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

"""What a caller handed in, checked where it is handed in: its types, and the names of options."""

from __future__ import annotations

from collections.abc import Iterable
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

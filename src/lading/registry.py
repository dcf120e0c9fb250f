"""Find extensions by name: strategies, wires, stores, counters, sources, shrinkers.

A table maps short names to dotted paths, such as ``{"basic": "lading.compaction.basic:STRATEGY"}``. Adding an entry
takes one file and one line. Other packages pass ``"their.module:NAME"`` or register an entry point in the group
``lading.<kind>``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TypeVar

from lading.errors import InputError, UnknownName
from lading.validation import did_you_mean

Found = TypeVar("Found")


def lookup(
    table: Mapping[str, str], name: str, *, kind: str, type_: type[Found] | None = None, old: Mapping[str, str] = {}
) -> Found:
    """Find a value by its short name in the table, its entry point, or a dotted path ``module:NAME``.

    ``type_`` is what it must be an instance of, ``old`` has the current names by earlier ones. Raises UnknownName
    with the list of choices, InputError for what is no text.
    """
    what = "provider format" if kind == "wire" else kind
    choices = f"Choose one of: {', '.join(sorted(table))}; or give module:NAME."
    if not isinstance(name, str):
        raise InputError(f"A {type(name).__name__} cannot name a {what}. {choices}")
    path = table.get(name) or _entry_point(name, kind) or name
    module_name, separator, attribute = path.partition(":")
    if not separator or not attribute.isidentifier() or module_name.startswith("."):
        raise UnknownName(f"There is no {what} named {name!r}.{did_you_mean(name, table, old=old)} {choices}")
    try:
        found: Found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownName(
            f"The {what} {name!r} cannot be loaded: {error}. Check the module and the name."
        ) from error
    if not isinstance(found, type_ or object):
        raise UnknownName(f"{name!r} names something that is no {what}. {choices}")
    return found


def entry_names(kind: str) -> list[str]:
    """List the names of the entry points of a kind that packages have registered."""
    metadata = importlib.import_module("importlib.metadata")
    return [entry.name for entry in metadata.entry_points(group=f"lading.{kind}")]


def _entry_point(name: str, kind: str) -> str | None:
    if ":" in name:
        return None
    # Slow to import, and needed only for names of other packages.
    metadata = importlib.import_module("importlib.metadata")
    found = metadata.entry_points(group=f"lading.{kind}", name=name)
    return next((entry.value for entry in found), None)

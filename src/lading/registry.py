"""Tables of things that can be added: a short name leads to a dotted path, and any dotted path is accepted.

A table is a plain mapping such as ``{"basic": "lading.compaction.basic:STRATEGY"}``. To add an entry,
write one file and one line. Outsiders pass ``"their.module:NAME"`` or register an entry point in the
group ``lading.<table>``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TypeVar

from lading.errors import UnknownName
from lading.validation import did_you_mean

Found = TypeVar("Found")


def lookup(table: Mapping[str, str], name: str, *, kind: str, type_: type[Found] | None = None) -> Found:
    """Find a value by its short name in the table, its entry point, or a dotted path ``module:NAME``.

    ``type_`` is what it must be an instance of. Raises UnknownName with the list of choices.
    """
    what = "provider format" if kind == "wire" else kind
    choices = f"Choose one of: {', '.join(sorted(table))}; or give module:NAME."
    path = table.get(name) or _entry_point(name, kind) or name
    module_name, separator, attribute = path.partition(":")
    if not separator or not attribute.isidentifier() or module_name.startswith("."):
        raise UnknownName(f"There is no {what} named {name!r}.{did_you_mean(name, table)} {choices}")
    try:
        found: Found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownName(
            f"The {what} {name!r} cannot be loaded: {error}. Check the module and the name."
        ) from error
    if not isinstance(found, type_ or object):
        raise UnknownName(f"{name!r} names something that is no {what}. {choices}")
    return found


def _entry_point(name: str, kind: str) -> str | None:
    if ":" in name:
        return None
    # Loading it takes a good part of the time that importing Lading takes; our own names never need it.
    metadata = importlib.import_module("importlib.metadata")
    found = metadata.entry_points(group=f"lading.{kind}", name=name)
    return next((entry.value for entry in found), None)

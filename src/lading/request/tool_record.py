"""The record of a request's tools: which it offers, by which rule and at what detail, and which may be called.

It is stored as a blob, and the manifest of each request that it holds for names its digest.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.errors import TamperedError
from lading.structs import convert


class OfferedTools(Struct, frozen=True, omit_defaults=True):
    """Tools that are offered by one rule."""

    rule: str
    """always (by the policy), step, found (by a search), used, own (Lading's), provider (its own tools), by name
    (none of these, and the model may search for them), or all (no scope)."""
    detail: str
    """In the tools array: full, names, or deferred (no part of the prompt until they are found)."""
    names: tuple[str, ...]


class ToolRecord(Struct, frozen=True, omit_defaults=True):
    """The tools of a request."""

    scope: str
    """How the step's tools are set apart: choice (the provider's limit), step-only (the array), text, or none."""
    search: str = ""
    """How the model gets the schema of another tool: text (a search result has it), reference (the result refers to
    it), or not at all (empty)."""
    offered: tuple[OfferedTools, ...] = ()
    withheld: tuple[str, ...] = ()
    """Names of the tools that are not in the array, or that the limit does not let be called."""
    shown: tuple[str, ...] = ()
    """Names of the tools whose whole schema the payload has."""
    tools: str = ""
    """Digest of the stored tools that the caller gave,"""
    template: str = ""
    """and of the stored body fields."""

    def describe(self) -> list[str]:
        """Describe the record in lines of text."""
        by_rule = ", ".join(f"{len(one.names)} {one.rule} ({one.detail})" for one in self.offered)
        lines = [f"tools: scope {self.scope}{self.search and f', search by {self.search}'}; {by_rule}"]
        named = [(one.rule, one.names) for one in self.offered if one.rule not in ("by name", "all")]
        named += [("in the payload", self.shown), ("withheld", self.withheld)]
        return lines + [f"  {rule}: {', '.join(names)}" for rule, names in named if names]


def dump_tool_record(record: ToolRecord) -> tuple[str, bytes]:
    """Return the record as bytes, with their digest."""
    data = jsonbytes.dump(msgspec.to_builtins(record))
    return jsonbytes.digest(data), data


def load_tool_record(data: bytes) -> ToolRecord:
    """Read a record. Raises TamperedError."""
    try:
        return convert(jsonbytes.load(data), ToolRecord)
    except ValueError as error:
        raise TamperedError(f"The record of a request's tools cannot be read: {error}.") from error

"""Agentrail's pipeline as one strategy: transforms, tool results, request boundary, reactive compaction, in order.

Differences from the document: docs/reference/presets/agentrail.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from lading.compaction import Strategy
from lading.compaction.composing import compose
from lading.compaction.transforming import TransformContext
from lading.errors import InputError
from lading.presets.agentrail import reactive, session_boundary, tool_results
from lading.presets.agentrail.reactive import Reactive
from lading.presets.agentrail.session_boundary import Boundary
from lading.presets.agentrail.tool_results import ToolResults
from lading.structs import convert
from lading.validation import check, check_fields, check_options, snake_case


class Agentrail(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of the three layers."""

    tool_results: ToolResults = tool_results.DEFAULTS
    boundary: Boundary = session_boundary.DEFAULTS
    reactive: Reactive = reactive.DEFAULTS

    def __post_init__(self) -> None:
        check_fields(self)


DEFAULTS = Agentrail()
_NESTED: Mapping[str, type[Struct]] = {"tool_results": ToolResults, "reactive": Reactive}


def configured(given: Mapping[str, Any], *, transforms: Iterable[TransformContext] = ()) -> Strategy:
    """Build the strategy from the document's ``compaction`` object, in its spelling or in snake_case:
    ``triggerTokens``, ``minMessages``, ``reactive``, and ``toolResults`` for the options of
    ``compactToolResults``. Raises InputError for an unknown option or an invalid value."""
    check_options(given, (*Boundary.__struct_fields__, *_NESTED), of="Agentrail's compaction")
    options = snake_case(given, nested=True)
    for name, value in zip(options, given.values(), strict=True):
        if name in _NESTED and isinstance(value, Mapping):
            check_options(value, _NESTED[name].__struct_fields__, of=name)
    boundary = {name: options.pop(name) for name in Boundary.__struct_fields__ if name in options}
    try:
        chosen = convert({**options, "boundary": boundary}, Agentrail)
    except msgspec.ValidationError as error:
        raise InputError(f"These options of Agentrail are invalid: {error}.") from error
    return strategy(chosen, transforms=transforms)


def strategy(options: Agentrail, *, transforms: Iterable[TransformContext] = ()) -> Strategy:
    """Build the strategy with these options. Raises InputError if they are not an ``Agentrail``."""
    check(options, Agentrail, advice="options are Agentrail(...); configured(options) reads a mapping")
    layers = (
        tool_results.strategy(options.tool_results),
        session_boundary.strategy(options.boundary),
        reactive.strategy(options.reactive),
    )
    return compose([*transforms, *layers], name="agentrail/layers")


STRATEGY = strategy(DEFAULTS)

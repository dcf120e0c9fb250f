"""The three layers of Agentrail as one strategy: tool results, the boundary of a request, reactive compaction.

At one call at most one layer folds. What differs from the document: docs/reference/presets/agentrail.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.basic import admit
from lading.compaction.deepening import saving, spare, told
from lading.effects import Steps, Summarised, Summarizer
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, user_text
from lading.presets.agentrail.reactive import DEFAULTS as REACTIVE
from lading.presets.agentrail.reactive import Reactive
from lading.presets.agentrail.reactive import drafted as rounds_folded
from lading.presets.agentrail.session_boundary import DEFAULTS as BOUNDARY
from lading.presets.agentrail.session_boundary import Boundary
from lading.presets.agentrail.session_boundary import drafted as oldest_folded
from lading.presets.agentrail.tool_results import DEFAULTS as TOOL_RESULTS
from lading.presets.agentrail.tool_results import ToolResults
from lading.presets.agentrail.tool_results import drafted as previewed
from lading.validation import check, check_fields, check_options, snake_case

Summarise: TypeAlias = Callable[[list[Message], str], Summarised | Awaitable[Summarised]]


class Agentrail(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of all three."""

    tool_results: ToolResults = TOOL_RESULTS
    boundary: Boundary = BOUNDARY
    reactive: Reactive = REACTIVE

    def __post_init__(self) -> None:
        check_fields(self)


DEFAULTS = Agentrail()
_NESTED: Mapping[str, type[Struct]] = {"tool_results": ToolResults, "reactive": Reactive}


def configured(given: Mapping[str, Any]) -> Strategy:
    """The strategy with the document's ``compaction`` object, names as it spells them or in snake_case:
    ``triggerTokens``, ``minMessages``, ``reactive``, and ``toolResults`` for what ``compactToolResults`` takes.
    Raises InputError for an option that does not exist or cannot be."""
    check_options(given, (*Boundary.__struct_fields__, *_NESTED), of="Agentrail's compaction")
    options = snake_case(given, nested=True)
    for name, value in zip(options, given.values(), strict=True):
        if name in _NESTED and isinstance(value, Mapping):
            check_options(value, _NESTED[name].__struct_fields__, of=name)
    boundary = {name: options.pop(name) for name in Boundary.__struct_fields__ if name in options}
    try:
        chosen = msgspec.convert({**options, "boundary": boundary}, Agentrail)
    except msgspec.ValidationError as error:
        raise InputError(f"These options of Agentrail are invalid: {error}.") from error
    return strategy(chosen)


def summarizer(summarize: Summarise, *, timeout_s: float = 60.0) -> Summarizer:
    """Whom to ask for summaries, as the document has it: ``summarize(messages, reason)``. The messages are one,
    which holds all of the request; reasons are ``session_compaction``, ``reactive_micro`` and ``reactive_full``.
    Raises InputError for what is no function."""
    check(summarize, Callable, advice="summarize is a function of messages and a reason")  # type: ignore[arg-type]
    return Summarizer(
        lambda request: summarize([user_text(request.prompt)], request.reason.partition(":")[0]), timeout_s
    )


def compact(view: View, pressure: Pressure, *, options: Agentrail = DEFAULTS) -> Compaction | Steps[Compaction]:
    """Previews of large results, and the fold that is due."""
    previews = previewed(view, pressure, options=options.tool_results)
    drafts = _beside(previews, oldest_folded(view, pressure, options=options.boundary))
    if len(drafts) == len(previews) or spare(view, drafts, pressure=pressure) < 0:
        saved = sum(saving(view, draft, pressure=pressure) for draft in previews)
        eased = replace(pressure, room_tokens=pressure.room_tokens + saved)
        drafts = _beside(previews, rounds_folded(view, eased, options=options.reactive))
    if spare(view, drafts, pressure=pressure) < 0:
        # What a preview saves within a fold is saved once.
        drafts = _beside(previews, rounds_folded(view, pressure, options=options.reactive))
    return told(view, drafts, pressure=pressure)


def _beside(previews: list[Draft], folds: list[Draft]) -> list[Draft]:
    """Folds, and the previews of results that none of them folds."""
    outside = (draft for draft in previews if not any(fold.first <= draft.first <= fold.last for fold in folds))
    return [*folds, *outside]


def strategy(options: Agentrail) -> Strategy:
    """The strategy with other options. Raises InputError for what is none."""
    check(options, Agentrail, advice="options are Agentrail(...); configured(options) reads a mapping")
    return Strategy("agentrail", partial(compact, options=options), admit=admit)


STRATEGY = strategy(DEFAULTS)

"""Agentrail's three layers as one strategy: tool results, request boundary, reactive compaction.

At each call at most one layer summarizes. Differences from the document: docs/reference/presets/agentrail.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.arguments import count_freed_tokens
from lading.compaction.basic import admit
from lading.compaction.span_folding import count_spare_tokens, summarize_folds
from lading.effects import Steps, Summarizer, SummaryAnswer
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, user_text
from lading.presets.agentrail.reactive import DEFAULTS as REACTIVE
from lading.presets.agentrail.reactive import Reactive
from lading.presets.agentrail.reactive import draft_edits as draft_rounds
from lading.presets.agentrail.session_boundary import DEFAULTS as BOUNDARY
from lading.presets.agentrail.session_boundary import Boundary
from lading.presets.agentrail.session_boundary import draft_edits as draft_oldest
from lading.presets.agentrail.tool_results import DEFAULTS as TOOL_RESULTS
from lading.presets.agentrail.tool_results import ToolResults
from lading.presets.agentrail.tool_results import draft_edits as draft_previews
from lading.validation import check, check_fields, check_options, snake_case

SummarizeFunction: TypeAlias = Callable[[list[Message], str], SummaryAnswer | Awaitable[SummaryAnswer]]


class Agentrail(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of the three layers."""

    tool_results: ToolResults = TOOL_RESULTS
    boundary: Boundary = BOUNDARY
    reactive: Reactive = REACTIVE

    def __post_init__(self) -> None:
        check_fields(self)


DEFAULTS = Agentrail()
_NESTED: Mapping[str, type[Struct]] = {"tool_results": ToolResults, "reactive": Reactive}


def configured(given: Mapping[str, Any]) -> Strategy:
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
        chosen = msgspec.convert({**options, "boundary": boundary}, Agentrail)
    except msgspec.ValidationError as error:
        raise InputError(f"These options of Agentrail are invalid: {error}.") from error
    return strategy(chosen)


def summarizer(summarize: SummarizeFunction, *, timeout_s: float = 60.0) -> Summarizer:
    """Adapt the document's ``summarize(messages, reason)``: it gets one message with the whole request, and
    ``session_compaction``, ``reactive_micro`` or ``reactive_full``. Raises InputError unless it is callable."""
    check(summarize, Callable, advice="summarize is a function of messages and a reason")  # type: ignore[arg-type]
    return Summarizer(
        lambda request: summarize([user_text(request.prompt)], request.reason.partition(":")[0]), timeout_s
    )


def compact(view: View, pressure: Pressure, *, options: Agentrail = DEFAULTS) -> Compaction | Steps[Compaction]:
    """Draft previews of large results and the summary that is due."""
    previews = draft_previews(view, pressure, options=options.tool_results)
    drafts = _merge(previews, draft_oldest(view, pressure, options=options.boundary))
    if len(drafts) == len(previews) or count_spare_tokens(view, drafts, pressure=pressure) < 0:
        saved = sum(count_freed_tokens(view, draft, pressure=pressure) for draft in previews)
        eased = replace(pressure, room_tokens=pressure.room_tokens + saved)
        drafts = _merge(previews, draft_rounds(view, eased, options=options.reactive))
    if count_spare_tokens(view, drafts, pressure=pressure) < 0:
        # Without counting what previews inside the summary would save.
        drafts = _merge(previews, draft_rounds(view, pressure, options=options.reactive))
    return summarize_folds(view, drafts, pressure=pressure)


def _merge(previews: list[Draft], folds: list[Draft]) -> list[Draft]:
    """Return the summaries, and the previews of results outside them."""
    outside = (draft for draft in previews if not any(fold.first <= draft.first <= fold.last for fold in folds))
    return [*folds, *outside]


def strategy(options: Agentrail) -> Strategy:
    """Build the strategy with these options. Raises InputError if they are not an ``Agentrail``."""
    check(options, Agentrail, advice="options are Agentrail(...); configured(options) reads a mapping")
    return Strategy("agentrail/layers", partial(compact, options=options), admit=admit)


STRATEGY = strategy(DEFAULTS)

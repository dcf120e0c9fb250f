"""Compose strategies and transforms into one strategy, whose parts run in order at each call.

Each part decides by its own trigger over the view that the parts before it leave. Their edits are one epoch: behind
the first of them, the later parts do not count on the provider's cache any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from lading.compaction import Strategy, When, find_strategy
from lading.compaction.transforming import TransformContext, transforming
from lading.errors import InputError
from lading.history.view import View
from lading.models.card import Tier
from lading.models.profiles import Profile


def compose(parts: Iterable[str | Strategy | TransformContext], *, name: str = "") -> Strategy:
    """Return one strategy that runs these in order; a function among them is a transform (``transforming``).

    Where the parts leave more than the room, the last one makes room, then those before it, from last to first.
    ``name``: in manifests and events; without one, the names of the parts. Raises InputError without parts and for
    what is neither a strategy nor a transform, UnknownName.
    """
    found = [_find_part(part) for part in parts]
    if not found:
        raise InputError("A composition needs a strategy: compose(['agentrail/tool_results', 'priced']).")
    inner = [part for one in found for part in one.parts or (one,)]
    acting = tuple(part for part in inner if part.changes_requests)
    writing = [part.write_tail for part in acting if part.write_tail]
    return Strategy(
        name or "+".join(part.name for part in found),
        changes_requests=bool(acting),
        with_profile=partial(_apply_profile, acting, name) if any(part.with_profile for part in acting) else None,
        with_options=partial(_apply_options, acting, name) if any(part.with_options for part in acting) else None,
        write_tail=partial(_write_tails, writing) if writing else None,
        reasoning=next((part.reasoning for part in inner if part.reasoning), None),
        parts=acting,
    )


def _find_part(given: str | Strategy | TransformContext) -> Strategy:
    if callable(given):
        return transforming(given, name=getattr(given, "__name__", "transform"))
    return find_strategy(given)


def _write_tails(writing: Sequence[Callable[[View, Tier], str]], view: View, tier: Tier) -> str:
    return "\n\n".join(text for write in writing if (text := write(view, tier)))


def _apply_profile(parts: Sequence[Strategy], name: str, profile: Profile) -> Strategy:
    return compose([part.with_profile(profile) if part.with_profile else part for part in parts], name=name)


def _apply_options(parts: Sequence[Strategy], name: str, when: When | None, verbatim: float | None) -> Strategy:
    return compose([part.with_options(when, verbatim) if part.with_options else part for part in parts], name=name)

"""Progressive compaction, the four levels of the Reactive Agents document, at each call.

As documented: with more than ``compact_after_steps`` steps the last ``full_detail_steps`` stay as they are, those
before them have a line each, older ones one line together, and that one goes too when less than a fifth of the
room remains. Failures and the first write of each path keep their lines at every level.

Different here: a step leaves with its whole block, at a legal point, so that more steps than that may stay
whole; what left is named by a pointer; what the user says between steps is kept verbatim; lines that are
preserved take a quarter of the room at most, the newest stay; an edit that would save nothing waits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct

from lading.compaction import Compaction, Pressure, Strategy
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import user_text
from lading.models.profiles import CONTEXT_PROFILES, NO_PROFILE, Profile
from lading.presets.reactive_agents.ageing import KEPT_SHARE, aged_to, points_before, said_before
from lading.presets.reactive_agents.capping import admit_capped
from lading.presets.reactive_agents.levels import dropped, grouped, is_pressed, level_spans, line
from lading.presets.reactive_agents.observations import Category
from lading.presets.reactive_agents.steps import STEPS, Step, StepReader, read
from lading.validation import check


def progressive(
    profile: Profile | None = None, own: Mapping[str, Category] | None = None, *, name: str = "progressive"
) -> Strategy:
    """The strategy with the numbers of a profile; without one, with those of the model's tier.

    ``own``: categories of tools that have other names than the document's; the first write of each path is
    known by the category ``file-write``. Raises InputError for what is no profile.
    """
    check(profile, (Profile, type(None)), advice=NO_PROFILE)

    def compact(view: View, pressure: Pressure) -> Compaction:
        reader = view.readings.setdefault(compact, StepReader(own))
        chosen = profile or CONTEXT_PROFILES[pressure.tier]
        draft = _drafted(view, pressure, read(view, reader), chosen)
        return Compaction((draft,)) if draft else Compaction()

    admit = partial(admit_capped, profile=profile)
    return Strategy(
        name, compact, admit, with_profile=None if profile else partial(progressive, own=own, name=name)
    )


class Region(Struct, frozen=True):
    """The older part of a history: steps that go together, and those behind them that have a line each."""

    older: tuple[Step, ...]
    lined: tuple[Step, ...]


def _drafted(view: View, pressure: Pressure, steps: list[Step], profile: Profile) -> Draft | None:
    counted = [step for step in steps if step.kind in STEPS]
    spans = level_spans(len(counted), profile)
    limit, full = profile.compact_after_steps, profile.full_detail_steps
    found: Draft | None = None
    whole_from = -1
    if spans.whole:
        # Where no step stays whole, the newest block does.
        whole_from = counted[spans.whole].entry if spans.whole < len(counted) else view.items[-1].entry
    for point in points_before(view, pressure, entry=whole_from):
        left = bisect_right(counted, view.last_entry(point), key=lambda step: step.entry)
        # Where a full window makes steps leave early, the last of them have their lines all the same.
        lines_from = max(spans.lines, left - (spans.whole - spans.lines))
        region = Region(tuple(counted[:lines_from]), tuple(counted[lines_from:left]))
        said = said_before(view, point, pressure=pressure)
        for pressed in (False, True):
            told = _told(region, pressed=pressed, pressure=pressure)
            reason = f"more than {limit} steps, of which the last {full} stay whole"
            if pressed:
                reason = "less than a fifth of the room remains"
            aged = aged_to(view, point, told=told, said=said, reason=reason, pressure=pressure)
            found = aged.draft or found
            if aged.remaining >= 0 and (pressed or not is_pressed(aged.remaining, pressure.room_tokens)):
                return aged.draft or found
    return found


def _told(region: Region, *, pressed: bool, pressure: Pressure) -> list[str]:
    told = [dropped(region.older) if pressed else grouped(region.older)]
    told += _preserved(region.older, int(pressure.room_tokens * KEPT_SHARE), pressure)
    return [f"[Earlier steps: {len(region.older) + len(region.lined)}", *told, *map(line, region.lined)]


def _preserved(steps: Sequence[Step], most_tokens: int, pressure: Pressure) -> list[str]:
    lines: list[str] = []
    kept = [step for step in steps if step.preserved]
    for step in reversed(kept):
        most_tokens -= pressure.count(user_text(line(step)))
        if most_tokens < 0:
            return [f"({len(kept) - len(lines)} older failures and first writes: see there)", *reversed(lines)]
        lines.append(line(step))
    return lines[::-1]


STRATEGY = progressive()
LOCAL = progressive(CONTEXT_PROFILES["local"], name="progressive-local")
MID = progressive(CONTEXT_PROFILES["mid"], name="progressive-mid")
LARGE = progressive(CONTEXT_PROFILES["large"], name="progressive-large")
FRONTIER = progressive(CONTEXT_PROFILES["frontier"], name="progressive-frontier")

"""Progressive compaction at each call: the four levels of the Reactive Agents document (``levels``).

Steps are removed with their whole blocks, at legal cuts. Other differences:
docs/reference/presets/reactive-agents.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct

from lading.compaction import Compaction, Pressure, Strategy
from lading.history.log import Draft
from lading.history.observations import Category
from lading.history.view import View
from lading.messages import user_text
from lading.models.profiles import CONTEXT_PROFILES, Profile, ProfileLike, find_profile
from lading.presets.reactive_agents import levels
from lading.presets.reactive_agents.capping import admit_capped
from lading.presets.reactive_agents.older_messages import (
    KEPT_SHARE,
    collect_kept_messages,
    draft_replacement,
    find_older_ends,
)
from lading.presets.reactive_agents.steps import STEPS, Step, StepReader, read_steps


def progressive(
    profile: ProfileLike | None = None,
    own: Mapping[str, Category] | None = None,
    *,
    name: str = "reactive_agents/progressive",
) -> Strategy:
    """Build the strategy with the numbers of a profile; without one, those of the model's tier.

    ``own``: categories of tools that are named differently from the document's; a first write is recognised by the
    category ``file-write``. Raises InputError as ``find_profile`` does.
    """
    find_profile(profile)

    def compact(view: View, pressure: Pressure) -> Compaction:
        reader = view.readings.setdefault(compact, StepReader(own))
        chosen = find_profile(profile, tier=pressure.tier)
        draft = _draft_edit(view, pressure, read_steps(view, reader), chosen)
        return Compaction((draft,)) if draft else Compaction()

    admit = partial(admit_capped, profile=profile)
    return Strategy(
        name, compact, admit, with_profile=None if profile is not None else partial(progressive, own=own, name=name)
    )


class OlderSteps(Struct, frozen=True):
    """The steps of the older part of a history: those without lines of their own, and those with."""

    older: tuple[Step, ...]
    lined: tuple[Step, ...]


def _draft_edit(view: View, pressure: Pressure, steps: list[Step], profile: Profile) -> Draft | None:
    counted = [step for step in steps if step.kind in STEPS]
    spans = levels.find_level_starts(len(counted), profile)
    limit, full = profile.compact_after_steps, profile.full_detail_steps
    found: Draft | None = None
    whole_from = -1
    if spans.whole:
        # If no step is shown in full, the newest block is.
        whole_from = counted[spans.whole].entry if spans.whole < len(counted) else view.items[-1].entry
    for point in find_older_ends(view, pressure, entry=whole_from):
        left = bisect_right(counted, view.last_entry(point), key=lambda step: step.entry)
        # Also if a full window removes steps early, the last of them get lines.
        lines_from = max(spans.lines, left - (spans.whole - spans.lines))
        region = OlderSteps(tuple(counted[:lines_from]), tuple(counted[lines_from:left]))
        kept = collect_kept_messages(view, point, pressure=pressure)
        for pressed in (False, True):
            lines = _write_lines(region, pressed=pressed, pressure=pressure)
            reason = f"more than {limit} steps, of which the last {full} stay whole"
            if pressed:
                reason = "less than a fifth of the room remains"
            edit = draft_replacement(view, point, lines=lines, kept=kept, reason=reason, pressure=pressure)
            found = edit.draft or found
            is_tight = levels.is_under_pressure(edit.remaining, pressure.room_tokens)
            if edit.remaining >= 0 and (pressed or not is_tight):
                return edit.draft or found
    return found


def _write_lines(region: OlderSteps, *, pressed: bool, pressure: Pressure) -> list[str]:
    lines = [levels.describe_dropped(region.older) if pressed else levels.group_steps(region.older)]
    lines += _write_preserved(region.older, int(pressure.room_tokens * KEPT_SHARE), pressure)
    lines += map(levels.format_line, region.lined)
    return [f"[Earlier steps: {len(region.older) + len(region.lined)}", *lines]


def _write_preserved(steps: Sequence[Step], most_tokens: int, pressure: Pressure) -> list[str]:
    lines: list[str] = []
    kept = [step for step in steps if step.preserved]
    for step in reversed(kept):
        most_tokens -= pressure.count(user_text(levels.format_line(step)))
        if most_tokens < 0:
            return [f"({len(kept) - len(lines)} older failures and first writes: see there)", *reversed(lines)]
        lines.append(levels.format_line(step))
    return lines[::-1]


STRATEGY = progressive()
LOCAL, MID, LARGE, FRONTIER = (
    progressive(profile, name=f"reactive_agents/progressive_{tier}") for tier, profile in CONTEXT_PROFILES.items()
)

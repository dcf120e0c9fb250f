"""The scored context of the Reactive Agents document: at each call the steps with the highest scores.

As documented: every step is scored anew at each call (``scoring``), pinned ones first, then those of
the last ``full_detail_steps`` iterations, then the others by score, as far as the budget goes. So each call that
does not fit as a whole opens an epoch; what comes back when its score rises supersedes what took it out.

Different here: a block is kept or left out whole, at legal points, by its best step; the budget is tokens, and
holds for pinned steps too; what the user says is pinned; what is left out is named by a pointer where it stood.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import TypeAlias

from msgspec import Struct

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.cutting import MOST_CARRIED_SHARE, plain
from lading.compaction.pins import restated, statements
from lading.history.log import Draft
from lading.history.validity import legal_cuts
from lading.history.view import View
from lading.messages import Message, user_text
from lading.models.profiles import CONTEXT_PROFILES, NO_PROFILE, Profile
from lading.presets.reactive_agents.ageing import said_by_user
from lading.presets.reactive_agents.capping import admit_capped
from lading.presets.reactive_agents.scoring import best_of_entries, relevance, task_words
from lading.presets.reactive_agents.steps import StepReader, read
from lading.validation import check

Rank: TypeAlias = tuple[int, bool, float]
"""Pinned by the caller (2) or said by the user (1), recent, score; the higher, the sooner something is shown."""
LOWEST: Rank = (0, False, 0.0)
PINNED: Rank = (2, True, 1.0)
REASON = "scored anew"
DIGITS_TOKENS = 8
"""A note may take so many more than the one that was counted for all of them."""


class Segment(Struct, frozen=True):
    """What is shown or left out as one: the entries from one legal cut to the next."""

    first: int
    last: int
    messages: tuple[Message, ...]
    tokens: int
    rank: Rank


class Known:
    """What is known of a session already, so that a call costs little more than what is new."""

    def __init__(self) -> None:
        self.reader = StepReader()
        self._tokens: dict[int, tuple[tuple[Message, ...], int]] = {}
        self._relevances: list[float] = []
        self._words: tuple[str, ...] = ()

    def tokens(self, entry: int, shown: tuple[Message, ...], *, pressure: Pressure) -> int:
        """Tokens of what is shown of an entry."""
        if entry not in self._tokens or self._tokens[entry][0] != shown:
            self._tokens[entry] = shown, sum(map(pressure.count, shown))
        return self._tokens[entry][1]

    def ranks(self, view: View, *, full_detail_steps: int) -> dict[int, Rank]:
        """How soon each entry behind the head is shown: by its best step."""
        steps = read(view, self.reader)
        words = task_words(view.newest_request[1].text) if view.newest_request else ()
        if words != self._words:
            self._words, self._relevances = words, []
        self._relevances += [relevance(words, step.content) for step in steps[len(self._relevances) :]]
        now = self.reader.iteration
        recent = {step.entry for step in steps if now - step.iteration < full_detail_steps}
        best = best_of_entries(steps, self._relevances, iteration=now)
        return {entry: (found.is_pinned, entry in recent, found.score) for entry, found in best.items()}


def scored(profile: Profile | None = None, *, name: str = "scored") -> Strategy:
    """The strategy with the numbers of a profile; without one, with those of the model's tier.
    Raises InputError for what is no profile."""
    check(profile, (Profile, type(None)), advice=NO_PROFILE)

    def compact(view: View, pressure: Pressure) -> Compaction:
        is_whole = all(item.kind != "dropped" for item in view.items)
        if view.head == len(view) or (is_whole and view.tokens <= pressure.room_tokens):
            return Compaction()
        chosen, known = profile or CONTEXT_PROFILES[pressure.tier], view.readings.setdefault(Known, Known())
        ranks = known.ranks(view, full_detail_steps=chosen.full_detail_steps)
        segments = list(_segments(view, pressure, known, ranks))
        return Compaction(tuple(_drafts(view, pressure, segments)))

    admit = partial(admit_capped, profile=profile)
    with_profile = None if profile else partial(scored, name=name)
    return Strategy(name, compact, admit, with_profile=with_profile)


def _segments(view: View, pressure: Pressure, known: Known, ranks: dict[int, Rank]) -> Iterator[Segment]:
    """All that was ever said behind the head. The last segment is what no cut may part."""
    messages = view.messages[: view.head]
    said: list[tuple[int, int, tuple[Message, ...]]] = []
    for entry, shown in view.admitted_between(view.items[view.head].entry, view.last_entry(len(view))):
        said.append((len(messages), entry, shown))
        messages += shown
    legal = set(legal_cuts(messages, pressure.invariants))
    starts = [number for number, (position, *_) in enumerate(said) if not number or position in legal]
    for start, end in pairwise([*starts, len(said)]):
        entries = [(entry, shown) for _, entry, shown in said[start:end]]
        first, last = entries[0][0], entries[-1][0]
        pinned = [PINNED for _ in view.pinned_between(first, last)]
        yield Segment(
            first,
            last,
            tuple(message for _, shown in entries for message in shown),
            sum(known.tokens(entry, shown, pressure=pressure) for entry, shown in entries),
            max([*pinned, *(ranks.get(entry, LOWEST) for entry, _ in entries)]),
        )


def _kept(view: View, pressure: Pressure, segments: Sequence[Segment]) -> list[bool]:
    """Which segments are shown: the newest, and the highest ranks that fit beside it and the notes."""
    newest = segments[-1]
    note_tokens = pressure.count(_note(segments, pressure)) + DIGITS_TOKENS
    left = pressure.room_tokens - view.tokens_before(view.head) - newest.tokens
    if sum(segment.tokens for segment in segments[:-1] if segment.rank[0]) > left - note_tokens:
        left -= _most_rules_tokens(pressure)
    left -= note_tokens if len(segments) > 1 else 0
    kept = [*(False for _ in segments[:-1]), True]
    ranked = sorted(range(len(segments) - 1), key=lambda number: (segments[number].rank, number), reverse=True)
    # A segment between kept ones takes the place of a note; which those are is known in the second pass.
    for number in (*ranked, *ranked):
        notes = 1 - (number == 0 or kept[number - 1]) - kept[number + 1]
        price = segments[number].tokens + notes * note_tokens
        if not kept[number] and price <= left:
            kept[number] = True
            left -= price
    return kept


def _drafts(view: View, pressure: Pressure, segments: Sequence[Segment]) -> Iterator[Draft]:
    """Edits for what is not shown yet as it is decided now."""
    rules_tokens = _most_rules_tokens(pressure)
    decided = zip(_kept(view, pressure, segments), segments, strict=True)
    for is_kept, group in groupby(decided, key=lambda pair: pair[0]):
        run = [segment for _, segment in group]
        if is_kept:
            for segment in run:
                if not _stands(view, segment.first, segment.last, segment.messages):
                    pointer = _pointer([segment], pressure)
                    yield Draft("reshaped", segment.first, segment.last, segment.messages, REASON, (pointer,))
            continue
        users = [said_by_user(message) for _, message in view.users_between(run[0].first, run[-1].last)]
        stated = statements(filter(None, reversed(users)))
        rules = restated(stated, most_tokens=rules_tokens, count=pressure.count)
        rules_tokens -= pressure.count(rules) if rules else 0
        pinned = map(plain, view.pinned_between(run[0].first, run[-1].last))
        shown = (_note(run, pressure), *((rules,) if rules else ()), *pinned)
        if not _stands(view, run[0].first, run[-1].last, shown):
            yield Draft("dropped", run[0].first, run[-1].last, shown, REASON, (_pointer(run, pressure),))


def _stands(view: View, first: int, last: int, shown: Sequence[Message]) -> bool:
    """Whether the view shows these entries so already."""
    start, end = view.span(first, last)
    return [item.message for item in view.items[start:end]] == list(shown)


def _most_rules_tokens(pressure: Pressure) -> int:
    return int(pressure.room_tokens * MOST_CARRIED_SHARE)


def _note(run: Sequence[Segment], pressure: Pressure) -> Message:
    entries, tokens = run[-1].last - run[0].first + 1, sum(segment.tokens for segment in run)
    return user_text(
        f"[{entries} messages ({tokens:,} tokens) of the lowest scores are out of view. "
        f"Original: {_pointer(run, pressure)}]"
    )


def _pointer(run: Sequence[Segment], pressure: Pressure) -> str:
    first, last = run[0].first, run[-1].last
    return pressure.address(f"{first}-{last}" if last > first else f"{first}")


STRATEGY = scored()

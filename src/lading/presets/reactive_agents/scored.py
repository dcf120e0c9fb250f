"""The scored context of the Reactive Agents document: at each call, show the steps with the highest scores
(``scoring``).

Blocks are shown or left out as a whole, at legal cuts, by their best step; a note with a pointer replaces the
others. Each call that does not fit as a whole changes the prefix. docs/reference/presets/reactive-agents.md lists
the other differences from the document, with reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import TypeAlias

from msgspec import Struct

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.cutting import MOST_CARRIED_SHARE, make_plain
from lading.compaction.user_rules import find_statements, restate
from lading.history.log import Draft
from lading.history.validity import legal_cuts
from lading.history.view import View
from lading.messages import Message, extract_words, user_text
from lading.models.profiles import ProfileLike, find_profile
from lading.presets.reactive_agents.capping import admit_capped
from lading.presets.reactive_agents.scoring import compute_relevance, extract_task_words, find_best_by_entry
from lading.presets.reactive_agents.steps import StepReader, read_steps

Rank: TypeAlias = tuple[int, bool, float]
"""Pinned by the caller (2) or from the user (1), recent, score; higher ranks are shown first."""
LOWEST: Rank = (0, False, 0.0)
PINNED: Rank = (2, True, 1.0)
REASON = "scored anew"
DIGITS_TOKENS = 8
"""Tokens that a note may have beyond those of the note for all segments."""


class Segment(Struct, frozen=True):
    """Entries from one legal cut to the next, shown or left out as a whole."""

    entries: tuple[tuple[int, tuple[Message, ...]], ...]
    """Each with its visible messages."""
    tokens: int
    rank: Rank

    @property
    def first(self) -> int:
        """The first entry."""
        return self.entries[0][0]

    @property
    def last(self) -> int:
        """The last entry."""
        return self.entries[-1][0]


class ScoreCache:
    """Steps, token counts and relevances of a session, so that a call costs little more than its new messages."""

    def __init__(self) -> None:
        self.reader = StepReader()
        self._tokens: dict[int, tuple[tuple[Message, ...], int]] = {}
        self._relevances: list[float] = []
        self._words: tuple[str, ...] = ()

    def count_tokens(self, entry: int, shown: tuple[Message, ...], *, pressure: Pressure) -> int:
        """Return the tokens of the visible messages of an entry."""
        if entry not in self._tokens or self._tokens[entry][0] != shown:
            self._tokens[entry] = shown, sum(map(pressure.count, shown))
        return self._tokens[entry][1]

    def rank_entries(self, view: View, *, full_detail_steps: int) -> dict[int, Rank]:
        """Return the rank of each entry after the opening messages: that of its best step."""
        steps = read_steps(view, self.reader)
        words = extract_task_words(view.newest_request[1].text) if view.newest_request else ()
        if words != self._words:
            self._words, self._relevances = words, []
        self._relevances += [compute_relevance(words, step.content) for step in steps[len(self._relevances) :]]
        now = self.reader.iteration
        recent = {step.entry for step in steps if now - step.iteration < full_detail_steps}
        best = find_best_by_entry(steps, self._relevances, iteration=now)
        return {entry: (found.is_pinned, entry in recent, found.score) for entry, found in best.items()}


def scored(profile: ProfileLike | None = None, *, name: str = "reactive_agents/scored") -> Strategy:
    """Build the strategy with a profile's numbers, or those of the model's tier. Raises InputError for another
    type."""
    find_profile(profile)

    def compact(view: View, pressure: Pressure) -> Compaction:
        is_whole = all(item.kind != "dropped" for item in view.items)
        if view.head == len(view) or (is_whole and view.tokens <= pressure.room_tokens):
            return Compaction()
        chosen, known = (
            find_profile(profile, tier=pressure.tier),
            view.readings.setdefault(ScoreCache, ScoreCache()),
        )
        ranks = known.rank_entries(view, full_detail_steps=chosen.full_detail_steps)
        segments = list(_split_segments(view, pressure, known, ranks))
        # What does not fit even alone can only be cut: it stays as it was cut before.
        fits = view.tokens_before(view.head) + segments[-1].tokens <= pressure.room_tokens
        return Compaction(tuple(_draft_edits(view, pressure, segments)) if fits else ())

    admit = partial(admit_capped, profile=profile)
    with_profile = None if profile is not None else partial(scored, name=name)
    return Strategy(name, compact, admit, with_profile=with_profile)


def _split_segments(view: View, pressure: Pressure, known: ScoreCache, ranks: dict[int, Rank]) -> Iterator[Segment]:
    """Split everything after the opening messages into segments at legal cuts."""
    messages = view.messages[: view.head]
    shown_entries: list[tuple[int, int, tuple[Message, ...]]] = []
    for entry, shown in view.admitted_between(view.items[view.head].entry, view.last_entry(len(view))):
        shown_entries.append((len(messages), entry, shown))
        messages += shown
    legal = set(legal_cuts(messages, pressure.invariants))
    starts = [number for number, (position, *_) in enumerate(shown_entries) if not number or position in legal]
    for start, end in pairwise([*starts, len(shown_entries)]):
        entries = [(entry, shown) for _, entry, shown in shown_entries[start:end]]
        first, last = entries[0][0], entries[-1][0]
        pinned = [PINNED for _ in view.pinned_between(first, last)]
        yield Segment(
            tuple(entries),
            sum(known.count_tokens(entry, shown, pressure=pressure) for entry, shown in entries),
            max([*pinned, *(ranks.get(entry, LOWEST) for entry, _ in entries)]),
        )


def _choose_segments(view: View, pressure: Pressure, segments: Sequence[Segment]) -> list[bool]:
    """Return which segments are shown: the newest, and the highest ranks that fit beside it and the notes."""
    newest = segments[-1]
    note_tokens = pressure.count(_write_note(segments, pressure)) + DIGITS_TOKENS
    left = pressure.room_tokens - view.tokens_before(view.head) - newest.tokens
    if sum(segment.tokens for segment in segments[:-1] if segment.rank[0]) > left - note_tokens:
        left -= _limit_rules_tokens(pressure)
    left -= note_tokens if len(segments) > 1 else 0
    kept = [*(False for _ in segments[:-1]), True]
    ranked = sorted(range(len(segments) - 1), key=lambda number: (segments[number].rank, number), reverse=True)
    # A segment between kept ones replaces a note; which ones are kept is known in the second pass.
    for number in (*ranked, *ranked):
        notes = 1 - (number == 0 or kept[number - 1]) - kept[number + 1]
        price = segments[number].tokens + notes * note_tokens
        if not kept[number] and price <= left:
            kept[number] = True
            left -= price
    return kept


def _draft_edits(view: View, pressure: Pressure, segments: Sequence[Segment]) -> Iterator[Draft]:
    """Draft the edits for segments whose visible form changes."""
    rules_tokens = _limit_rules_tokens(pressure)
    decided = zip(_choose_segments(view, pressure, segments), segments, strict=True)
    for is_kept, group in groupby(decided, key=lambda pair: pair[0]):
        run = [segment for _, segment in group]
        if is_kept:
            # Each entry alone: what one edit shows of several can neither be cut nor continued from within.
            for entry, shown in (pair for segment in run for pair in segment.entries):
                if not _is_shown(view, entry, entry, shown):
                    yield Draft("reshaped", entry, entry, shown, REASON, (pressure.address(str(entry)),))
            continue
        users = [extract_words(message) for _, message in view.users_between(run[0].first, run[-1].last)]
        stated = find_statements(filter(None, reversed(users)))
        rules = restate(stated, most_tokens=rules_tokens, count=pressure.count)
        rules_tokens -= pressure.count(rules) if rules else 0
        pinned = map(make_plain, view.pinned_between(run[0].first, run[-1].last))
        shown = (_write_note(run, pressure), *((rules,) if rules else ()), *pinned)
        if not _is_shown(view, run[0].first, run[-1].last, shown):
            yield Draft("dropped", run[0].first, run[-1].last, shown, REASON, (_write_pointer(run, pressure),))


def _is_shown(view: View, first: int, last: int, shown: Sequence[Message]) -> bool:
    start, end = view.span(first, last)
    return [item.message for item in view.items[start:end]] == list(shown)


def _limit_rules_tokens(pressure: Pressure) -> int:
    return int(pressure.room_tokens * MOST_CARRIED_SHARE)


def _write_note(run: Sequence[Segment], pressure: Pressure) -> Message:
    entries, tokens = run[-1].last - run[0].first + 1, sum(segment.tokens for segment in run)
    return user_text(
        f"[{entries} messages ({tokens:,} tokens) of the lowest scores are out of view. "
        f"Original: {_write_pointer(run, pressure)}]"
    )


def _write_pointer(run: Sequence[Segment], pressure: Pressure) -> str:
    first, last = run[0].first, run[-1].last
    return pressure.address_of(first, last)


STRATEGY = scored()

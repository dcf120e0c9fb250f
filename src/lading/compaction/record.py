"""Write the record: what stands in the place of compacted rounds, in the order in which it happened.

The user's words are verbatim and leave last; the assistant's are whole sentences; each call is a line. What fits is
chosen by what a token of each form is worth (``notes``), so that notes age by kind: calls shorten first, then the
assistant's words, then old turns become a line. A record is drawn from the log and never from its own text, so
nothing drifts, however often records are merged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from lading.compaction.actions import Action, covers, merge
from lading.compaction.notes import Note
from lading.compaction.phrases import clip
from lading.compaction.record_lines import FAILING, FILES

RECENCY = 0.5
"""The newest note is worth so much more than the oldest."""
LEAST_WORTH = 0.2
"""What is worth less is told of the newest turn only, however much room there is."""
LINE_TOKENS = 4
"""What a line is charged beside its text: with the framing that ``Form.tokens`` has, more than it takes. Charged
what they take, many short lines displace the few long ones that tell more: evidence falls by .01 to .03."""
MOST_MINDED = 64
"""Whether a check mends a failure is asked of so many failures, the newest."""
MOST_FILES = 12
MOST_FAILURES = 3


class Shown(NamedTuple):
    """A note and the form it is shown in."""

    note: Note
    form: int


class Standing(NamedTuple):
    """How things stand at the end of notes."""

    changed: dict[str, int]
    """The entry of the last change of each file, in the order of these."""
    failures: dict[str, list[Note]]
    """All failures, by what was called."""
    failing: dict[str, Note]
    """The last failure of what has not passed since, the newest last."""
    unclear: set[str]
    """What failed and was then run so that its end cannot be seen."""
    succeeded: dict[str, int]
    """Where each tool last succeeded."""
    runs: Counter[str]
    """How often each call was carried out."""
    asked: int
    """The entry of the user's newest message."""


def write(
    notes: Sequence[Note], *, most_tokens: int, count: Callable[[str], int], instead: Sequence[str] = ()
) -> str:
    """Write the notes in at most ``most_tokens``; empty where not even one fits.

    ``instead``: lines that stand in the place of all but the user's words.
    """
    standing = _standing(notes)
    told = [note for note in notes if note.is_verbatim] if instead else [*_mend(notes, standing)]
    # The user's words leave last: how things stand is left out where they or all else would not fit beside it.
    for ending in ([*instead, *_state(standing)], [*instead]):
        written, is_whole = _fitted(told, ending, most_tokens=most_tokens, count=count)
        if is_whole:
            break
    return written


def _fitted(
    told: Sequence[Note], ending: Sequence[str], *, most_tokens: int, count: Callable[[str], int]
) -> tuple[str, bool]:
    """As many of the notes as fit before the ending, empty where not even one does; and whether all of the user's
    messages are among them."""
    spoken = sum(note.is_verbatim for note in told)
    forms = _choose(told, most_tokens=most_tokens - count("\n".join(ending)))
    # The tokens of lines are estimates: what is too much leaves, the user's words last.
    first_out = sorted(forms, key=lambda at: (told[at].is_verbatim, at))

    def is_whole(without: int) -> bool:
        return spoken == sum(told[at].is_verbatim for at in first_out[without:])

    def text(without: int) -> str:
        kept = {at: forms[at] for at in sorted(first_out[without:])}
        lines = _lines([Shown(told[at], form) for at, form in kept.items()])
        return "\n".join([*_left_out(told, kept), *lines, *ending])

    # All of them fit nearly always, and counting a long text takes most of the time here.
    if count(written := text(0)) <= most_tokens:
        return written, is_whole(0)
    most = range(len(first_out))
    without = bisect_left(most, True, lo=1, key=lambda without: count(text(without)) <= most_tokens)
    written = text(without)
    return (written, is_whole(without)) if count(written) <= most_tokens else ("", False)


def _standing(notes: Sequence[Note]) -> Standing:
    """How things stand at the end of the notes."""
    standing = Standing({}, {}, {}, set(), {}, Counter(), -1)
    for note in notes:
        act = note.action
        if act is None:
            standing = standing._replace(asked=note.entry) if note.speaker == "User" else standing
            continue
        if not act.ended.ran:
            continue
        standing.runs[act.subject] += 1
        if act.ended.is_hidden and act.subject in standing.failing:
            standing.unclear.add(act.subject)
        elif not act.ended.is_hidden:
            standing.unclear.discard(act.subject)
        standing.failing.pop(act.subject, None)
        if act.failed:
            standing.failing[act.subject] = note
            standing.failures.setdefault(act.subject, []).append(note)
            continue
        standing.succeeded[act.tool] = note.entry
        if act.ended.passed or act.edits:
            newest = islice(reversed(standing.failing.items()), MOST_MINDED)
            mended = [subject for subject, failed in newest if failed.action and covers(act, failed.action)]
            for subject in mended:
                del standing.failing[subject]
        if act.edits:
            for path in act.paths:
                standing.changed.pop(path, None)
                standing.changed[path] = note.entry
    return standing


def _mend(notes: Sequence[Note], standing: Standing) -> Iterator[Note]:
    """The notes; of a call that failed several times only the last failure, and whether it passed afterwards."""
    for note in notes:
        act = note.action
        # Another edit of a file is not the same edit again.
        if act is None or not (act.failed and act.ended.ran) or act.edits:
            yield note
        elif note is (failures := standing.failures[act.subject])[-1]:
            again = f" ({len(failures)} times)" if len(failures) > 1 else ""
            yield note.qualified(
                again
                if act.subject in standing.failing or act.subject in standing.unclear
                else f"{again} (passed later)"
            )


def _choose(notes: Sequence[Note], *, most_tokens: int) -> dict[int, int]:
    """The form of each note that is told: the steps that are worth most, in their order, as far as they fit."""
    newest = max((at for at, note in enumerate(notes) if note.speaker == "User"), default=0)
    steps: list[tuple[float, int, int, int]] = []
    for at, note in enumerate(notes):
        recency, before = 1 + RECENCY * at / len(notes), -LINE_TOKENS
        for form, shown in enumerate(note.forms):
            if shown.worth >= LEAST_WORTH or at >= newest:
                steps.append((-shown.worth * recency, at, form, shown.tokens - before))
            before = shown.tokens
    forms: dict[int, int] = {}
    for _, at, form, tokens in sorted(steps):
        if tokens <= most_tokens and forms.get(at, -1) == form - 1:
            forms[at] = form
            most_tokens -= tokens
    return forms


def _lines(shown: Sequence[Shown]) -> Iterator[str]:
    """The lines of a record; calls of which only the target is told share a line."""
    run: list[Action] = []
    for note, form in shown:
        text = note.forms[form].text
        if note.action is not None and text == note.action.short:
            run.append(note.action)
            continue
        if run:
            yield f"- {merge(run)}"
            run = []
        yield f"#{note.entry} {note.speaker}: {text}" if note.speaker else f"- {text}"
    if run:
        yield f"- {merge(run)}"


def unresolved(notes: Sequence[Note]) -> list[str]:
    """The newest failures that no later run mended, and what the assistant called open, the newest first."""
    failing = [*_standing(notes).failing.values()][-MOST_FAILURES:]
    found = [(note.entry, f"Failed: {note.action.brief}") for note in failing if note.action]
    newest = next((note for note in reversed(notes) if note.opened), None)
    found += [(newest.entry, f"Open: {clip(line, 160)}") for line in newest.opened] if newest else []
    return [line for _, line in sorted(found, key=lambda item: -item[0])]


def _left_out(notes: Sequence[Note], forms: dict[int, int]) -> Iterator[str]:
    """The line that says how many messages of the user are not told, and where they are."""
    # Each with whether the one before it is told.
    left: list[tuple[Note, bool]] = []
    is_told = True
    for at, note in enumerate(notes):
        if note.is_verbatim:
            left += [(note, is_told)] if at not in forms else []
            is_told = at in forms
    if not left:
        return
    whose = "user " if all(note.speaker == "User" for note, _ in left) else ""
    ranges: list[list[int]] = []
    for note, is_new in left:
        if is_new:
            ranges.append([note.entry])
        else:
            ranges[-1][1:] = [note.entry]
    places = ", ".join(" to ".join(f"#{entry}" for entry in one) for one in ranges)
    yield f"({len(left)} {whose}message{'s' if len(left) > 1 else ''} left out: {places})"


def _state(standing: Standing) -> Iterator[str]:
    """The files that were changed, each with its last change, and what fails: since the user last spoke, or of what
    was run again and again."""
    if standing.changed:
        files = [f"{path} (#{entry})" for path, entry in standing.changed.items()]
        earlier = [f"{len(files) - MOST_FILES} earlier"] if len(files) > MOST_FILES else []
        yield f"{FILES}: " + ", ".join([*earlier, *files[-MOST_FILES:]])
    for subject, note in reversed(standing.failing.items()):
        # A query is put in other words when it failed.
        is_over = note.action and note.action.is_data and standing.succeeded.get(note.action.tool, -1) > note.entry
        is_new = note.entry > standing.asked and not is_over
        if note.action and (is_new or standing.runs[subject] > 1):
            yield f"{FAILING}: {note.action.brief}"
            return

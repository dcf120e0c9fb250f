"""Write a record, the message that replaces compacted rounds, in the order in which they happened.

The user's words are verbatim and removed last; the assistant's are whole sentences; each call is a line. The text
is chosen by the worth of a token of each form (``notes``), so that notes age by kind: calls shorten first, then the
assistant's words, then old turns become a line. A record is written from the log and never from its own text, so
nothing drifts, however often records are merged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from lading.compaction.actions import Action, covers, is_surely_same, merge, removes
from lading.compaction.checks import list_removals
from lading.compaction.excerpts import clip
from lading.compaction.notes import Note
from lading.compaction.record_lines import FAILING, FILES
from lading.compaction.shell_state import place_calls

RECENCY = 0.5
"""The newest note is worth this share more than the oldest."""
LEAST_WORTH = 0.2
"""Forms of less worth are used in the newest turn only, however much room there is."""
LINE_TOKENS = 4
"""Tokens charged for a line beside its text: with the framing in ``NoteForm.tokens``, more than it uses. Charged
exactly, many short lines displace the few long ones that are more informative: evidence falls by .01 to .03."""
MOST_COMPARED = 64
"""A successful check is compared with at most this many failures, the newest."""
MOST_FILES = 12
MOST_FAILURES = 3


class WorkState(NamedTuple):
    """The state of the work at the end of some notes."""

    changed: dict[str, int]
    """The entry of the last change of each file, in the order of these changes."""
    failures: dict[str, list[Note]]
    """All failures, by subject of the call."""
    failing: dict[str, Note]
    """The last failure of each subject that has not succeeded since, the newest last."""
    unclear: set[str]
    """Failed subjects whose last run does not show how it ended."""
    succeeded: dict[str, int]
    """The entry of the last success of each tool."""
    runs: Counter[str]
    """How often each call was carried out."""
    asked: int
    """The entry of the user's newest message; -1: none."""
    files: str
    """``ShellState.files`` of the last call."""


def write_record(
    notes: Sequence[Note], *, most_tokens: int, count: Callable[[str], int], instead: Sequence[str] = ()
) -> str:
    """Write the notes in at most ``most_tokens``; empty if not even one fits.

    ``instead``: lines that replace all but the user's words and the demands of documents, which are shown as they
    would be without these lines.
    """
    state = _read_state(notes := [*place_calls(notes)])
    included = [*_merge_failures(notes, state)]
    if instead:
        forms = _choose(included, most_tokens=most_tokens - count("\n".join(_write_state(state))))
        included = [
            note.shorten(forms.get(at, 0))
            for at, note in enumerate(included)
            if note.is_verbatim or (at in forms and note.has_demands(forms[at]))
        ]
    # The user's words are removed last: leave out the state if they do not fit beside it.
    for ending in ([*instead, *_write_state(state)], [*instead]):
        written, is_whole = _fit(included, ending, most_tokens=most_tokens, count=count)
        if is_whole:
            break
    return written


def _fit(
    notes: Sequence[Note], ending: Sequence[str], *, most_tokens: int, count: Callable[[str], int]
) -> tuple[str, bool]:
    """Return the text of as many notes as fit before the ending, and whether it has all of the user's messages. The
    text is empty if not even one note fits."""
    verbatim_notes = sum(note.is_verbatim for note in notes)
    forms = _choose(notes, most_tokens=most_tokens - count("\n".join(ending)))
    # The tokens of lines are estimates: remove notes until the text fits, the user's words last.
    removal_order = sorted(forms, key=lambda at: (notes[at].is_verbatim, at))

    def is_whole(without: int) -> bool:
        return verbatim_notes == sum(notes[at].is_verbatim for at in removal_order[without:])

    def text(without: int) -> str:
        kept = {at: forms[at] for at in sorted(removal_order[without:])}
        calls = _count_calls(notes, kept)
        return "\n".join([*_describe_left_out(notes, kept), *_write_lines(notes, kept), *calls, *ending])

    # Nearly always all of them fit, and counting a long text is the slowest part here.
    if count(written := text(0)) <= most_tokens:
        return written, is_whole(0)
    most = range(len(removal_order))
    without = bisect_left(most, True, lo=1, key=lambda without: count(text(without)) <= most_tokens)
    written = text(without)
    return (written, is_whole(without)) if count(written) <= most_tokens else ("", False)


def _read_state(notes: Sequence[Note]) -> WorkState:
    """Return the state of the work at the end of the notes."""
    state = WorkState({}, {}, {}, set(), {}, Counter(), -1, "")
    for note in notes:
        act = note.action
        if act is None:
            is_asked = note.speaker == "User" and not note.repeats
            state = state._replace(asked=note.entry) if is_asked else state
            continue
        state = state._replace(files=act.state.files)
        if not act.ended.ran:
            continue
        state.runs[act.subject] += 1
        if act.subject in state.failing and _is_unclear(act, state.failing[act.subject].action):
            state.unclear.add(act.subject)
        else:
            state.unclear.discard(act.subject)
        _end_failure(state, act.subject, act)
        if act.edits and act.ended.is_made:
            for path in act.paths:
                path = path.removeprefix("./")
                state.changed.pop(path, None)
                state.changed[path] = note.entry
        if act.failed:
            state.failing[act.subject] = note
            state.failures.setdefault(act.subject, []).append(note)
            continue
        state.succeeded[act.tool] = note.entry
        _end_others(state, act)
    return state


def _is_unclear(act: Action, failed: Action | None) -> bool:
    """Return whether a repetition of a failed call does not show how it ended. A tool that said of one that it
    failed would say so of the other."""
    return act.ended.is_hidden or (act.ended.is_unclear and not (failed and failed.ended.is_told))


def _end_others(state: WorkState, act: Action) -> None:
    """Remove what is not current after a successful call: failures of other calls, and files that it removes."""
    gone = list_removals(act.steps)
    for path in [path for path in state.changed if any(removal.removes(path) for removal in gone)]:
        del state.changed[path]
    if act.ended.passed or act.edits or gone:
        newest = islice(reversed(state.failing.items()), MOST_COMPARED)
        failing = [(subject, note.action) for subject, note in newest if note.action]
        for subject in [subject for subject, failed in failing if covers(act, failed) or removes(act, failed)]:
            _end_failure(state, subject, act)


def _end_failure(state: WorkState, subject: str, act: Action) -> None:
    """Remove a failure, which is not current after this call of the same."""
    state.failing.pop(subject, None)
    failed = state.failures[subject][-1].action if subject in state.failures else None
    if failed and not is_surely_same(act, failed):
        state.unclear.add(subject)


def _merge_failures(notes: Sequence[Note], state: WorkState) -> Iterator[Note]:
    """Yield the notes; of a call that failed several times only the last failure, and whether it passed later."""
    for note in notes:
        act = note.action
        # Another edit of the same file is not a repetition.
        if act is None or not (act.failed and act.ended.ran) or act.edits:
            yield note
        elif note is (failures := state.failures[act.subject])[-1]:
            again = f" ({len(failures)} times)" if len(failures) > 1 else ""
            yield note.with_suffix(
                again if act.subject in state.failing or act.subject in state.unclear else f"{again} (passed later)"
            )


def _choose(notes: Sequence[Note], *, most_tokens: int) -> dict[int, int]:
    """Return the form of each included note, by position: the steps of most worth that fit."""
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


def _write_lines(notes: Sequence[Note], forms: dict[int, int]) -> Iterator[str]:
    """Yield the lines of a record; consecutive calls that show only their target share a line."""
    run: list[Action] = []
    for at, form in forms.items():
        note, text = notes[at], notes[at].forms[form].text
        if note.action is not None and text == note.action.short:
            run.append(note.action)
            continue
        if run:
            yield f"- {merge(run)}"
            run = []
        yield f"#{note.entry} {note.speaker}: {text}" if note.speaker else f"- {text}"
    if run:
        yield f"- {merge(run)}"


def list_unresolved(notes: Sequence[Note]) -> list[str]:
    """Return current failures that a record does not show by itself, and open tasks, the newest first."""
    failing = islice(_find_current_failures(_read_state([*place_calls(notes)])), 1, MOST_FAILURES)
    found = [(note.entry, f"Failed: {note.action.brief}") for note in failing if note.action]
    newest = next((note for note in reversed(notes) if note.opened), None)
    found += [(newest.entry, f"Open: {clip(line, 160)}") for line in newest.opened] if newest else []
    return [line for _, line in sorted(found, key=lambda item: -item[0])]


def _count_calls(notes: Sequence[Note], forms: dict[int, int]) -> Iterator[str]:
    """Yield the line that counts the calls with an effect that are left out. Changed files are listed, and what
    commands changed can be looked up."""
    left_out = (note.action for at, note in enumerate(notes) if at not in forms)
    if calls := sum(act is not None and act.has_effect for act in left_out):
        yield f"({calls} call{'s' if calls > 1 else ''} that changed something left out)"


def _describe_left_out(notes: Sequence[Note], forms: dict[int, int]) -> Iterator[str]:
    """Yield the line that counts the messages of the user that are left out, and where they are."""
    left_out: list[Note] = []
    ranges: list[list[int]] = []
    is_included = True
    for at, note in enumerate(notes):
        if note.is_verbatim and at not in forms:
            left_out.append(note)
            if is_included:
                ranges.append([note.entry])
            else:
                ranges[-1][1:] = [note.entry]
        is_included = at in forms if note.is_verbatim else is_included
    if not left_out:
        return
    whose = "user " if all(note.speaker == "User" for note in left_out) else ""
    places = ", ".join(" to ".join(f"#{entry}" for entry in span) for span in ranges)
    yield f"({len(left_out)} {whose}message{'s' if len(left_out) > 1 else ''} left out: {places})"


def _write_state(state: WorkState) -> Iterator[str]:
    """Yield the changed files, each with its last change, and the newest failure that is current."""
    if state.changed:
        files = [f"{path} (#{entry})" for path, entry in state.changed.items()]
        earlier = [f"{len(files) - MOST_FILES} earlier"] if len(files) > MOST_FILES else []
        yield f"{FILES}: " + ", ".join([*earlier, *files[-MOST_FILES:]])
    for note in islice(_find_current_failures(state), 1):
        if note.action:
            yield f"{FAILING}: {note.action.brief}"


def _find_current_failures(state: WorkState) -> Iterator[Note]:
    """Yield the current failures, the newest first: since the user's newest message, or of a repeated call."""
    for subject, note in reversed(state.failing.items()):
        act = note.action
        if act is None or not act.is_setback or act.state.files != state.files:
            continue
        # A failed query is rephrased, so another success of the tool ends the failure.
        is_over = act.is_data and state.succeeded.get(act.tool, -1) > note.entry
        if (note.entry > state.asked and not is_over) or state.runs[subject] > 1:
            yield note

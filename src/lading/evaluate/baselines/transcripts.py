"""Arms with rule-based notes: removed messages are summarized by turn, or kept as dialogue.

The window is cut at 60 % of W to 20 %; the note has at most 20 % of W and is written anew from the log at each cut.
Nothing here was fitted to the sessions that it is measured on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from lading import jsonbytes
from lading.evaluate.arms import Arm, ArmInput, ArmRequest
from lading.evaluate.baselines.fitting import AdmittedMessages, Cut, CutLimits, Window, admit, find_largest
from lading.messages import Message, ToolCall, user_text

AT_SHARE, TO_SHARE, NOTE_SHARE = 0.6, 0.2, 0.2
TURN_USER_CHARS, TURN_ANSWER_CHARS, TURN_TARGET_CHARS = 4 * 200, 240, 80
"""Characters in a summarized turn for the user's words, the closing answer, and the target of an action."""
LIMITS = ((4 * 400, 4 * 65, 4 * 17, 4 * 11), (4 * 400, 4 * 260, 4 * 70, 4 * 45))
"""Characters (four a token) for the user's words, closing answers, interim answers and actions: short, detailed."""
HEADING = "[Earlier messages left the view. What was said and done in them, in order:]"

_PATHS = ("path", "file_path", "filePath", "filename", "file_name", "file")
_NEW = ("newText", "new_string", "new_str", "content", "file_text", "replace", "replacement_text", "patch", "text")
_OLD = ("oldText", "old_string", "old_str", "search")


def _summarize_turns(cut: Cut, *, case: ArmInput, past: AdmittedMessages) -> Message | None:
    """Summarize the removed messages by turn, with the files changed; the oldest turns are left out first."""
    gone = case.messages[past.head : cut.start]
    starts = [0, *(at for at, message in enumerate(gone) if at and message.role == "user"), len(gone)]
    turns = [_summarize_turn(gone[first:last]) for first, last in pairwise(starts)]
    files = dict.fromkeys(_find_target(call) for message in gone for call in message.calls if _find_new_lines(call))
    last = [f"Files changed: {', '.join(files)}"] if files else []
    return _fit_note(len(turns), lambda kept: [*turns[len(turns) - kept :], *last], cut=cut, case=case)


def _write_dialogue(cut: Cut, *, case: ArmInput, past: AdmittedMessages) -> Message | None:
    """Keep the dialogue and a line for each action: the newest in detail, the oldest shortened or left out."""
    gone = case.messages[past.head : cut.start]
    short, detailed = ([list(_write_lines(item, *limits)) for item in gone] for limits in LIMITS)
    number = len(gone)

    def lines(level: int) -> list[str]:
        first, whole = max(number - level, 0), min(2 * number - level, number)
        return [line for item in (*short[first:whole], *detailed[whole:]) for line in item]

    return _fit_note(2 * number, lines, cut=cut, case=case)


def _fit_note(levels: int, lines: Callable[[int], Iterable[str]], *, cut: Cut, case: ArmInput) -> Message | None:
    """Write the note of the highest level that fits; None where not one does."""
    level = find_largest(levels, lambda level: case.count(_write_note(lines(level))) <= cut.max_tokens)
    return _write_note(lines(level)) if level else None


def _write_note(lines: Iterable[str]) -> Message:
    return user_text("\n".join((HEADING, *lines)))


def _summarize_turn(messages: Sequence[Message]) -> str:
    words = (_cut_start(message.text, TURN_USER_CHARS) for message in messages if message.role == "user")
    calls = (call for message in messages for call in message.calls)
    done = (f"{call.name} {_cut_start(_find_target(call), TURN_TARGET_CHARS)}" for call in calls)
    closing = [message.text for message in messages if message.role == "assistant" and not message.calls]
    pieces = {
        "User": " ".join(words),
        "Did": "; ".join(dict.fromkeys(done)),
        "Errors": "; ".join(_cut_start(text, TURN_TARGET_CHARS) for text in _iter_failures(messages)),
        "Answer": _cut_start(closing[-1], TURN_ANSWER_CHARS) if closing else "",
    }
    return "\n".join(f"{name}: {text}" for name, text in pieces.items() if text)


def _write_lines(message: Message, user: int, closing: int, interim: int, action: int) -> Iterator[str]:
    if message.text and message.role == "user":
        yield f"User: {_cut_start(message.text, user)}"
    if message.text and message.role == "assistant":
        yield f"Assistant: {_cut_start(message.text, interim if message.calls else closing)}"
    for call in message.calls:
        yield f"- {_cut_start(' '.join((call.name, _find_target(call), *_find_new_lines(call))), action)}"
    yield from (f"  error: {_cut_start(text, action)}" for text in _iter_failures([message]))


def _cut_start(text: str, chars: int) -> str:
    """Return the start of a text, in whole words."""
    if len(text) <= chars:
        return text.strip()
    cut = text[: chars + 1]
    return f"{cut[: max(cut.rfind(' '), cut.rfind(chr(10)), 0)].strip()} ..."


def _parse_texts(call: ToolCall) -> dict[str, str]:
    """Return the string arguments of a call."""
    try:
        given: Any = jsonbytes.load(call.arguments)
    except ValueError:
        return {}
    return {key: text for key, text in given.items() if isinstance(text, str)} if isinstance(given, dict) else {}


def _find_first(given: dict[str, str], keys: Iterable[str]) -> str:
    return next((given[key] for key in keys if key in given), "")


def _find_target(call: ToolCall) -> str:
    """Return the file that an action is about, else its first string argument."""
    given = _parse_texts(call)
    return " ".join(_find_first(given, (*_PATHS, *given)).split())


def _find_new_lines(call: ToolCall) -> list[str]:
    """Return the lines that an action writes and that are not in the text it replaces."""
    given = _parse_texts(call)
    new, old = _find_first(given, _NEW), _find_first(given, _OLD)
    return [line.strip() for line in new.splitlines() if line.strip() and line not in old]


def _iter_failures(messages: Iterable[Message]) -> Iterator[str]:
    results = (result for message in messages for result in message.results)
    return (" ".join(result.text.split()) for result in results if result.is_error and result.text.strip())


def _show(case: ArmInput, *, note: Callable[..., Message | None]) -> Iterator[ArmRequest]:
    past = admit(case)
    limits = CutLimits(AT_SHARE, TO_SHARE, int(NOTE_SHARE * case.window_tokens))
    window = Window(case, past.head, limits=limits, note=partial(note, case=case, past=past))
    for upto in case.calls:
        yield window.show(past, upto)


TURNS = Arm("turn-summary", partial(_show, note=_summarize_turns))
DIALOGUE = Arm("dialogue", partial(_show, note=_write_dialogue))

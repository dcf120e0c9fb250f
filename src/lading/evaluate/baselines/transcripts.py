"""Notes written by rules, without a model: what left is summarized by turn, or kept as dialogue.

The window is cut at 60 % down to 20 %, the note takes at most 20 % of W and is drawn from the log at each cut.
Nothing here was fitted to the sessions that it is measured on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from lading import jsonbytes
from lading.evaluate.baselines.fitting import AdmittedMessages, Cut, Cutting, Window, admit, most
from lading.evaluate.showings import Arm, Case, Showing
from lading.messages import Message, ToolCall, user_text

AT_SHARE, TO_SHARE, NOTE_SHARE = 0.6, 0.2, 0.2
TURN_USER_CHARS, TURN_ANSWER_CHARS, TURN_TARGET_CHARS = 4 * 200, 240, 80
"""Of a summarized turn: the user's words, the closing answer, and the target of an action."""
LIMITS = ((4 * 400, 4 * 65, 4 * 17, 4 * 11), (4 * 400, 4 * 260, 4 * 70, 4 * 45))
"""Characters, four a token, of the user's words, closing answers, interim ones and actions: short, in detail."""
HEADING = "[Earlier messages left the view. What was said and done in them, in order:]"

_PATHS = ("path", "file_path", "filePath", "filename", "file_name", "file")
_NEW = ("newText", "new_string", "new_str", "content", "file_text", "replace", "replacement_text", "patch", "text")
_OLD = ("oldText", "old_string", "old_str", "search")


def _turns(cut: Cut, *, case: Case, past: AdmittedMessages) -> Message | None:
    """Summarize what left turn by turn, with the files changed; the oldest turns go first."""
    gone = case.messages[past.head : cut.start]
    starts = [0, *(at for at, message in enumerate(gone) if at and message.role == "user"), len(gone)]
    turns = [_turn(gone[first:last]) for first, last in pairwise(starts)]
    files = dict.fromkeys(_target(call) for message in gone for call in message.calls if _changed(call))
    last = [f"Files changed: {', '.join(files)}"] if files else []
    return _longest(len(turns), lambda kept: [*turns[len(turns) - kept :], *last], cut=cut, case=case)


def _dialogue(cut: Cut, *, case: Case, past: AdmittedMessages) -> Message | None:
    """Keep what was said, and a line for each action: the newest in detail, the oldest shortened or gone."""
    gone = case.messages[past.head : cut.start]
    short, detailed = ([list(_lines(item, *limits)) for item in gone] for limits in LIMITS)
    number = len(gone)

    def lines(level: int) -> list[str]:
        first, whole = max(number - level, 0), min(2 * number - level, number)
        return [line for item in (*short[first:whole], *detailed[whole:]) for line in item]

    return _longest(2 * number, lines, cut=cut, case=case)


def _longest(levels: int, lines: Callable[[int], Iterable[str]], *, cut: Cut, case: Case) -> Message | None:
    """The note of the highest level that fits; None where not one does."""
    level = most(levels, lambda level: case.count(_note(lines(level))) <= cut.max_tokens)
    return _note(lines(level)) if level else None


def _note(lines: Iterable[str]) -> Message:
    return user_text("\n".join((HEADING, *lines)))


def _turn(messages: Sequence[Message]) -> str:
    said = (_start(message.text, TURN_USER_CHARS) for message in messages if message.role == "user")
    calls = (call for message in messages for call in message.calls)
    done = (f"{call.name} {_start(_target(call), TURN_TARGET_CHARS)}" for call in calls)
    closing = [message.text for message in messages if message.role == "assistant" and not message.calls]
    pieces = {
        "User": " ".join(said),
        "Did": "; ".join(dict.fromkeys(done)),
        "Errors": "; ".join(_start(text, TURN_TARGET_CHARS) for text in _failures(messages)),
        "Answer": _start(closing[-1], TURN_ANSWER_CHARS) if closing else "",
    }
    return "\n".join(f"{name}: {text}" for name, text in pieces.items() if text)


def _lines(message: Message, user: int, closing: int, interim: int, action: int) -> Iterator[str]:
    if message.text and message.role == "user":
        yield f"User: {_start(message.text, user)}"
    if message.text and message.role == "assistant":
        yield f"Assistant: {_start(message.text, interim if message.calls else closing)}"
    for call in message.calls:
        yield f"- {_start(' '.join((call.name, _target(call), *_changed(call))), action)}"
    yield from (f"  error: {_start(text, action)}" for text in _failures([message]))


def _start(text: str, chars: int) -> str:
    """The start of a text, in whole words."""
    if len(text) <= chars:
        return text.strip()
    cut = text[: chars + 1]
    return f"{cut[: max(cut.rfind(' '), cut.rfind(chr(10)), 0)].strip()} ..."


def _texts(call: ToolCall) -> dict[str, str]:
    """The arguments of a call that are texts."""
    try:
        given: Any = jsonbytes.load(call.arguments)
    except ValueError:
        return {}
    return {key: text for key, text in given.items() if isinstance(text, str)} if isinstance(given, dict) else {}


def _first(given: dict[str, str], keys: Iterable[str]) -> str:
    return next((given[key] for key in keys if key in given), "")


def _target(call: ToolCall) -> str:
    """The file an action is about, else its first text."""
    given = _texts(call)
    return " ".join(_first(given, (*_PATHS, *given)).split())


def _changed(call: ToolCall) -> list[str]:
    """The lines an action writes that it does not replace."""
    given = _texts(call)
    new, old = _first(given, _NEW), _first(given, _OLD)
    return [line.strip() for line in new.splitlines() if line.strip() and line not in old]


def _failures(messages: Iterable[Message]) -> Iterator[str]:
    results = (result for message in messages for result in message.results)
    return (" ".join(result.text.split()) for result in results if result.is_error and result.text.strip())


def _show(case: Case, *, note: Callable[..., Message | None]) -> Iterator[Showing]:
    past = admit(case)
    cutting = Cutting(AT_SHARE, TO_SHARE, int(NOTE_SHARE * case.window_tokens))
    window = Window(case, past.head, cutting=cutting, note=partial(note, case=case, past=past))
    for upto in case.calls:
        yield window.show(past, upto)


TURNS = Arm("turn-summary", partial(_show, note=_turns))
DIALOGUE = Arm("dialogue", partial(_show, note=_dialogue))

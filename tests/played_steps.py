"""What a user does between two requests of a played session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from lading.errors import PastChanged
from lading.events import ModelChanged
from lading.task.task import read_task
from tests.engines import TOOLS
from tests.played_replies import Item, write_user
from tests.played_session import MODELS, WINDOWS, Given, Play
from tests.preset_cases import PRESETS

ENABLED = {"type": "enabled", "budget_tokens": 1_024}
FIELDS: dict[str, Sequence[dict[str, Any]]] = {
    "anthropic": (
        {"max_tokens": 100},
        {"max_tokens": 1_100, "thinking": ENABLED},
        {"max_tokens": 1_100, "thinking": ENABLED},
        {"max_tokens": 100, "thinking": {"type": "adaptive"}},
        {"max_tokens": 100, "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}, "temperature": 0.5},
        {"max_tokens": 100, "tool_choice": {"type": "tool", "name": "read"}},
        {"max_tokens": 100, "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    ),
    "openai_chat": (
        {},
        {"max_tokens": 100, "tool_choice": "required"},
        {"response_format": {"type": "json_object"}, "parallel_tool_calls": False},
        {"tool_choice": {"type": "function", "function": {"name": "read"}}, "seed": 1},
    ),
    "openai_responses": (
        {},
        {"store": False},
        {"store": False, "include": ["reasoning.encrypted_content"]},
        {"max_output_tokens": 100, "text": {"format": {"type": "json_object"}}, "store": True},
        {"tool_choice": {"type": "function", "name": "read"}, "reasoning": {"effort": "low"}},
    ),
    "gemini": (
        {},
        {"generationConfig": {"maxOutputTokens": 100, "thinkingConfig": {"includeThoughts": True}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}}},
    ),
}
NOTHING: tuple[Any, ...] = ("", None, [])
TASK = read_task(
    {
        "id": "7",
        "goal": "Find the cause.",
        "plan": [
            {"id": "look", "text": "Look for it.", "checklist": ["A cause"]},
            {"id": "tell", "text": "Tell of it.", "checklist": ["A report"], "dependsOn": ["look"]},
        ],
    }
)


def reopen(play: Play) -> None:
    """The same session in the same store, by the next process."""
    play.session.close()
    play.session = play.open(play.session.name)


def change_model(play: Play) -> None:
    """Another model goes on, of any provider."""
    before = play.model, play.wire
    play.model, play.wire = play.chance.choice(MODELS)
    play.fields = None if before != (play.model, play.wire) else play.fields
    play.is_plain = False
    reopen(play)
    is_told = any(isinstance(event, ModelChanged) for event in play.session.events)
    if play.last and is_told != (play.model != before[0]):
        play.fault("prefix", "the change of model is not told, or told without need")


def change_window(play: Play) -> None:
    """Another window, smaller as a rule, and perhaps another strategy."""
    play.window = play.chance.choice(WINDOWS)
    if play.mint.likely(0.5):
        play.preset = play.chance.choice(sorted(PRESETS))
    play.is_plain = False
    reopen(play)


def change_fields(play: Play) -> None:
    """Other fields: thinking, the choice of tools, the format of the answer, what is stored."""
    play.fields = dict(play.chance.choice(FIELDS[play.wire]))
    if play.fields.get("thinking") == ENABLED and not play.session.settings.card.conduct.thinking_budget:
        play.fields["thinking"] = {"type": "adaptive"}
    play.is_plain = False


def change_tools(play: Play) -> None:
    """Other tools, or none."""
    play.tools = play.chance.choice((TOOLS, TOOLS[:1], TOOLS[::-1], (), TOOLS))
    play.is_plain = False


def withdraw(play: Play) -> None:
    """Go on from an earlier place."""
    cuts = [at for at in range(1, len(play.given)) if play.given[at].known > 1]
    if not cuts:
        return
    at = play.chance.choice(cuts[-4:])
    if play.session.withdraw(play.given[at].known):
        play.note(f"withdraw {play.given[at].known}")
        _leave(play, at)
        play.is_plain, play.waiting = False, []
        play.add([write_user(play.mint, play.wire)], whole=False)


def edit(play: Play) -> None:
    """The user writes an earlier message anew: the session refuses it, and a fork takes it."""
    places = [at for at, one in enumerate(play.given) if at and one.items and _is_user(one.items)]
    if not places:
        return
    at = play.chance.choice(places)
    items = [item for one in play.given[:at] for item in one.items]
    changed = write_user(play.mint, play.wire)
    given, marks = [*items, changed], play.mint.take()
    play.note(f"edit {at}")
    try:
        fork = play.session.add(given, changed="fork") if play.mint.likely(0.5) else play.session.fork(given)
    except PastChanged as error:
        play.fault("error", f"a fork refuses: {error}")
        return
    if fork is not play.session:
        play.session.close()
        play.names[fork.name] = None
    _leave(play, at)
    play.given.append(Given([changed], marks, max(len(fork.known) - 1, 0)))
    play.session, play.last, play.is_plain, play.waiting = fork, None, False, []


def _leave(play: Play, at: int) -> None:
    """Go on from before what was handed in from here on; a result may have been handed in twice."""
    kept = {mark for one in play.given[:at] for mark in one.marks}
    play.gone |= {mark for one in play.given[at:] for mark in one.marks} - kept
    play.given = play.given[:at]


def _is_user(items: list[Any]) -> bool:
    return isinstance(items[0], dict) and items[0].get("role") == "user" and "zq" in str(items[0])


def tell_again(play: Play) -> None:
    """The whole history again, with nothing new."""
    items = [item for one in play.given for item in one.items]
    play.note("tell again")
    entries = len(play.session.entries)
    play.session.add(deepcopy(items))
    if len(play.session.entries) != entries:
        play.fault("error", f"{len(play.session.entries) - entries} messages more by the same history")


def instruct(play: Play) -> None:
    """Other instructions in the place of the first."""
    first = play.given[0]
    if isinstance(first.items[0], dict) and first.items[0].get("role") == "system":
        text = play.mint.text()
        play.gone |= {*first.marks}
        play.session.instruct(text)
        play.note(f"instruct {text}")
        first.items, first.marks, play.is_plain = [{"role": "system", "content": text}], play.mint.take(), False


def add_system(play: Play) -> None:
    """A system message in the middle."""
    role = play.chance.choice(("system", "developer"))
    play.add([{"role": role, "content": f"Note: {play.mint.text()}"}], whole=False)


def prefill(play: Play) -> None:
    """The caller begins the answer. In Responses, in a form that no session takes for that of another format."""
    said: Item = {"role": "assistant", "content": f"{play.mint.text()} "}
    if play.wire == "openai_responses":
        said |= {"type": "message", "content": [{"type": "output_text", "text": said["content"]}]}
    play.add([said], whole=False)
    play.request()


def pin(play: Play) -> None:
    """A message that stays."""
    play.add([write_user(play.mint, play.wire)], whole=False, pin=True)


def begin(play: Play) -> None:
    """Begin a step of a task, or end the task."""
    step = play.chance.choice(("look", "tell", None))
    play.note(f"begin {step}")
    play.session.begin(step, task=TASK if step else None)
    play.is_plain = False


def empty(play: Play) -> None:
    """Messages that say nothing."""
    said: list[Item] = [
        {"role": "user", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": " "}]},
    ]
    if play.wire != "openai_responses":
        said += [{"role": "assistant", "content": nothing} for nothing in NOTHING]
    goes_on = [write_user(play.mint, play.wire)] if play.mint.likely(0.5) else []
    play.add([play.chance.choice(said), *goes_on], whole=False)


STEPS: tuple[Callable[[Play], None], ...] = (
    reopen, change_model, change_model, change_model, change_window, change_window, change_fields, change_fields,
    change_fields, change_tools, withdraw, withdraw, edit, tell_again, instruct, add_system, prefill, pin, begin,
    empty,
)  # fmt: skip

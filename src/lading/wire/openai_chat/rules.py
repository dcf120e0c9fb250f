"""The strict check of OpenAI's Chat Completions wire: the rows C1 to C12 of docs/reference/wire-rules.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lading.wire.checking import Finding, Rule, WireMessage, shown
from lading.wire.openai_chat.walking import SYSTEM_ROLES, TOOL_ROLES, ChatWalk, calls_of, role_of, walk

__all__ = ["RULES", "walk"]

ROLES = (*SYSTEM_ROLES, "user", "assistant", *TOOL_ROLES)
NAME = re.compile("[A-Za-z0-9_-]{1,64}")
MAX_ID_CHARS = 40
PART_TYPES = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}
"""What the content of each role may hold; of role function, only a string."""


def calls_answered(walk: ChatWalk, message: WireMessage) -> Iterator[Finding]:
    """C1: no other role before all calls have their answer."""
    if role_of(message) != "tool":
        yield from calls_answered_at_end(walk)


def calls_answered_at_end(walk: ChatWalk) -> Iterator[Finding]:
    """C1 at the end: the newest calls have their answer."""
    for call in walk.waiting:
        yield Finding(f"messages.{walk.run}", f"no tool message answers {shown(call)} right after it")


def answers_in_place(walk: ChatWalk, message: WireMessage) -> Iterator[Finding]:
    """C2: a tool message stands in the run after an assistant message with calls."""
    if role_of(message) == "tool" and walk.run is None:
        yield Finding(f"{walk.here}.role", "a tool message must follow an assistant message with tool_calls")


def answers_asked_for(walk: ChatWalk, message: WireMessage) -> Iterator[Finding]:
    """C3: a tool message names one of the calls it follows."""
    if role_of(message) == "tool" and walk.run is not None:
        call = message.get("tool_call_id")
        if not isinstance(call, str) or call not in walk.calls:
            detail = f"messages.{walk.run} makes no call with the id {shown(call)}"
            yield Finding(f"{walk.here}.tool_call_id", detail)


def answered_once(walk: ChatWalk, message: WireMessage) -> Iterator[Finding]:
    """C4: an id is answered once in its run; a later run may use it again, as some models do."""
    if role_of(message) == "tool":
        call = message.get("tool_call_id")
        if isinstance(call, str) and call in walk.answers:
            detail = f"messages.{walk.answers[call]} has answered {shown(call)} already"
            yield Finding(f"{walk.here}.tool_call_id", detail)


def calls_not_empty(walk: ChatWalk, message: WireMessage) -> Iterator[Finding]:
    """C5: tool_calls is left out rather than empty."""
    if isinstance(message, dict) and message.get("tool_calls") == []:
        yield Finding(f"{walk.here}.tool_calls", "leave tool_calls out where there are none")


def contents(walk: ChatWalk, message: WireMessage) -> Iterator[Finding]:
    """C6: content is a string or a list of parts; only an assistant message with calls may lack it."""
    if not isinstance(message, dict):
        return
    content = message.get("content")
    path = f"{walk.here}.content"
    if content is None:
        if not _may_lack_content(message):
            yield Finding(path, "must be a string; only an assistant message with tool_calls may have null")
    elif isinstance(content, list):
        if not content:
            yield Finding(path, "must hold at least one part")
        for index, part in enumerate(content):
            if not isinstance(part, dict) or not isinstance(part.get("type"), str):
                yield Finding(f"{path}.{index}", "must be an object with a type")
            elif part["type"] == "text" and not isinstance(part.get("text"), str):
                yield Finding(f"{path}.{index}", "a text part must hold a string in text")
    elif not isinstance(content, str):
        yield Finding(path, f"must be a string or a list of parts, not {shown(content)}")


def part_types(walk: ChatWalk, message: WireMessage) -> Iterator[Finding]:
    """C12: the parts of a content are of the types that its role takes."""
    content, role = message.get("content") if isinstance(message, dict) else None, role_of(message)
    for index, part in enumerate(content if isinstance(content, list) and role in ROLES else ()):
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind not in PART_TYPES.get(role, ()):
            yield Finding(f"{walk.here}.content.{index}", f"a {role} message takes no part of type {shown(kind)}")


def _may_lack_content(message: WireMessage) -> bool:
    """Beside calls: an old-style call, its answer, a spoken answer that is named by its id, and a refusal."""
    role = role_of(message)
    if role == "assistant":
        beside = (("function_call", dict), ("audio", dict), ("refusal", str))
        return bool(calls_of(message)) or any(isinstance(message.get(field), kind) for field, kind in beside)
    return role == "function"


def ids_short(walk: ChatWalk, message: WireMessage) -> Iterator[Finding]:
    """C7: ids of calls have at most forty characters."""
    for index, call in enumerate(calls_of(message)):
        if isinstance(call, dict):
            yield from _long_id(f"{walk.here}.tool_calls.{index}.id", call.get("id"))
    if role_of(message) == "tool":
        yield from _long_id(f"{walk.here}.tool_call_id", message.get("tool_call_id"))


def _long_id(path: str, value: object) -> Iterator[Finding]:
    if isinstance(value, str) and len(value) > MAX_ID_CHARS:
        yield Finding(path, f"has {len(value)} characters; at most {MAX_ID_CHARS} are allowed")


def envelope_shape(walk: ChatWalk) -> Iterator[Finding]:
    """C8, the envelope: messages and tools are lists, and tools have names."""
    for field in ("messages", "tools"):
        value = walk.envelope.get(field)
        if value is not None and not isinstance(value, list):
            yield Finding(field, f"must be a list, not {shown(value)}")
    tools = walk.envelope.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        path = f"tools.{index}"
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind == "function" or kind == "custom":
            yield from _bad_name(f"{path}.{kind}", tool.get(kind))
        else:
            yield Finding(path, "must be an object of type function or custom")


def some_message(walk: ChatWalk) -> Iterator[Finding]:
    """C8, the messages: at least one."""
    if walk.position == 0:
        yield Finding("messages", "at least one message is required")


def message_shape(walk: ChatWalk, message: WireMessage) -> Iterator[Finding]:
    """C8: a known role, and calls with id, name and arguments."""
    if not isinstance(message, dict):
        yield Finding(walk.here, f"must be an object, not {shown(message)}")
        return
    if role_of(message) not in ROLES:
        role = shown(message.get("role"))
        yield Finding(f"{walk.here}.role", f"must be one of {', '.join(ROLES)}, not {role}")
    if message.get("tool_calls") is not None and not isinstance(message["tool_calls"], list):
        yield Finding(f"{walk.here}.tool_calls", f"must be a list, not {shown(message['tool_calls'])}")
    for index, call in enumerate(calls_of(message)):
        yield from _bad_call(f"{walk.here}.tool_calls.{index}", call)
    if message.get("function_call") is not None:
        yield from _bad_function(f"{walk.here}.function_call", message["function_call"], text="arguments")


def _bad_call(path: str, call: Any) -> Iterator[Finding]:
    kind = call.get("type") if isinstance(call, dict) else None
    if kind != "function" and kind != "custom":
        yield Finding(path, "must be an object of type function or custom")
        return
    if not isinstance(call.get("id"), str) or not call["id"]:
        yield Finding(f"{path}.id", f"must be a string, not {shown(call.get('id'))}")
    text = "arguments" if kind == "function" else "input"
    yield from _bad_function(f"{path}.{kind}", call.get(kind), text=text)


def _bad_function(path: str, function: object, *, text: str) -> Iterator[Finding]:
    yield from _bad_name(path, function)
    if isinstance(function, dict) and not isinstance(function.get(text), str):
        yield Finding(f"{path}.{text}", f"must be a string, not {shown(function.get(text))}")


def _bad_name(path: str, holder: object) -> Iterator[Finding]:
    if not isinstance(holder, dict):
        yield Finding(path, f"must be an object, not {shown(holder)}")
        return
    name = holder.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield Finding(f"{path}.name", f"must be 1 to 64 letters, digits, _ and -, not {shown(name)}")


def reasoning_returned(walk: ChatWalk, message: WireMessage) -> Iterator[Finding]:
    """C9: where the model wants its reasoning back, every assistant message carries it."""
    if walk.card.conduct.reasoning_echo != "reasoning_content" or role_of(message) != "assistant":
        return
    if not isinstance(message.get("reasoning_content"), str):
        detail = "this model wants the reasoning of every assistant message back, as a string"
        yield Finding(f"{walk.here}.reasoning_content", detail)


def template_order(walk: ChatWalk, message: WireMessage) -> Iterator[Finding]:
    """C11: one system message, in front; then user and assistant in turn. Tool messages are the latter's."""
    role = role_of(message)
    if role in SYSTEM_ROLES and walk.position:
        yield Finding(walk.here, "a chat template may take one system message, in front of all others")
    elif role == "user" and walk.speaker == "user":
        yield Finding(walk.here, "a second user message in a row; merge the two")
    elif role == "assistant" and walk.speaker in ("", "assistant"):
        yield Finding(walk.here, "an assistant message must follow a user or tool message")


RULES: tuple[Rule, ...] = (
    Rule(
        "C1",
        "E",
        "calls are answered right after they are made",
        at_message=calls_answered,
        at_end=calls_answered_at_end,
    ),
    Rule("C2", "E", "a tool message stands in the run after a call", at_message=answers_in_place),
    Rule("C3", "E", "a tool message names a call of its run", verified=False, at_message=answers_asked_for),
    Rule("C4", "E", "an id is answered once in its run", at_message=answered_once),
    Rule("C5", "E", "tool_calls is never empty", verified=False, at_message=calls_not_empty),
    Rule("C6", "E", "content is there, unless calls are", at_message=contents),
    Rule("C7", "E", "ids of calls have at most 40 characters", at_message=ids_short),
    Rule(
        "C8",
        "E",
        "messages, roles, names and arguments are of their shape",
        verified=False,
        at_start=envelope_shape,
        at_message=message_shape,
        at_end=some_message,
    ),
    Rule("C9", "E", "reasoning comes back where the model wants it", at_message=reasoning_returned),
    Rule("C11", "P", "the order that strict chat templates want", at_message=template_order),
    Rule("C12", "E", "parts are of types that the role takes", verified=False, at_message=part_types),
)
"""In the order of the page; what a body alone cannot show is listed there."""

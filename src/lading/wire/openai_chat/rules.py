"""The strict check of OpenAI's Chat Completions wire: the rows C1 to C12 of docs/reference/wire-rules.md.

``ChatState`` is the state of a check from one wire message to the next. Bodies are untrusted: reading them never
raises. Unreadable values are ignored there, and a rule reports them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from lading.models.card import Card
from lading.wire.checking import Finding, Rule, WireMessage, quote_value

SYSTEM_ROLES = ("system", "developer")
TOOL_ROLES = ("tool", "function")


class ChatState(Struct):
    """The state of a check: the data of the envelope and the messages so far that rules need."""

    envelope: Mapping[str, Any]
    card: Card
    position: int = 0
    """The index of the next message."""
    run: int | None = None
    """Index of the assistant message whose calls are being answered; None if a tool message is illegal."""
    calls: set[str] = set()
    """The ids of that message's calls."""
    waiting: dict[str, None] = {}
    """The ids of its calls without an answer so far, in order."""
    answers: dict[str, int] = {}
    """The ids answered so far in this run, each with the index of the tool message."""
    speaker: str = ""
    """The last role among user, assistant and tool; system messages do not count."""

    @property
    def here(self) -> str:
        """The path of the next message."""
        return f"messages.{self.position}"

    def advance(self, message: WireMessage) -> None:
        """Update the state with the next wire message."""
        role = read_role(message)
        if role == "tool":
            call = message.get("tool_call_id")
            if isinstance(call, str):
                self.waiting.pop(call, None)
                self.answers.setdefault(call, self.position)
        else:
            calls = list_calls(message) if role == "assistant" else []
            self.run = self.position if calls else None
            ids = [call["id"] for call in calls if isinstance(call, dict) and isinstance(call.get("id"), str)]
            self.calls, self.waiting, self.answers = set(ids), dict.fromkeys(ids), {}
        if role in TOOL_ROLES:
            self.speaker = "tool"
        elif role in ("user", "assistant"):
            self.speaker = role
        self.position += 1


def read_role(message: object) -> str:
    """Return the role of a message; empty if it has none."""
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else ""


def list_calls(message: object) -> list[Any]:
    """Return the entries of ``tool_calls``, of any type; none if it is not a list."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return calls if isinstance(calls, list) else []


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
"""The types of parts in the content of each role; the content of role function is a string."""


def calls_answered(state: ChatState, message: WireMessage) -> Iterator[Finding]:
    """C1: no other role before all calls have their answer."""
    if read_role(message) != "tool":
        yield from calls_answered_at_end(state)


def calls_answered_at_end(state: ChatState) -> Iterator[Finding]:
    """C1 at the end: the newest calls have their answers."""
    for call in state.waiting:
        yield Finding(f"messages.{state.run}", f"no tool message answers {quote_value(call)} right after it")


def answers_in_place(state: ChatState, message: WireMessage) -> Iterator[Finding]:
    """C2: a tool message is in the run after an assistant message with calls."""
    if read_role(message) == "tool" and state.run is None:
        yield Finding(f"{state.here}.role", "a tool message must follow an assistant message with tool_calls")


def answers_asked_for(state: ChatState, message: WireMessage) -> Iterator[Finding]:
    """C3: a tool message names one of the calls it follows."""
    if read_role(message) == "tool" and state.run is not None:
        call = message.get("tool_call_id")
        if not isinstance(call, str) or call not in state.calls:
            detail = f"messages.{state.run} makes no call with the id {quote_value(call)}"
            yield Finding(f"{state.here}.tool_call_id", detail)


def answered_once(state: ChatState, message: WireMessage) -> Iterator[Finding]:
    """C4: an id is answered once in its run; a later run may use it again, as some models do."""
    if read_role(message) == "tool":
        call = message.get("tool_call_id")
        if isinstance(call, str) and call in state.answers:
            detail = f"messages.{state.answers[call]} has answered {quote_value(call)} already"
            yield Finding(f"{state.here}.tool_call_id", detail)


def calls_not_empty(state: ChatState, message: WireMessage) -> Iterator[Finding]:
    """C5: tool_calls is left out rather than empty."""
    if isinstance(message, dict) and message.get("tool_calls") == []:
        yield Finding(f"{state.here}.tool_calls", "leave tool_calls out where there are none")


def contents(state: ChatState, message: WireMessage) -> Iterator[Finding]:
    """C6: content is a string or a list of parts; only an assistant message with calls may lack it."""
    if not isinstance(message, dict):
        return
    content = message.get("content")
    if isinstance(content, str) or (content is None and _may_lack_content(message)):
        return
    path = f"{state.here}.content"
    if content is None:
        yield Finding(path, "must be a string; only an assistant message with tool_calls may have null")
    elif isinstance(content, list):
        if not content:
            yield Finding(path, "must hold at least one part")
        for index, part in enumerate(content):
            if not isinstance(part, dict) or not isinstance(part.get("type"), str):
                yield Finding(f"{path}.{index}", "must be an object with a type")
            elif part["type"] == "text" and not isinstance(part.get("text"), str):
                yield Finding(f"{path}.{index}", "a text part must hold a string in text")
    else:
        yield Finding(path, f"must be a string or a list of parts, not {quote_value(content)}")


def part_types(state: ChatState, message: WireMessage) -> Iterator[Finding]:
    """C12: the parts of a content are of the types that its role allows."""
    content, role = message.get("content") if isinstance(message, dict) else None, read_role(message)
    for index, part in enumerate(content if isinstance(content, list) and role in ROLES else ()):
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind not in PART_TYPES.get(role, ()):
            yield Finding(
                f"{state.here}.content.{index}", f"a {role} message takes no part of type {quote_value(kind)}"
            )


def _may_lack_content(message: WireMessage) -> bool:
    """Whether a message may lack content: one with calls, an old-style call or answer, audio, a refusal."""
    role = read_role(message)
    if role == "assistant":
        beside = (("function_call", dict), ("audio", dict), ("refusal", str))
        return bool(list_calls(message)) or any(isinstance(message.get(field), kind) for field, kind in beside)
    return role == "function"


def ids_short(state: ChatState, message: WireMessage) -> Iterator[Finding]:
    """C7: ids of calls have at most 40 characters."""
    calls = enumerate(list_calls(message))
    ids = {f"tool_calls.{index}.id": call.get("id") for index, call in calls if isinstance(call, dict)}
    if read_role(message) == "tool":
        ids["tool_call_id"] = message.get("tool_call_id")
    for field, value in ids.items():
        if isinstance(value, str) and len(value) > MAX_ID_CHARS:
            most = f"at most {MAX_ID_CHARS} are allowed"
            yield Finding(f"{state.here}.{field}", f"has {len(value)} characters; {most}")


def envelope_shape(state: ChatState) -> Iterator[Finding]:
    """C8, the envelope: messages and tools are lists, and tools have names."""
    for field in ("messages", "tools"):
        value = state.envelope.get(field)
        if value is not None and not isinstance(value, list):
            yield Finding(field, f"must be a list, not {quote_value(value)}")
    tools = state.envelope.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        path = f"tools.{index}"
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind == "function" or kind == "custom":
            yield from _check_name(f"{path}.{kind}", tool.get(kind))
        else:
            yield Finding(path, "must be an object of type function or custom")


def some_message(state: ChatState) -> Iterator[Finding]:
    """C8, the messages: at least one."""
    if state.position == 0:
        yield Finding("messages", "at least one message is required")


def message_shape(state: ChatState, message: WireMessage) -> Iterator[Finding]:
    """C8: a known role, and calls with id, name and arguments."""
    if not isinstance(message, dict):
        yield Finding(state.here, f"must be an object, not {quote_value(message)}")
        return
    if read_role(message) not in ROLES:
        role = quote_value(message.get("role"))
        yield Finding(f"{state.here}.role", f"must be one of {', '.join(ROLES)}, not {role}")
    if message.get("tool_calls") is not None and not isinstance(message["tool_calls"], list):
        yield Finding(f"{state.here}.tool_calls", f"must be a list, not {quote_value(message['tool_calls'])}")
    for index, call in enumerate(list_calls(message)):
        yield from _check_call(f"{state.here}.tool_calls.{index}", call)
    if message.get("function_call") is not None:
        yield from _check_function(f"{state.here}.function_call", message["function_call"], text="arguments")


def _check_call(path: str, call: Any) -> Iterator[Finding]:
    kind = call.get("type") if isinstance(call, dict) else None
    if kind != "function" and kind != "custom":
        yield Finding(path, "must be an object of type function or custom")
        return
    if not isinstance(call.get("id"), str) or not call["id"]:
        yield Finding(f"{path}.id", f"must be a string, not {quote_value(call.get('id'))}")
    text = "arguments" if kind == "function" else "input"
    yield from _check_function(f"{path}.{kind}", call.get(kind), text=text)


def _check_function(path: str, function: object, *, text: str) -> Iterator[Finding]:
    yield from _check_name(path, function)
    if isinstance(function, dict) and not isinstance(function.get(text), str):
        yield Finding(f"{path}.{text}", f"must be a string, not {quote_value(function.get(text))}")


def _check_name(path: str, holder: object) -> Iterator[Finding]:
    if not isinstance(holder, dict):
        yield Finding(path, f"must be an object, not {quote_value(holder)}")
        return
    name = holder.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield Finding(f"{path}.name", f"must be 1 to 64 letters, digits, _ and -, not {quote_value(name)}")


def reasoning_returned(state: ChatState, message: WireMessage) -> Iterator[Finding]:
    """C9: if the model requires its reasoning back, every assistant message contains it."""
    if state.card.conduct.reasoning_echo != "reasoning_content" or read_role(message) != "assistant":
        return
    if not isinstance(message.get("reasoning_content"), str):
        detail = "this model wants the reasoning of every assistant message back, as a string"
        yield Finding(f"{state.here}.reasoning_content", detail)


def template_order(state: ChatState, message: WireMessage) -> Iterator[Finding]:
    """C11: one system message, in front; then user and assistant alternate (tool messages: assistant)."""
    role = read_role(message)
    if role in SYSTEM_ROLES and state.position:
        yield Finding(state.here, "a chat template may take one system message, in front of all others")
    elif role == "user" and state.speaker == "user":
        yield Finding(state.here, "a second user message in a row; merge the two")
    elif role == "assistant" and state.speaker in ("", "assistant"):
        yield Finding(state.here, "an assistant message must follow a user or tool message")


RULES: tuple[Rule, ...] = (
    Rule("C1", "E", at_message=calls_answered, at_end=calls_answered_at_end),
    Rule("C2", "E", at_message=answers_in_place),
    Rule("C3", "E", verified=False, at_message=answers_asked_for),
    Rule("C4", "E", at_message=answered_once),
    Rule("C5", "E", verified=False, at_message=calls_not_empty),
    Rule("C6", "E", at_message=contents),
    Rule("C7", "E", at_message=ids_short),
    Rule("C8", "E", verified=False, at_start=envelope_shape, at_message=message_shape, at_end=some_message),
    Rule("C9", "E", at_message=reasoning_returned),
    Rule("C11", "P", at_message=template_order),
    Rule("C12", "E", verified=False, at_message=part_types),
)
"""The rules in the order of the page, which also lists those that cannot be checked on a body alone."""

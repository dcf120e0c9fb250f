"""The strict check of Gemini's generateContent wire: the rows G1 to G14 of docs/reference/wire-rules.md.

Neighbouring contents of the model are one turn, as the SDK's chats send a streamed reply. Bodies are untrusted:
reading them never raises. Unreadable values are ignored there, and a rule reports them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from lading.models.card import Card
from lading.wire.checking import Finding, Rule, WireMessage, quote_value
from lading.wire.gemini.decoding import READERS, find_key, read_role


class Called(Struct, frozen=True):
    """A call or a response in a content."""

    path: str
    part: Mapping[str, Any]
    value: Mapping[str, Any]

    def find(self, field: str) -> str:
        """Return the text in a field; empty for anything else."""
        value = self.value.get(field)
        return value if isinstance(value, str) else ""


class ContentsState(Struct):
    """The state of a check: the data of the envelope and the contents so far that rules need."""

    envelope: Mapping[str, Any]
    card: Card
    position: int = 0
    """The index of the next content."""
    last: str = ""
    """Our role of the newest content."""
    calls: list[Called] = []
    """The calls of the newest turn of the model that have no responses yet."""
    unsigned: list[Called] = []
    """The first calls of the turns since the user's last text that have no signature, where they are parallel."""
    has_calls: bool = False
    """Whether the newest turn of the model has a call already, which bears the signature for all of them."""

    @property
    def here(self) -> str:
        """The path of the next content."""
        return f"contents.{self.position}"

    def advance(self, message: WireMessage) -> None:
        """Update the state with the next content."""
        role, calls = read_role(message), find_called(self.here, message, kind="functionCall")
        if role == "assistant":
            if self.last != "assistant":
                self.calls, self.has_calls = [], False
            if calls and not self.has_calls and not calls[0].part.get(find_key(calls[0].part, "thoughtSignature")):
                self.unsigned = [*self.unsigned, calls[0]]
            self.calls, self.has_calls = [*self.calls, *calls], self.has_calls or bool(calls)
        else:
            self.calls = []
            if not find_called(self.here, message, kind="functionResponse"):
                self.unsigned = []
        self.last = role
        self.position += 1


def list_parts(content: object) -> list[Any]:
    """Return the parts of a content, of any type; none if they are no list."""
    parts = content.get("parts") if isinstance(content, dict) else None
    return parts if isinstance(parts, list) else []


def find_called(path: str, content: object, *, kind: str) -> list[Called]:
    """Return the calls or responses in a content."""
    found = []
    for index, part in enumerate(list_parts(content)):
        if isinstance(part, dict) and isinstance(value := part.get(find_key(part, kind)), dict):
            found.append(Called(f"{path}.parts.{index}", part, value))
    return found


def calls_in_place(state: ContentsState, message: WireMessage) -> Iterator[Finding]:
    """G1: a call follows a turn of the user or responses; no history starts with one, and users make none."""
    for call in find_called(state.here, message, kind="functionCall"):
        if read_role(message) != "assistant" or not state.position:
            yield Finding(call.path, "a function call must be the model's, after a user turn or function responses")


def responses_in_place(state: ContentsState, message: WireMessage) -> Iterator[Finding]:
    """G2: responses follow the calls of the model."""
    if not state.calls or read_role(message) == "assistant":
        for response in find_called(state.here, message, kind="functionResponse"):
            yield Finding(response.path, "a function response must come right after the model's function calls")


def calls_answered(state: ContentsState, message: WireMessage) -> Iterator[Finding]:
    """G3: the content after calls has as many responses."""
    found = len(find_called(state.here, message, kind="functionResponse"))
    if state.calls and read_role(message) != "assistant" and found != len(state.calls):
        yield Finding(state.here, f"{found} function responses follow {len(state.calls)} function calls")


def calls_answered_at_end(state: ContentsState) -> Iterator[Finding]:
    """G3 at the end: the newest calls have their responses."""
    for call in state.calls:
        yield Finding(call.path, f"no function response follows the call of {quote_value(call.find('name'))}")


def roles(state: ContentsState, message: WireMessage) -> Iterator[Finding]:
    """G4: the role is user or model, or missing."""
    if not read_role(message):
        role = quote_value(message.get("role") if isinstance(message, dict) else message)
        yield Finding(f"{state.here}.role", f"must be user or model, not {role}")


def parts_filled(state: ContentsState, message: WireMessage) -> Iterator[Finding]:
    """G5: a content has parts, and each part its data."""
    if isinstance(message, dict) and not list_parts(message):
        yield Finding(f"{state.here}.parts", "must hold at least one part")
    for index, part in enumerate(list_parts(message)):
        kinds = [
            key for kind in READERS if isinstance(part, dict) and part.get(key := find_key(part, kind)) is not None
        ]
        if len(kinds) != 1 or not isinstance(part[kinds[0]], str if kinds[0] == "text" else dict):
            yield Finding(f"{state.here}.parts.{index}", "must hold exactly one of the kinds of data, filled")


def ends_with_user(state: ContentsState) -> Iterator[Finding]:
    """G6: the last content is the user's or has responses."""
    if state.last == "assistant":
        yield Finding(f"contents.{state.position - 1}", "the last content must be the user's or function responses")


def alternation(state: ContentsState, message: WireMessage) -> Iterator[Finding]:
    """G7: user and model alternate."""
    if state.position and (read_role(message) == "assistant") == (state.last == "assistant"):
        yield Finding(state.here, "a second content of one role in a row; merge the two")


def calls_signed(state: ContentsState) -> Iterator[Finding]:
    """G8: if the model signs, the first call of each of its turns since the user's last text has a signature."""
    if state.card.conduct.reasoning_echo == "signed":
        for call in state.unsigned:
            yield Finding(call.path, "this function call must come back with its thoughtSignature")


def ids_match(state: ContentsState, message: WireMessage) -> Iterator[Finding]:
    """G11: a response with an id answers the call of that id, where the calls have ids; each is answered once."""
    known = [call.find("id") for call in state.calls if call.find("id")]
    for response in find_called(state.here, message, kind="functionResponse"):
        if known and (answered := response.find("id")):
            if answered not in known:
                yield Finding(response.path, f"no open function call has the id {quote_value(answered)}")
            else:
                known.remove(answered)


def envelope_shape(state: ContentsState) -> Iterator[Finding]:
    """G13, the envelope: contents and tools are lists, and systemInstruction is a content."""
    for field in ("contents", "tools"):
        if (value := state.envelope.get(field)) is not None and not isinstance(value, list):
            yield Finding(field, f"must be a list, not {quote_value(value)}")
    field = find_key(state.envelope, "systemInstruction")
    system = state.envelope.get(field)
    if system is not None and not list_parts(system):
        yield Finding(field, "must be an object with parts")
    tools = state.envelope.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        if not isinstance(tool, dict):
            yield Finding(f"tools.{index}", f"must be an object, not {quote_value(tool)}")


def some_content(state: ContentsState) -> Iterator[Finding]:
    """G13, the contents: at least one."""
    if not state.position:
        yield Finding("contents", "at least one content is required")


def names_given(state: ContentsState, message: WireMessage) -> Iterator[Finding]:
    """G14: calls and responses name the function, arguments are an object, and so is a response."""
    for kind, field, required in (("functionCall", "args", False), ("functionResponse", "response", True)):
        for called in find_called(state.here, message, kind=kind):
            if not called.find("name"):
                yield Finding(f"{called.path}.name", "must name the function")
            value = called.value.get(field)
            if not isinstance(value, dict) and (required or value is not None):
                yield Finding(f"{called.path}.{field}", f"must be an object, not {quote_value(value)}")


RULES: tuple[Rule, ...] = (
    Rule("G1", "E", at_message=calls_in_place),
    Rule("G2", "E", at_message=responses_in_place),
    Rule("G3", "E", at_message=calls_answered, at_end=calls_answered_at_end),
    Rule("G4", "E", at_message=roles),
    Rule("G5", "E", at_message=parts_filled),
    Rule("G6", "P", at_end=ends_with_user),
    Rule("G7", "P", at_message=alternation),
    Rule("G8", "E", at_end=calls_signed),
    Rule("G11", "L", at_message=ids_match),
    Rule("G13", "E", verified=False, at_start=envelope_shape, at_end=some_content),
    Rule("G14", "E", verified=False, at_message=names_given),
)
"""The rules in the order of the page, which also lists those that cannot be checked on a body alone."""

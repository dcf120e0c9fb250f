"""The chunks of a streamed Chat Completions response: gathered into its body, edited on their way to the caller.

Servers differ in how they tell the calls of a message apart: most number them, some leave the number out, and
some send whole calls that all have the number 0. ``Slots`` settles it once, for everything that follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.wire.openai_chat.decoding import CALL_FIELDS
from lading.wire.replies import text_or_empty
from lading.wire.streams import Value, index_of, object_at, objects_at

_WHOLE = frozenset({"index", "type", "role", "id", "format", "signature"})
"""Fields of a delta that come in one piece."""

_IDENTITY = ("id", "created", "model")

_DEEPEST = 6
"""Levels down to which pieces are put together; below, the last one stands."""


class Slots:
    """The calls of one choice, as they are told apart."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.begun: set[int] = set()
        """The slots whose arguments have begun; their names are settled."""
        self._ids: dict[int, str] = {}
        self._by_index: dict[int, int] = {}

    def numbered(self, call: Value) -> Value:
        """A piece of a call with its slot as index, and without the id and the name that it only repeats."""
        call_id, name = text_or_empty(call, "id"), name_of(call)
        slot = self._slot(index_of(call), call_id, name)
        known = self.names.setdefault(slot, "")
        numbered = call | {"index": slot}
        if call_id and slot in self._ids:
            del numbered["id"]
        elif call_id:
            self._ids[slot] = call_id
        if slot in self.begun or name == known:
            for kind in CALL_FIELDS.keys() & numbered.keys():
                numbered[kind] = {key: item for key, item in object_at(call, kind).items() if key != "name"}
        else:
            self.names[slot] += name
        if words_of(call):
            self.begun.add(slot)
        return numbered

    def _slot(self, index: int | None, call_id: str, name: str) -> int:
        newest = max(self.names, default=-1)
        if index is None:
            known = [slot for slot, found in self._ids.items() if call_id and found == call_id]
            if known:
                return known[0]
            return newest + 1 if call_id or name or newest < 0 else newest
        slot = self._by_index.get(index, index)
        other = bool(call_id and name and self._ids.get(slot)) and self._ids[slot] != call_id
        if other or (slot in self.names and index not in self._by_index):
            slot = newest + 1
        self._by_index[index] = slot
        return slot


class Collected:
    """Gathers chunks into the body of the response."""

    def __init__(self) -> None:
        self.failed = False
        self._head: Value = {}
        self._choices: dict[int, Value] = {}

    @property
    def finished(self) -> bool:
        """Whether every choice has a reason for its end."""
        return bool(self._choices) and all(choice["finish_reason"] for choice in self._choices.values())

    @property
    def usage(self) -> Value:
        """What the request took, as far as it was told."""
        return object_at(self._head, "usage")

    def add(self, value: Value) -> None:
        """Take in the next chunk; its calls are numbered."""
        self.failed = self.failed or bool(value.get("error"))
        for key, item in value.items():
            if key != "choices" and item is not None:
                self._head[key] = item
        for piece in objects_at(value, "choices"):
            index = index_of(piece) or 0
            choice = self._choices.setdefault(index, {"index": index, "message": {}, "finish_reason": None})
            choice["message"] = _grown(choice["message"], object_at(piece, "delta"))
            choice["finish_reason"] = piece.get("finish_reason") or choice["finish_reason"]

    def body(self) -> Value:
        """The response body so far, with one choice at least."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        return self._head | {"choices": choices or [{"index": 0, "message": {}, "finish_reason": None}]}


class CallEdits:
    """Calls of the held tool are cut out, those after them and those of a later stream renumbered; all streams
    of an answer have the first one's identity."""

    def __init__(self, name: str, before: Value) -> None:
        self._name = name
        self._slots: dict[int, Slots] = {}
        self._identity = {key: before[key] for key in _IDENTITY if key in before}
        said = {index_of(choice) or 0: object_at(choice, "message") for choice in objects_at(before, "choices")}
        self._before = {index: len(objects_at(message, "tool_calls")) for index, message in said.items()}
        """Calls that earlier streams of the answer showed, by choice."""
        self._have_role = {index for index, message in said.items() if "role" in message}

    def numbered(self, value: Value) -> Value:
        """The chunk with every piece of a call numbered."""
        choices = [self._numbered(choice) for choice in objects_at(value, "choices")]
        return value | {"choices": choices} if choices else value

    def split(self, value: Value) -> tuple[Value | None, Value | None]:
        """Everything from where a call of the held tool may begin is held back; what stands in front goes on."""
        now, later = [], []
        for choice in objects_at(value, "choices"):
            delta, calls = object_at(choice, "delta"), _calls(choice)
            begins = next((at for at, call in enumerate(calls) if self._may_hold(choice, call)), None)
            if begins is None:
                now.append(choice)
                continue
            said = {key: item for key, item in delta.items() if key != "tool_calls"}
            said |= {"tool_calls": calls[:begins]} if begins else {}
            if said:
                now.append(choice | {"delta": said, "finish_reason": None})
            later.append(choice | {"delta": {"tool_calls": calls[begins:]}, "logprobs": None})
        if not later:
            return value, None
        rest = value | {"choices": later}
        if not now:
            return None, rest
        return {key: item for key, item in value.items() if key != "usage"} | {"choices": now}, rest

    def edited(self, value: Value) -> Value | None:
        """The chunk as the caller gets it."""
        edited = value | {key: item for key, item in self._identity.items() if key in value}
        choices = objects_at(value, "choices")
        if not choices:
            return edited
        left = [kept for choice in choices if (kept := self._choice(choice)) is not None]
        return edited | {"choices": left} if left or value.get("usage") else None

    def _numbered(self, choice: Value) -> Value:
        calls = _calls(choice)
        if not calls:
            return choice
        slots = self._slots.setdefault(index_of(choice) or 0, Slots())
        return choice | {"delta": choice["delta"] | {"tool_calls": [slots.numbered(call) for call in calls]}}

    def _may_hold(self, choice: Value, call: Value) -> bool:
        """Whether it is a call of the held tool, or its name so far is how that one begins."""
        if not self._name:
            return False
        slots = self._slots[index_of(choice) or 0]
        name = slots.names[call["index"]]
        return self._name == name or (call["index"] not in slots.begun and self._name.startswith(name))

    def _choice(self, choice: Value) -> Value | None:
        index, delta = index_of(choice) or 0, object_at(choice, "delta")
        held, before = self._held(index), self._before.get(index, 0)
        edited = {key: item for key, item in delta.items() if key != "role" or index not in self._have_role}
        if calls := _calls(choice):
            kept = [call for call in calls if call["index"] not in held]
            places = [before + call["index"] - sum(slot < call["index"] for slot in held) for call in kept]
            edited["tool_calls"] = [call | {"index": place} for call, place in zip(kept, places, strict=True)]
            if not kept:
                del edited["tool_calls"]
        reason = choice.get("finish_reason")
        if not edited and delta and not reason:
            return None
        if reason == "tool_calls" and held and not before and len(held) == len(self._slots[index].names):
            return choice | {"delta": edited, "finish_reason": "stop"}
        return choice if edited == delta else choice | {"delta": edited}

    def _held(self, choice: int) -> list[int]:
        slots = self._slots.get(choice)
        return [slot for slot, name in slots.names.items() if name == self._name] if slots and self._name else []


def name_of(call: Mapping[str, Any]) -> str:
    """The name of the tool that a call or a piece of one asks for."""
    return next((found for kind in CALL_FIELDS if (found := text_or_empty(object_at(call, kind), "name"))), "")


def words_of(call: Mapping[str, Any]) -> str:
    """The arguments that a call or a piece of one holds."""
    return next(
        (found for kind, key in CALL_FIELDS.items() if (found := text_or_empty(object_at(call, kind), key))), ""
    )


def _calls(choice: Value) -> list[Value]:
    return objects_at(object_at(choice, "delta"), "tool_calls")


def _grown(before: Any, piece: Any, *, key: str = "", levels: int = _DEEPEST) -> Any:
    """A value and the next piece of it: words are joined, objects merged, lists merged by ``index``."""
    if piece is None:
        return before
    if isinstance(before, str) and isinstance(piece, str):
        return (before or piece) if key in _WHOLE else before + piece
    if isinstance(before, dict) and isinstance(piece, dict) and levels:
        merged = {name: _grown(before.get(name), item, key=name, levels=levels - 1) for name, item in piece.items()}
        return before | merged
    if isinstance(piece, list) and isinstance(before, list | None) and levels:
        items: list[Any] = list(before or ())
        for item in piece:
            _take_in(items, item, levels=levels - 1)
        return items
    return piece


def _take_in(items: list[Any], item: Any, *, levels: int) -> None:
    place = index_of(item) if isinstance(item, dict) else None
    for at, known in enumerate(items if place is not None else ()):
        if isinstance(known, dict) and index_of(known) == place:
            items[at] = _grown(known, item, levels=levels)
            return
    items.append(item)

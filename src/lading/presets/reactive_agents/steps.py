"""Read a history as steps: thoughts, actions and observations, the unit of Reactive Agents.

An assistant message is a thought if it has text, and an action for each call; each result is an observation. The
user's messages are not steps, but are read along with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from lading.compaction.identifiers import read_leaves
from lading.history.observations import Category, categorize_tool_name, observation_result
from lading.history.view import View
from lading.messages import Message, MessageLike, ToolCall, ToolResult, is_own
from lading.wire.coercion import as_messages

StepKind: TypeAlias = Literal[
    "thought", "action", "observation", "user", "memory", "rules", "task", "tool-ref", "other"
]
STEPS: frozenset[StepKind] = frozenset({"thought", "action", "observation"})
"""The kinds that count as steps."""
_PATHS = ("path", "file_path", "filepath", "filename", "file")


class Step(Struct, frozen=True):
    """A step, or another item that is scored like one."""

    kind: StepKind
    content: str
    """The text of a thought, ``name(arguments)`` of an action, the text of a result."""
    iteration: int = 0
    """Number of rounds before it."""
    tool: str = ""
    subject: str = ""
    """The path among the call's arguments, else its first value."""
    failed: bool = False
    pinned: bool = False
    preserved: bool = False
    """A failure, or the first write of its path: it keeps a line at every level of compaction."""
    entry: int = -1
    """Its log entry."""


def steps_of(messages: Iterable[MessageLike], own: Mapping[str, Category] | None = None) -> tuple[Step, ...]:
    """Return the steps of a history, and the user's messages between them; ``own`` adds categories of tools. Raises
    InputError and WireError for what is no message."""
    reader = StepReader(own)
    for entry, message in enumerate(as_messages(messages)):
        reader.add(entry, message)
    return tuple(reader.steps)


def read_steps(view: View, reader: StepReader) -> list[Step]:
    """Return all steps after the opening messages, reading only new entries."""
    if view.head < len(view):
        start = max(view.items[view.head].entry, reader.upto + 1)
        for entry, message in view.raw_between(start, view.last_entry(len(view))):
            reader.add(entry, message)
    return reader.steps


class StepReader:
    """Reads steps from messages one at a time."""

    def __init__(self, own: Mapping[str, Category] | None = None) -> None:
        self.steps: list[Step] = []
        self.upto = -1
        """The last entry read."""
        self._own = own
        self.iteration = -1
        """Of the newest round read, from 0; -1 before the first."""
        self._called: dict[str, tuple[str, str]] = {}
        self._written: set[str] = set()

    def add(self, entry: int, message: Message) -> None:
        """Read a message; entries come in order."""
        self.upto = entry
        self.iteration += message.role == "assistant"
        if message.role in ("user", "assistant") and message.text.strip() and not is_own(message):
            by_user = message.role == "user"
            kind: StepKind = "user" if by_user else "thought"
            self.steps.append(Step(kind, message.text, self._now, pinned=by_user, entry=entry))
        for call in message.calls:
            self._called[call.id] = call.name, _find_subject(call)
            content = f"{call.name}({call.arguments})"
            self.steps.append(Step("action", content, self._now, call.name, self._called[call.id][1], entry=entry))
        self.steps += [self._read_observation(result, entry) for result in message.results]

    @property
    def _now(self) -> int:
        return max(self.iteration, 0)

    def _read_observation(self, result: ToolResult, entry: int) -> Step:
        name, subject = self._called.pop(result.call_id, (result.name, ""))
        seen = observation_result(name, result.text, success=not result.is_error, own=self._own)
        wrote = seen.success and categorize_tool_name(name, self._own) == "file-write"
        preserved = seen.preserve_on_compaction or (wrote and subject not in self._written)
        if wrote:
            self._written.add(subject)
        return Step(
            "observation",
            seen.display_text,
            self._now,
            name,
            subject,
            failed=not seen.success,
            preserved=preserved,
            entry=entry,
        )


def _find_subject(call: ToolCall) -> str:
    values = list(read_leaves(call.arguments))
    named = {key.replace("-", "_").lower(): text for key, text in reversed(values)}
    found = next((named[key] for key in _PATHS if named.get(key, "").strip()), "")
    return found or next((text for _, text in values if text.strip()), "")

"""The tools that a session offers and answers itself: ``restore``, and those of its memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from lading.addresses import RESTORE, Address
from lading.audit.restore import SCHEMA, answer_calls, apply_changes
from lading.engine import Engine
from lading.events import MemoryUsed
from lading.history.log import Entry
from lading.history.view import ONLY_RESTORE
from lading.memory.agent_memory import AgentMemory
from lading.memory.records import Origin
from lading.memory.tools import ANSWER_TOKENS, SCHEMAS, answer
from lading.messages import Message, Tool, ToolCall, user_text

ALL = (SCHEMA, *SCHEMAS)


def name_own_tools(memory: AgentMemory | None) -> frozenset[str]:
    """Return the names of the tools that a session with this memory may answer itself."""
    return ONLY_RESTORE if memory is None else frozenset(tool.name for tool in ALL)


class OwnTools:
    """The own tools of one session, and which of them its last request offered."""

    def __init__(self, *, may_restore: bool, memory: AgentMemory | None, offered: Sequence[Tool] = ()) -> None:
        """``offered``: the tools of a stored session's last request."""
        self._memory = memory
        self._schemas: tuple[Tool, ...] = (SCHEMA,) if may_restore else ()
        if memory is not None and memory.options.tools:
            self._schemas += SCHEMAS
        self.offered = tuple(tool for tool in self._schemas if tool in offered)
        self.may_offer = bool(self.offered)

    @property
    def names(self) -> frozenset[str]:
        """The names of the tools that the last request offered."""
        return frozenset([tool.name for tool in self.offered])

    def choose(self, tools: Sequence[Tool], *, may_offer: bool) -> None:
        """Choose what the next request offers beside the caller's tools: nothing without any, and nothing whose
        name is taken."""
        taken = [tool.name for tool in tools]
        is_wanted = bool(may_offer and taken)
        self.offered = tuple(tool for tool in self._schemas if is_wanted and tool.name not in taken)
        self.may_offer = may_offer

    def prepare(self, message: Message, engine: Engine, *, step: str) -> Callable[[], list[Message]]:
        """Return a function that answers the own calls of a reply; it needs nothing that changes. ``step``: the
        name of the current step."""
        names = self.names
        calls = [call for call in message.calls if call.name in names]
        return partial(
            self._answer, calls, engine, apply_changes(engine.history), room_tokens=engine.room_tokens, step=step
        )

    def _answer(
        self, calls: Sequence[ToolCall], engine: Engine, entries: Sequence[Entry], *, room_tokens: int, step: str
    ) -> list[Message]:
        restores = [call for call in calls if call.name == RESTORE]
        restored = iter(
            answer_calls(
                restores,
                entries,
                session=engine.settings.owner,
                count=engine.count,
                room_tokens=room_tokens * len(restores) // max(len(calls), 1),
                shows_pictures=engine.wire.allows_media_in_results,
            )
        )
        most_tokens = min(ANSWER_TOKENS, room_tokens // 4 // max(len(calls), 1))
        remembered = partial(self._use_memory, engine=engine, entries=entries, step=step, most_tokens=most_tokens)
        return [next(restored) if call.name == RESTORE else remembered(call) for call in calls]

    def _use_memory(
        self, call: ToolCall, *, engine: Engine, entries: Sequence[Entry], step: str, most_tokens: int
    ) -> Message:
        assert self._memory is not None
        asked = next((one.index for one in reversed(entries) if call in one.message.calls), None)
        tenant, session = engine.settings.owner
        source = "" if asked is None else str(Address(tenant, session, "log", str(asked)))
        result, did, key, found = answer(
            call,
            self._memory,
            origin=Origin(author="model", source=source, step=step),
            count=lambda text: engine.count(user_text(text)),
            most_tokens=most_tokens,
        )
        failed = result.text if result.is_error else ""
        engine.subscribers.publish(MemoryUsed(session, did, key, found, failed))
        return Message("tool", (result,))

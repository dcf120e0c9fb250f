"""The tools that a session offers and answers itself: ``restore``, and those of its memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

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


def make_own_tools(*, may_restore: bool, memory: AgentMemory | None, offered: Sequence[Tool]) -> OwnTools:
    """Return the own tools of a session. ``offered``: the tools of its last request."""
    has_tools = memory is not None and memory.options.tools
    schemas = (*((SCHEMA,) if may_restore else ()), *(SCHEMAS if has_tools else ()))
    found = tuple(tool for tool in schemas if tool in offered)
    names = frozenset([tool.name for tool in found])
    return OwnTools(schemas, memory, offered=found, names=names, may_offer=bool(found))


def name_own_tools(memory: AgentMemory | None) -> frozenset[str]:
    """Return the names of the tools that a session with this memory may answer itself."""
    return ONLY_RESTORE if memory is None else frozenset(tool.name for tool in ALL)


class OwnTools(Struct, frozen=True):
    """The own tools of one session, and which of them its last request offered."""

    schemas: tuple[Tool, ...]
    """All that it may offer."""
    memory: AgentMemory | None
    offered: tuple[Tool, ...] = ()
    names: frozenset[str] = frozenset()
    """The names of those that are answered: offered, or left out because several answers are asked for."""
    tools: tuple[Tool, ...] = ()
    """The caller's tools beside which they are offered."""
    may_offer: bool = False

    def choose(self, tools: tuple[Tool, ...], *, may_offer: bool) -> OwnTools:
        """Choose what the next request offers beside the caller's tools: nothing without any, and nothing whose
        name is taken. What may not be offered is still answered: models repeat calls that their history has."""
        taken = [tool.name for tool in tools]
        own = tuple(tool for tool in self.schemas if taken and tool.name not in taken)
        names = frozenset([tool.name for tool in own])
        return replace(self, offered=own if may_offer else (), names=names, tools=tools, may_offer=may_offer)

    def prepare(self, message: Message, engine: Engine, *, step: str) -> Callable[[], list[Message]]:
        """Return a function that answers the own calls of a reply; it needs nothing that changes. ``step``: the
        name of the current step."""
        calls = [call for call in message.calls if call.name in self.names]
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
        assert self.memory is not None
        asked = next((one.index for one in reversed(entries) if call in one.message.calls), None)
        tenant, session = engine.settings.owner
        source = "" if asked is None else str(Address(tenant, session, "log", str(asked)))
        result, did, key, found = answer(
            call,
            self.memory,
            origin=Origin(author="model", source=source, step=step),
            count=lambda text: engine.count(user_text(text)),
            most_tokens=most_tokens,
        )
        failed = result.text if result.is_error else ""
        engine.subscribers.publish(MemoryUsed(session, did, key, found, failed))
        return Message("tool", (result,))

"""Agentrail's default capabilities: the context providers of its standard stack, and their companion transform.

``memory_context(options)`` is both. The texts are about a folder of the caller (``indexes.py``), which is read when
a request is made. Text that stays the same is said once; the rest is at the end of each request alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from lading.effects import ContextProvider, RequestContext
from lading.errors import InputError
from lading.events import Compacted, Event
from lading.folder import open_folder
from lading.history.log import Entry
from lading.messages import Message, MessageLike
from lading.presets.agentrail import tool_results
from lading.presets.agentrail.indexes import (
    describe_date,
    describe_user,
    index_knowledge,
    index_memory,
    index_skills,
    list_workspace,
)
from lading.presets.agentrail.providers import ContextTransform, create_transform_context
from lading.presets.agentrail.tool_results import ToolResults
from lading.validation import check, check_count, check_options, snake_case

LOAD_TOKENS = 40_000
"""The document's store loads as many tokens of history where it is given no budget."""
_STACK = ("session_compaction", "layers")


class Capabilities(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of the default stack. Raises InputError for a value of another type."""

    data_dir: str | os.PathLike[str]
    """The folder with the notes, in ``tenants/{tenant}/sessions/{session}`` and ``tenants/{tenant}/users/{user}``.
    Nothing outside of it is read."""
    knowledge_dir: str = "knowledge"
    """Below ``data_dir``: a folder of Markdown documents for each knowledge base."""
    skills_dir: str = "skills"
    """Below ``data_dir``: a folder with a ``SKILL.md`` for each skill."""
    workspace_dir: str = "workspace"
    """Below ``data_dir``: the files that the agent works on."""
    clock: Callable[[], float] = time.time
    """Gives the time in seconds since 1970, when a provider is asked."""
    tool_results: ToolResults = tool_results.DEFAULTS
    """The limits of the transform."""
    place: Literal["tail", "front"] = "tail"
    """front: all of it before the history of each request, as the document has it; what changes there makes the
    history new to the prompt cache."""

    def __post_init__(self) -> None:
        check(self.data_dir, (str, os.PathLike), advice="data_dir is the path of a folder")
        check(self.clock, Callable, advice="clock is a function that gives seconds")  # type: ignore[arg-type]
        check(self.tool_results, ToolResults, advice="tool_results is ToolResults(...)")
        for name in ("knowledge_dir", "skills_dir", "workspace_dir"):
            check(getattr(self, name), str, advice=f"{name} is the name of a folder in data_dir")


Options: TypeAlias = Capabilities | Mapping[str, Any] | str | os.PathLike[str]
"""``Capabilities``, a mapping of its fields in either spelling, or the path of ``data_dir``."""


def create_default_capability_context_providers(options: Options) -> list[ContextProvider]:
    """Return the providers of the default stack in the document's order: identity, date, memory index, knowledge
    index, skills index, workspace. Raises InputError for invalid options."""
    chosen = _read_options(options)
    data, clock = open_folder(chosen.data_dir), chosen.clock

    def memory(context: RequestContext) -> str:
        return index_memory(data, context, now_s=clock())

    def below(index: Callable[..., str], name: str) -> Callable[[], str]:
        return lambda: index(data.enter(*name.strip("/").split("/")))

    stack = [
        ContextProvider(describe_user, "stable", name="identity"),
        ContextProvider(lambda: describe_date(clock()), name="date"),
        ContextProvider(memory, name="memory"),
        ContextProvider(below(index_knowledge, chosen.knowledge_dir), "stable", name="knowledge"),
        ContextProvider(below(index_skills, chosen.skills_dir), "stable", name="skills"),
        ContextProvider(below(list_workspace, chosen.workspace_dir), name="workspace"),
    ]
    if chosen.place == "tail":
        return stack
    return [ContextProvider(one.provide, place=chosen.place, name=one.name) for one in stack]


def create_default_capability_transform_context(
    options: Options,
) -> Callable[[Sequence[MessageLike]], list[Message]]:
    """Return the transform of that stack, ``compact_tool_results``. Raises InputError for invalid options."""
    return partial(tool_results.compact_tool_results, options=_read_options(options).tool_results)


def memory_context(options: Options) -> ContextTransform:
    """Return both: the providers, which ``Session(providers=...)`` takes, and the transform as ``base_transform``,
    for ``configured(..., transforms=[...])``. Raises InputError for invalid options."""
    transform = create_default_capability_transform_context(options)
    return create_transform_context(create_default_capability_context_providers(options), base_transform=transform)


@runtime_checkable
class SessionLog(Protocol):
    """A session, as far as its log is concerned."""

    @property
    def entries(self) -> Sequence[Entry]:
        """The log."""


def load_messages_with_budget(session: SessionLog, token_budget: int = LOAD_TOKENS) -> list[Message]:
    """Return the newest messages of a session's log that fit a budget, by the session's counter, without a result
    whose call does not fit. Raises InputError for no session and no count."""
    session = getattr(session, "session", session)  # Of an AsyncSession.
    check(session, SessionLog, advice="load_messages_with_budget(session, token_budget)")
    check_count(token_budget, name="token_budget")
    entries, start, left = session.entries, len(session.entries), token_budget
    while start and (left := left - entries[start - 1].tokens) >= 0:
        start -= 1
    while start < len(entries) and entries[start].message.results:
        start += 1
    return [entry.message for entry in entries[start:]]


@runtime_checkable
class PackedSession(Protocol):
    """A session that makes requests."""

    def pack(self) -> Any:
        """Make a request."""


def compact_if_needed(session: PackedSession) -> Any:
    """Compact a session's history if its strategy finds that due: the summarizer is asked, and later requests show
    its summary. For the start of a request, with the strategy ``agentrail/session_compaction`` or
    ``agentrail/layers``; ``pack`` does the same. Return the event ``Compacted``, or None; of an ``AsyncSession`` it
    must be awaited. Raises InputError for another strategy and for no session, and what ``pack`` raises."""
    check(session, PackedSession, advice="compact_if_needed(session)")
    inner: Any = getattr(session, "session", session)
    names = [part.rpartition("/")[2] for part in inner.settings.strategy_name.split("+")]
    if not set(names) & set(_STACK):
        raise InputError(
            f"The strategy {inner.settings.strategy_name} compacts nothing at the start of a request. Open the "
            'session with strategy="agentrail/session_compaction" or "agentrail/layers".'
        )
    answer = session.pack()
    return _await_compacted(answer) if isinstance(answer, Awaitable) else _find_compacted(answer.events)


async def _await_compacted(answer: Awaitable[Any]) -> Compacted | None:
    return _find_compacted((await answer).events)


def _find_compacted(events: Sequence[Event]) -> Compacted | None:
    return next((event for event in events if isinstance(event, Compacted)), None)


def _read_options(options: Options) -> Capabilities:
    if isinstance(options, Capabilities):
        return options
    if isinstance(options, str | os.PathLike):
        return Capabilities(options)
    check_options(options, Capabilities.__struct_fields__, of="the default capabilities")
    given = snake_case(options)
    if "data_dir" not in given:
        raise InputError("The default capabilities need a data_dir, the folder of notes, documents and skills.")
    if "tool_results" in given:
        given["tool_results"] = tool_results.read_options(given["tool_results"])
    return Capabilities(**given)

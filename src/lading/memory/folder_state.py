"""Remember which files of a folder of notes were read, so that an unchanged one is not read again.

A file counts as unchanged if its size and times are those of its last reading, and were then older than a tick of
any file system's clock: a change within the tick of a reading leaves them as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from lading.errors import MemoryFull
from lading.folder import FoundFile
from lading.memory.agent_memory import AgentMemory
from lading.memory.records import MemoryRecord, Namespace, Origin

STATE_AGENT = "folder-index"
"""The agent of the namespace of these records, which agents of other names do not see."""
TICK_S = 2.0
"""The longest tick of a file system's clock: that of FAT."""
_FORM = 1
"""The version of the split into passages: raise it where that changes, so that all files are read again."""
_ALL = 1_000_000_000


def describe_state(file: FoundFile, *, passages: int) -> str:
    """Return a text that is the same for an unchanged file with the same number of records."""
    return f"{_FORM} {file.stamp} {passages}"


def is_settled(file: FoundFile, *, read_s: float) -> bool:
    """Whether a change after a reading at that time, in seconds since 1970, would show in the file's times."""
    return file.changed_s + TICK_S < read_s


def read_states(memory: AgentMemory, prefix: str) -> dict[str, str]:
    """Return the states of files by the sources of their records, of those that begin with ``prefix``."""
    return {one.key: one.text for one in _list_states(memory) if one.key.startswith(prefix)}


def write_states(memory: AgentMemory, states: Mapping[str, str]) -> None:
    """Store the states of files by the sources of their records. In a full memory files are read again."""
    if not states:
        return
    records = [
        MemoryRecord(text=text, namespace=_make_namespace(memory), key=source, origin=Origin("tool", source))
        for source, text in states.items()
    ]
    with suppress(MemoryFull):
        memory.store.add(records, at_s=memory.now_s)


def forget_states(memory: AgentMemory, sources: Collection[str]) -> None:
    """Forget the states of files that are gone."""
    if ids := [one.id for one in _list_states(memory, with_history=True) if one.key in sources]:
        memory.store.forget(_make_namespace(memory), ids, at_s=memory.now_s)


def _list_states(memory: AgentMemory, *, with_history: bool = False) -> list[MemoryRecord]:
    own = _make_namespace(memory)
    found = memory.store.list_records(own, at_s=memory.now_s, with_history=with_history, limit=_ALL)
    return [one for one in found if one.namespace == own]


def _make_namespace(memory: AgentMemory) -> Namespace:
    of = memory.shared_namespace
    return Namespace(of.tenant, of.user, STATE_AGENT, of.agent)

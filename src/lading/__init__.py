"""Lading: know what your model sees, and what it costs.

The log keeps everything that happened; a ``Session`` builds for every call the request that fits the
model's window, checks it against the provider's rules, and records a manifest from which the same bytes
can be built again. Here is what an agent's author needs; docs/reference/names.md has the home of every other name.
"""

import importlib
import typing

from lading.audit.pointers import resolve
from lading.audit.replay import verify
from lading.effects import ContextProvider, Summarizer, Summary, SummaryRequest
from lading.errors import (
    ContextOverflow,
    IllegalRequest,
    InputError,
    LadingError,
    LoopStopped,
    PackInvalid,
    PastChanged,
    SessionBusy,
    StoreError,
    WindowExceeded,
)
from lading.messages import File, Image, Message, Text, Tool, ToolCall, ToolResult, tool_result, user_text
from lading.models.card import Card
from lading.models.catalog import find_card
from lading.moved import old_name as _old_name
from lading.request.manifest import Manifest
from lading.request.pack import Pack
from lading.session.loop_detection import LoopDetection
from lading.session.options import SessionOptions
from lading.session.session import Session
from lading.stores import open_store
from lading.task.evidence import Evidence, Memory
from lading.task.packing import TaskOptions
from lading.task.task import Checklist, ChecklistItem, Task, TaskPlan, TaskStep
from lading.wire.replies import Reply

if typing.TYPE_CHECKING:
    from lading.clients import wrap
    from lading.session.async_session import AsyncSession

__all__ = [
    "AsyncSession",
    "Card",
    "Checklist",
    "ChecklistItem",
    "ContextOverflow",
    "ContextProvider",
    "Evidence",
    "File",
    "IllegalRequest",
    "Image",
    "InputError",
    "LadingError",
    "LoopDetection",
    "LoopStopped",
    "Manifest",
    "Memory",
    "Message",
    "Pack",
    "PackInvalid",
    "PastChanged",
    "Reply",
    "Session",
    "SessionBusy",
    "SessionOptions",
    "StoreError",
    "Summarizer",
    "Summary",
    "SummaryRequest",
    "Task",
    "TaskOptions",
    "TaskPlan",
    "TaskStep",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "WindowExceeded",
    "find_card",
    "open_store",
    "resolve",
    "tool_result",
    "user_text",
    "verify",
    "wrap",
]

_AT_FIRST_USE = {"AsyncSession": "lading.session.async_session", "wrap": "lading.clients"}
"""Names that are imported at their first use: asyncio alone takes as long to import as all the rest."""


def _get(name: str) -> typing.Any:
    if name not in _AT_FIRST_USE:
        return _old_name(__name__, name)
    value = globals()[name] = getattr(importlib.import_module(_AT_FIRST_USE[name]), name)
    return value


if not typing.TYPE_CHECKING:  # for a type checker a name that is not listed above does not exist
    __getattr__ = _get

"""Lading: know what your model is told, and what it costs.

The log keeps everything that happened; an ``Engine`` builds for every call the request that fits the
model's window, checks it against the provider's rules, and records a manifest from which the same bytes
can be built again.
"""

import importlib
import typing

from lading.audit.pointers import resolve
from lading.audit.replay import Outcome, rebuild_body, verify
from lading.budget import Budget, allocate
from lading.compaction import Arrival, Compaction, Past, Pressure, Strategy
from lading.economics import PrefixCache, Rates, Usage, edit_price
from lading.effects import Summarizer, Summary, SummaryRequest
from lading.engine import Engine, reopen
from lading.errors import (
    AddressError,
    ContextOverflow,
    IllegalRequest,
    InputError,
    LadingError,
    LoopStopped,
    ModelError,
    PackError,
    PastChanged,
    SessionBusy,
    SourceError,
    StoreError,
    StoreFormatError,
    SummaryFailed,
    TamperedError,
    UnknownName,
    Violation,
    WindowExceeded,
    WireError,
)
from lading.events import (
    Compacted,
    CompactionApplied,
    ContextSynthesized,
    Event,
    Forked,
    LoopDetected,
    ModelChanged,
    NoProgress,
    PackingFailed,
    Repaired,
    ReplyLost,
    Restored,
    RuleBroken,
    StrategyOverruled,
    SummaryRejected,
    ToolsLeftOut,
    ToolsReduced,
    UnknownModel,
    Unpacked,
    UsageDoubted,
    UsageMissing,
)
from lading.history.log import Draft
from lading.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    tool_result,
    user_text,
)
from lading.models.card import Card
from lading.models.catalog import find_card, load_cards
from lading.request.manifest import Manifest
from lading.request.pack import Pack
from lading.session.loop_detection import LoopDetection
from lading.session.options import SessionOptions
from lading.session.session import Session
from lading.settings import Settings, settings_for
from lading.stores import SessionStore, open_store
from lading.wire import Wire, check, encode, find_wire
from lading.wire.checking import Rule
from lading.wire.replies import Reply

if typing.TYPE_CHECKING:
    from lading.clients import wrap
    from lading.session.async_session import AsyncSession

__all__ = [
    "AddressError",
    "Arrival",
    "AsyncSession",
    "Budget",
    "Card",
    "Compacted",
    "Compaction",
    "CompactionApplied",
    "ContextOverflow",
    "ContextSynthesized",
    "Conversation",
    "Draft",
    "Engine",
    "Event",
    "File",
    "Forked",
    "IllegalRequest",
    "Image",
    "InputError",
    "LadingError",
    "LoopDetected",
    "LoopDetection",
    "LoopStopped",
    "Manifest",
    "Message",
    "ModelChanged",
    "ModelError",
    "NoProgress",
    "Opaque",
    "Outcome",
    "Pack",
    "PackError",
    "PackingFailed",
    "Past",
    "PastChanged",
    "PrefixCache",
    "Pressure",
    "Rates",
    "Reasoning",
    "Repaired",
    "Reply",
    "ReplyLost",
    "Restored",
    "Rule",
    "RuleBroken",
    "Session",
    "SessionBusy",
    "SessionOptions",
    "SessionStore",
    "Settings",
    "SourceError",
    "StoreError",
    "StoreFormatError",
    "Strategy",
    "StrategyOverruled",
    "Summarizer",
    "Summary",
    "SummaryFailed",
    "SummaryRejected",
    "SummaryRequest",
    "TamperedError",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "ToolsLeftOut",
    "ToolsReduced",
    "UnknownModel",
    "UnknownName",
    "Unpacked",
    "Usage",
    "UsageDoubted",
    "UsageMissing",
    "Violation",
    "WindowExceeded",
    "Wire",
    "WireError",
    "allocate",
    "check",
    "edit_price",
    "encode",
    "find_card",
    "find_wire",
    "load_cards",
    "open_store",
    "rebuild_body",
    "reopen",
    "resolve",
    "settings_for",
    "tool_result",
    "user_text",
    "verify",
    "wrap",
]

_AT_FIRST_USE = {"AsyncSession": "lading.session.async_session", "wrap": "lading.clients"}
"""What is imported when it is first asked for: asyncio alone takes as long to import as all the rest."""


def __getattr__(name: str) -> typing.Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module 'lading' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_AT_FIRST_USE[name]), name)
    return value

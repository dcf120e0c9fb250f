"""Lading: know what your model is told, and what it costs.

The log keeps everything that happened; an ``Engine`` builds for every call the request that fits the
model's window, checks it against the provider's rules, and records a manifest from which the same bytes
can be built again.
"""

from lading.budget import Budget, allocate
from lading.compaction import Arrival, Compaction, Draft, Pressure, Strategy
from lading.economics import PrefixCache, Rates, Usage, edit_price
from lading.engine import Engine, reopen
from lading.errors import (
    AddressError,
    IllegalRequest,
    InputError,
    LadingError,
    ModelError,
    PackError,
    SourceError,
    StoreError,
    StoreFormatError,
    TamperedError,
    UnknownName,
    WindowExceeded,
    WireError,
)
from lading.manifest import Manifest
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
    user_text,
)
from lading.models.card import Card
from lading.models.catalog import find_card, load_cards
from lading.pack import Pack
from lading.pointers import resolve
from lading.replay import Outcome, rebuild_body, verify
from lading.settings import Settings, settings_for
from lading.stores import SessionStore, open_store
from lading.wire import Wire, check, encode, find_wire
from lading.wire.checking import Rule, Violation

__all__ = [
    "AddressError",
    "Arrival",
    "Budget",
    "Card",
    "Compaction",
    "Conversation",
    "Draft",
    "Engine",
    "File",
    "IllegalRequest",
    "Image",
    "InputError",
    "LadingError",
    "Manifest",
    "Message",
    "ModelError",
    "Opaque",
    "Outcome",
    "Pack",
    "PackError",
    "PrefixCache",
    "Pressure",
    "Rates",
    "Reasoning",
    "Rule",
    "SessionStore",
    "Settings",
    "SourceError",
    "StoreError",
    "StoreFormatError",
    "Strategy",
    "TamperedError",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "UnknownName",
    "Usage",
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
    "user_text",
    "verify",
]

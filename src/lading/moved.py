"""Old places of public names and modules, which work for one more release and warn with the new place.

Knows names only and imports nothing until one is used. The release after the next deletes it.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

HOMES: Mapping[str, str] = {
    "lading.audit.replay": "Outcome rebuild_body",
    "lading.budget": "Budget allocate",
    "lading.compaction": "Arrival Compaction Draft Past Pressure Strategy",
    "lading.economics": "Rates Usage edit_price",
    "lading.engine": "Engine reopen",
    "lading.errors": "AddressError ModelError PackError SourceError StoreFormatError SummaryFailed TamperedError "
    "UnknownName Violation WireError",
    "lading.events": "Compacted CompactionApplied ContextSynthesized Event Forked LoopDetected ModelChanged "
    "NoProgress PackingFailed Repaired ReplyLost Restored RuleBroken StrategyOverruled SummaryRejected "
    "ToolsLeftOut ToolsReduced UnknownModel Unpacked UsageDoubted UsageMissing",
    "lading.messages": "Conversation Opaque Reasoning",
    "lading.models.catalog": "load_cards",
    "lading.settings": "Settings settings_for",
    "lading.stores": "SessionStore",
    "lading.wire": "Wire check encode find_wire",
    "lading.wire.checking": "Rule",
}
"""The names that left ``lading``, by their new home."""
NAMES = {f"lading.{name}": home for home, names in HOMES.items() for name in names.split()} | {
    "lading.session.Session": "lading"
}
MODULES = {
    "lading.compaction.aether_frame": "lading.presets.aether_frame",
    "lading.compaction.agentrail": "lading.presets.agentrail",
    "lading.compaction.open_multi_agent": "lading.presets.open_multi_agent",
    "lading.compaction.reactive_agents": "lading.presets.reactive_agents",
    "lading.loops": "lading.session.loop_detection",
    "lading.providers": "lading.presets.agentrail",
}
"""Modules that documents named, with all modules inside, by their old name."""


def old_name(module: str, name: str) -> Any:
    """Find what left this module, and warn who asked for it. Raises AttributeError for another name."""
    old = f"{module}.{name}"
    if old in MODULES:
        found, now = importlib.import_module(MODULES[old]), f"import {MODULES[old]}"
    elif old in NAMES:
        found, now = getattr(importlib.import_module(NAMES[old]), name), f"from {NAMES[old]} import {name}"
    else:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    _warn(old, now, stacklevel=4)
    return found


def new_module(old: str) -> str | None:
    """Return the name that a module has now; None where it did not move."""
    parents = [old, old.rpartition(".")[0], old.rpartition(".")[0].rpartition(".")[0]]
    parent = next((name for name in parents if name in MODULES), None)
    return None if parent is None else MODULES[parent] + old.removeprefix(parent)


class _OldModules:
    """Finds modules under their old names. The last finder: it is asked for what no other finds."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:  # noqa: ARG002
        # No importlib.abc.Loader: importing that takes half as long as importing Lading.
        return ModuleSpec(name, self, is_package=True) if new_module(name) else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Have a plain module made."""

    def exec_module(self, module: ModuleType) -> None:
        new = new_module(module.__name__) or ""
        # Not the module itself: modules inside it would be found by their path, and loaded twice.
        home = importlib.import_module(new)
        names = getattr(home, "__all__", [name for name in dir(home) if not name.startswith("_")])
        vars(module).update(__getattr__=partial(getattr, home), __dir__=partial(dir, home), __all__=names)
        _warn(module.__name__, f"import {new}", stacklevel=3)


def _warn(old: str, now: str, *, stacklevel: int) -> None:
    warnings.warn(f"{old} has moved: {now}", DeprecationWarning, stacklevel=stacklevel)


sys.meta_path.append(_OldModules())

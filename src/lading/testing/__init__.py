"""Fakes for tests of agents: a strict local provider, scripted models, and a task for them; the contract of memory
stores.

Calls, results and what was issued are read by code of its own, so that no fault of ``wire/`` hides there; the other
rules are those of ``wire/``. Knows no session. Start with ``provider.py``."""

from __future__ import annotations

from lading.testing.answers import Answer, Fault, Issue, Request
from lading.testing.needle import NeedleTask
from lading.testing.prompt_cache import Scale
from lading.testing.provider import StrictProvider
from lading.testing.record_folding import RecordFoldingContract
from lading.testing.record_store import RecordStoreContract
from lading.testing.script import FakeModel, Passage, Say, Script, Seen, Use

__all__ = [
    "Answer",
    "FakeModel",
    "Fault",
    "Issue",
    "NeedleTask",
    "Passage",
    "RecordFoldingContract",
    "RecordStoreContract",
    "Request",
    "Say",
    "Scale",
    "Script",
    "Seen",
    "StrictProvider",
    "Use",
]

"""The public contract of memory stores, run by each form of the engine in SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading.memory.sqlite_store import open_records
from lading.memory.store import MemoryLimits, RecordStore
from lading.testing import RecordFoldingContract, RecordStoreContract


class TestWithFts5(RecordStoreContract):
    def open_records(self, folder: Path, limits: MemoryLimits) -> RecordStore:
        return open_records(folder, limits=limits, durability="off", with_fts5=True)


class TestWithoutFts5(RecordStoreContract):
    def open_records(self, folder: Path, limits: MemoryLimits) -> RecordStore:
        return open_records(folder, limits=limits, durability="off", with_fts5=False)


class TestInMemory(RecordStoreContract):
    is_shared = False

    def open_records(self, folder: Path, limits: MemoryLimits) -> RecordStore:  # noqa: ARG002
        return open_records(None, limits=limits)


class TestWithoutNumpy(RecordStoreContract):
    @pytest.fixture(autouse=True)
    def _without_numpy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("lading.memory.vectors.has_numpy", lambda: False)

    def open_records(self, folder: Path, limits: MemoryLimits) -> RecordStore:
        return open_records(folder, limits=limits, durability="off")


class TestFoldingWithFts5(RecordFoldingContract):
    def open_records(self, folder: Path, limits: MemoryLimits) -> RecordStore:
        return open_records(folder, limits=limits, durability="off", with_fts5=True)


class TestFoldingWithoutFts5(RecordFoldingContract):
    def open_records(self, folder: Path, limits: MemoryLimits) -> RecordStore:
        return open_records(folder, limits=limits, durability="off", with_fts5=False)

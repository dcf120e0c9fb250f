"""Namespaces at the command line: the options that name them, and which of a memory's they match."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import click
from msgspec import Struct

from lading.cli import terminal
from lading.errors import InputError
from lading.memory.folder_state import STATE_AGENT
from lading.memory.records import Namespace
from lading.memory.sqlite_store import SqliteRecordStore, open_records


class NamespaceFilter(Struct, frozen=True):
    """The namespaces that a command is about; an empty name matches all."""

    tenant: str
    user: str
    agent: str
    session: str

    def find(self, store: SqliteRecordStore) -> list[Namespace]:
        """List the matching namespaces that have records, without those of the states of folders unless their agent
        is named. Raises InputError for none."""
        known = [place for place in store.list_namespaces() if place.agent != STATE_AGENT or self.agent]
        found = [
            place
            for place in known
            if all(getattr(self, name) in ("", getattr(place, name)) for name in self.__struct_fields__)
        ]
        if not found:
            has = f"it has those of {', '.join(map(format_namespace, known[:8]))}" if known else "it is empty"
            raise InputError(f"The memory has no records of that namespace: {has}.")
        return found


def namespace_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name namespaces."""
    for name in ("session", "agent", "user", "tenant"):
        option = click.option(f"--{name}", default="", metavar="NAME", help=f"Records of this {name} only.")
        function = option(function)
    return function


@contextmanager
def open_memory_of(folder: str) -> Iterator[SqliteRecordStore]:
    """Open the existing memory of a folder, and report errors."""
    with terminal.report_errors(), closing(open_records(folder, create=False)) as store:
        yield store


def format_namespace(place: Namespace) -> str:
    """Format a namespace: its tenant, and the names that it has."""
    names = [f"{name} {getattr(place, name)}" for name in ("user", "agent", "session") if getattr(place, name)]
    return " ".join([place.tenant, *names])

"""Hosts that serve models of others: dialects as data, in ``hosts.toml``."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lading.models.card import Card, Conduct, Prices
from lading.structs import convert


class Host(Struct, frozen=True, forbid_unknown_fields=True):
    """A host, and what differs with it from a model's card."""

    name: str
    pattern: str
    """Of the names of models that it serves, in lower case."""
    source: str
    """Where that is known from."""
    conduct: dict[str, Any] = {}
    """Fields of the card's ``Conduct``."""
    is_local: bool = False
    """Whether it runs on the user's machine: no prices, the tier local."""


@cache
def list_hosts() -> tuple[Host, ...]:
    """Return the hosts of the table, read once."""
    table = tomllib.loads(Path(__file__).with_name("hosts.toml").read_text(encoding="utf-8"))
    return tuple(convert(table["host"], list[Host]))


@cache
def find_host(model: str) -> Host | None:
    """Return the host that a model's name tells; None for the provider itself."""
    name = model.strip().lower()
    return next((host for host in list_hosts() if re.search(host.pattern, name)), None)


def apply_host(card: Card, model: str) -> Card:
    """Return the card of a model as the host that its name tells serves it."""
    host = find_host(model)
    if host is None:
        return card
    fields = msgspec.to_builtins(card.conduct) | host.conduct
    # The provider's own name is no host.
    named = {} if host.name == card.provider else {"host": host.name}
    served = replace(card, conduct=convert(fields | named, Conduct))
    return replace(served, tier="local", prices=Prices(0.0)) if host.is_local else served

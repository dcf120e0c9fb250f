"""Writes the README's list of providers from the wires and the model cards: ``python -m scripts.providers``."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from lading.models.catalog import list_cards
from lading.wire import WIRES, find_wire

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"(?<=<!-- providers: make providers -->\n)(.*?)(?=<!-- providers end -->)", re.DOTALL)


def main() -> int:
    """Write the list into the README. Returns the exit code."""
    README.write_text(BLOCK.sub(lambda _: listed(), README.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def listed() -> str:
    """The list: each provider format with its rules, and the providers of the model cards."""
    return "\n".join([*_list_formats(), "", _list_cards(), ""])


def _list_formats() -> Iterator[str]:
    yield "| provider format (`wire`) | rules checked on each request | of them confirmed |"
    yield "|---|---|---|"
    for name in WIRES:
        rules = find_wire(name).rules
        yield f"| {_find_title(name)} (`{name}`) | {len(rules)} | {sum(rule.verified for rule in rules)} |"


def _find_title(name: str) -> str:
    """What the module of a format says of itself: ``The provider format of X.``"""
    module = import_module(WIRES[name].partition(":")[0])
    found = re.match(r"The provider format of ([^.:]+)", module.__doc__ or "")
    return found[1] if found else name


def _list_cards() -> str:
    cards = list_cards()
    counts = Counter(card.provider for card in cards)
    shown = ", ".join(f"{provider} {number}" for provider, number in sorted(counts.items()))
    return f"{len(cards)} model cards with dated prices: {shown}."


if __name__ == "__main__":
    sys.exit(main())

"""What the judge costs: the check of a body of 1 MB, and what is new in a request that is built already."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice

from msgspec.structs import replace

from bench.figures import Figure, below
from bench.histories import head, rounds
from bench.warm_pack import TOOLS, grow, make_settings, time_packs
from lading.history.view import View, append_message
from lading.jsonbytes import dump
from lading.messages import Conversation, Message, Template
from lading.models.card import Card
from lading.models.catalog import find_card
from lading.request.builder import RequestBuilder
from lading.stores.memory import MemoryStore
from lading.wire import WIRES, check, encode, find_wire

BODY_BYTES = 1_000_000
LINES = 40
TIMES = 15
BLOCKS = 100
"""New calls and results that are encoded one pair at a time."""
LOG_TOKENS, WINDOW = 50_000, 200_000
LARGE = 100_000
"""The number of the first new round."""
MODELS = {"anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro"}


def run() -> list[Figure]:
    """On each format: a whole check, a new message, and a warm pack beside the fastest."""
    packs = {wire: _time_pack(wire) for wire in WIRES}
    fastest = min(packs.values())
    figures = [figure for wire in WIRES for figure in _measure(wire)]
    for wire, median in packs.items():
        figures.append(
            below(f"{wire}: warm pack p50 {median:.2f} ms, by the fastest", median / fastest, 1.3, unit="x")
        )
    return figures


def _measure(wire: str) -> Iterator[Figure]:
    history = _history()
    body = encode(Conversation(tuple(history), TOOLS, "", _fields(wire)), find_wire(wire), card=_card(wire))
    size = len(dump(body))
    assert not check(body, find_wire(wire), card=_card(wire), strict=True)
    taken = _median(lambda: check(body, find_wire(wire), card=_card(wire), strict=True))
    what = f"{wire}: check of a body of {size / 1e6:.2f} MB, {len(history):,} messages"
    yield below(what, taken, 15, unit="ms CPU")
    yield below(
        f"{wire}: a new call and its result encoded and checked in a cached request",
        _time_new(wire),
        0.2,
        unit="ms CPU",
    )


def _history() -> list[Message]:
    """Rounds of one call and its result of 100 lines, about 6 kB each, up to the size."""
    messages, size = head(), 0
    for pair in rounds(lines=100):
        messages += pair
        size += sum(len(result.text) for result in pair[1].results)
        if size > BODY_BYTES:
            break
    return messages


def _time_new(wire: str) -> float:
    """Median milliseconds of CPU until a new call and its result are encoded, digested and checked."""
    builder, view = RequestBuilder(find_wire(wire), _card(wire)), View()
    for message in _history():
        append_message(view, message, entry=len(view), tokens=1)
    _show(builder, view, wire)
    times: list[float] = []
    gc.collect()
    for pair in islice(rounds(first=LARGE, lines=LINES), BLOCKS):
        for message in pair:
            append_message(view, message, entry=len(view), tokens=1)
        started = time.process_time()
        _show(builder, view, wire)
        times.append((time.process_time() - started) * 1000)
    return statistics.median(times)


def _show(builder: RequestBuilder, view: View, wire: str) -> None:
    builder.open(view, tools=TOOLS, tools_tokens=0, template=_fields(wire))
    builder.show(view)
    builder.violations()


def _time_pack(wire: str) -> float:
    settings = replace(make_settings(WINDOW, "priced"), wire=wire, card=_card(wire))
    engine, number = grow(MemoryStore(), LOG_TOKENS, settings)
    times = time_packs(engine, number)
    return times[len(times) // 2]


def _card(wire: str) -> Card:
    return find_card(MODELS.get(wire, "gpt-4o"))[0]


def _fields(wire: str) -> Template:
    return {"model": MODELS.get(wire, "gpt-4o"), **({"max_tokens": 8_000} if wire == "anthropic" else {})}


def _median(function: Callable[[], object]) -> float:
    """Median milliseconds of CPU of a call."""
    times: list[float] = []
    gc.collect()
    for _ in range(TIMES):
        started = time.process_time()
        function()
        times.append((time.process_time() - started) * 1000)
    return statistics.median(times)

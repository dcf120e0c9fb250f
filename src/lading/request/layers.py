"""The layers of a request as data: their messages, how far they can shrink, and advice where they cannot.

To add a layer, add a line to ``LAYERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from lading.errors import WindowExceeded
from lading.history.view import View
from lading.request.manifest import totals


class Layer(Struct, frozen=True):
    """One layer of a request."""

    name: str
    advice: str
    """Advice to the caller where it is too large."""
    floor: float
    """Share of it that no compaction can remove."""
    end: Callable[[View, int], int] | None = None
    """Finds the end of its messages from their start; None: the layer is not in the view."""


def _end_of_system(view: View, start: int) -> int:
    items = view.items
    return next((at for at in range(start, len(items)) if items[at].message.role != "system"), len(items))


LAYERS: tuple[Layer, ...] = (
    Layer("system", "Shorten the system prompt", 1.0, _end_of_system),
    Layer("tools", "Offer fewer tools", 1.0),
    Layer("front", "Shorten the text before the history", 1.0),
    Layer(
        "conversation",
        "The first messages, the newest call and its results, what must stay with them, and messages since a "
        "change of the tools cannot be removed. Shorten the newest message or the task",
        0.0,
        lambda view, _start: len(view.items),
    ),
    Layer("tail", "Shorten the tail", 1.0),
)
"""The layers in order."""


def layer_counts(
    view: View, *, beside: Mapping[str, int], room_tokens: int, items: int | None = None
) -> dict[str, int]:
    """Count the tokens by layer of the request that shows this view, or its first ``items``; ``beside``: those of
    layers that are not in the view."""
    counts, start, before = dict[str, int](), 0, 0
    shown = len(view.items) if items is None else items
    for layer in LAYERS:
        if layer.end:
            start = layer.end(view, start)
            upto = view.tokens_before(min(start, shown))
            counts[layer.name], before = upto - before, upto
        elif layer.name in beside:
            counts[layer.name] = beside[layer.name]
    return {**counts, "slack": room_tokens - totals(counts)}


def make_window_error(
    counts: dict[str, int], room: int, *, strategy: str, is_least: bool = False
) -> WindowExceeded:
    """Make the error that names the layer that cannot shrink, with advice. ``is_least``: these counts are
    those of a part of the request, which exceeds the room by itself."""
    layers = [layer for layer in LAYERS if layer.name in counts]
    floors = {layer: layer.floor * counts[layer.name] for layer in layers}
    is_fixed = sum(floors.values()) > room
    layer = max(floors, key=floors.__getitem__) if is_fixed else min(layers, key=lambda layer: layer.floor)
    advice = layer.advice
    if strategy == "append-only" and not is_fixed:
        advice = "The strategy append-only never shortens the history; choose another"
    return WindowExceeded(
        f"The request needs {'at least ' if is_least else ''}{totals(counts):,} tokens and has room for {room:,} "
        f"({', '.join(f'{layer.name} {counts[layer.name]:,}' for layer in layers)}). "
        f"{advice}, or use a model with a larger window.",
        layer=layer.name,
        counts=counts,
        room=room,
    )

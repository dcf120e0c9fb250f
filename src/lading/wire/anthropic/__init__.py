"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import is_

from msgspec import Struct
from msgspec.structs import replace

from lading.history.repair import Needs, Repair, Standing
from lading.history.validity import Invariant, OpenLoopWhole
from lading.messages import Message, Opaque, Template, ToolResult
from lading.models.card import Card
from lading.wire import Wire, alternation
from lading.wire.anthropic.decoding import NAME, decode
from lading.wire.anthropic.encoding import encode_group, envelope
from lading.wire.anthropic.grouping import in_list, joins, leading
from lading.wire.anthropic.parts import PARTS
from lading.wire.anthropic.replies import REPLIES
from lading.wire.anthropic.rules import RULES, walk
from lading.wire.anthropic.walking import SERVER_CALLS, is_server_result
from lading.wire.translation import type_of


class SystemFollowsItsTurn(Struct, frozen=True):
    """A system message of the list leaves with the turn it follows (rule A4)."""

    name: str = "system_follows_its_turn"

    def forbidden(self, messages: Sequence[Message]) -> Iterator[int]:
        """Every position at which such a message stands."""
        yield from (position for position, message in enumerate(messages) if in_list(message))


def invariants(card: Card) -> tuple[Invariant, ...]:
    """A running tool loop with signed reasoning stays whole, and so do a turn and the system message after it."""
    del card
    return (OpenLoopWhole(), SystemFollowsItsTurn())


def needs(card: Card) -> Needs:
    """Alternation where the dialect demands it; no empty text (A11), plain ids and names (A10), system messages
    where the model takes them (A4), results first (A7), prefill without whitespace at its end (A12, A13)."""
    plain = r"[A-Za-z0-9_-]+"
    return replace(
        alternation(card),
        mends=(partial(_placed, card), _results_first),
        continues=partial(_continues, card),
        no_trailing_space=True,
        no_empty_texts=True,
        call_id=plain,
        tool_name=plain,
    )


def _placed(card: Card, message: Message, standing: Standing) -> tuple[Message, Sequence[Repair]]:
    """A system message of the list stays where the model takes one; elsewhere it is written like any other."""
    last = standing.last
    follows_system = last is not None and in_list(last)
    if follows_system and message.role == "user":
        return message, (Repair("system_place", "the system message before a user message is the user's"),)
    follows_user = last is not None and last.role in ("user", "tool")
    if not in_list(message) or (card.conduct.mid_system and (follows_user or _paused(last))):
        return message, ()
    repair = Repair("system_place", "the model takes no system message here")
    return replace(message, origin="", template=None), (repair,)


def _results_first(message: Message, standing: Standing) -> tuple[Message, Sequence[Repair]]:
    del standing
    others = [part for part in message.parts if not isinstance(part, ToolResult)]
    parts = (*message.results, *others)
    if message.role != "user" or all(map(is_, parts, message.parts)):
        return message, ()
    return message.with_parts(parts), (Repair("results_first", "tool results are put before the other parts"),)


def _continues(card: Card, last: Message, fields: Template) -> bool:
    """A paused turn goes on everywhere; else the model takes prefill, and no thinking is asked for with it."""
    thinking = fields.get("thinking")
    thinks = isinstance(thinking, dict) and thinking.get("type") != "disabled"
    return _paused(last) or (card.conduct.prefill and not thinks)


def _paused(message: Message | None) -> bool:
    """Whether it is an assistant message that ends in a server tool's call or result."""
    if message is None or message.role != "assistant" or not message.parts:
        return False
    last = message.parts[-1]
    kind = type_of(last) if isinstance(last, Opaque) else ""
    return kind in SERVER_CALLS or is_server_result(kind)


WIRE = Wire(
    name=NAME,
    decode=decode,
    envelope=envelope,
    leading=leading,
    joins=joins,
    encode_group=encode_group,
    walk=walk,
    rules=RULES,
    needs=needs,
    parts=PARTS,
    invariants=invariants,
    replies=REPLIES,
)

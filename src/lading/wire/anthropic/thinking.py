"""Thinking that breaks a rule: of several responses in one message (A15), missing in a running tool loop (A14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from lading.history.repair_rules import Placement, Repair
from lading.messages import Message, Part, Reasoning, Template, Text
from lading.models.card import Card
from lading.wire.anthropic.decoding import NAME
from lading.wire.anthropic.encoding import encode_group, is_in_list
from lading.wire.anthropic.state import THINKING, read_message
from lading.wire.reasoning import write_shown

_SPLICED = Repair("reasoning_left_out", "thinking that other thinking follows without a call between is left out")


def find_unsuited(fields: Template, newest_first: Iterable[Message], *, card: Card) -> Mapping[str, str]:
    """Return enabled thinking, and the clearing of thinking, for a running tool loop that did not start with it."""
    thinking = fields.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return {}
    replies = _list_replies_of_loop(newest_first)
    if not any(message.calls for message in replies) or _starts_with_thinking(replies[-1], card):
        return {}
    why = "the running tool loop began without thinking"
    clears = "clear_thinking" in str(fields.get("context_management"))
    return {"thinking": why} | ({"context_management": why} if clears else {})


def _list_replies_of_loop(newest_first: Iterable[Message]) -> list[Message]:
    """List the replies since the last turn of the user without tool results, newest first."""
    replies: list[Message] = []
    turn: list[Message] = []
    for message in newest_first:
        if message.role == "assistant":
            if turn and not any(said.results for said in turn):
                break
            replies.append(message)
            turn = []
        elif not is_in_list(message):
            turn.append(message)  # Other system messages are written as the user's.
    return replies


def _starts_with_thinking(reply: Message, card: Card) -> bool:
    blocks = read_message("reply", encode_group([write_shown(reply, NAME)], card)[0]).blocks
    return bool(blocks) and blocks[0].kind in THINKING


def leave_out_spliced(message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    """Leave out thinking of a reply that other thinking follows without a call between them: the provider takes it
    for a changed response, and an answer that was merged of several streamed responses is one. What is kept goes in
    front of the texts, because a running tool loop begins with thinking. A reply as it was issued stays."""
    stays = placement.is_issued or message.role != "assistant" or message.origin != NAME
    if stays or sum(map(_is_thinking, message.parts)) < 2:
        return message, ()
    parts = tuple(
        part
        for is_said, said in groupby(message.parts, lambda part: isinstance(part, Text | Reasoning))
        for part in (_keep_last_thinking([*said]) if is_said else said)
    )
    return (message, ()) if len(parts) == len(message.parts) else (message.with_parts(parts), (_SPLICED,))


def _keep_last_thinking(parts: list[Part]) -> list[Part]:
    """Return texts and thinking with the last thinking alone, in front; unchanged if there is no other. Redacted
    blocks belong to the thinking beside them."""
    kept: list[Part] = []
    last = 0
    for at, part in enumerate(parts):
        if _is_thinking(part):
            follows = at == last + len(kept) and not (_is_readable(part) and any(map(_is_readable, kept)))
            kept, last = ([*kept, part], last) if kept and follows else ([part], at)
    others = [part for part in parts if not _is_thinking(part)]
    return parts if len(kept) + len(others) == len(parts) else [*kept, *others]


def _is_thinking(part: Part) -> bool:
    return isinstance(part, Reasoning) and not part.is_shown and bool(part.signature or part.data)


def _is_readable(part: Part) -> bool:
    return isinstance(part, Reasoning) and not part.data

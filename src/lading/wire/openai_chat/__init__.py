"""OpenAI's Chat Completions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from lading.history.repair import Needs, Repair, Standing
from lading.history.validity import Invariant
from lading.messages import Message, Template
from lading.models.card import Card
from lading.wire import Wire, alternation
from lading.wire.openai_chat.decoding import NAME, decode
from lading.wire.openai_chat.encoding import encode_group, envelope
from lading.wire.openai_chat.grouping import joins, leading
from lading.wire.openai_chat.parts import PARTS
from lading.wire.openai_chat.replies import REPLIES
from lading.wire.openai_chat.rules import RULES, walk


def invariants(card: Card) -> tuple[Invariant, ...]:
    """None beyond those of every wire: reasoning stands on the message it belongs to and leaves with it."""
    del card
    return ()


def needs(card: Card) -> Needs:
    """Alternation where the dialect demands it, ids of at most 40 characters (C7), plain tool names (C8)."""
    return replace(
        alternation(card),
        mends=(_without_empty_fields,),
        continues=partial(_continues, card),
        may_stay_open=_is_old_style,
        call_id=r"(?s:.){1,40}",
        tool_name=r"[A-Za-z0-9_-]{1,64}",
    )


def _is_old_style(message: Message) -> bool:
    """Whether its call is a ``function_call``, which a user may leave without an answer."""
    return message.origin == NAME and (message.template or {}).get("function_call") == "call"


def _without_empty_fields(message: Message, standing: Standing) -> tuple[Message, Sequence[Repair]]:
    """An empty ``tool_calls`` is dropped (C5), and a tool message without content has an empty one (C6)."""
    del standing
    template = message.template if message.origin == NAME and message.template else {}
    fields = {key: code for key, code in template.items() if (key, code) != ("tool_calls", "empty_list")}
    empty = template.get("role") == "tool" and not any(result.parts for result in message.results)
    if empty and template.get("content") != "empty":
        fields["content"] = "empty"
    if fields == template:
        return message, ()
    return replace(message, template=fields), (
        Repair("empty_field", "an empty field is written as the wire takes it"),
    )


def _continues(card: Card, last: Message, fields: Template) -> bool:
    """The card says so, or the request does in the words of a host: DeepSeek and Mistral (``prefix``), Moonshot and
    Qwen (``partial``), vLLM (``continue_final_message``)."""
    asked = any((last.template or {}).get(key) is True for key in ("prefix", "partial"))
    return card.conduct.prefill or asked or fields.get("continue_final_message") is True


WIRE = Wire(
    name=NAME,
    decode=decode,
    envelope=envelope,
    leading=leading,
    joins=joins,
    encode_group=encode_group,
    walk=walk,
    rules=RULES,
    invariants=invariants,
    replies=REPLIES,
    needs=needs,
    parts=PARTS,
)

"""Customer dialogues: a few thousand tokens in which nearly every value is named again."""

from __future__ import annotations

import json
from random import Random

import pytest

from lading.messages import Message, ToolCall, tool_result, user_text
from tests import engines
from tests.engines import packs, run
from tests.examples import quick_first
from tests.histories import said

TOPICS = ("a refund", "the delivery date", "another address", "the invoice", "an exchange")


def asked(random: Random, tool: str, arguments: dict[str, object], answer: dict[str, object]) -> list[Message]:
    """A call of a tool and its answer."""
    call = ToolCall(f"call_{random.randrange(10**9)}", tool, json.dumps(arguments))
    return [Message("assistant", (call,)), tool_result(call.id, json.dumps(answer))]


def order_of(random: Random) -> dict[str, object]:
    """An order as a shop's system shows it."""
    items = [
        {
            "sku": f"SKU-{random.randrange(10**6)}",
            "name": "A thing for the house",
            "price": random.randrange(100, 900),
        }
        for _ in range(random.randrange(2, 6))
    ]
    payment = {"id": f"credit_card_{random.randrange(10**7)}", "amount": f"{random.randrange(10**5) / 100:.2f}"}
    address = {
        "street": f"{random.randrange(999)} Pine Lane",
        "city": "Houston",
        "zip": str(random.randrange(10**5)),
    }
    return {
        "id": f"W{random.randrange(10**7)}",
        "status": "sent",
        "items": items,
        "ship_to": address,
        "paid": payment,
    }


def dialogue(seed: int, orders: int) -> tuple[list[Message], list[str]]:
    """A dialogue on some orders, and the amounts and ids of payments that were named in it."""
    random = Random(seed)
    history, named = [user_text("Hello, I have questions on my orders.")], []
    for _ in range(orders):
        order = order_of(random)
        payment = order["paid"]
        assert isinstance(payment, dict)
        history += [
            said("Which order is it?"),
            user_text(f"{order['id']}, please. It is about {random.choice(TOPICS)}."),
        ]
        history += asked(random, "get_order", {"order_id": order["id"]}, order)
        refund = {"refund_id": f"re_{random.randrange(10**8)}", "approved": random.random() < 0.5}
        history += [
            said(f"You paid {payment['amount']} with {payment['id']}. Shall I send it back there?"),
            user_text(random.choice(["Yes, please.", "Yes, but tell me when it arrives.", "Fine, do it."])),
            *asked(random, "refund", {"order_id": order["id"], "payment_id": payment["id"]}, refund),
            said(f"Done: {payment['amount']} goes back to {payment['id']} as {refund['refund_id']}."),
        ]
        named += [payment["amount"], payment["id"], refund["refund_id"]]
    return [*history, user_text("Now sum it all up for me.")], named


@pytest.mark.parametrize("seed", quick_first(range(12), 2))
@pytest.mark.parametrize("orders", [16, 18])
def test_a_short_dialogue_keeps_every_amount_and_payment_that_was_named(seed: int, orders: int) -> None:
    history, named = dialogue(seed, orders)
    engine, outcomes = run(engines.settings(8_000, strategy="priced"), history)
    text = packs(outcomes)[-1].body.decode()
    assert any(edit.kind == "summarised" for edit in engine.history.edits)
    assert [value for value in named if value not in text] == []

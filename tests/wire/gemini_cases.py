"""Legal and illegal generateContent bodies, by rule."""

from __future__ import annotations

from typing import Any

from lading.models.card import Card, Conduct, Limits, Prices, TokenFacts

Body = dict[str, Any]


def card(**conduct: Any) -> Card:
    return Card(
        name="m",
        provider="google",
        tier="large",
        limits=Limits(200_000, 8_000),
        tokens=TokenFacts("o200k"),
        prices=Prices(1.0),
        conduct=Conduct(**{"dialect": "strict", **conduct}),
    )


PLAIN = card()
SIGNING = card(reasoning_echo="signed")
LENIENT = card(dialect="first_party")


def content(role: str, *parts: Any) -> Body:
    return {"role": role, "parts": list(parts)}


def text(words: str = "hi", **more: Any) -> Body:
    return {"text": words, **more}


def call(name: str = "read", *, signature: str = "", **more: Any) -> Body:
    part: Body = {"functionCall": {"name": name, "args": {"path": "a"}, **more}}
    return part | ({"thoughtSignature": signature} if signature else {})


def answer(name: str = "read", **more: Any) -> Body:
    return {"functionResponse": {"name": name, "response": {"output": "ok"}, **more}}


def body(*contents: Any, **fields: Any) -> Body:
    return {"contents": list(contents), **fields}


USER, MODEL = content("user", text()), content("model", text("Yes."))
ASKS, ANSWERS = content("model", call()), content("user", answer())

LEGAL: dict[str, dict[str, tuple[Body, Card]]] = {
    "G1": {"a call after a text": (body(USER, content("model", text(), call()), ANSWERS), PLAIN)},
    "G2": {"a loop": (body(USER, ASKS, ANSWERS, ASKS, ANSWERS), PLAIN)},
    "G3": {
        "parallel calls": (
            body(USER, content("model", call(), call("b")), content("user", answer(), answer("b"))),
            PLAIN,
        ),
        "calls in chunks": (body(USER, MODEL, content("model", call()), ANSWERS), LENIENT),
        "beside an image": (
            body(
                USER,
                ASKS,
                content("user", answer(), {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
            ),
            PLAIN,
        ),
    },
    "G4": {"no role": (body({"parts": [text()]}), PLAIN)},
    "G5": {
        "an empty text with a signature": (
            body(USER, content("model", text("", thoughtSignature="cw==")), USER),
            PLAIN,
        ),
        "parts of the provider's own": (
            body(USER, content("model", {"executableCode": {"language": "PYTHON", "code": "1"}}), USER),
            PLAIN,
        ),
        "snake case": (
            body(
                USER,
                content("model", {"function_call": {"name": "a"}}),
                content("user", {"function_response": {"name": "a", "response": {}}}),
            ),
            LENIENT,
        ),
    },
    "G6": {"prefill of a lenient endpoint": (body(USER, MODEL), LENIENT)},
    "G7": {"two of one role on a lenient endpoint": (body(USER, USER), LENIENT)},
    "G8": {
        "the first of parallel calls is signed": (
            body(
                USER,
                content("model", call(signature="cw=="), call("b")),
                content("user", answer(), answer("b")),
            ),
            SIGNING,
        ),
        "an older turn": (body(USER, ASKS, ANSWERS, MODEL, USER), SIGNING),
        "a card that does not sign": (body(USER, ASKS, ANSWERS), PLAIN),
    },
    "G11": {
        "ids": (
            body(
                USER,
                content("model", call(id="1"), call(id="2")),
                content("user", answer(id="2"), answer(id="1")),
            ),
            PLAIN,
        ),
        "a response without the id": (body(USER, content("model", call(id="1")), ANSWERS), PLAIN),
    },
    "G13": {"an instruction": (body(USER, systemInstruction={"parts": [text()]}, tools=[]), PLAIN)},
    "G14": {
        "a call without arguments": (
            body(USER, content("model", {"functionCall": {"name": "read"}}), ANSWERS),
            PLAIN,
        )
    },
}

ILLEGAL: dict[str, dict[str, tuple[Body, Card]]] = {
    "G1": {
        "first": (body(ASKS, ANSWERS), PLAIN),
        "of the user": (body(content("user", call()), ANSWERS), PLAIN),
    },
    "G2": {
        "without calls": (body(USER, MODEL, ANSWERS), PLAIN),
        "again": (body(USER, ASKS, ANSWERS, ANSWERS), PLAIN),
        "of the model": (body(USER, content("model", answer()), USER), PLAIN),
    },
    "G3": {
        "too few": (body(USER, content("model", call(), call("b")), ANSWERS), PLAIN),
        "too many": (body(USER, ASKS, content("user", answer(), answer())), PLAIN),
        "none": (body(USER, ASKS, USER), PLAIN),
        "none at the end": (body(USER, ASKS), PLAIN),
        "in two contents": (
            body(USER, content("model", call(), call("b")), ANSWERS, content("user", answer("b"))),
            PLAIN,
        ),
    },
    "G4": {"assistant": (body(USER, content("assistant", text())), PLAIN)},
    "G5": {
        "no parts": (body(content("user")), PLAIN),
        "an empty part": (body(content("user", {})), PLAIN),
        "two kinds": (body(content("user", text() | answer())), PLAIN),
        "a number": (body(content("user", {"text": 1})), PLAIN),
    },
    "G6": {"the model is last": (body(USER, MODEL), PLAIN)},
    "G7": {"two of one role": (body(USER, USER), PLAIN)},
    "G8": {
        "unsigned": (body(USER, ASKS, ANSWERS), SIGNING),
        "the second step": (
            body(USER, content("model", call(signature="cw==")), ANSWERS, ASKS, ANSWERS),
            SIGNING,
        ),
        "only the second of two": (
            body(
                USER,
                content("model", call(), call("b", signature="cw==")),
                content("user", answer(), answer("b")),
            ),
            SIGNING,
        ),
    },
    "G11": {"another id": (body(USER, content("model", call(id="1")), content("user", answer(id="2"))), PLAIN)},
    "G13": {
        "no contents": (body(), PLAIN),
        "a text as instruction": (body(USER, systemInstruction="hi"), PLAIN),
        "tools are no list": (body(USER, tools={}), PLAIN),
        "a tool is no object": (body(USER, tools=[1]), PLAIN),
    },
    "G14": {
        "no name": (body(USER, content("model", call("")), content("user", answer("x"))), PLAIN),
        "no response": (body(USER, ASKS, content("user", {"functionResponse": {"name": "read"}})), PLAIN),
        "arguments are a text": (body(USER, content("model", call(args="{}")), ANSWERS), PLAIN),
    },
}

"""OpenAI's Responses: calls and outputs need not be neighbours, reasoning and what it led to must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.rule_tables.facts import Body, Known, Rule


def _items(body: Body) -> list[dict[str, Any]]:
    given = body["input"]
    listed = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return [{"type": "message", **item} for item in listed]


def _stored(body: Body) -> bool:
    return any(body.get(field) for field in ("previous_response_id", "conversation"))


def _r1(body: Body, _known: Known) -> Iterator[str]:
    asked: set[str] = set()
    for item in _items(body):
        if item["type"] in ("function_call", "custom_tool_call"):
            asked.add(item["call_id"])
        elif item["type"] in ("function_call_output", "custom_tool_call_output") and not _stored(body):
            yield from (item["call_id"] for _ in [0] if item["call_id"] not in asked)


def _r2(body: Body, _known: Known) -> Iterator[str]:
    items = _items(body)
    for kind in ("function_call", "custom_tool_call"):
        answered = {item["call_id"] for item in items if item["type"] == f"{kind}_output"}
        yield from (item["call_id"] for item in items if item["type"] == kind and item["call_id"] not in answered)


def _r3(body: Body, _known: Known) -> Iterator[str]:
    ids = Counter(item["id"] for item in _items(body) if item.get("id"))
    yield from (one for one, times in ids.items() if times > 1)


def _r4(body: Body, _known: Known) -> Iterator[str]:
    items = _items(body)
    for at, (item, after) in enumerate(zip(items, [*items[1:], {"type": "end"}], strict=True)):
        is_other = (
            after["type"] == "end"
            or after["type"].endswith("_output")
            or after.get("role", "assistant") != "assistant"
        )
        if item["type"] == "reasoning" and is_other:
            yield str(at)


def _r5(body: Body, known: Known) -> Iterator[str]:
    seen: set[str] = set()
    for item in _items(body):
        if item["type"] == "reasoning":
            seen |= {item.get("id", ""), known.issued.encrypted.get(item.get("encrypted_content") or "", "")}
        elif (needed := known.issued.led_to.get(item.get("id", ""))) and needed not in seen:
            yield item["id"]


def _r6(body: Body, known: Known) -> Iterator[str]:
    for item in _items(body):
        held = item.get("encrypted_content") if item["type"] == "reasoning" else None
        issued = known.issued.encrypted.get(held or "")
        if held and (issued is None or item.get("id", issued) != issued):
            yield held


def _r7(body: Body, _known: Known) -> Iterator[str]:
    for at, item in enumerate(_items(body) if body.get("store") is False else ()):
        if item["type"] == "item_reference" or (item["type"] == "reasoning" and not item.get("encrypted_content")):
            yield str(at)


def _r13(body: Body, _known: Known) -> Iterator[str]:
    asked: Counter[str] = Counter()
    for item in _items(body):
        if item["type"] in ("function_call", "custom_tool_call"):
            asked[item["call_id"]] = 1
        elif item["type"] in ("function_call_output", "custom_tool_call_output"):
            asked[item["call_id"]] -= 1
            yield from (item["call_id"] for _ in [0] if asked[item["call_id"]] == -1 and not _stored(body))


def _r14(body: Body, _known: Known) -> Iterator[str]:
    kinds = {"apply_patch_call", "computer_call", "shell_call", "tool_search_call"}
    named = [item for item in _items(body) if isinstance(item.get("call_id"), str)]
    calls = [(item["type"], item["call_id"]) for item in named if item["type"] in kinds]
    outputs = [
        (item["type"].replace("_output", ""), item["call_id"]) for item in named if "_output" in item["type"]
    ]
    answers = [(kind.replace("search", "search_call"), one) for kind, one in outputs]
    yield from (one for kind, one in calls if (kind, one) not in answers)
    yield from (one for kind, one in answers if kind in kinds and (kind, one) not in calls and not _stored(body))


RULES: dict[str, Rule] = {
    "R1": _r1,
    "R2": _r2,
    "R3": _r3,
    "R4": _r4,
    "R5": _r5,
    "R6": _r6,
    "R7": _r7,
    "R13": _r13,
    "R14": _r14,
}

"""OpenAI's Chat Completions: tool messages right after a message are its run."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.rule_tables.facts import Body, Known, Rule

NAME = re.compile("[a-zA-Z0-9_-]{1,64}")


def _runs(body: Body) -> Iterator[tuple[int, dict[str, Any], list[dict[str, Any]]]]:
    """Each message that is no tool's, with the tool messages right after it."""
    messages = body["messages"]
    for at, message in enumerate(messages):
        after: list[dict[str, Any]] = []
        for one in messages[at + 1 :]:
            if one["role"] != "tool":
                break
            after.append(one)
        if message["role"] != "tool":
            yield at, message, after


def _asked(message: Mapping[str, Any]) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or ()]


def _c1(body: Body, _known: Known) -> Iterator[str]:
    for at, message, after in _runs(body):
        if {*_asked(message)} - {one["tool_call_id"] for one in after}:
            yield str(at)


def _c2(body: Body, _known: Known) -> Iterator[str]:
    if body["messages"][0]["role"] == "tool":
        yield "0"
    yield from (str(at) for at, message, after in _runs(body) if after and not _asked(message))


def _c3(body: Body, _known: Known) -> Iterator[str]:
    for at, message, after in _runs(body):
        yield from (str(at) for one in after if one["tool_call_id"] not in _asked(message))


def _c4(body: Body, _known: Known) -> Iterator[str]:
    for at, _, after in _runs(body):
        if len({one["tool_call_id"] for one in after}) < len(after):
            yield str(at)


def _c5(body: Body, _known: Known) -> Iterator[str]:
    yield from (str(at) for at, message, _ in _runs(body) if message.get("tool_calls") == [])


def _c6(body: Body, _known: Known) -> Iterator[str]:
    for at, message in enumerate(body["messages"]):
        content = message.get("content")
        beside = any(message.get(field) for field in ("tool_calls", "refusal", "audio", "function_call"))
        may_lack = message["role"] == "function" or (message["role"] == "assistant" and beside)
        if content == [] or (content is None and not may_lack):
            yield str(at)


def _c7(body: Body, _known: Known) -> Iterator[str]:
    yield from (one for _, message, _ in _runs(body) for one in _asked(message) if not 0 < len(one) <= 40)


def _c8(body: Body, _known: Known) -> Iterator[str]:
    for at, message, _ in _runs(body):
        calls = [(call, call[call["type"]]) for call in message.get("tool_calls") or ()]
        texts = [one["input" if call["type"] == "custom" else "arguments"] for call, one in calls]
        is_odd = any(not NAME.fullmatch(one["name"]) for _, one in calls) or any(
            not isinstance(one, str) for one in texts
        )
        if is_odd or message["role"] not in ("system", "developer", "user", "assistant", "function"):
            yield str(at)


def _c9(body: Body, known: Known) -> Iterator[str]:
    for at, message, _ in _runs(body):
        wants = known.conduct.reasoning_echo == "reasoning_content" and message["role"] == "assistant"
        if wants and not isinstance(message.get("reasoning_content"), str):
            yield str(at)


def _c11(body: Body, known: Known) -> Iterator[str]:
    roles = [message["role"] for message in body["messages"]]
    if known.conduct.dialect not in ("chat_template", "strict"):
        return
    yield from (str(at) for at, role in enumerate(roles) if at and role in ("system", "developer"))
    said = [role for role in roles if role not in ("system", "developer")]
    sides = [role for role in said if role in ("user", "assistant")]
    for at, (before, role) in enumerate(itertools.pairwise(said)):
        if role == before == "user" or (role == "assistant" and before == "assistant"):
            yield f"{at} {role}"
    if sides[:1] != ["user"]:
        yield "first"


RULES: dict[str, Rule] = {
    "C1": _c1,
    "C2": _c2,
    "C3": _c3,
    "C4": _c4,
    "C5": _c5,
    "C6": _c6,
    "C7": _c7,
    "C8": _c8,
    "C9": _c9,
    "C11": _c11,
}

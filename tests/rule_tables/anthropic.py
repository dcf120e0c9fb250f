"""Anthropic's Messages: neighbours of one role are one turn, and a system message ends none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from tests.rule_tables.facts import Body, Known, Rule

ID = re.compile("[a-zA-Z0-9_-]+")
THINKING = ("thinking", "redacted_thinking")
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


class _Turn(Struct):
    role: str
    at: int
    blocks: list[dict[str, Any]] = []

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [block for block in self.blocks if block["type"] in kinds]


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]


def _turns(body: Body) -> list[_Turn]:
    turns: list[_Turn] = []
    for at, message in enumerate(body["messages"]):
        if message["role"] == "system":
            continue
        if not turns or turns[-1].role != message["role"]:
            turns.append(_Turn(message["role"], at))
        turns[-1].blocks.extend(_blocks(message["content"]))
    return turns


def _a1(body: Body, _known: Known) -> Iterator[str]:
    yield from (field for field in ("model", "max_tokens", "messages") if not body.get(field))


def _a2(body: Body, known: Known) -> Iterator[str]:
    if known.conduct.dialect in ("bedrock", "strict") and body["messages"][0]["role"] != "user":
        yield "0"


def _a3(body: Body, known: Known) -> Iterator[str]:
    said = [message["role"] for message in body["messages"] if message["role"] != "system"]
    if known.conduct.dialect in ("bedrock", "strict"):
        yield from (str(at) for at in range(1, len(said)) if said[at] == said[at - 1])


def _a4(body: Body, known: Known) -> Iterator[str]:
    before, blocks = "", list[dict[str, Any]]()
    for at, message in enumerate(body["messages"]):
        role = message["role"]
        is_hosted = before == "assistant" and _is_server(blocks[-1:])
        is_waiting = any(block["type"] == "tool_use" for block in blocks)
        is_placed = before == "user" or (is_hosted and not is_waiting)
        is_odd = role not in ("user", "assistant", "system") or (role == "user" and before == "system")
        if is_odd or (role == "system" and not (known.conduct.mid_system and is_placed)):
            yield str(at)
        before, blocks = role, _blocks(message["content"])


def _is_server(blocks: list[dict[str, Any]]) -> bool:
    return any(block["type"] == "server_tool_use" or block["type"].endswith("_tool_result") for block in blocks)


def _a5(body: Body, _known: Known) -> Iterator[str]:
    turns = _turns(body)
    for turn, after in zip(turns, [*turns[1:], _Turn("user", -1)], strict=True):
        answered = {block["tool_use_id"] for block in after.of("tool_result")}
        if turn.role == "assistant":
            yield from (block["id"] for block in turn.of("tool_use") if block["id"] not in answered)


def _a6(body: Body, _known: Known) -> Iterator[str]:
    turns = _turns(body)
    for before, turn in zip([_Turn("assistant", -1), *turns[:-1]], turns, strict=True):
        asked = {block["id"] for block in before.of("tool_use")} if turn.role == "user" else set()
        yield from (block["tool_use_id"] for block in turn.of("tool_result") if block["tool_use_id"] not in asked)


def _a7(body: Body, _known: Known) -> Iterator[str]:
    for turn in _turns(body):
        kinds = [block["type"] == "tool_result" for block in turn.blocks]
        if turn.role == "user" and kinds != sorted(kinds, reverse=True):
            yield str(turn.at)


def _a8(body: Body, _known: Known) -> Iterator[str]:
    blocks = [block for turn in _turns(body) for block in turn.blocks]
    for field, kind in (("id", "tool_use"), ("tool_use_id", "tool_result")):
        ids = Counter(block[field] for block in blocks if block["type"] == kind)
        yield from (one for one, times in ids.items() if times > 1)


def _a9(body: Body, _known: Known) -> Iterator[str]:
    waiting: set[str] = set()
    paused: set[str] = set()
    for turn in _turns(body):
        if turn.role == "user":
            yield from paused & waiting
        if turn.role == "user" and any(block["type"] != "tool_result" for block in turn.blocks):
            waiting = set()
        if turn.role == "assistant":
            calls_caller = any(turn.of("tool_use"))
            paused = set() if calls_caller else {block["id"] for block in turn.of(*SERVER_CALLS)}
        for block in turn.blocks if turn.role == "assistant" else ():
            if block["type"] in SERVER_CALLS:
                waiting.add(block["id"])
            elif block["type"].endswith("_tool_result"):
                if block["tool_use_id"] not in waiting:
                    yield block["tool_use_id"]
                waiting.discard(block["tool_use_id"])


def _a10(body: Body, _known: Known) -> Iterator[str]:
    for turn in _turns(body):
        for block in turn.of("tool_use", *SERVER_CALLS):
            if not ID.fullmatch(block["id"]) or not isinstance(block["input"], dict):
                yield block["id"]


def _a11(body: Body, _known: Known) -> Iterator[str]:
    for at, message in enumerate(body["messages"]):
        blocks = _blocks(message["content"])
        results = [block.get("content") for block in blocks if block["type"] == "tool_result"]
        # A result may be an empty string, but hold no empty block.
        inner = [one for content in results if isinstance(content, list) for one in _blocks(content)]
        is_last = at == len(body["messages"]) - 1 and message["role"] == "assistant"
        if is_last and message["content"] == "":
            continue
        if (not blocks and not is_last) or any(_is_blank(block) for block in (*blocks, *inner)):
            yield str(at)
    if any(_is_blank(block) for block in _blocks(body.get("system"))):
        yield "system"


def _is_blank(block: Mapping[str, Any]) -> bool:
    return block["type"] == "text" and not block["text"].strip()


def _a12(body: Body, _known: Known) -> Iterator[str]:
    blocks = _blocks(body["messages"][-1]["content"])
    if body["messages"][-1]["role"] == "assistant" and blocks and blocks[-1]["type"] == "text":
        yield from ("end" for _ in [0] if blocks[-1]["text"] != blocks[-1]["text"].rstrip())


def _a13(body: Body, known: Known) -> Iterator[str]:
    last = body["messages"][-1]
    blocks = _blocks(last["content"])
    is_continued = _is_server(blocks[-1:]) or any(block["type"] == "compaction" for block in blocks[-1:])
    has_thinking = any(block["type"] in THINKING for block in blocks)
    if last["role"] == "assistant" and not is_continued and (has_thinking or not known.conduct.prefill):
        yield "end"


def _loop(body: Body) -> list[_Turn]:
    """The turns after the last one in which the user says more than results."""
    turns = _turns(body)
    starts = [
        at
        for at, turn in enumerate(turns)
        if turn.role == "user" and len(turn.of("tool_result")) < len(turn.blocks)
    ]
    return turns[starts[-1] + 1 :] if starts else turns


def _thinks(body: Body) -> bool:
    return bool((body.get("thinking") or {}).get("type") == "enabled")


def _a14(body: Body, _known: Known) -> Iterator[str]:
    first = next((turn for turn in _loop(body) if turn.role == "assistant"), None)
    if _thinks(body) and first and first.blocks and first.blocks[0]["type"] not in THINKING:
        yield str(first.at)


def _spliced(turn: _Turn, known: Known) -> Iterator[str]:
    """The thinking of a turn that other thinking precedes, of another response, with nothing or text between."""
    before = ""
    for block in turn.blocks:
        together = (
            before in proofs and block.get("signature") in proofs for proofs in known.issued.thinking.values()
        )
        if block["type"] == "thinking" and before and not any(together):
            yield f"{before} and {block.get('signature')}"
        if block["type"] in THINKING:
            before = block.get("signature") or block.get("data") or ""
        elif block["type"] != "text":
            before = ""


def _a15(body: Body, known: Known) -> Iterator[str]:
    turns = [turn for turn in _loop(body) if turn.role == "assistant"] if _thinks(body) else []
    for turn in turns[-1:]:
        have = [block.get("signature") or block.get("data") for block in turn.of(*THINKING)]
        issued = {id_: known.issued.thinking.get(id_) for id_ in (block["id"] for block in turn.of("tool_use"))}
        yield from (id_ for id_, wanted in issued.items() if wanted is not None and not {*wanted} <= {*have})
        yield from _spliced(turn, known)


def _a16(body: Body, known: Known) -> Iterator[str]:
    for turn in _turns(body):
        for block in turn.of(*THINKING):
            proof = block.get("signature") or block.get("data") or ""
            if known.issued.signatures.get(proof) != block.get("thinking", ""):
                yield f"{turn.at} {proof}"


def _a19(body: Body, known: Known) -> Iterator[str]:
    budget = (body.get("thinking") or {}).get("budget_tokens", 1024)
    if _thinks(body) and not (known.conduct.thinking_budget and 1024 <= budget < body["max_tokens"]):
        yield "thinking"


def _marks(body: Body) -> list[tuple[str, Any]]:
    """Cache marks in the order of the prompt, with the type of what bears them."""
    blocks = [*(body.get("tools") or ()), *_blocks(body.get("system"))]
    blocks += [block for message in body["messages"] for block in _blocks(message["content"])]
    found = [(block.get("type", "tool"), block["cache_control"]) for block in blocks if block.get("cache_control")]
    top = body.get("cache_control")
    is_own = top and not (
        body["messages"] and _blocks(body["messages"][-1]["content"])[-1].get("cache_control") == top
    )
    return [*found, ("top", top)] if is_own else found


def _a20(body: Body, _known: Known) -> Iterator[str]:
    yield from ("marks" for _ in [0] if len(_marks(body)) > 4)


def _a21(body: Body, _known: Known) -> Iterator[str]:
    lives = [mark.get("ttl", "5m") for _, mark in _marks(body)]
    if "5m" in lives and "1h" in lives[lives.index("5m") :]:
        yield "marks"


def _a22(body: Body, _known: Known) -> Iterator[str]:
    yield from (kind for kind, _ in _marks(body) if kind in THINKING)


def _a23(body: Body, _known: Known) -> Iterator[str]:
    if not body.get("tools") and any(turn.of("tool_use", "tool_result") for turn in _turns(body)):
        yield "tools"


RULES: dict[str, Rule] = {
    "A1": _a1,
    "A2": _a2,
    "A3": _a3,
    "A4": _a4,
    "A5": _a5,
    "A6": _a6,
    "A7": _a7,
    "A8": _a8,
    "A9": _a9,
    "A10": _a10,
    "A11": _a11,
    "A12": _a12,
    "A13": _a13,
    "A14": _a14,
    "A15": _a15,
    "A16": _a16,
    "A19": _a19,
    "A20": _a20,
    "A21": _a21,
    "A22": _a22,
    "A23": _a23,
}

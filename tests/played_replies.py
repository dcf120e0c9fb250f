"""What providers answer and what agents hand in, in each format, drawn by chance and with a mark in every text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct, field

from tests.rule_tables import Issued

Item: TypeAlias = dict[str, Any]
PNG = "iVBORw0KGgo="


class Call(NamedTuple):
    """A call that waits for its result."""

    id: str
    name: str
    wire: str


class Mint(Struct):
    """Makes texts, ids and signatures, no two alike, and remembers them."""

    chance: random.Random
    window: int
    issued: Issued = field(default_factory=Issued)
    made: int = 0
    said: list[str] = field(default_factory=list)
    """Marks of what was made since they were last taken."""
    thought: dict[str, str] = field(default_factory=dict)
    """By the mark of reasoning, the format that it was issued in."""

    tools: tuple[str, ...] = ("read", "shell")
    """The tools that a model may call; ``restore`` where there is something to restore."""
    address: str = ""
    """What it then restores."""
    running: str = ""
    """The server tool that runs after the caller's, by its id: its result begins the next answer."""

    def mark(self) -> str:
        """A new mark, which is in no other text."""
        self.made += 1
        return f"zq{self.made}z"

    def text(self, most_share: float = 0.05) -> str:
        """A text with a mark of its own: short, or of up to this share of the window."""
        mark = self.mark()
        self.said.append(mark)
        lines = self.chance.choice((0, 0, 0, 1, 3, int(self.window * most_share / 12)))
        return "\n".join([f"{mark} is noted.", *(f"{at} more of it, value {at * 7} é" for at in range(lines))])

    def reasoning(self, wire: str) -> str:
        """A thought with a mark of its own."""
        mark = self.mark()
        self.thought[mark] = wire
        return f"Hm, {mark}."

    def id(self, prefix: str) -> str:
        """A new id."""
        self.made += 1
        return f"{prefix}{self.made}"

    def take(self) -> list[str]:
        """The marks of what was made since the last time."""
        taken, self.said = self.said, []
        return taken

    def likely(self, share: float) -> bool:
        """Whether something with this likelihood happens."""
        return self.chance.random() < share

    def arguments(self, tool: str) -> dict[str, Any]:
        """The arguments of a call, with a mark."""
        if tool == "restore":
            return {"address": self.address}
        mark = self.mark()
        self.said.append(mark)
        return {"path": f"src/{mark}.py"}


class Reply(NamedTuple):
    """An answer: the response of the provider, the items by which a client keeps it, and its calls."""

    body: Any
    items: list[Item]
    calls: list[Call]
    outputs: Sequence[Item] = ()
    """What the caller's own shell, screen and editor answered at once: calls of OpenAI's own tools."""


def _count_calls(mint: Mint) -> int:
    return mint.chance.choice((0, 0, 1, 1, 1, 2, 3))


FOUND: Item = {
    "type": "web_search_tool_result",
    "content": [
        {"type": "web_search_result", "url": "https://x.example", "title": "X", "encrypted_content": "ZQ=="}
    ],
}


def find_running(messages: list[Any]) -> str:
    """The server tool that runs behind these messages, by its id: called before results alone."""
    contents = [one["content"] if isinstance(one["content"], list) else [] for one in messages[-2:]]
    if len(contents) < 2 or not contents[1] or any(block["type"] != "tool_result" for block in contents[1]):
        return ""
    ended = {block.get("tool_use_id") for block in contents[0]}
    called = (block["id"] for block in contents[0] if block["type"] == "server_tool_use")
    return next((id_ for id_ in called if id_ not in ended), "")


def _answer_anthropic(mint: Mint, *, thinks: bool, usage: int) -> Reply:
    content: list[Item] = [FOUND | {"tool_use_id": mint.running}] if mint.running else []
    proofs: list[str] = []
    for _ in range(mint.chance.choice((1, 1, 2)) if thinks else 0):
        signature = mint.id("c2ln")
        proofs.append(signature)
        if mint.likely(0.2):
            mint.issued.signatures[signature] = ""
            content.append({"type": "redacted_thinking", "data": signature})
        else:
            text = "" if mint.likely(0.2) else mint.reasoning("anthropic")
            mint.issued.signatures[signature] = text
            content.append({"type": "thinking", "thinking": text, "signature": signature})
    if mint.likely(0.7):
        content.append({"type": "text", "text": mint.text()})
    if mint.likely(0.1):
        id_ = mint.id("srvtoolu_")
        content.append({"type": "server_tool_use", "id": id_, "name": "web_search", "input": {"query": "x"}})
        content.append(FOUND | {"tool_use_id": id_})
    calls = [
        Call(mint.id("toolu_"), mint.chance.choice(mint.tools), "anthropic") for _ in range(_count_calls(mint))
    ]
    if calls and mint.likely(0.15):
        asked = {"name": "web_search", "input": {"query": "x"}}
        content.append({"type": "server_tool_use", "id": mint.id("srvtoolu_"), **asked})
    for call in calls:
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": mint.arguments(call.name)})
        mint.issued.thinking[call.id] = proofs
    stop = "tool_use" if calls else "refusal" if not content or mint.likely(0.04) else "end_turn"
    body: Item = {
        "id": mint.id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": content,
    }
    body |= {"stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": usage, "output_tokens": 9}}
    return Reply(body, [{"role": "assistant", "content": content}], calls)


def _answer_chat(mint: Mint, *, thinks: bool, usage: int) -> Reply:
    calls = [
        Call(mint.id("call_"), mint.chance.choice(mint.tools), "openai_chat") for _ in range(_count_calls(mint))
    ]
    said = (
        mint.text()
        if mint.likely(0.7)
        else mint.chance.choice((None, ""))
        if calls or mint.likely(0.3)
        else mint.text()
    )
    message: Item = {"role": "assistant", "content": said}
    if thinks or mint.likely(0.1):
        message["reasoning_content"] = mint.reasoning("openai_chat")
    if calls:
        functions = [{"name": call.name, "arguments": json.dumps(mint.arguments(call.name))} for call in calls]
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": one} for call, one in zip(calls, functions, strict=True)
        ]
    elif said is None and mint.likely(0.5):
        message |= {"refusal": mint.text()}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    body = {"id": mint.id("chatcmpl-"), "object": "chat.completion", "model": "gpt", "choices": [choice]}
    return Reply(body | {"usage": {"prompt_tokens": usage, "completion_tokens": 9}}, [message], calls)


def _answer_responses(mint: Mint, *, thinks: bool, usage: int) -> Reply:
    items: list[Item] = []
    reasoning = ""
    if thinks or mint.likely(0.2):
        reasoning = mint.id("rs_")
        summary = [{"type": "summary_text", "text": mint.reasoning("openai_responses")}] if mint.likely(0.5) else []
        items.append({"type": "reasoning", "id": reasoning, "summary": summary})
        if mint.likely(0.7):
            items[-1]["encrypted_content"] = mint.id("gAAA")
            mint.issued.encrypted[items[-1]["encrypted_content"]] = reasoning
    if mint.likely(0.1):
        action = {"type": "search", "query": "x"}
        items.append({"type": "web_search_call", "id": mint.id("ws_"), "status": "completed", "action": action})
    kept = [_call_own_tool(mint) for _ in range(mint.chance.choice((1, 1, 2)) if mint.likely(0.15) else 0)]
    items += [call for call, _ in kept]
    calls = [
        Call(mint.id("call_"), mint.chance.choice(mint.tools), "openai_responses")
        for _ in range(_count_calls(mint))
    ]
    if mint.likely(0.5) or (reasoning and not calls):
        text = mint.text()
        refused: Item = {"type": "refusal", "refusal": text}
        spoken: Item = {"type": "output_text", "text": text, "annotations": []}
        part = refused if mint.likely(0.1) else spoken
        items.append(
            {
                "type": "message",
                "id": mint.id("msg_"),
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for call in calls:
        item = {
            "type": "function_call",
            "id": mint.id("fc_"),
            "call_id": call.id,
            "name": call.name,
            "status": "completed",
        }
        items.append(item | {"arguments": json.dumps(mint.arguments(call.name))})
    if reasoning:
        mint.issued.led_to |= {item["id"]: reasoning for item in items[1:]}
    body = {"id": mint.id("resp_"), "object": "response", "status": "completed", "model": "gpt", "output": items}
    return Reply(
        body | {"usage": {"input_tokens": usage, "output_tokens": 9, "total_tokens": usage + 9}},
        items,
        calls,
        [output for _, output in kept],
    )


def _call_own_tool(mint: Mint) -> tuple[Item, Item]:
    """A call of one of OpenAI's own tools that the caller runs, and its output."""
    ids, kind = {"call_id": mint.id("call_")}, mint.chance.choice(("shell", "apply_patch", "computer"))
    if kind == "shell":
        asked: Item = {"action": {"commands": [f"cat {mint.arguments('read')['path']}"]}}
        result = {"stdout": mint.text(), "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
        output: Item = {"output": [result]}
    elif kind == "computer":
        asked = {"action": {"type": "type", "text": mint.text()}, "pending_safety_checks": []}
        output = {"output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"}}
    else:
        asked = {"operation": {"type": "delete_file", "path": mint.arguments("read")["path"]}}
        output = {"status": "completed", "output": mint.text()}
    call = {"type": f"{kind}_call", "id": mint.id(f"{kind}_"), **ids, "status": "completed", **asked}
    return call, {"type": f"{kind}_call_output", **ids, **output}


def _answer_gemini(mint: Mint, *, thinks: bool, usage: int) -> Reply:
    parts: list[Item] = []
    if thinks and mint.likely(0.5):
        parts.append({"text": mint.reasoning("gemini"), "thought": True})
    if mint.likely(0.7):
        parts.append({"text": mint.text()})
    if mint.likely(0.1):
        parts.append({"executableCode": {"code": "1", "language": "PYTHON"}})
        parts.append({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}})
    calls = [
        Call(mint.id("fn-") if mint.likely(0.5) else "", mint.chance.choice(mint.tools), "gemini")
        for _ in range(_count_calls(mint))
    ]
    for at, call in enumerate(calls):
        part: Item = {
            "functionCall": {"name": call.name, "args": mint.arguments(call.name)}
            | ({"id": call.id} if call.id else {})
        }
        if thinks and at == 0:
            part["thoughtSignature"] = mint.id("c2ln")
            mint.issued.thought.add(part["thoughtSignature"])
        parts.append(part)
    if thinks and parts and not calls and mint.likely(0.5):
        parts[-1]["thoughtSignature"] = mint.id("c2ln")
        mint.issued.thought.add(parts[-1]["thoughtSignature"])
    candidate: Item = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    if not parts:
        candidate["content"] = {"role": "model"}
    body = {"candidates": [candidate], "usageMetadata": {"promptTokenCount": usage, "candidatesTokenCount": 9}}
    return Reply(body | {"modelVersion": "gemini"}, [candidate["content"]], calls)


ANSWERS: dict[str, Callable[..., Reply]] = {
    "anthropic": _answer_anthropic,
    "openai_chat": _answer_chat,
    "openai_responses": _answer_responses,
    "gemini": _answer_gemini,
}
"""An answer of each format; ``thinks``: the request asks for reasoning, or the model always has it."""


def write_user(mint: Mint, wire: str) -> Item:
    """A message of the user in a format, at times as a list, with a picture, a document or a cache mark."""
    text = mint.text()
    if wire == "gemini":
        media = [{"inlineData": {"mimeType": "image/png", "data": PNG}}] if mint.likely(0.1) else []
        return {"role": "user", "parts": [{"text": text}, *media]}
    if mint.likely(0.6):
        return {"role": "user", "content": text}
    block: Item = {"type": "input_text" if wire == "openai_responses" else "text", "text": text}
    if wire == "anthropic" and mint.likely(0.3):
        block["cache_control"] = {"type": "ephemeral"}
    return {"role": "user", "content": [block, *([mint.chance.choice(MEDIA[wire])] if mint.likely(0.3) else [])]}


MEDIA: dict[str, Sequence[Item]] = {
    "anthropic": (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "A plain one."}},
    ),
    "openai_chat": (
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
    ),
    "openai_responses": (
        {"type": "input_image", "image_url": "https://x.example/a.png"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
    ),
}


def write_results(mint: Mint, calls: Sequence[Call], wire: str) -> list[Item]:
    """The results of calls in a format, at times empty, an error, with a picture, or equal to an earlier one of the
    same call."""
    pairs: list[tuple[Call, str]] = []
    for call in calls:
        earlier = [text for one, text in pairs if one == call]
        text = "" if mint.likely(0.05) else earlier[0] if earlier and mint.likely(0.5) else mint.text(0.2)
        pairs.append((call, text))
    if wire == "anthropic":
        blocks: list[Item] = [
            {"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in pairs
        ]
        for block in blocks:
            if mint.likely(0.1):
                block["is_error"] = True
            elif mint.likely(0.1):
                block["content"] = [{"type": "text", "text": block["content"] or "-"}, MEDIA["anthropic"][0]]
        return [{"role": "user", "content": blocks}]
    if wire == "openai_responses":
        return [{"type": "function_call_output", "call_id": call.id, "output": text} for call, text in pairs]
    if wire == "gemini":
        parts: list[Item] = []
        # Google's clients answer without ids, also calls that have some.
        says_ids = mint.likely(0.7)
        for call, text in pairs:
            response: Item = {"name": call.name, "response": {"output": text}} | (
                {"id": call.id} if call.id and says_ids else {}
            )
            parts.append({"functionResponse": response})
        return [{"role": "user", "parts": parts}]
    return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in pairs]

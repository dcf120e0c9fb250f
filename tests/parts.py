"""Random messages with parts of all formats, in any role, each with words by which it is found again."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Part = dict[str, Any]
Maker = Callable[[str], list[Part]]


def encoded(words: str) -> str:
    """The words as base64."""
    return b64encode(words.encode()).decode()


def _inline(media_type: str, words: str) -> str:
    return f"data:{media_type};base64,{encoded(words)}"


def _source(kind: str, **fields: str) -> Part:
    return {"type": kind, "source": fields}


def _server(call: str, result: str, words: str) -> list[Part]:
    asked = {"type": call, "id": f"srv_{words}", "name": "web", "input": {"query": words}}
    asked |= {"server_name": "files"} if call == "mcp_tool_use" else {}
    return [asked, {"type": result, "tool_use_id": f"srv_{words}", "content": []}]


SHOWN: dict[str, Maker] = {
    "text": lambda words: [{"type": "text", "text": words}],
    "image_url inline": lambda words: [{"type": "image_url", "image_url": {"url": _inline("image/png", words)}}],
    "image_url": lambda words: [{"type": "image_url", "image_url": {"url": f"https://a.b/{words}"}}],
    "image": lambda words: [_source("image", type="base64", media_type="image/png", data=encoded(words))],
    "image by url": lambda words: [_source("image", type="url", url=f"https://a.b/{words}")],
    "image by id": lambda words: [_source("image", type="file", file_id=words)],
    "document": lambda words: [
        _source("document", type="base64", media_type="application/pdf", data=encoded(words))
    ],
    "document by url": lambda words: [_source("document", type="url", url=f"https://a.b/{words}")],
    "document by id": lambda words: [_source("document", type="file", file_id=words)],
    "plain document": lambda words: [_source("document", type="text", media_type="text/plain", data=words)],
    "search_result": lambda words: [
        {"type": "search_result", "source": "s", "title": words, "content": [{"type": "text", "text": "x"}]}
    ],
    "file": lambda words: [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": _inline("application/pdf", words)}}
    ],
    "file by id": lambda words: [{"type": "file", "file": {"file_id": words}}],
    "input_audio": lambda words: [
        {"type": "input_audio", "input_audio": {"data": encoded(words), "format": "wav"}}
    ],
    "input_text": lambda words: [{"type": "input_text", "text": words}],
    "output_text": lambda words: [{"type": "output_text", "text": words, "annotations": []}],
    "input_image": lambda words: [{"type": "input_image", "image_url": _inline("image/png", words)}],
    "input_file": lambda words: [
        {"type": "input_file", "filename": "a.pdf", "file_data": _inline("application/pdf", words)}
    ],
}
CONTENT: dict[str, Maker] = {
    "text": lambda words: [{"text": words}],
    "inline": lambda words: [{"inlineData": {"mimeType": "image/png", "data": encoded(words)}}],
    "pdf": lambda words: [{"inline_data": {"mime_type": "application/pdf", "data": encoded(words)}}],
    "audio": lambda words: [{"inlineData": {"mimeType": "audio/wav", "data": encoded(words)}}],
    "null": lambda words: [{"text": words, "inline_data": None, "thought": None}],
}
"""Gemini's parts, which are in contents of their own."""
OTHERS: dict[str, Maker] = {
    "refusal": lambda words: [{"type": "refusal", "refusal": words}],
    "container_upload": lambda words: [{"type": "container_upload", "file_id": words}],
    "thinking": lambda words: [{"type": "thinking", "thinking": words, "signature": "Eq"}],
    "unsigned": lambda words: [{"type": "thinking", "thinking": words}],
    "redacted": lambda words: [{"type": "redacted_thinking", "data": words}],
    "server": lambda words: _server("server_tool_use", "web_search_tool_result", words),
    "mcp": lambda words: _server("mcp_tool_use", "mcp_tool_result", words),
}
ALL = SHOWN | OTHERS
ECHOED: list[Part] = [{"reasoning_content": "hm"}, {"type": "message", "stop_reason": None}]
"""Fields of an answer of one provider, which others refuse in a message."""


class Told:
    """A history as it is drawn, and the words of its turns."""

    def __init__(self) -> None:
        self.messages: list[Part] = []
        self.words: list[list[str]] = []

    def __repr__(self) -> str:
        return repr(self.messages)

    def new(self) -> str:
        """Words that nothing else holds."""
        self.words[-1].append(words := f"w{sum(map(len, self.words))}x")
        return words

    def add(self, role: str, content: Any, **more: Any) -> None:
        """Take in a message; call ``begin`` before its words are made."""
        self.messages.append({"role": role, "content": content, **more})

    def begin(self) -> None:
        """Begin the words of the next message."""
        self.words.append([])

    def find_words(self, dumped: bytes) -> list[str]:
        """The words that a message holds, as text or encoded."""
        found = dumped.decode()
        return [word for words in self.words for word in words if word in found or encoded(word) in found]

    def parts(self, names: list[str]) -> list[Part]:
        """Parts of these kinds, each with words of its own."""
        return [part for name in names for part in ALL[name](self.new())]

    def add_items(self, *items: Part) -> None:
        """Take in the items of one message."""
        self.messages += items

    def contents(self, names: list[str]) -> list[Part]:
        """Gemini's parts of these kinds."""
        return [part for name in names for part in CONTENT[name](self.new())]


def _asked(draw: st.DrawFn, told: Told, turn: int) -> None:
    """A call and its result, written in one of the five ways, with parts in the result."""
    told.begin()
    style, names = draw(st.sampled_from(["chat", "old", "blocks", "items", "contents"])), draw(_names(SHOWN))
    function = {"name": "read", "arguments": f'{{"path": "{told.new()}"}}'}
    if style == "chat":
        told.add("assistant", None, tool_calls=[{"id": f"c{turn}", "type": "function", "function": function}])
        told.begin()
        told.add("tool", told.parts(names), tool_call_id=f"c{turn}")
    elif style == "old":
        told.add("assistant", None, function_call=function)
        told.begin()
        told.add("function", told.new(), name="read")
    elif style == "items":
        item: Part = {"type": "function_call", "id": f"fc_{turn}", "call_id": f"c{turn}", **function}
        reasoning: Part = {"type": "reasoning", "id": f"rs_{turn}", "summary": [], "encrypted_content": "gAAA"}
        told.add_items(*[reasoning][: draw(st.integers(0, 1))], item)
        told.begin()
        told.add_items({"type": "function_call_output", "call_id": f"c{turn}", "output": told.parts(names)})
    elif style == "contents":
        name = draw(st.sampled_from(["read", "fs/read", "9" * 70]))
        part: Part = {"functionCall": {"name": name, "args": {"path": told.words[-1][0]}}}
        told.add_items({"role": "model", "parts": [*told.contents(draw(_names(CONTENT, least=0))), part]})
        told.begin()
        answer = {"functionResponse": {"name": name, "response": {"result": told.new()}}}
        told.add_items({"role": "user", "parts": [answer, *told.contents(draw(_names(CONTENT, least=0)))]})
    else:
        asked = {"type": "tool_use", "id": f"c{turn}", "name": "read", "input": {"path": told.words[-1][0]}}
        told.add("assistant", [*told.parts(draw(_names(OTHERS, least=0))), asked])
        told.begin()
        beside = told.parts(draw(_names(SHOWN, least=0)))
        result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": told.parts(names)}
        told.add("user", [*beside, result])


def _names(kinds: dict[str, Maker], *, least: int = 1) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(sorted(kinds)), min_size=least, max_size=3)


@st.composite
def histories_of_parts(draw: st.DrawFn) -> Told:
    """Up to seven turns of any role and kind."""
    told = Told()
    for turn in range(draw(st.integers(1, 7))):
        kind = draw(
            st.sampled_from(
                ["user", "assistant", "system", "call", "refusal", "audio", "model", "easy", "named", "echoed"]
            )
        )
        if kind == "call":
            _asked(draw, told, turn)
            continue
        told.begin()
        if kind == "refusal":
            told.add("assistant", None, refusal=told.new())
        elif kind == "audio":
            told.add("assistant", None, audio={"id": told.new()})
        elif kind == "model":
            told.add_items({"role": "model", "parts": told.contents(draw(_names(CONTENT)))})
        elif kind == "easy":
            told.add(draw(st.sampled_from(["user", "developer"])), told.new(), type="message")
        elif kind == "named":
            told.add("user", told.new(), name="Ann")
        elif kind == "echoed":
            fields: Part = draw(
                st.sampled_from([{"reasoning_content": "hm"}, {"type": "message", "stop_reason": None}])
            )
            told.add("assistant", [{"type": "text", "text": told.new()}], **fields)
        else:
            told.add(kind, told.parts(draw(_names(ALL))))
    told.begin()
    told.add("user", told.parts(draw(_names(ALL))))
    return told

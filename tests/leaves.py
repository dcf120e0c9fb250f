"""Messages of every kind in both provider formats, and every small change of one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

HELLO: dict[str, Any] = {"role": "user", "content": "hi"}
OK: dict[str, Any] = {"role": "assistant", "content": "ok"}
MORE: dict[str, Any] = {"role": "user", "content": "more"}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _source(kind: str, **fields: str) -> dict[str, Any]:
    return {"type": kind, **fields}


def _user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def _reply(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


_PNG = _source("base64", media_type="image/png", data="iVBORw0K")
_PLAIN = _source("text", media_type="text/plain", data="hello doc")
_HIT = {"type": "search_result", "source": "http://s", "title": "t", "content": [_text("found")]}
_USE = {"type": "tool_use", "id": "u1", "name": "read", "input": {"p": "x"}}
_QUOTE = {
    "type": "char_location",
    "cited_text": "q",
    "document_index": 0,
    "document_title": "d",
    "start_char_index": 0,
    "end_char_index": 3,
}
_PAGE = {"type": "web_search_result", "title": "t", "url": "u", "encrypted_content": "e", "page_age": "1"}
_RESULT = {
    "type": "tool_result",
    "tool_use_id": "u1",
    "content": [_text("one"), {"type": "image", "source": _PNG}, _HIT, {"type": "document", "source": _PLAIN}],
    "is_error": False,
}
_CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"p": 1}'}}
_CUSTOM = {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "ls"}}


class Conversation(NamedTuple):
    """The messages up to one, and those after it."""

    before: list[dict[str, Any]]
    message: dict[str, Any]
    after: list[dict[str, Any]]


def _asked(message: dict[str, Any]) -> Conversation:
    return Conversation([], message, [OK, MORE])


def _said(message: dict[str, Any], *results: dict[str, Any]) -> Conversation:
    return Conversation([HELLO], message, [*results, MORE])


_ANTHROPIC = [
    _asked({"role": "user", "content": "    indented\n"}),
    _asked(_user(_text("A:"), {"type": "image", "source": _PNG}, _text("B:"))),
    _asked(_user({"type": "image", "source": _source("file", file_id="file_A")})),
    _asked(_user({"type": "image", "source": _source("url", url="http://a/x.png")})),
    _asked(
        _user(
            {"type": "document", "source": _PLAIN, "title": "T", "context": "C", "citations": {"enabled": True}},
            _text("What?"),
        )
    ),
    _asked(_user({"type": "document", "source": _source("content") | {"content": [_text("inner")]}})),
    _asked(_user({"type": "document", "source": _source("url", url="http://a/x.pdf")})),
    _asked(_user({"type": "document", "source": _source("base64", media_type="application/pdf", data="JVBERi0=")})),
    _asked(_user(_HIT)),
    _asked(_user({"type": "container_upload", "file_id": "f1"})),
    Conversation([HELLO, _reply(_USE)], _user(_RESULT), [OK, MORE]),
    _said(_reply(_text("cited") | {"citations": [_QUOTE]}, _USE), _user(_RESULT)),
    _said(
        _reply(
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [_PAGE]},
            _text("Found."),
        )
    ),
    _said(
        _reply(
            {"type": "thinking", "thinking": "th", "signature": "sg"},
            {"type": "redacted_thinking", "data": "rd"},
            _text("x"),
        )
    ),
]
_CHAT = [
    _asked({"role": "user", "content": "    indented\n"}),
    _asked(
        _user(
            _text("A:"), {"type": "image_url", "image_url": {"url": "http://a/x.png", "detail": "low"}}, _text("B:")
        )
    ),
    _asked(_user({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}})),
    _asked(_user({"type": "file", "file": {"file_id": "f1", "filename": "n.pdf"}})),
    _asked(_user({"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "n"}})),
    _asked(_user({"type": "video_url", "video_url": {"url": "http://v"}})),
    _asked({"role": "user", "name": "bob", "content": "hi", "weight": 1, "vendor": {"x": "y"}}),
    Conversation([], {"role": "developer", "content": "dev"}, [HELLO, OK, MORE]),
    Conversation([], {"role": "system", "content": [_text("sys")], "name": "boss"}, [HELLO, OK, MORE]),
    _said({"role": "assistant", "content": None, "audio": {"id": "audio_1"}}),
    _said({"role": "assistant", "content": None, "refusal": "I refuse"}),
    _said({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}),
    _said(
        {"role": "assistant", "content": "a", "name": "bot", "tool_calls": [_CALL, _CUSTOM]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
    ),
    Conversation(
        [HELLO, {"role": "assistant", "content": "a", "tool_calls": [_CALL]}],
        {"role": "tool", "tool_call_id": "c1", "content": [_text(" r"), _text("s")], "vendor": "v"},
        [OK, MORE],
    ),
    _said(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "res"},
    ),
    Conversation(
        [HELLO, {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}],
        {"role": "function", "name": "f", "content": "res"},
        [OK, MORE],
    ),
    _said(
        {
            "role": "assistant",
            "content": "a",
            "reasoning_content": "why",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": "enc"}],
        }
    ),
    _said({"role": "assistant", "content": "x", "vendor": True}),
]
CONVERSATIONS = {"anthropic": _ANTHROPIC, "openai_chat": _CHAT}

_ROLES = {"system": "developer", "developer": "system"}


class Change(NamedTuple):
    """A changed message, and what was done to it."""

    how: str
    path: tuple[str | int, ...]
    message: dict[str, Any]


def list_changes(message: dict[str, Any]) -> Iterator[Change]:
    """Iterate over every change of one place of a message: another value, blanks, no field, another order, content
    as a string or as a list."""
    for path, value in _list_places(message):
        key = path[-1]
        if key == "role":
            if value in _ROLES:
                yield Change("other", path, _put(message, path, _ROLES[value]))
        elif isinstance(value, str) and key != "type":
            yield Change("other", path, _put(message, path, '{"p": 2}' if value.startswith("{") else f"{value}Z"))
            yield Change("blanks before", path, _put(message, path, f"  {value}"))
            yield Change("blanks after", path, _put(message, path, f"{value}\n"))
        elif isinstance(value, bool | int):
            yield Change("other", path, _put(message, path, not value if isinstance(value, bool) else value + 7))
            yield Change("type", path, _put(message, path, int(value) if isinstance(value, bool) else float(value)))
        elif isinstance(value, list) and len(value) > 1:
            yield Change("order", path, _put(message, path, value[::-1]))
        yield Change("left out", path, _put(message, path, None, drop=True))
        if key == "content" and isinstance(value, str):
            yield Change("list", path, _put(message, path, [_text(value)]))
    yield Change("added", ("vendor2",), message | {"vendor2": "new"})
    yield Change("null", ("vendor2",), message | {"vendor2": None})


def _list_places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key), item
        yield from _list_places(item, (*path, key))


def _put(message: dict[str, Any], path: tuple[str | int, ...], value: Any, *, drop: bool = False) -> dict[str, Any]:
    changed = holder = copy.deepcopy(message)
    for key in path[:-1]:
        holder = holder[key]  # type: ignore[index]
    if drop:
        del holder[path[-1]]  # type: ignore[arg-type]
    else:
        holder[path[-1]] = value  # type: ignore[index]
    return changed

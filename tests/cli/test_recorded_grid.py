"""Recorded sessions, replayed on each wire and at each window: legal, within the window, built again elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lading.addresses import parse
from lading.audit.pointers import resolve
from lading.messages import Message
from lading.request.tools import reduce_tools
from lading.sources import Recording, ToolsSoFar, read
from lading.stores.sqlite import open_sqlite
from lading.tokens import counter
from lading.tokens.meter import Meter
from tests.cli.commands import elsewhere, lading, lines

pytestmark = pytest.mark.full
FILES = ("tau_airline", "pi_large_session", "swesmith_claude", "sweagent_demos", "claude_code_session")
ELSEWHERE = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}


@cache
def text_tokens(text: str) -> int:
    """The cl100k tokens of a text."""
    return counter("cl100k").count(text)


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def body_tokens(body: dict[str, Any]) -> int:
    """The tokens of a request of either wire, from the body alone: system and tools, texts, call names and
    arguments, and 4 for each message and each tool result."""
    tokens = sum(text_tokens(text) for text in _texts(body.get("system")))
    tokens += text_tokens(compact(body["tools"])) if body.get("tools") else 0
    for message in body["messages"]:
        tokens += 4 + (4 if message["role"] == "tool" else 0)
        tokens += sum(text_tokens(text) for text in _texts(message.get("content")))
        for call in message.get("tool_calls") or ():
            tokens += text_tokens(call["function"]["name"]) + text_tokens(call["function"]["arguments"])
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block["type"] == "tool_use":
                tokens += text_tokens(block["name"]) + text_tokens(compact(block["input"]))
            elif block["type"] == "tool_result":
                tokens += 4
    return tokens


def _texts(content: Any) -> Iterator[str]:
    """Every text in a content of either wire."""
    if isinstance(content, str):
        yield content
        return
    for block in content or ():
        if block["type"] == "text":
            yield block["text"]
        elif block["type"] == "tool_result":
            yield from _texts(block.get("content"))
        else:
            assert block["type"] == "tool_use", f"the counter of this test does not know {block['type']}"


def least_tokens(recording: Recording, upto: int) -> int:
    """What head, tools at their least, and the newest block take: no request for the call is smaller."""
    position = recording.raw_indices.index(upto)
    known = list(recording.messages[:position])
    head = next((at for at, message in enumerate(known) if message.role == "assistant"), position)
    newest = position - 1
    while newest > head and known[newest].results:
        newest -= 1
    meter = Meter(counter("cl100k"))
    tools = meter.count_tools(reduce_tools(ToolsSoFar(recording).at(position), "names"))
    shown: list[Message] = [*known[:head], *known[max(newest, head) :]]
    return tools + sum(map(meter.count_message, shown))


@pytest.mark.parametrize(
    ("window", "wire", "names"),
    [
        (8_000, "openai_chat", FILES[::2]),
        (32_000, "anthropic", FILES[::2]),
        (8_000, "anthropic", FILES[1::2]),
        (32_000, "openai_chat", FILES[1::2]),
    ],
)
def test_recorded_sessions(shared: Path, tmp_path: Path, window: int, *, wire: str, names: tuple[str, ...]) -> None:
    files = [shared / "data" / f"{name}.jsonl.gz" for name in names]
    store, out = tmp_path / "store", tmp_path / "out.jsonl"
    settings = ("--window", str(window), "--wire", wire, "--counter", "cl100k", "--prices", ".10/1.25")
    ended = lading("replay", *files, *settings, "--store", store, "--emit", out, "--json")
    assert ended.code == 0
    report = ended.data["replays"][0]
    assert report["total"]["violations"] == {}

    found = [item for file in files for item in read(file) if isinstance(item, Recording)]
    recordings = dict(zip(report["sessions"], found, strict=True))
    emitted = lines(out)
    assert len(emitted) == report["total"]["calls"]
    for line in emitted:
        if "error" in line:
            assert line["error"]["type"] == "WindowExceeded"
            assert least_tokens(recordings[line["session"]], line["upto"]) > window, line
        else:
            assert line["tokens"]["counted"] <= window
            assert body_tokens(line["request"]) <= window
    assert_pointers_resolve(store, emitted, recordings)

    verified = elsewhere("verify", store, "--json", environment=ELSEWHERE)
    assert verified.code == 0
    assert verified.data["wrong"] == 0
    assert verified.data["manifests"] == sum("request" in line for line in emitted)


def assert_pointers_resolve(store: Path, emitted: list[dict[str, Any]], recordings: dict[str, Recording]) -> None:
    """Every pointer leads to the raw messages that its edit removed, as they were recorded."""
    edits = [(line["session"], edit) for line in emitted for edit in line.get("edits", ())]
    assert all(edit["pointers"] for _, edit in edits)
    wanted = {pointer: session for session, edit in edits for pointer in edit["pointers"]}
    with open_sqlite(store, create=False) as opened:
        # Reading a session back checks all of it: once for each is enough to know every raw entry.
        raw = {
            session: resolve(opened, f"artifact://default/{session}/log/0-{_last(opened, session)}")
            for session in dict.fromkeys(wanted.values())
        }
    for session, entries in raw.items():
        assert [entry.message for entry in entries] == list(recordings[session].messages[: len(entries)])
    for session, edit in edits:
        spans = [parse(pointer).log_span() for pointer in edit["pointers"]]
        for first, last, _ in spans:
            assert first <= edit["first"] <= edit["last"] <= last < len(raw[session])
    with open_sqlite(store, create=False) as opened:
        for pointer, session in list(wanted.items())[:20]:
            first, last, _ = parse(pointer).log_span()
            assert resolve(opened, pointer) == raw[session][first : last + 1]


def _last(store: Any, session: str) -> int:
    return len(store.load("default", session).entries) - 1

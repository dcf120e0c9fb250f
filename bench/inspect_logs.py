"""How long ``lading inspect`` takes to find, read and summarize 50 MB of logs of Claude Code and Codex.

The logs are made here, always the same: sessions of tool calls with results of several kinds and sizes.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.figures import Figure, below, plain
from bench.histories import WORDS

TARGET_BYTES = 50_000_000
SESSION_BYTES = 1_000_000
_PROGRAM = "from lading.cli import main; main()"
_ELSEWHERE = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


def run() -> list[Figure]:
    """Seconds from the start of the command to its end, for 50 MB, half of it of each tool."""
    with tempfile.TemporaryDirectory() as folder:
        size = _write_logs(Path(folder))
        environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
        started = time.perf_counter()
        ended = subprocess.run(
            [sys.executable, "-c", _PROGRAM, "inspect", "--json"],
            env={**environment, "HOME": folder},
            stdout=subprocess.PIPE,
            check=True,
        )
        seconds = time.perf_counter() - started
    total = json.loads(ended.stdout)["total"]
    what = f"lading inspect, {size / 1e6:.0f} MB of logs, {total['counts']['sessions']} sessions"
    return [
        below(what, seconds * TARGET_BYTES / size, 10, unit="s"),
        plain("tokens found in them", f"{total['tokens']:,}"),
    ]


def _write_logs(home: Path) -> int:
    """The size in bytes of the logs written."""
    size = 0
    for number in range(TARGET_BYTES // SESSION_BYTES):
        is_codex = number % 2 == 1
        place = ".codex/sessions/2026/03/01/rollout-{}.jsonl" if is_codex else ".claude/projects/-work/{}.jsonl"
        path = home / place.format(f"session-{number}")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = io.StringIO()
        for event in (_codex if is_codex else _claude_code)(number):
            text.write(json.dumps(event) + "\n")
            if text.tell() > SESSION_BYTES:
                break
        size += path.write_text(text.getvalue(), encoding="utf-8")
    return size


def _stamp(session: int, second: int) -> str:
    hour, minute = second // 3600 % 24, second // 60 % 60
    return f"2026-{session // 28 + 1:02}-{session % 28 + 1:02}T{hour:02}:{minute:02}:{second % 60:02}.000Z"


def _claude_code(session: int) -> Iterator[dict[str, Any]]:
    """The events of a session of Claude Code, without end."""

    def event(kind: str, number: int, content: Any, **more: Any) -> dict[str, Any]:
        return {
            "parentUuid": f"{session}-{number - 1}" if number else None,
            "isSidechain": False,
            "cwd": "/work",
            "sessionId": f"session-{session}",
            "type": kind,
            "message": {"role": kind, "content": content, **more},
            "uuid": f"{session}-{number}",
            "timestamp": _stamp(session, number * 5),
        }

    yield event("user", 0, "Make the test suite pass.")
    number, cached = 1, 15_000
    while True:
        text = _result(session * 1_000 + number)
        usage = {"input_tokens": 4, "output_tokens": 150, "cache_read_input_tokens": cached}
        about = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": usage}
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"file": f"src/{number}.py"}}
        yield event("assistant", number, [{"type": "text", "text": _line(number)}], **about)
        yield event("assistant", number + 1, [call], **about)
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}
        yield event("user", number + 2, [result]) | {"toolUseResult": {"stdout": text[:2_000]}}
        number, cached = number + 3, cached + len(text) // 4


def _codex(session: int) -> Iterator[dict[str, Any]]:
    """The events of a session of Codex, without end."""

    def event(kind: str, number: int, **payload: Any) -> dict[str, Any]:
        return {"timestamp": _stamp(session, number * 5), "type": kind, "payload": payload}

    yield event("session_meta", 0, id=f"session-{session}", base_instructions={"text": "You are an agent. " * 500})
    yield event("turn_context", 0, model="gpt-5-codex", cwd="/work")
    words = [{"type": "input_text", "text": "Make the test suite pass."}]
    yield event("response_item", 0, type="message", role="user", content=words)
    number, cached, total = 1, 8_000, 0
    while True:
        text, call_id = _result(session * 1_000 + number), f"call_{number}"
        hidden = "gAAAAAB" + f"{number:x}" * 200
        yield event("response_item", number, type="reasoning", summary=[], encrypted_content=hidden)
        arguments = json.dumps({"cmd": f"sed -n 1,200p src/{number}.py", "workdir": "/work"})
        yield event(
            "response_item", number, type="function_call", name="shell", arguments=arguments, call_id=call_id
        )
        usage = {"input_tokens": cached + 900, "cached_input_tokens": cached, "output_tokens": 150}
        total += cached + 1_050
        info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": usage}
        yield event("event_msg", number, type="token_count", info=info, rate_limits=None)
        answer = f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{text}"
        yield event("response_item", number + 1, type="function_call_output", call_id=call_id, output=answer)
        number, cached = number + 1, cached + len(text) // 4


def _result(seed: int) -> str:
    """The output of a tool: its kind and its length follow from the seed."""
    kind = _KINDS[seed % len(_KINDS)]
    return "\n".join(kind(seed + number) for number in range(2 + (seed * 37 % 23) ** 2 // 4))


def _line(seed: int) -> str:
    return " ".join(WORDS[(seed * step) % len(WORDS)] for step in range(1, 8))


def _code(seed: int) -> str:
    return f"    value_{seed % 97} = self.{WORDS[seed % 5]}({seed}, limit={seed % 11})  # {_line(seed)}"


def _log(seed: int) -> str:
    return f"2026-03-01T10:{seed % 60:02}:00.{seed % 1000:03}Z INFO worker-{seed % 8} {_line(seed)} took {seed} ms"


def _json(seed: int) -> str:
    return json.dumps({"id": seed, "path": f"src/{seed % 31}.py", "status": "ok", "values": [seed % 7, seed % 13]})


def _search(seed: int) -> str:
    return f"src/lading/module_{seed % 40}.py:{seed % 400}:    {_line(seed)}"


def _prose(seed: int) -> str:
    return f"The {_line(seed)} was looked at. It does what it should, though {_line(seed + 1)} is slow."


_KINDS: tuple[Callable[[int], str], ...] = (_code, _log, _json, _search, _prose)

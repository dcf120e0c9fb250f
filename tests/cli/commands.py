"""The command line as a user meets it: arguments in; exit code, stdout and stderr out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from lading.cli import main
from tests.waiting import ended as end_of

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "import lading_command; lading_command.main()"


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What ``--json`` printed."""
        return json.loads(self.out)


def lading(*arguments: str | Path) -> Ended:
    """Run a command in this process. An exception that a user would see as a traceback fails the test."""
    result = CliRunner().invoke(main, list(map(str, arguments)), prog_name="lading")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


def started(
    *arguments: str | Path, environment: Mapping[str, str] | None = None, before: str = ""
) -> subprocess.Popen[str]:
    """A command in a process of its own; ``before`` is Python that runs first there."""
    return subprocess.Popen(
        [sys.executable, "-c", before + PROGRAM, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="backslashreplace",
    )


def elsewhere(*arguments: str | Path, environment: Mapping[str, str] | None = None, before: str = "") -> Ended:
    """Run a command in a process of its own to its end."""
    with started(*arguments, environment=environment, before=before) as process:
        out, err = end_of(process, "the command")
    return Ended(process.returncode, out, err)


def user(text: str, **more: Any) -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "content": text, **more}


def reply(text: str = "ok", **more: Any) -> dict[str, Any]:
    """An assistant message."""
    return {"role": "assistant", "content": text, **more}


def used_tool(number: int, result: str, *, name: str = "run", arguments: str = "{}") -> list[dict[str, Any]]:
    """A call and its result."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def written(path: Path, messages: Sequence[Any], *, model: str = "gpt-4o", **more: Any) -> Path:
    """A session file with these messages."""
    record = {"model": model, "messages": list(messages), **more}
    path.write_bytes(json.dumps(record).encode("utf-8", "surrogatepass"))
    return path


def long_session(path: Path, *, rounds: int = 12, result: str = "word ") -> Path:
    """A session of tool calls with results of about 400 tokens each."""
    messages = [user("Look around.")]
    for number in range(rounds):
        messages += used_tool(number, f"{number}: " + result * 400)
    return written(path, [*messages, reply("Done.")])


def lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]

"""Records the example sessions: a scripted agent works over Lading's own source, with tools that really run.

Usage: ``python examples/record.py OUT_DIR [REVISION]``

Each file of ``examples/scripts`` tells one session: what the user asks, what the agent says, and which tools
it calls. No model is called. The tools run in a scratch copy of the committed tree, and what they print is
what stands in the session, with the names of this machine, times and memory addresses made neutral. A step
whose tools do not end as its script expects stops the recording, so that no session tells a story that did
not happen.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "examples" / "scripts"
LEFT_OUT = ("examples", ".ci", "uv.lock")
"""Not part of the scratch copy: an agent that reads its own script would be no reader."""
MAX_RESULT_CHARS = 100_000
TIMEOUT_S = 300

Json = dict[str, Any]


class RecordingError(Exception):
    """A script and what its tools did do not agree."""


class Outcome(NamedTuple):
    """What a tool answered."""

    text: str
    failed: bool


class Tool(NamedTuple):
    """One tool of the agent: its parameters in the order in which scripts give them."""

    description: str
    parameters: Mapping[str, str]
    run: Callable[[Path, Sequence[str]], Outcome]


def main(arguments: Sequence[str]) -> int:
    """Record every script into the folder given. Returns the exit code."""
    if not arguments or len(arguments) > 2 or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    revision = arguments[1] if len(arguments) == 2 else "HEAD"
    for script in sorted(SCRIPTS.glob("*.toml")):
        try:
            session = record(tomllib.loads(script.read_text(encoding="utf-8")), revision)
        except (RecordingError, tomllib.TOMLDecodeError) as error:
            print(f"{script.name}: {error}", file=sys.stderr)
            return 1
        line = json.dumps(session, ensure_ascii=False, separators=(",", ":")) + "\n"
        target = folder / f"{script.stem}.jsonl.gz"
        target.write_bytes(gzip.compress(line.encode("utf-8", "backslashreplace"), mtime=0))
        print(f"{target}: {len(session['messages'])} messages, {target.stat().st_size} bytes")
    return 0


def record(script: Json, revision: str) -> Json:
    """Play a script in a fresh scratch copy of the tree at ``revision``. Raises RecordingError."""
    with tempfile.TemporaryDirectory() as name:
        workspace = Path(name).resolve()
        repository = workspace / "repo"
        unpack(revision, repository)
        for plant in script.get("plant", []):
            replace_once(repository / plant["path"], plant["old"], plant["new"])
        messages = [{"role": "system", "content": script["system"].strip()}]
        messages += Player(script["id"], repository).play(script["step"])
        return {
            "id": script["id"],
            "dataset": "lading-examples",
            "license": "Apache-2.0",
            "model": script["model"],
            "recorded": {"by": "examples/record.py", "agent": "scripted"},
            "tools": [schema(name) for name in TOOLS],
            "messages": messages,
        }


class Player:
    """Plays the steps of one script and keeps what was found on the way."""

    def __init__(self, session: str, repository: Path) -> None:
        self._session = session
        self._repository = repository
        self._found: dict[str, str] = {}
        self._calls = 0

    def play(self, steps: Sequence[Json]) -> Iterator[Json]:
        """The messages of the steps, in order."""
        for number, step in enumerate(steps, 1):
            if "user" in step:
                yield {"role": "user", "content": step["user"].strip()}
                continue
            try:
                for item in step.get("each", [""]):
                    self._found["each"] = item
                    yield from self._assistant(step)
            except RecordingError as error:
                raise RecordingError(f"step {number} ({step.get('say', '')[:60]!r}): {error}") from error

    def _assistant(self, step: Json) -> Iterator[Json]:
        calls = [(str(call[0]), [self._filled(value) for value in call[1:]]) for call in step.get("do", [])]
        message: Json = {"role": "assistant", "content": self._filled(step["say"].strip())}
        ids = [self._next_id() for _ in calls]
        if calls:
            message["tool_calls"] = [
                call_json(id_, name, values) for id_, (name, values) in zip(ids, calls, strict=True)
            ]
        yield message
        if step.get("interrupted"):
            return
        fails = step.get("fails", [])
        texts = []
        for position, (id_, (name, values)) in enumerate(zip(ids, calls, strict=True)):
            outcome = TOOLS[name].run(self._repository, values)
            text = neutral(outcome.text, self._repository)
            if outcome.failed != (position in fails):
                expected = "fail" if position in fails else "succeed"
                raise RecordingError(f"call {position} was to {expected}; it answered:\n{text[-2000:]}")
            texts.append(text)
            yield {
                "role": "tool",
                "tool_call_id": id_,
                "name": name,
                "content": shortened(text),
                "is_error": outcome.failed,
            }
        self._look_for(step.get("find", {}), "\n".join(texts))

    def _look_for(self, patterns: Mapping[str, str], text: str) -> None:
        for name, pattern in patterns.items():
            match = re.search(pattern, text, re.MULTILINE)
            if match is None:
                raise RecordingError(f"no {name}: nothing matches {pattern!r} in:\n{text[-2000:]}")
            self._found[name] = match[1]

    def _filled(self, text: str) -> str:
        return re.sub(r"<<(\w+)>>", lambda match: self._value(match[1]), text)

    def _value(self, name: str) -> str:
        if name not in self._found:
            raise RecordingError(f"<<{name}>> was not found in an earlier step")
        return self._found[name]

    def _next_id(self) -> str:
        self._calls += 1
        return "call_" + hashlib.sha256(f"{self._session}/{self._calls}".encode()).hexdigest()[:20]


def unpack(revision: str, repository: Path) -> None:
    """Lay the committed tree of ``revision`` into a new folder."""
    excluded = [f":(exclude){path}" for path in LEFT_OUT]
    command = ["git", "archive", "--format=tar", revision, "--", ".", *excluded]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise RecordingError(f"git archive {revision}: {done.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(repository, filter="data")


def call_json(id_: str, name: str, values: Sequence[str]) -> Json:
    """A tool call as OpenAI's chat format writes it."""
    given = dict(zip(TOOLS[name].parameters, values, strict=False))
    arguments = json.dumps(given, ensure_ascii=False)
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def schema(name: str) -> Json:
    """A tool as OpenAI's chat format describes it."""
    tool = TOOLS[name]
    properties = {key: {"type": "string", "description": text} for key, text in tool.parameters.items()}
    required = [key for key, text in tool.parameters.items() if not text.startswith("Optional")]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": tool.description, "parameters": parameters},
    }


def neutral(text: str, repository: Path) -> str:
    """The text without this machine: its paths, its name, how long things took, where they lay in memory."""
    known = {
        str(repository): "/repo",
        str(repository.parent): "/scratch",
        sys.prefix: "/opt/python",
        sys.base_prefix: "/opt/python",
        str(ROOT): "/checkout",
    }
    for path in sorted(known, key=len, reverse=True):
        text = text.replace(path, known[path])
    if len(socket.gethostname()) > 3:
        text = text.replace(socket.gethostname(), "machine")
    text = re.sub(r"/(home|Users|root|tmp)(?=/)", "/srv", text)
    text = re.sub(r"pytest-of-\w+", "pytest-of-agent", text)
    text = re.sub(r"\b0x[0-9a-f]{8,16}\b", "0x7f0000000000", text)
    return re.sub(r"\b\d+\.\d+s\b", "1.00s", text)


def shortened(text: str) -> str:
    """The text as an agent's tool hands it on: at most ``MAX_RESULT_CHARS``, the rest counted."""
    rest = len(text) - MAX_RESULT_CHARS
    return f"{text[:MAX_RESULT_CHARS]}\n[output cut: {rest} more characters]" if rest > 0 else text


def replace_once(file: Path, old: str, new: str) -> None:
    """Replace the one place in the file where ``old`` stands. Raises RecordingError."""
    text = file.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise RecordingError(f"{file.name} holds {text.count(old)} times, not once: {old!r}")
    file.write_text(text.replace(old, new), encoding="utf-8")


def run(repository: Path, command: Sequence[str]) -> Outcome:
    """Run a program in the scratch copy, with an environment that says nothing of this machine."""
    workspace = repository.parent
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(workspace),
        "TMPDIR": str(workspace),
        "PYTHONPATH": os.pathsep.join([str(repository / "src"), str(repository)]),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_PROFILE": "ci",
        "LADING_SHARED": "",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "100",
    }
    done = subprocess.run(
        command,
        cwd=repository,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_S,
        check=False,
    )
    text = done.stdout.decode("utf-8", "surrogateescape")
    ending = f"\n[exit code {done.returncode}]" if done.returncode else ""
    return Outcome(text + ending, bool(done.returncode))


def shell(repository: Path, values: Sequence[str]) -> Outcome:
    """A command line."""
    return run(repository, ["bash", "-c", values[0]])


def run_tests(repository: Path, values: Sequence[str]) -> Outcome:
    """Pytest over the paths and options given."""
    return run(repository, [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *shlex.split(values[0])])


def grep(repository: Path, values: Sequence[str]) -> Outcome:
    """Lines that match, over files in order of name (a folder's own order differs from disk to disk)."""
    pattern, place = values
    target = repository / place
    files = sorted(path for path in target.rglob("*") if path.is_file()) if target.is_dir() else [target]
    names = [path.relative_to(repository).as_posix() for path in files]
    return run(repository, ["grep", "-nHIE", "-e", pattern, "--", *names])


def read_file(repository: Path, values: Sequence[str]) -> Outcome:
    """A file with line numbers; the second value is a range of lines such as ``10-40``."""
    file = repository / values[0]
    if not file.is_file():
        return Outcome(f"No such file: {values[0]}", True)
    lines = file.read_text(encoding="utf-8").splitlines()
    first, last = (int(end) for end in values[1].split("-")) if len(values) > 1 else (1, len(lines))
    numbered = [f"{number:6}\t{line}" for number, line in enumerate(lines, 1) if first <= number <= last]
    return Outcome("\n".join(numbered), False)


def write_file(repository: Path, values: Sequence[str]) -> Outcome:
    """A new file, or a file written anew."""
    file = repository / values[0]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(values[1], encoding="utf-8")
    return Outcome(f"Wrote {values[0]} ({len(values[1])} characters).", False)


def edit_file(repository: Path, values: Sequence[str]) -> Outcome:
    """One replacement in a file; the old text must stand there once."""
    try:
        replace_once(repository / values[0], values[1], values[2])
    except (RecordingError, OSError) as error:
        return Outcome(f"Nothing was changed: {error}", True)
    return Outcome(f"Changed {values[0]}.", False)


TOOLS: dict[str, Tool] = {
    "shell": Tool(
        "Run a command line with bash in /repo. Returns stdout and stderr, and the exit code if not 0.",
        {"command": "The command line."},
        shell,
    ),
    "grep": Tool(
        "Search files for an extended regular expression. Returns file:line:text, in order of file name.",
        {"pattern": "Extended regular expression.", "path": "A file or folder below /repo."},
        grep,
    ),
    "read_file": Tool(
        "Read a text file with line numbers.",
        {"path": "A file below /repo.", "lines": "Optional range of lines, such as 10-40."},
        read_file,
    ),
    "write_file": Tool(
        "Write a text file, replacing what stood there.",
        {"path": "A file below /repo.", "content": "All of the new content."},
        write_file,
    ),
    "edit_file": Tool(
        "Replace text in a file. The old text must stand there exactly once.",
        {"path": "A file below /repo.", "old": "Text to replace.", "new": "Text to put in its place."},
        edit_file,
    ),
    "run_tests": Tool(
        "Run pytest in /repo.",
        {"arguments": "Paths and options, as on pytest's command line."},
        run_tests,
    ),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

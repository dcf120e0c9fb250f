"""Runs the blocks of ``docs/howto/frameworks.md``: each framework in its newest version, in its own environment.

usage: python -m scripts.frameworks [HEADING ...]

Needs a package index. Prints a table; the exit code is 1 where a request was illegal or not packed, where there was
not one session, or where the agent's answer is wrong.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "howto" / "frameworks.md"
PACKAGES = {
    "Pydantic AI": ("pydantic-ai-slim[openai,anthropic]",),
    "LangChain": ("langchain", "langchain-openai", "langchain-anthropic"),
    "LiteLLM": ("litellm", "mcp"),  # Without mcp, a completion with tools fails.
    "Anthropic's tool_runner": ("anthropic",),
    "OpenAI Agents SDK": ("openai-agents",),
}
"""What is installed for the blocks below a heading; of the first one the version is printed."""
OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
LEAST_REQUESTS = 20
COLUMNS = ("framework", "version", "model", "requests", "legal", "packed", "sessions", "records", "answer")


class Ran(NamedTuple):
    """A block, and what came of it."""

    row: tuple[str, ...]
    problem: str


def sections(text: str) -> dict[str, list[str]]:
    """The Python blocks of a page, by heading."""
    _, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    found = {part.partition("\n")[0]: re.findall(r"^```python\n(.*?)^```", part, re.M | re.S) for part in parts}
    return {heading: blocks for heading, blocks in found.items() if blocks}


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """The interpreter of a new environment that has the packages and Lading."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    quiet = ["--quiet", "--quiet", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", "install", *quiet, *packages, str(ROOT)], check=True)
    return python


def version(python: Path, package: str) -> str:
    """The version that is installed."""
    code = f"import importlib.metadata as m; print(m.version({package.partition('[')[0]!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def ran(python: Path, block: str, *, name: str, is_version: str) -> Ran:
    """Run one block as an agent."""
    model = (re.findall(r'"(?:\w+/)?(gpt-[\w.-]+|claude-[\w.-]+)"', block) or ["?"])[0]
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as file:
        file.write(block)
        file.flush()
        command = [str(python), str(ROOT / "scripts" / "framework_agent.py"), file.name]
        done = subprocess.run(command, env=os.environ | OFFLINE, capture_output=True, text=True, check=False)
    if done.returncode:
        return Ran((name, is_version, model, *("-" * 6)), done.stderr)
    return judged((name, is_version, model), json.loads(done.stdout.splitlines()[-1]))


def judged(named: tuple[str, ...], found: dict[str, int]) -> Ran:
    """A row of the table, and what is wrong with it."""
    requests = found["requests"]
    expected = {"legal": requests, "packed": requests, "sessions": 1, "answer": True}
    wrong = [f"{name} is {found[name]}, not {value}" for name, value in expected.items() if found[name] != value]
    wrong += [f"{requests} requests; at least {LEAST_REQUESTS}"] if requests < LEAST_REQUESTS else []
    wrong += [] if found["records"] else ["nothing was compacted"]
    row = (*named, *(str(found[name]) for name in COLUMNS[3:-1]), "right" if found["answer"] else "wrong")
    return Ran(row, "; ".join(wrong))


def main(arguments: Sequence[str]) -> int:
    """Run the blocks below the headings given (default: all), and print the table."""
    runs: list[Ran] = []
    for heading, blocks in sections(PAGE.read_text(encoding="utf-8")).items():
        if arguments and heading not in arguments:
            continue
        with tempfile.TemporaryDirectory() as folder:
            python = environment(Path(folder), PACKAGES[heading])
            installed = version(python, PACKAGES[heading][0])
            runs += [ran(python, block, name=heading, is_version=installed) for block in blocks]
    rows = [COLUMNS, *(run.row for run in runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for run in runs:
        if run.problem:
            print(f"{run.row[0]}, {run.row[2]}: {run.problem}", file=sys.stderr)
    return any(run.problem for run in runs)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""One block of ``docs/howto/frameworks.md`` as an agent, in the environment of its framework.

usage: framework_agent.py BLOCK

Runs in an environment that has the framework and Lading. Prints what the provider and the store saw, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lading import open_store, verify
from lading.testing import NeedleTask, StrictProvider

TASK = NeedleTask(24, result_chars=9_000)


def read_file(path: str) -> str:
    """Read a file of the project."""
    return TASK.run_tool("read_file", {"path": path})


def run(command: str) -> str:
    """Run a command in the project and return what it prints."""
    return TASK.run_tool("run", {"command": command})


def main(arguments: Sequence[str]) -> int:
    """Run the block in the file named, in a new folder."""
    text = Path(arguments[0]).read_text(encoding="utf-8")
    own = {
        "__name__": "__main__",
        "prompt": TASK.prompt,
        "read_file": read_file,
        "run": run,
        "messages": [{"role": "user", "content": TASK.prompt}],
        "tools": TASK.tools("openai_chat"),
        "run_tool": TASK.run_tool,
    }
    with tempfile.TemporaryDirectory() as folder, StrictProvider(TASK.script, window_tokens=48_000) as provider:
        os.chdir(folder)
        for name, address in (("OPENAI", f"{provider.url}/v1"), ("ANTHROPIC", provider.url)):
            os.environ |= {f"{name}_BASE_URL": address, f"{name}_API_URL": address, f"{name}_API_KEY": "local"}
        exec(compile(text, arguments[0], "exec"), own)
        found = seen(provider) | {"answer": own.get("answer") == TASK.report()}
        os.chdir("/")
    print(json.dumps(found))
    return 0


def seen(provider: StrictProvider) -> dict[str, object]:
    """What reached the provider, and what the store ``my-store`` holds of it."""
    with open_store("sqlite", "my-store") as store:
        sessions = store.sessions()
        edits = [edit for name in sessions for edit in store.load(*name).edits]
        outcomes = [outcome for name in sessions for outcome in verify(store, tenant=name[0], session=name[1])]
    return {
        "requests": len(provider.answers),
        "legal": sum(answer.status == 200 for answer in provider.answers),
        "packed": sum(not outcome.problem for outcome in outcomes),
        "sessions": len(sessions),
        "records": sum(edit.kind == "summarised" for edit in edits),
    }


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

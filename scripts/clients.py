"""What agents of others send, judged by the strict provider: ``python -m scripts.clients [NAME...]``.

Installs the newest version of each client below ``.venv/clients``, lets it run a tool loop of a script without a
terminal, and reports its exit code and the violations. It needs npm and package indexes. Nothing of a client's
requests is kept.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from lading.cli.strict_provider import make_environment
from lading.errors import Violation
from lading.testing import Say, StrictProvider, Use
from lading.testing.script_file import ScriptFile

FOLDER = Path(__file__).resolve().parent.parent / ".venv" / "clients"
WAIT_S = 240
SECRET = "the password is heron"
ASKED = "Read the file notes.txt in this folder and say what it holds."


class Place(NamedTuple):
    """The folder of one run."""

    home: Path
    work: Path
    url: str

    @property
    def notes(self) -> str:
        """The path of the file that is read."""
        return str(self.work / "notes.txt")


class Client(NamedTuple):
    """An agent of somebody else, and how it is run without a terminal."""

    wire: str
    package: str
    is_npm: bool
    program: str
    use: Callable[[Place], Use]
    """The call of its own tool that reads the file."""
    arguments: Callable[[Place], Sequence[str]]
    variables: Mapping[str, str]
    files: Callable[[Place], Mapping[str, str]] = lambda _place: {}
    """Its configuration, by path below its home."""


class Outcome(NamedTuple):
    """What one run came to."""

    version: str
    exit_code: int | None
    """None: it could not be run."""
    requests: int
    answered: int
    """Requests of the tool loop that the provider answered."""
    violations: Sequence[Violation] = ()
    reason: str = ""


def _codex_files(place: Place) -> Mapping[str, str]:
    lines = (
        'model = "gpt-5-codex"',
        'model_provider = "local"',
        "check_for_update_on_startup = false",
        "[analytics]",
        "enabled = false",
        "[model_providers.local]",
        'name = "local"',
        f'base_url = "{place.url}/v1"',
        'env_key = "OPENAI_API_KEY"',
        'wire_api = "responses"',
        "request_max_retries = 0",
        "stream_max_retries = 0",
    )
    return {".codex/config.toml": "\n".join(lines) + "\n"}


def _gemini_files(place: Place) -> Mapping[str, str]:
    del place
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"disableAutoUpdate": True},
    }
    return {".gemini/settings.json": json.dumps(settings)}


_READ_FUNCTION = "def read_file(path: str) -> str:\n    return open(path).read()\n"
CLIENTS = {
    "codex": Client(
        "openai_responses",
        "@openai/codex",
        True,
        "codex",
        lambda place: Use("exec_command", {"cmd": f"cat {place.notes}"}),
        lambda _: ("exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access", ASKED),
        {},
        _codex_files,
    ),
    "gemini": Client(
        "gemini",
        "@google/gemini-cli",
        True,
        "gemini",
        lambda place: Use("read_file", {"file_path": place.notes}),
        lambda _: ("-m", "gemini-2.5-flash", "-y", "--output-format", "stream-json", "-p", ASKED),
        {"GEMINI_CLI_TRUST_WORKSPACE": "true"},
        _gemini_files,
    ),
    "claude": Client(
        "anthropic",
        "@anthropic-ai/claude-code",
        True,
        "claude",
        lambda place: Use("Read", {"file_path": place.notes}),
        lambda _: (
            "-p",
            ASKED,
            "--output-format",
            "stream-json",
            "--verbose",
            "--allowedTools",
            "Read",
            "--max-turns",
            "5",
        ),
        dict.fromkeys(
            (
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
                "DISABLE_AUTOUPDATER",
                "DISABLE_TELEMETRY",
                "DISABLE_ERROR_REPORTING",
            ),
            "1",
        ),
    ),
    "llm": Client(
        "openai_chat",
        "llm",
        False,
        "llm",
        lambda place: Use("read_file", {"path": place.notes}),
        lambda _: ("-m", "gpt-4o-mini", ASKED, "--functions", _READ_FUNCTION),
        {},
    ),
}


def main(names: Sequence[str]) -> int:
    """Run the clients named, all without names. Returns the exit code: 1 when one failed or broke a rule."""
    if unknown := [name for name in names if name not in CLIENTS]:
        print(f"There is no client {unknown[0]!r}. Choose from: {', '.join(CLIENTS)}.")
        return 2
    outcomes = {name: run(CLIENTS[name]) for name in names or CLIENTS}
    console = Console(width=None if sys.stdout.isatty() else 140)
    table = Table("client", "version", "format", "requests", "answered", "exit code", "violations")
    for name, found in outcomes.items():
        code = found.reason if found.exit_code is None else str(found.exit_code)
        counts = str(found.requests), str(found.answered)
        table.add_row(name, found.version, CLIENTS[name].wire, *counts, code, str(len(found.violations)))
    console.print(table)
    for name, found in outcomes.items():
        for broken in found.violations:
            console.print(f"{name}: {broken.rule} at {broken.path}: {broken.detail}", markup=False)
        if found.exit_code and found.reason:
            console.print(f"{name}: {found.reason}", markup=False)
    return 1 if any(found.exit_code or found.violations for found in outcomes.values()) else 0


def run(client: Client) -> Outcome:
    """Install a client and let it run its tool loop."""
    try:
        program, version = _install(client)
    except (OSError, subprocess.SubprocessError) as error:
        return Outcome("", None, 0, 0, reason=f"could not be installed: {error}"[:200])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            return _play(client, program, version, Path(folder))
        except (OSError, subprocess.TimeoutExpired) as error:
            return Outcome(version, 1, 0, 0, reason=str(error)[:200])


def _play(client: Client, program: Path, version: str, folder: Path) -> Outcome:
    work = folder / "work"
    work.mkdir()
    (work / "notes.txt").write_text(SECRET + "\n")
    use = client.use(Place(folder, work, ""))
    script = ScriptFile((Say("I read it.", (use,), thinking="Look at the file."), Say(f"It says: {SECRET}.")))
    with StrictProvider(script.make_model()) as provider:
        place = Place(folder, work, provider.url)
        for path, text in client.files(place).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        kept = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        done = subprocess.run(
            (str(program), *client.arguments(place)),
            cwd=work,
            env={**kept, **make_environment(provider.url), **client.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
        answered = sum(bool(request.call) for request in provider.requests)
        is_whole = any(SECRET.encode() in request.raw for request in provider.requests)
        code = done.returncode or (0 if is_whole else 1)
        reason = "" if is_whole else "the result of its tool was not sent: "
        reason += (done.stderr or done.stdout).decode(errors="replace")[-300:] if code else ""
        return Outcome(version, code, len(provider.requests), answered, provider.violations, reason)


def _install(client: Client) -> tuple[Path, str]:
    """Install the newest version; return its program and the version."""
    folder = FOLDER / client.program
    if client.is_npm:
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError("npm is not there")
        _call(npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"{client.package}@latest")
        about: Any = json.loads((folder / "node_modules" / client.package / "package.json").read_text())
        return folder / "node_modules" / ".bin" / client.program, about["version"]
    _call(sys.executable, "-m", "venv", str(folder))
    _call(str(folder / "bin" / "pip"), "install", "--quiet", "--upgrade", client.package)
    shown = _call(str(folder / "bin" / "pip"), "show", client.package)
    return folder / "bin" / client.program, shown.partition("Version: ")[2].split("\n")[0]


def _call(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

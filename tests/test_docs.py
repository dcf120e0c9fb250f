"""Every Python block of the documents runs, and every command they show exists."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import httpx2
import pytest
from click.testing import CliRunner

import lading
from lading.registry import lookup
from lading.testing import NeedleTask, StrictProvider
from tests.examples import quick_first

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block of a document."""

    where: str
    """``file:line`` of its first line."""
    language: str
    text: str


def blocks(text: str, name: str) -> Iterator[Block]:
    """The fenced blocks of a Markdown text, their own indent taken off."""
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start(3)) + 1
        body = re.sub(f"^{match[1]}", "", match[3], flags=re.MULTILINE)
        yield Block(f"{name}:{line}", match[2], body)


def commands(text: str) -> list[list[str]]:
    """The command lines of a console block, as words; a backslash carries on into the next line."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


def unknown_command(words: list[str], program: click.Command | None, targets: set[str]) -> str:
    """What a command line names that does not exist; empty where all of it does, or it is another program."""
    if words[0] == "make":
        unknown = [word for word in words[1:] if "=" not in word and word not in targets]
        return f"no target {unknown[0]}" if unknown else ""
    if words[0] != "lading":
        return ""
    if not isinstance(program, click.Group):
        return "there is no command line"
    if len(words) == 1 or words[1].startswith("-"):
        return ""
    command = program.get_command(click.Context(program), words[1])
    if command is None:
        return f"no command {words[1]}"
    own = words[2 : words.index("--") if "--" in words else None]
    if isinstance(command, click.Group):
        own = own[sum(isinstance(param, click.Argument) for param in command.params) :]
        command = command.get_command(click.Context(command), own[0]) if own else None
        if command is None:
            return f"{words[1]} has no command {' '.join(own[:1])}"
    known = {"--help"} | {option for param in command.params for option in param.opts + param.secondary_opts}
    given = [word.partition("=")[0] for word in own if word.startswith("--")]
    return next((f"{words[1]} has no option {option}" for option in given if option not in known), "")


DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")], key=Path.as_posix
)
BLOCKS = [
    block
    for document in DOCUMENTS
    for block in blocks(document.read_text(encoding="utf-8"), document.relative_to(ROOT).as_posix())
]
TARGETS = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))


def standing_program() -> click.Command | None:
    """The command line, where it is built."""
    if importlib.util.find_spec("lading.cli") is None:
        return None
    found: object = lookup({}, "lading.cli:main", kind="program")
    assert isinstance(found, click.Command)
    return found


FRAMEWORKS = "docs/howto/frameworks.md"
"""Its blocks need frameworks that are not installed here; ``make frameworks`` runs them."""
PYTHON = [block for block in BLOCKS if block.language == "python" and not block.where.startswith(FRAMEWORKS)]
AGENTS = [block for block in PYTHON if "run_tool(" in block.text]
"""Blocks with a tool loop, which the reader's own ``messages``, ``tools`` and ``run_tool`` make an agent."""
STORE_COMMANDS = {
    shlex.join(words): [*words[1:], *(["--once"] if words[1] == "top" else [])]
    for block in BLOCKS
    if block.language == "console"
    for words in commands(block.text)
    if words[:1] == ["lading"] and any(word.startswith("my-store") for word in words)
}
"""What the documents show of the store that those agents write; ``top`` alone would not end."""


def agents_own(task: NeedleTask, provider: StrictProvider, *, wire: str) -> dict[str, Any]:
    """What the documents say is the reader's."""

    def send(body: bytes) -> tuple[int, str]:
        headers = {"x-api-key": "local", "anthropic-version": "2023-06-01"}
        response = httpx2.post(f"{provider.url}/v1/messages", content=body, headers=headers)
        return response.status_code, response.text

    messages: list[dict[str, Any]] = [{"role": "user", "content": task.prompt}]
    if wire == "gemini":
        messages = [{"role": "user", "parts": [{"text": task.prompt}]}]
    return {"messages": messages, "tools": task.tools(wire), "run_tool": task.run_tool, "send": send}


@pytest.mark.parametrize("block", [block for block in PYTHON if block not in AGENTS], ids=lambda block: block.where)
def test_python_block_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "local")
    exec(compile(block.text, block.where, "exec"), {"__name__": "__main__"})


LONGEST_LAST = sorted(AGENTS, key=lambda block: block.where.startswith("README"))


@pytest.mark.parametrize(
    "block", quick_first([(block,) for block in LONGEST_LAST], len(AGENTS) - 2), ids=lambda block: block.where
)
def test_agent_block_runs_to_its_end(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a provider that refuses what the real ones refuse; what the agent is asked for at the end left its
    view long before."""
    monkeypatch.chdir(tmp_path)
    window = int(re.findall(r"window=([\d_]+)", block.text)[0])
    task = (
        NeedleTask(60, result_chars=5_000)
        if block.where.startswith("README")
        else NeedleTask(15, result_chars=9_000)
    )
    # A block that shows what to do about a prompt that is too long meets one.
    refused = "retry(" in block.text
    with StrictProvider(task.script, window_tokens=window // 3 if refused else window) as provider:
        for name, address in (("OPENAI", f"{provider.url}/v1"), ("ANTHROPIC", provider.url)):
            monkeypatch.setenv(f"{name}_BASE_URL", address)
            monkeypatch.setenv(f"{name}_API_KEY", "local")
        monkeypatch.setenv("GEMINI_API_KEY", "local")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", provider.url)
        named = {"claude": "anthropic", "responses.create": "openai_responses", "gemini": "gemini"}
        wire = next((wire for word, wire in named.items() if word in block.text), "openai_chat")
        own = agents_own(task, provider, wire=wire)
        exec(compile(block.text, block.where, "exec"), own)
        if "client" in own:
            own["client"].close()
    assert provider.violations == []
    assert provider.issues[-1].say.text == task.report()
    assert {answer.status for answer in provider.answers} == ({200, 400} if refused else {200})
    assert any(use.name == "restore" for issue in provider.issues for use in issue.say.calls)
    with lading.open_store("sqlite", "my-store") as store:
        [(tenant, session)] = store.sessions()
        edits = store.load(tenant, session).edits
        outcomes = list(lading.verify(store, tenant=tenant, session=session))
    assert any(edit.kind == "summarised" for edit in edits)
    assert len(outcomes) > task.rounds
    assert [outcome for outcome in outcomes if outcome.problem] == []


@pytest.fixture(scope="module")
def my_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which ``my-store`` holds a session of two calls."""
    folder = tmp_path_factory.mktemp("agent")
    with lading.Session("gpt-5-mini", store=folder / "my-store") as session:
        for said in ("text", "more"):
            session.add(said)
            session.pack()
            session.reply({"choices": [{"message": {"role": "assistant", "content": "Yes."}}]})
    return folder


@pytest.mark.parametrize("line", STORE_COMMANDS)
def test_command_on_the_agents_store_runs(line: str, my_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(my_store)
    program = standing_program()
    assert program is not None
    result = CliRunner().invoke(program, STORE_COMMANDS[line])
    assert not isinstance(result.exception, Exception)
    assert result.exit_code in (0, 1)


def test_the_record_in_the_readme_is_what_its_commands_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of the document are wrapped and left out; none is invented."""
    readme = (ROOT / "README.md").read_text("utf-8")
    shell, shown = re.findall(r"```console\n((?:.*\n){2})```\n\n```text\n((?:.*\n)+?)```", readme)[0]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    program = standing_program()
    assert program is not None
    ended = [CliRunner().invoke(program, words[1:]) for words in commands(shell)]
    made = " ".join(ended[-1].stdout.split())
    told = re.split(r"^\.\.\.\n|^(?=#\d+ |- |\[|Files changed)", shown, flags=re.MULTILINE)
    assert [line for line in told if " ".join(line.split()) not in made] == []
    assert len(told) > 15


@pytest.mark.parametrize(
    "block", [item for item in BLOCKS if item.language == "console"], ids=lambda block: block.where
)
def test_console_block_names_what_exists(block: Block) -> None:
    program = standing_program()
    found = {shlex.join(words): unknown_command(words, program, TARGETS) for words in commands(block.text)}
    assert {command: unknown for command, unknown in found.items() if unknown} == {}


def test_the_files_that_the_walk_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w/<>*-]+\.(?:py|js)\b", text)) | set(re.findall(r"`([a-z]+/)`", text))
    assert len(named) > 60
    patterns = {name: name.replace("<format>", "*").rstrip("/") for name in named}
    rooms = ROOT / "src" / "lading"
    missing = [name for name in named if not ((ROOT / name).exists() or any(rooms.rglob(patterns[name])))]
    assert missing == []


def test_blocks_are_found_with_their_line_and_without_their_indent() -> None:
    text = "One\n\n  ```python\n  x = 1\n    y = 2\n  ```\n\n```console title\n$ lading show\n```\n"
    assert list(blocks(text, "a.md")) == [
        Block("a.md:4", "python", "x = 1\n  y = 2\n"),
        Block("a.md:9", "console", "$ lading show\n"),
    ]


def test_commands_are_read_as_a_shell_reads_them() -> None:
    text = "$ make test  # runs all\nall passed\n$ lading replay 'a b.jsonl' \\\n    --window 32000\n"
    assert commands(text) == [["make", "test"], ["lading", "replay", "a b.jsonl", "--window", "32000"]]


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("git clone x", ""),
        ("make test", ""),
        ("make test JOBS=4", ""),
        ("make nothing", "no target nothing"),
        ("lading", ""),
        ("lading --help", ""),
        ("lading show x --help", ""),
        ("lading show x --json", ""),
        ("lading shew x", "no command shew"),
        ("lading memory x consolidate --dry-run", ""),
        ("lading memory x consolidate --try", "memory has no option --try"),
        ("lading memory x fold", "memory has no command fold"),
        ("lading show x --yaml=1", "show has no option --yaml"),
        ("lading show x -- agent --yaml", ""),
    ],
)
def test_a_command_that_does_not_exist_is_named(line: str, unknown: str) -> None:
    show = click.Command("show", params=[click.Option(["--json"])])
    fold = click.Command("consolidate", params=[click.Option(["--dry-run"])])
    memory = click.Group("memory", params=[click.Argument(["folder"])], commands={"consolidate": fold})
    program = click.Group("lading", commands={"show": show, "memory": memory})
    assert unknown_command(shlex.split(line), program, {"test"}) == unknown


def test_without_a_command_line_no_document_may_show_one() -> None:
    assert unknown_command(["lading", "show"], None, set()) == "there is no command line"

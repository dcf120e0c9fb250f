"""Every Python block of the documents runs, and every command they show exists."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from lading.tables import lookup

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
    known = {"--help"} | {option for param in command.params for option in param.opts + param.secondary_opts}
    given = [word.partition("=")[0] for word in words[2:] if word.startswith("--")]
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
    found = lookup({}, "lading.cli:main", kind="program")
    assert isinstance(found, click.Command)
    return found


@pytest.mark.parametrize(
    "block", [item for item in BLOCKS if item.language == "python"], ids=lambda block: block.where
)
def test_python_block_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, block.where, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(
    "block", [item for item in BLOCKS if item.language == "console"], ids=lambda block: block.where
)
def test_console_block_names_what_exists(block: Block) -> None:
    program = standing_program()
    found = {shlex.join(words): unknown_command(words, program, TARGETS) for words in commands(block.text)}
    assert {command: unknown for command, unknown in found.items() if unknown} == {}


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
        ("lading show x --yaml=1", "show has no option --yaml"),
    ],
)
def test_a_command_that_does_not_exist_is_named(line: str, unknown: str) -> None:
    show = click.Command("show", params=[click.Option(["--json"])])
    program = click.Group("lading", commands={"show": show})
    assert unknown_command(shlex.split(line), program, {"test"}) == unknown


def test_without_a_command_line_no_document_may_show_one() -> None:
    assert unknown_command(["lading", "show"], None, set()) == "there is no command line"

"""What is misspelt on the command line is answered with what it resembles."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lading.cli import COMMANDS
from tests.cli.commands import lading, reply, user, written
from tests.cli.test_bad_input import complains

MISSPELT = {
    "command": (("repaly",), "There is no command 'repaly'. Did you mean 'replay'?"),
    "option": (("replay", "s.json", "--windw", "3"), "'--window'"),
    "strategy": (("replay", "SESSION", "--strategy", "prised"), "Did you mean 'priced'?"),
    "old strategy": (
        ("replay", "SESSION", "--strategy", "compact-tool-results"),
        "Did you mean 'agentrail/tool_results'?",
    ),
    "old strategy compared": (
        ("compare", "SESSION", "--strategies", "compactToolResult"),
        "'agentrail/tool_results'?",
    ),
    "old arm": (("compare", "SESSION", "--strategies", "sumarise80"), "Did you mean 'extract80'?"),
    "arm": (("compare", "SESSION", "--strategies", "dialog"), "Did you mean 'dialogue'?"),
    "provider format": (("replay", "SESSION", "--wire", "openai-chat"), "Did you mean 'openai_chat'?"),
    "session": (("show", "STORE@sesion:1"), "The store has no session 'sesion'. Did you mean 'session'?"),
    "session of top": (("top", "STORE", "--once", "--session", "sesion"), "Did you mean 'session'?"),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_what_is_misspelt_is_answered_with_what_was_meant(tmp_path: Path, name: str) -> None:
    session = written(tmp_path / "session.json", [user("Hello."), reply("Hi.")])
    lading("replay", session, "--store", tmp_path / "store")
    arguments, words = MISSPELT[name]
    places = (("SESSION", str(session)), ("STORE", str(tmp_path / "store")))
    complains(lading(*(each.replace(*places[0]).replace(*places[1]) for each in arguments)), words)


def misspelt(name: str, at: int, letter: str) -> str:
    """The name with another letter at one place."""
    return name[: at % len(name)] + letter + name[at % len(name) + 1 :]


@pytest.mark.fuzz
@given(st.sampled_from(sorted(COMMANDS)), st.integers(0, 9), st.sampled_from("abcdefghijklmnopqrstuvwxyz"))
def test_a_command_with_another_letter_is_recognised(name: str, at: int, letter: str) -> None:
    typed = misspelt(name, at, letter)
    assume(typed not in COMMANDS)
    complains(lading(typed), f"There is no command {typed!r}.", "Choose one of: inspect, replay")
    if len(name) >= 5:
        assert f"Did you mean {name!r}?" in lading(typed).err


def test_the_help_has_each_summary_whole() -> None:
    shown = " ".join(lading("--help").out.split())
    for name, summary in COMMANDS.items():
        assert f"{name} {summary}" in shown

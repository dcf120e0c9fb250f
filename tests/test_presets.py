"""The tables of docs/reference/presets answer the documents: every option of theirs, its default and numbers.

What the documents tell stands in ``documents/rows.toml``; each option of it has a row that names a value of the
library and tests, and says the difference where there is one. A number that is another must make one of these fail.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import fields

from lading.compaction import STRATEGIES
from lading.presets.open_multi_agent import AgentConfig, Compact, Custom, MinChars, SlidingWindow, Summarize
from tests.documents.blocks import text_of
from tests.documents.rows import (
    CODE,
    COMES_WITH,
    DOCUMENTS,
    PAGES,
    ROOT,
    TEST,
    Elsewhere,
    Option,
    Row,
    System,
    answered,
    named_in,
    numbers_in,
    rows,
    source_of_test,
    stands_in,
    value_at,
)

TOLD = list(answered())
OURS = {"append-only", "basic", "priced"}
"""Strategies that no document describes."""
INDEX = PAGES / "README.md"
HOWTO = PAGES.parents[1] / "howto"
OPTION_PAGES = sorted(set(PAGES.glob("*.md")) - {INDEX})


def row_of(system: System, option: Option) -> Row:
    """The row that answers an option."""
    found = [row for row in rows(PAGES / f"{system.page}.md") if row.is_of(option) and row.here]
    assert found, f"no row of {system.page}.md has {option.row or option.name!r} as its option"
    assert len(found) == 1, f"{option.spelled}: give `row`, there are {[row.option for row in found]}"
    return found[0]


@pytest.mark.parametrize("page", OPTION_PAGES, ids=lambda it: it.stem)
def test_every_row_names_a_value_and_a_test_that_exist(page: Path) -> None:
    assert rows(page)
    for row in rows(page):
        assert row.difference, row.option
        if row.here in ("", "none"):
            assert not row.test
            assert COMES_WITH.search(row.difference), f"{row.option}: say which part brings it"
            continue
        module, _, value = row.here.strip("`").partition(":")
        assert hasattr(importlib.import_module(f"lading.{module}"), value), row.here
        assert TEST.findall(row.test), row.option
    for path, test in TEST.findall(page.read_text(encoding="utf-8")):
        assert source_of_test(path, test), f"{path}::{test}"


@pytest.mark.parametrize(("system", "option"), TOLD, ids=[f"{system.page}-{one.spelled}" for system, one in TOLD])
def test_every_option_default_and_number_of_the_documents_has_a_row(system: System, option: Option) -> None:
    row = row_of(system, option)
    missing = [one for one in option.told if not stands_in(one, row.default)]
    assert not missing, f"{missing} in {row.default!r}"
    if option.differs:
        assert row.difference not in ("", "None."), row.option
    comes = COMES_WITH.search(row.difference)
    assert (comes[1].removesuffix(" layer") if comes else "") == option.part, row.option
    if option.value:
        assert value_at(option.value) == option.expected


WITH_A_VALUE = [one for _, one in TOLD if one.value]
"""A run of the tests for each takes minutes: `make fuzz` alters all of them, other runs one in eight."""
ALTERED = WITH_A_VALUE if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else WITH_A_VALUE[::8]


@pytest.mark.full
@pytest.mark.fuzz
@pytest.mark.parametrize("option", ALTERED, ids=lambda it: it.spelled)
def test_a_test_of_its_row_fails_where_a_default_or_number_is_another(option: Option) -> None:
    (system,) = (system for system, one in TOLD if one is option)
    tests = [f"tests/{path}::{test}" for path, test in TEST.findall(row_of(system, option).test)]
    command = (
        f"{sys.executable} -m pytest -n 0 -q -x -p tests.altered -p no:cacheprovider --inline-snapshot=disable"
    )
    done = subprocess.run(
        [*command.split(), "--inline-snapshot=disable", *tests],
        env={**os.environ, "LADING_ALTERED": option.value, "HYPOTHESIS_PROFILE": "quick"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, f"{option.value}: {done.stdout[-800:]}{done.stderr}"


@pytest.mark.parametrize("group", DOCUMENTS.elsewhere, ids=lambda it: it.why)
def test_what_is_no_option_of_history_works_or_has_the_part_that_brings_it(group: Elsewhere) -> None:
    assert [bool(state) for state in (group.test, group.part, group.example)].count(True) == 1
    if group.test:
        assert source_of_test(*group.test.split("::"))


@pytest.mark.parametrize(
    ("what", "text", "stands"),
    [
        (4, "4, 6, 8", True),
        (4, "40, 14, 4.5, .4", False),
        (80_000, "80,000 tokens", True),
        (80_000, "80 000", True),
        (80_000, "Boundary(80_000)", True),
        (80_000, "180,000", False),
        (0.3, "e^(-0.3 × n)", True),
        (0.3, "at .3", True),
        (0.3, "10.3, 0.35", False),
        (".94", "0.94", True),
        ("mid", "local, mid", True),
        ("mid", "large", False),
    ],
)
def test_a_number_stands_in_a_text_as_a_whole_however_it_is_grouped(
    what: float | str, text: str, *, stands: bool
) -> None:
    assert stands_in(what, text) == stands


def test_the_list_has_what_the_documents_say_in_their_words(shared: Path) -> None:
    source = (shared / "reference" / "seed_systems.md").read_text(encoding="utf-8")
    for system, option in TOLD:
        text = source if option.code else "\n".join(text_of(shared, number) for number in system.documents)
        assert option.spelled in text, option.spelled


def test_what_a_document_names_is_in_the_list_or_is_no_option_of_history(shared: Path) -> None:
    elsewhere = {name for group in DOCUMENTS.elsewhere for name in group.names}
    named: set[str] = set()
    for system in DOCUMENTS.system:
        if system.page == "aether-frame":  # a document of prose: what it tells of history has its lines above
            continue
        names = named_in("\n".join(text_of(shared, number) for number in system.documents)).keys()
        listed = [str(one) for option in system.options for one in (option.name, option.words, *option.told)]
        assert [name for name in names - elsewhere if not any(name in one for one in listed)] == []
        named |= names
    assert sorted(elsewhere - named) == []


def test_every_number_of_a_document_is_in_the_list_or_none_of_history(shared: Path) -> None:
    for system in DOCUMENTS.system:
        listed = [str(one) for option in system.options for one in option.told]
        listed += [option.spelled for option in system.options if not option.code]
        for number in system.documents:
            elsewhere = {one for group in DOCUMENTS.elsewhere if number in group.documents for one in group.numbers}
            told = set().union(*map(numbers_in, listed))
            assert numbers_in(text_of(shared, number)) - elsewhere - told == set(), number
            assert elsewhere <= numbers_in(text_of(shared, number)), number


@pytest.mark.parametrize("system", DOCUMENTS.system, ids=lambda it: it.page)
def test_every_system_has_a_page_for_those_who_come_from_it(system: System) -> None:
    text = (HOWTO / f"coming-from-{system.page}.md").read_text(encoding="utf-8")
    assert f"docs/reference/presets/{system.page}.md" in text
    # What its document spells is shown, in either spelling; what only its source has may stand in the page alone.
    spelled = [option.name for option in system.options if option.name and not option.code]
    assert [name for name in spelled if name not in text and _snake(name) not in text] == []


def test_every_option_of_a_configuration_is_named_in_its_page() -> None:
    """Also those of open-multi-agent's code that no line of its document spells."""
    page = (PAGES / "open-multi-agent.md").read_text(encoding="utf-8")
    named = {_snake(span) for span in CODE.findall(page)}
    of_config = [one.name for one in fields(AgentConfig) if one.name not in ("name", "model", "provider")]
    of_others = [one.name for kind in (SlidingWindow, Summarize, Compact, Custom, MinChars) for one in fields(kind)]
    assert [name for name in (*of_config, *of_others) if not any(name in one for one in named)] == []


def test_the_index_has_a_line_for_every_strategy_of_a_document() -> None:
    lines = [
        line.strip("|").split("|")
        for line in INDEX.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    listed = [CODE.findall(cells[0])[0] for cells in lines]
    assert sorted(set(STRATEGIES) - OURS - set(listed)) == [], "not in the index"
    assert sorted(set(listed) - (set(STRATEGIES) - OURS)) == [], "no strategies of documents"
    assert len(listed) == len(set(listed))
    for cells in lines:
        assert len(cells) == 6
        page = re.search(r"\]\(([\w-]+\.md)\)", cells[5])
        assert page, cells[0]
        assert cells[0].strip() in (PAGES / page[1]).read_text(encoding="utf-8"), (
            f"{page[1]} does not name {cells[0]}"
        )


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name).removeprefix("_")

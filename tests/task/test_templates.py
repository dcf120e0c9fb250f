"""Templates: how one is found, and what of it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lading.errors import InputError, UnknownName
from lading.task.templates import DOCUMENT, TEMPLATES, fill, find_template, read_templates

OWN = "{step} {acceptance} {request}"


def test_a_template_is_found_by_name_and_tier_then_by_name_the_caller_s_first() -> None:
    own = {"operator": "o", "operator:local": "l"}
    assert find_template("operator", tier="local", own=own) == "l"
    assert find_template("operator", tier="mid", own=own) == "o"
    assert find_template("reviewer", tier="local", own=own) == TEMPLATES["reviewer"]
    with pytest.raises(UnknownName):
        find_template("singer", tier="", own=own)


def test_a_folder_holds_templates_by_name_and_tier(tmp_path: Path) -> None:
    (tmp_path / "operator.txt").write_text(OWN)
    (tmp_path / "operator.local.txt").write_text(f"local {OWN}")
    assert read_templates(tmp_path) == {"operator": OWN, "operator:local": f"local {OWN}"}
    assert read_templates(str(tmp_path))["operator"] == OWN
    assert read_templates("document") is DOCUMENT
    assert read_templates(None) == {}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"operator": f"{OWN} {{operator}}"}, "has the place {operator}, which has no value"),
        ({"operator": "{step}"}, "needs a place {acceptance}"),
        ({"operator": 7}, "as a text"),
        (7, "by name"),
        ("no-such-folder", "holds no template"),
    ],
)
def test_a_template_that_cannot_be_filled_is_refused(given: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_templates(given)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "operator.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(InputError, match="cannot be read"):
        read_templates(tmp_path)


def test_values_are_inserted_once_and_verbatim() -> None:
    looped = {"step": "{acceptance}", "acceptance": "{step}", "request": "{request} \\1 {x}"}
    assert fill(OWN, looped) == "{acceptance} {step} {request} \\1 {x}"


def test_a_section_whose_places_are_empty_is_left_out_and_so_is_a_line() -> None:
    template = "A:\n{step}\n{tools}\n\nB:\n{memory}\n\nC: fixed\n\n{request}"
    assert fill(template, {"step": "s", "request": "r", "tools": " "}) == "A:\ns\n\nC: fixed\n\nr"

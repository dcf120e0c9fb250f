"""Answers against checklists, proof by proof."""

from __future__ import annotations

from typing import Any

import pytest

from lading.errors import InputError
from lading.task.acceptance import Checks, KnownEvidence, check_acceptance, check_citations
from lading.task.task import Checklist, ChecklistItem
from tests.growth import assert_linear

URI = "artifact://tasks/42/step-3/report.md"
KNOWN = KnownEvidence(
    {URI: "Acme is 20 % cheaper than Blip,\nand older."},
    {URI: ("price",)},
    {"artifact://log/3": "secret"}.get,
)


def check(proof: str, output: str, argument: Any = "", **given: Any) -> tuple[str, str]:
    item = ChecklistItem("price", "The price", proof, argument)  # type: ignore[arg-type]
    (one,) = check_acceptance(output, Checklist((item,)), evidence=KNOWN, checks=Checks(**given)).items
    return one.status, one.why


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (f"It is cheap ({URI}).", ""),
        (f'It is "20 %  cheaper than blip, and older" [{URI}]', ""),
        ("It is cheap.", "no evidence is cited"),
        (f'It is "30 % cheaper than Blip" {URI}', f"{URI}: the quote '30 % cheaper than blip' is not in it"),
        *(
            (f"It is {quote} {URI}", f"{URI}: the quote '30 % cheaper than blip' is not in it")
            for quote in (
                "“30 % cheaper than Blip”",
                "„30 % cheaper than Blip“",
                "”30 % cheaper than Blip”",
                "« 30 % cheaper than Blip »",
                "»30 % cheaper than Blip«",
                "‘30 % cheaper than Blip’",
                "「30 % cheaper than Blip」",
                "『30 % cheaper than Blip』",
                "＂30 % cheaper than Blip＂",
            )
        ),
        (f"Es ist „20 % cheaper than Blip“, «and older» {URI}", ""),
        (f'The source is "{URI}".', ""),
        (f'{{"differentiator": "20 % cheaper than Blip", "source": "{URI}"}}', ""),
        (f'```json\n{{"differentiator":\n"{URI}"}}\n```', ""),
        (f'"30 % cheaper than Blip": {URI}', f"{URI}: the quote '30 % cheaper than blip' is not in it"),
        ("artifact://log/3", "artifact://log/3: it was not shown"),
        ("artifact://log/4", "artifact://log/4: it does not exist"),
    ],
)
def test_evidence_is_cited_exists_was_shown_and_holds_the_quote(output: str, why: str) -> None:
    assert check("evidence", output) == ("failed" if why else "passed", why)


def test_evidence_has_to_cover_its_item() -> None:
    item = ChecklistItem("risk", "Risks", "evidence")
    (one,) = check_acceptance(URI, Checklist((item,)), evidence=KNOWN).items
    assert one.why == "none of the cited evidence covers it"


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("# Risks\n\nmany", "passed"),
        ("**risks:**\n- one", "passed"),
        ("Risks:\nnone", "passed"),
        ("## Risks\n\n## Gaps\n\nx", "failed"),
        ("# Risks", "failed"),
        ("There are risks.", "failed"),
        ("# Risks\n\n## Price\n\nIt rose.", "passed"),
        ("# Risks\n\n## Price\n\n# Gaps\n\nx", "failed"),
        ("# Contents\nRisks\nGaps\n\n# Risks\n\nmany", "passed"),
        ("Contents\nRisks\nGaps\n\n# Risks\n\n# Gaps\n\nx", "failed"),
        ("# Risks\n# Risks\n\nmany", "passed"),
        ("## 3. Risks\n\nmany", "passed"),
        ("## Risks ##\n\nmany", "passed"),
        ("Risks\n=====\n", "failed"),
        ("Risks\n=====\nmany", "passed"),
        ("# Risks\n\n---\n", "failed"),
        ("# Risks\n\n\u200b\n", "failed"),
    ],
)
def test_a_section_has_a_header_and_something_below_it(output: str, status: str) -> None:
    assert check("section", output, "Risks")[0] == status


def test_the_other_proofs() -> None:
    assert check("none", "") == ("unchecked", "it needs no proof")
    assert check("pattern", "total: 20 %", r"\d+ %")[0] == "passed"
    assert check("pattern", "total", r"\d+ %")[0] == "failed"
    schema = {"type": "object", "required": ["a"]}
    assert check("json_schema", 'Here:\n```json\n{"a": 1}\n```', schema)[0] == "passed"
    assert check("json_schema", '{"b": 1}', schema) == ("failed", "$: 'a' is a required property")
    assert check("json_schema", "no", schema)[1].startswith("the output is no JSON")
    blocks = '```python\nprint(1)\n```\n\n```JSON\n{"a": "```"}\n```\n~~~\n{}\n~~~'
    assert check("json_schema", blocks, schema)[0] == "passed"
    assert check("json_schema", '~~~json\n{"a": 1}\n~~~', schema)[0] == "passed"
    assert (
        check("json_schema", '{"a": Infinity}', schema)[1] == "the output is no JSON: Infinity is no number of JSON"
    )
    assert check("callable", "x", "long", functions={"long": lambda text: len(text) > 3}) == (
        "failed",
        "the check said no",
    )
    assert check("callable", "x", "why", functions={"why": lambda _: "too short"}) == ("failed", "too short")
    assert check("callable", "x", "bad", functions={"bad": lambda _: 1 / 0})[1].startswith("ZeroDivisionError")
    assert check("judge", "x") == ("unchecked", "there is no judge")
    assert check("judge", "x", judge=lambda item, output: (item.id, output) == ("price", "x"))[0] == "passed"


def test_a_function_that_is_not_given_is_asked_for() -> None:
    with pytest.raises(InputError, match=r"needs the function 'lang'\. Did you mean 'long'"):
        check("callable", "x", "lang", functions={"long": bool})


def test_a_checklist_of_a_thousand_items_is_checked() -> None:
    items = tuple(ChecklistItem(f"a{at}", f"Item {at}", "pattern", f"value {at}$") for at in range(1_000))
    outcome = check_acceptance("value 7\nvalue 12", Checklist(items))
    assert len(outcome.failed) == 998
    assert not outcome.passed


def test_citations_are_found_in_time_linear_in_the_text() -> None:
    assert_linear(
        lambda text: check_citations(text, KNOWN),
        *[f'"{"quoted words " * 3}" {URI}\n' * n for n in (20, 160, 1_280)],
    )
    assert_linear(lambda text: check_citations(text, KNOWN), *[f"{'« “ ‘ 「 ' * n}{URI}" for n in (50, 500, 5_000)])


@pytest.mark.parametrize(
    "line", ["# Risks\n", "Risks\n---\n", "# Risks\n## Price\n", "```x\n", "a ```x\n", "~~~\n```\n"]
)
def test_sections_and_blocks_are_found_in_time_linear_in_the_text(line: str) -> None:
    for proof, argument in (("section", "Risks"), ("json_schema", {"type": "object"})):
        assert_linear(lambda text: check(proof, text, argument), *[line * n for n in (50, 400, 3_200)])  # noqa: B023

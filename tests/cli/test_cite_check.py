"""``lading cite-check``, and what ``lading show`` has of a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading import Session
from tests.cli.commands import lading
from tests.task.samples import TASK, call, said

GOOD = '"Acme: 20 % cheaper" artifact://tasks/42/step-2/search_web\n'
FORGED = '"Acme: 90 % cheaper" artifact://tasks/42/step-2/search_web\nartifact://tasks/42/step-2/none\n'


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with Session("gpt-4o", store=tmp_path / "store") as session:
        session.add("Compare.")
        session.begin("step-2", task=TASK)
        session.pack()
        session.add(call(1))
        session.pack()
        session.begin("step-3")
        session.pack()
        session.add(said(GOOD + "# Risks\nx"))
        session.check_acceptance()
    return tmp_path / "store"


def test_right_citations_are_counted_and_wrong_ones_named(store: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.md"
    answer.write_text(GOOD)
    assert lading("cite-check", answer, "--store", store) == (0, "1 of 1 citation are right.\n", "")
    answer.write_text(GOOD + FORGED)
    ended = lading("cite-check", answer, "--store", store)
    assert ended.code == 1
    assert "line 2: artifact://tasks/42/step-2/search_web: the quote 'acme: 90 % cheaper' is not in it" in ended.out
    assert "line 3: artifact://tasks/42/step-2/none: it does not exist" in ended.out
    assert lading("cite-check", answer, "--store", store, "--json").data["wrong"] == 2


def test_what_a_call_did_not_show_cannot_be_cited_in_its_answer(store: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.md"
    answer.write_text(GOOD)
    assert "it was not shown" in lading("cite-check", answer, "--store", store, "--call", "1").out
    assert lading("cite-check", answer, "--store", store, "--call", "3").code == 0
    assert "has no call 9" in lading("cite-check", answer, "--store", store, "--call", "9").err


def test_a_file_that_is_not_there_and_one_without_citation(store: Path, tmp_path: Path) -> None:
    assert lading("cite-check", tmp_path / "none.md", "--store", store).code == 2
    (tmp_path / "answer.md").write_text("No sources.")
    assert lading("cite-check", tmp_path / "answer.md", "--store", store).code == 1


def test_the_manifest_of_a_request_has_the_document_s_fields(store: Path) -> None:
    manifest = lading("show", f"{store}@last", "--manifest").data
    assert manifest["pack_id"].startswith("pack_task_42_step_step-3_")
    assert manifest["artifact_uris"] == ["artifact://tasks/42/step-2/search_web"]
    assert manifest["acceptance"][0]["call"] == 3
    assert manifest["checksum"].startswith("sha256:")
    assert lading("show", f"{store}@2", "--manifest").data["step_id"] == "step-2"


def test_an_artifact_of_a_step_is_printed(store: Path) -> None:
    uri = "artifact://tasks/42/step-2/search_web"
    assert lading("show", uri, "--store", store).out == "Acme: 20 % cheaper\n"
    assert lading("show", uri, "--store", store, "--json").data == "Acme: 20 % cheaper"
    assert "points nowhere" in lading("show", f"{uri}@7", "--store", store).err

"""Agentrail's KbList, KbRead and KbSearch over folders of Markdown: what is found, what is not reached."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from lading.catalogues import Catalogue, KnowledgeBases
from lading.errors import InputError, LadingError
from lading.memory import open_memory
from lading.messages import Message, ToolCall, ToolResult


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bases = tmp_path / "knowledge"
    for path, text in {
        "ops/proxy.md": "# Proxy\n\nThe proxy listens on port 8443.\n\nIt restarts at night.",
        "ops/deep/backup.md": "# Backup\n\nBackups go to Bergen.",
        "legal/terms.md": "# Terms\n\nNotice is three months.",
    }.items():
        place = bases / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    (tmp_path / "secret.md").write_text("the secret", encoding="utf-8")
    os.symlink(tmp_path / "secret.md", bases / "ops" / "link.md")
    return bases


def call(bases: KnowledgeBases, name: str, **arguments: Any) -> ToolResult:
    asked = Message("assistant", (ToolCall("c1", name, json.dumps(arguments)),))
    (answered,) = Catalogue(bases).handle(asked)
    return answered.results[0]


def test_bases_and_documents_are_listed(folder: Path) -> None:
    bases = KnowledgeBases(folder)
    assert [tool.name for tool in Catalogue(bases).tools] == ["KbList", "KbRead", "KbSearch"]
    assert call(bases, "KbList").text == "legal: 1 documents\nops: 2 documents"
    assert call(bases, "KbList", base="ops").text == "deep/backup.md (31 bytes)\nproxy.md (63 bytes)"
    unknown = call(bases, "KbList", base="none")
    assert (unknown.is_error, unknown.text) == (True, "There is no such knowledge base. There are: legal, ops.")


def test_a_document_is_read_page_by_page(folder: Path) -> None:
    (folder / "ops" / "long.md").write_text("é" * 100_000, encoding="utf-8")
    bases = KnowledgeBases(folder)
    assert call(bases, "KbRead", base="ops", document="proxy.md").text.startswith("# Proxy")
    first = call(bases, "KbRead", base="ops", document="long.md").text
    assert first.endswith("[100,000 of 200,000 bytes; go on with offset 100000]")
    assert call(bases, "KbRead", base="ops", document="long.md", offset=100_000).text == "é" * 50_000


@pytest.mark.parametrize(
    "given",
    [
        {"base": "..", "document": "secret.md"},
        {"base": "ops", "document": "../../secret.md"},
        {"base": "ops", "document": "link.md"},
        {"base": "ops", "document": ""},
        {"base": "", "document": "x"},
        {"base": 5, "document": "x"},
        {"base": "ops", "document": "proxy.md", "offset": -1},
        {"base": "ops", "document": "proxy.md", "offset": "x"},
    ],
)
def test_nothing_else_is_read(folder: Path, given: dict[str, Any]) -> None:
    result = call(KnowledgeBases(folder), "KbRead", **given)
    assert result.is_error
    assert "the secret" not in result.text
    assert str(folder) not in result.text


def test_passages_are_found_and_a_changed_document_as_it_is_now(folder: Path, tmp_path: Path) -> None:
    with open_memory(tmp_path / "index") as memory:
        bases = KnowledgeBases(folder, memory=memory)
        assert call(bases, "KbSearch", query="Which port does the proxy use?").text.startswith(
            "[ops/proxy.md] Proxy: The proxy listens on port 8443."
        )
        assert "Bergen" in call(bases, "KbSearch", query="where do backups go", base="ops").text
        assert "Bergen" not in call(bases, "KbSearch", query="where do backups go", base="legal").text
        (folder / "ops" / "proxy.md").write_text("# Proxy\n\nThe proxy listens on port 9000.", encoding="utf-8")
        found = call(bases, "KbSearch", query="Which port does the proxy use?").text
        assert "9000" in found
        assert "8443" not in found
        assert call(bases, "KbSearch", query="zebra quince").text == "No passage has these words. Try others."
        assert call(bases, "KbSearch", query=" ").is_error
        assert "secret" not in call(bases, "KbSearch", query="the secret").text


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder of knowledge bases"):
        KnowledgeBases(tmp_path / "none")


ARGUMENTS = {"base": "ops"}
MESSAGES: dict[str, Any] = {
    "openai_chat": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "KbList", "arguments": json.dumps(ARGUMENTS)}}
        ],
    },
    "anthropic": {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "KbList", "input": ARGUMENTS}],
    },
    "openai_responses": [
        {"type": "function_call", "call_id": "c1", "name": "KbList", "arguments": json.dumps(ARGUMENTS)}
    ],
    "gemini": {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "KbList", "args": ARGUMENTS}}]},
}


@pytest.mark.parametrize("wire", MESSAGES)
def test_a_message_of_any_format_is_answered(folder: Path, wire: str) -> None:
    (answered,) = Catalogue(KnowledgeBases(folder)).handle(MESSAGES[wire])
    assert answered.results[0].call_id == "c1"
    assert answered.results[0].text.startswith("deep/backup.md")


@pytest.mark.parametrize("given", [5, None, [None], {"role": "nobody"}])
def test_what_is_no_message_is_refused(folder: Path, given: Any) -> None:
    with pytest.raises(LadingError):
        Catalogue(KnowledgeBases(folder)).handle(given)

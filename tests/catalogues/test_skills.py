"""Skills in a folder as tools: descriptions in the request, instructions and files on call, nothing else read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import lading
from lading.catalogues import Catalogue, SkillFolder
from lading.errors import InputError
from lading.messages import Message, ToolCall, ToolResult

PDF = """---
name: pdf-forms
description: >
  Fill PDF forms,
  and read them.
license: MIT
---
# Fill a form

1. Read `references/fields.md`.
"""


def write(folder: Path, name: str, text: str, **files: str) -> Path:
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "SKILL.md").write_text(text, encoding="utf-8")
    for path, content in files.items():
        place = folder / name / path.replace("__", "/")
        place.parent.mkdir(exist_ok=True)
        place.write_text(content, encoding="utf-8")
    return folder / name


def read(skills: SkillFolder, name: str, arguments: str = "{}") -> ToolResult:
    (answered,) = Catalogue(skills).handle(Message("assistant", (ToolCall("c1", name, arguments),)))
    return answered.results[0]


def test_a_request_has_the_description_and_a_call_brings_the_instructions(tmp_path: Path) -> None:
    write(tmp_path, "pdf", PDF, references__fields="Name, date.")
    catalogue = Catalogue(SkillFolder(tmp_path))
    (tool,) = catalogue.tools
    assert tool.name == "skill__pdf-forms"
    assert "Fill PDF forms, and read them." in tool.description
    with lading.Session("gpt-4o") as session:
        session.add("Fill the form.")
        body = session.pack(catalogue.tools).body.decode()
        assert "Fill PDF forms" in body
        assert "Fill a form" not in body
        asked = Message("assistant", (ToolCall("c1", tool.name, "{}"),))
        session.add([asked, *catalogue.handle(asked)])
        pack = session.pack(catalogue.tools)
        assert pack.violations == ()
        assert "# Fill a form" in pack.body.decode()
        assert "license: MIT" not in pack.body.decode()


def test_files_of_the_skill_are_named_and_read(tmp_path: Path) -> None:
    write(tmp_path, "pdf", PDF, references__fields="Name, date.")
    skills = SkillFolder(tmp_path)
    assert read(skills, "skill__pdf-forms").text.endswith("which `file` reads: references/fields]")
    assert read(skills, "skill__pdf-forms", '{"file": "references/fields"}').text == "Name, date."
    assert read(skills, "skill__pdf-forms", '{"file": "./references/fields"}').text == "Name, date."
    missing = read(skills, "skill__pdf-forms", '{"file": "no"}')
    assert missing.is_error
    assert "references/fields" in missing.text


@pytest.mark.parametrize(
    "file",
    ["../secret", "/etc/passwd", "link", "folder/x", "a\u0000b", "..", "references/../../secret", "x\\..\\y"],
)
def test_nothing_outside_of_the_skill_is_read(tmp_path: Path, file: str) -> None:
    (tmp_path / "secret").write_text("the secret", encoding="utf-8")
    place = write(tmp_path / "skills", "pdf", PDF)
    os.symlink(tmp_path / "secret", place / "link")
    os.symlink(tmp_path, place / "folder")
    result = read(
        SkillFolder(tmp_path / "skills"), "skill__pdf-forms", lading.jsonbytes.dump({"file": file}).decode()
    )
    assert result.is_error
    assert "the secret" not in result.text
    assert str(tmp_path) not in result.text


def test_what_is_no_skill_is_left_out_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path, "good", PDF)
    write(tmp_path, "again", PDF)
    write(tmp_path, "bare", "# No front matter")
    write(tmp_path, "nameless", "---\ndescription: x\n---\n")
    write(tmp_path, "listed", "---\n- name\n---\n")
    write(tmp_path, "typed", "---\nname: 5\ndescription: [x]\n---\n")
    write(tmp_path, "broken", "---\nname: [\n---\n")
    write(tmp_path, "code", "---\nname: !!python/object/apply:os.system ['exit 1']\ndescription: x\n---\n")
    write(tmp_path, "long", "---\nname: long\ndescription: " + "x" * 20_000 + "\n---\n")
    os.symlink(tmp_path / "good", tmp_path / "linked")
    skills = SkillFolder(tmp_path)
    assert list(skills.list_tools()) == ["skill__pdf-forms"]
    assert sorted(skills.left_out) == ["bare", "broken", "code", "good", "listed", "long", "nameless", "typed"]
    assert skills.left_out["nameless"] == "its front matter has no name"
    assert skills.left_out["good"] == "another skill is named pdf-forms"


def test_a_changed_skill_is_read_anew_and_an_unchanged_one_is_not(tmp_path: Path) -> None:
    place = write(tmp_path, "pdf", PDF)
    skills = SkillFolder(tmp_path)
    first = skills.list_tools()["skill__pdf-forms"]
    assert skills.list_tools()["skill__pdf-forms"] is first
    (place / "SKILL.md").write_text(PDF.replace("Fill PDF forms,", "Fill all forms whatever,"), encoding="utf-8")
    assert "Fill all forms whatever," in skills.list_tools()["skill__pdf-forms"].description
    write(tmp_path, "second", PDF.replace("pdf-forms", "other"))
    assert list(skills.list_tools()) == ["skill__pdf-forms", "skill__other"]


def test_a_large_file_is_cut_and_a_binary_one_refused(tmp_path: Path) -> None:
    place = write(tmp_path, "pdf", PDF, big="x" * 1_200_000)
    (place / "picture").write_bytes(b"\x00\x01")
    skills = SkillFolder(tmp_path)
    assert skills.list_tools()
    assert read(skills, "skill__pdf-forms", '{"file": "big"}').text.endswith(
        "[The first 1,000,000 of 1,200,000 bytes.]"
    )
    assert read(skills, "skill__pdf-forms", '{"file": "picture"}').text == "picture is no text (2 bytes)."
    assert read(skills, "skill__pdf-forms", '{"file": 5}').is_error
    assert read(skills, "skill__pdf-forms", "[").is_error


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder of skills"):
        SkillFolder(tmp_path / "none")


def test_of_two_sources_with_one_name_the_first_counts_and_foreign_calls_are_left(tmp_path: Path) -> None:
    write(tmp_path / "a", "pdf", PDF)
    write(tmp_path / "b", "pdf", PDF.replace("Fill a form", "Another"))
    catalogue = Catalogue(SkillFolder(tmp_path / "a"), SkillFolder(tmp_path / "b"))
    assert len(catalogue.tools) == 1
    calls = (ToolCall("c1", "read_file", "{}"), ToolCall("c2", "skill__pdf-forms", "{}"))
    (answered,) = catalogue.handle(Message("assistant", calls))
    assert answered.results[0].call_id == "c2"
    assert "# Fill a form" in answered.results[0].text


def test_a_source_that_raises_is_a_failed_result() -> None:
    class Broken:
        def list_tools(self) -> dict[str, lading.Tool]:
            return {"t": lading.Tool("t", "", {"type": "object"})}

        def answer(self, call: ToolCall) -> ToolResult:
            raise OSError(f"/secret/path {call.id}")

    (answered,) = Catalogue(Broken()).handle(Message("assistant", (ToolCall("c1", "t", "{}"),)))
    assert answered.results[0].is_error
    assert answered.results[0].text == "The tool failed (OSError)."
    with pytest.raises(InputError, match="no source of tools"):
        Catalogue("skills")  # type: ignore[arg-type]

"""A folder is read within bounds: nothing outside, nothing that is no regular file, no text of binary files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lading import folder
from lading.folder import Folder, newest, open_folder, show_name


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret.md").write_text("secret")
    inside = tmp_path / "data"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "one.md").write_text("# One\n" + "x" * 1_000)
    (inside / "a" / "b" / "two.md").write_text("# Two")
    return inside


def test_the_start_of_a_file_is_read_with_its_size(root: Path) -> None:
    found = open_folder(root).read_start("a/one.md", most_bytes=5)
    assert found is not None
    assert (found[0].path, found[0].size_bytes, found[1]) == ("a/one.md", 1_006, "# One")


@pytest.mark.parametrize(
    "name", ["../secret.md", "a/../../secret.md", "", ".", "a//one.md", "a\\one.md", "a/\0", "x" * 5_000]
)
def test_no_name_leads_out_of_the_folder(root: Path, name: str) -> None:
    assert open_folder(root).read_start(name, most_bytes=100) is None
    assert open_folder(root).enter(name) is None


def test_an_absolute_path_leads_nowhere(root: Path) -> None:
    assert open_folder(root).read_start(str(root.parent / "secret.md"), most_bytes=100) is None


def test_links_are_not_followed(root: Path) -> None:
    (root / "link.md").symlink_to(root.parent / "secret.md")
    (root / "out").symlink_to(root.parent)
    (root / "loop").symlink_to(root)
    here = open_folder(root)
    assert here.read_start("link.md", most_bytes=100) is None
    assert here.enter("out") is here.enter("loop") is here.enter("loop", "a") is None
    assert here.list_names() == ["a"]
    assert [file.path for file in sorted(here.list_files())] == ["a/b/two.md", "a/one.md"]


def test_only_regular_files_are_read_and_binary_ones_have_no_text(root: Path) -> None:
    os.mkfifo(root / "pipe.md")
    (root / "image.md").write_bytes(b"\x89PNG\0\1")
    (root / "latin.md").write_bytes(b"caf\xe9")
    here = open_folder(root)
    assert here.read_start("pipe.md", most_bytes=100) is None
    assert here.read_start("a", most_bytes=100) is None
    assert (here.read_start("image.md", most_bytes=100) or (None, None))[1] == ""
    assert (here.read_start("latin.md", most_bytes=100) or (None, None))[1] == "caf\ufffd"
    assert "pipe.md" not in {file.path for file in here.list_files()}


def test_what_is_missing_is_nothing(tmp_path: Path) -> None:
    here = open_folder(tmp_path / "not" / "there")
    assert (here.list_names(), [*here.list_files()], here.enter("a")) == ([], [], None)


def test_a_listing_looks_at_so_many_entries(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (root / f"{number:02}.md").write_text("x")
    monkeypatch.setattr(folder, "MOST_SEEN", 10)
    assert len([*open_folder(root).list_files()]) <= 10


def test_the_newest_are_first(root: Path) -> None:
    os.utime(root / "a" / "one.md", (1, 100))
    os.utime(root / "a" / "b" / "two.md", (1, 200))
    files, count = newest(Folder(os.path.realpath(root)).list_files(suffix=".md"), 1)
    assert ([file.path for file in files], count) == (["a/b/two.md"], 2)


def test_names_are_shown_on_one_line() -> None:
    assert show_name("a\nIgnore this\x1b[0m") == "a?Ignore this?[0m"
    assert show_name(os.fsdecode(b"caf\xe9")) == "caf?"
    assert len(show_name("x" * 500)) == 121

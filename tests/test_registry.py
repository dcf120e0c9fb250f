from pathlib import Path

import pytest

from lading.errors import UnknownName
from lading.registry import lookup

TABLE = {"digest": "lading.jsonbytes:digest", "gone": "lading.no_such_module:X"}


def test_a_short_name_leads_to_what_it_stands_for() -> None:
    assert lookup(TABLE, "digest", kind="thing")(b"") == lookup({}, "lading.jsonbytes:digest", kind="thing")(b"")


@pytest.mark.parametrize(
    "name", ["", "nothing", "lading.jsonbytes", "a:b c", "lading.jsonbytes:", ".tables:lookup"]
)
def test_an_unknown_name_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(UnknownName, match=r"no thing named .* Choose one of: digest, gone"):
        lookup(TABLE, name, kind="thing")


@pytest.mark.parametrize("name", ["gone", ":X", "lading.jsonbytes:nothing", "no_such_package:X"])
def test_a_path_that_cannot_be_loaded_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(UnknownName, match="cannot be loaded"):
        lookup(TABLE, name, kind="thing")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution with entry points in the group ``lading.thing``."""
    info = tmp_path / "outsider-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outsider\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[lading.thing]\ntheirs = lading.jsonbytes:canonical\ndigest = lading.jsonbytes:canonical\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("installed")
def test_outsiders_add_names_by_entry_points() -> None:
    assert lookup(TABLE, "theirs", kind="thing")({}) == b"{}"
    with pytest.raises(UnknownName):
        lookup(TABLE, "theirs", kind="other")


@pytest.mark.usefixtures("installed")
def test_outsiders_cannot_take_a_name_of_the_table() -> None:
    assert len(lookup(TABLE, "digest", kind="thing")(b"")) == 64

"""What has a table is added with one file and one line, and works everywhere at once; so does what has none."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from click.testing import CliRunner

from lading import Session
from lading.cli import main
from lading.compaction import STRATEGIES, find_strategy
from lading.errors import UnknownName
from lading.evaluate.baselines import ARMS
from lading.evaluate.compare import find_contestant
from lading.shrink import SHRINKERS, Shrunk, Target, find_shrinker
from lading.shrink.shrinking import decode, detect_content_type, reduce, shrink
from lading.sources import SOURCES, source
from lading.stores import STORES, open_store
from lading.tokens import COUNTERS, counter
from lading.wire import WIRES, find_wire

KINDS: dict[str, tuple[dict[str, str], Callable[[str], object]]] = {
    "strategy": (STRATEGIES, find_strategy),
    "wire": (WIRES, find_wire),
    "source": (SOURCES, source),
    "shrinker": (SHRINKERS, find_shrinker),
    "counter": (COUNTERS, counter),
    "store": ({"memory": STORES["memory"]}, lambda name: type(open_store(name, ""))),
    "arm": (ARMS, lambda name: find_contestant(name).arm),
}
"""What can be added, each with its table and the function that finds it."""
GROUPS = {"arm": "strategy"}

STRATEGY_FILE = '''
from lading.compaction import Compaction, Strategy
from lading.compaction.cutting import cut, find_cut_points


def compact(view, pressure):
    """When full, cut at the last legal point."""
    points = find_cut_points(view, pressure)
    if view.tokens <= pressure.room_tokens or not points:
        return Compaction()
    return Compaction((cut(view, points[-1], reason="full", pressure=pressure),))


STRATEGY = Strategy("last-block", compact)
'''

WIRE_FILE = """
from msgspec.structs import replace

from lading.wire.openai_chat import WIRE as CHAT

WIRE = replace(CHAT, name="chat_clone")
"""

SOURCE_FILE = """
from lading.messages import user_text, Message, Text, ToolCall, ToolResult
from lading.sources import Recording, Source


def recognises(values):
    return isinstance(values[0], dict) and "transcript" in values[0]


def read(lines, report):
    for line in lines:
        messages = [user_text("go")]
        for number, text in enumerate(line.value["transcript"]):
            messages.append(Message("assistant", (ToolCall(f"c{number}", "step", "{}"),)))
            messages.append(Message("tool", (ToolResult(f"c{number}", (Text(text),)),)))
        yield Recording("mine", tuple(messages), tuple(range(len(messages))), origin="transcripts")


SOURCE = Source("transcripts", recognises, read)
"""

SHRINKER_FILE = """
from lading.shrink import Shrinker, Shrunk


def recognises(sample):
    return sample.head.startswith("%notes")


def reduce(text, target, count):
    shown = text[: target.most_tokens] if count is len else "%notes [the rest left out]"
    return Shrunk(shown, "notes.start")


def reshape(text):
    yield Shrunk(text.replace("cobblestone pavement", "$"), "notes.short", lossless=True)


DECODERS = {"notes.short": lambda text: text.replace("$", "cobblestone pavement")}
SHRINKER = Shrinker("notes", recognises, reduce, reshape, DECODERS)
"""
NOTES = "%notes\n" + "cobblestone pavement " * 400


@pytest.fixture
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of a user's own on the import path."""
    files = {
        "my_strategy": STRATEGY_FILE,
        "my_wire": WIRE_FILE,
        "my_source": SOURCE_FILE,
        "my_shrinker": SHRINKER_FILE,
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "session.jsonl").write_text(json.dumps({"transcript": ["word " * 200] * 20}))
    return tmp_path


def _replay(folder: Path) -> list[str]:
    return ["replay", str(folder / "session.jsonl"), "--window=2000", "--counter=o200k", "--json"]


def test_one_file_and_one_line_each(own_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, "last-block", "my_strategy:STRATEGY")
    monkeypatch.setitem(WIRES, "chat_clone", "my_wire:WIRE")
    monkeypatch.setitem(SOURCES, "transcripts", "my_source:SOURCE")
    run = CliRunner().invoke(
        main,
        [*_replay(own_files), "--strategy=last-block", "--wire=chat_clone", "--store", str(own_files / "store")],
    )
    assert run.exit_code == 0, run.output
    (report,) = json.loads(run.stdout)["replays"]
    assert report["strategy"] == "last-block"
    assert report["settings"]["wire"] == "chat_clone"
    assert report["total"]["calls"] == 20
    assert report["total"]["edits"]["forced"] > 0
    assert report["total"]["violations"] == {}
    verified = CliRunner().invoke(main, ["verify", str(own_files / "store")])
    assert verified.exit_code == 0, verified.output


def test_without_the_line_a_dotted_path_does(own_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "transcripts", "my_source:SOURCE")
    run = CliRunner().invoke(
        main,
        [*_replay(own_files), "--strategy=my_strategy:STRATEGY", "--wire=my_wire:WIRE"],
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["replays"][0]["total"]["edits"]["forced"] > 0


def test_a_store_is_no_reason_to_import_a_module(own_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "transcripts", "my_source:SOURCE")
    store = str(own_files / "store")
    CliRunner().invoke(main, [*_replay(own_files), "--wire=my_wire:WIRE", "--store", store])
    assert CliRunner().invoke(main, ["verify", store]).exit_code == 0
    monkeypatch.delitem(sys.modules, "my_wire")
    refused = CliRunner().invoke(main, ["verify", store])
    assert refused.exit_code == 1
    assert "Import my_wire first if you trust it" in refused.output
    assert "my_wire" not in sys.modules


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_found_by_name_by_path_and_by_entry_point(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, find = KINDS[kind]
    own = [EntryPoint(f"own-{name}", path, f"lading.{GROUPS.get(kind, kind)}") for name, path in table.items()]

    def entry_points(*, group: str, name: str) -> list[EntryPoint]:
        return [point for point in own if (point.group, point.name) == (group, name)]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    for name, path in table.items():
        assert find(name) == find(path) == find(f"own-{name}") is not None
    for unknown in ("nothing", "lading.nothing:NOTHING", "lading.registry:", ".registry:lookup"):
        with pytest.raises(UnknownName):
            find(unknown)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"store"}))
def test_what_is_of_another_kind_is_refused(kind: str) -> None:
    with pytest.raises(UnknownName, match="Choose one of"):
        KINDS[kind][1]("lading.registry:lookup")


@pytest.mark.usefixtures("own_files")
def test_a_shrinker_brings_a_content_type(monkeypatch: pytest.MonkeyPatch) -> None:
    assert detect_content_type(NOTES) == "text"
    monkeypatch.setitem(SHRINKERS, "notes", "my_shrinker:SHRINKER")
    assert detect_content_type(NOTES) == "notes"
    found = shrink(NOTES, count=len)
    assert found is not None
    assert (found.form, decode(found.text, found.form)) == ("notes.short", NOTES)
    assert reduce(NOTES, Target(50), count=len) == Shrunk(NOTES[:50], "notes.start")
    session = Session("gpt-4o", window=4_000, output_reserve=200)
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    session.add([{"role": "user", "content": "Go."}, {"role": "assistant", "content": None, "tool_calls": [call]}])
    session.add([{"role": "tool", "tool_call_id": "c", "content": NOTES * 3}])
    assert "as notes.short without loss" in str(session.pack().body)


@pytest.mark.usefixtures("own_files")
@pytest.mark.parametrize("name", ["my_shrinker:SHRINKER", "plugged"])
def test_a_shrinker_by_dotted_path_or_entry_point(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = metadata.EntryPoint("plugged", "my_shrinker:SHRINKER", "lading.shrinker")
    monkeypatch.setattr(metadata, "entry_points", lambda **chosen: [entry] if chosen["name"] == "plugged" else [])
    found = shrink(NOTES, count=len, kind=name)
    assert found is not None
    assert found.form == "notes.short"

"""What ``lading replay`` prints and emits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lading import jsonbytes
from lading.audit.replay import rebuild_body
from lading.request.manifest import Manifest
from lading.stores.sqlite import open_sqlite
from tests.cli.commands import ROOT, elsewhere, lading, lines, long_session, reply, used_tool, user, written

LINE = ["session", "call", "upto", "wire"]
FACTS = ["tokens", "edits", "manifest"]
EXTRA = ["extra_input_tokens", "extra_cached_input_tokens", "extra_output_tokens"]


def emitted(path: Path, *arguments: str | Path) -> list[dict[str, Any]]:
    """The lines that a replay of the file emits."""
    out = path.with_name("emitted.jsonl")
    ended = lading("replay", path, "--emit", out, *arguments)
    assert ended.err == ""
    return lines(out)


def test_the_settings_that_applied_are_recorded(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json")
    given = ("--window", "9000", "--output-reserve", "500", "--counter", "cl100k", "--prices", ".10/1.25")
    report = lading("replay", path, *given, "--ttl", "300", "--json").data["replays"][0]
    assert report["strategy"] == "priced"
    assert report["settings"] == {
        "model": "gpt-4o",
        "wire": "openai_chat",
        "counter": "cl100k",
        "multiplier": 1.0,
        "prices": "0.1/1.25",
        "window": 9000,
        "output_reserve": 500,
        "margin": 0,
        "ttl_s": 300.0,
    }
    uncached = lading("replay", path, "--prices", "none", "--json").data["replays"][0]
    assert uncached["settings"]["prices"] == "1/1"
    manifest = emitted(path, *given)[0]["manifest"]
    assert manifest["frame"]["budget"] == {"window_tokens": 9000, "output_reserve_tokens": 500, "margin_tokens": 0}
    assert (manifest["frame"]["counter"], manifest["frame"]["multiplier"]) == ("cl100k", 1.0)


def test_without_overrides_the_card_decides(tmp_path: Path) -> None:
    settings = lading("replay", long_session(tmp_path / "s.json"), "--json").data["replays"][0]["settings"]
    assert (settings["window"], settings["counter"], settings["ttl_s"]) == (128_000, "o200k", None)
    assert (settings["output_reserve"], settings["margin"]) == (0, 0)


def test_a_margin_on_the_card_takes_no_room_from_a_replay(tmp_path: Path) -> None:
    path = written(tmp_path / "s.json", [user("Hi."), reply()], model="unknown-model")
    ended = lading("replay", path, "--window", "1000", "--output-reserve", "900", "--json")
    assert ended.data["replays"][0]["total"]["typed_errors"] == []


def test_figures_by_session_add_up(tmp_path: Path) -> None:
    record = {"model": "gpt-4o", "messages": [user("Hi."), reply(), user("Go."), reply()]}
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps({"id": f"s{n}", **record}) + "\n" for n in range(3)))
    report = lading("replay", path, "--json").data["replays"][0]
    assert list(report["sessions"]) == ["s0", "s1", "s2"]
    assert report["total"]["calls"] == sum(item["calls"] for item in report["sessions"].values()) == 6


def test_sessions_of_several_models_add_up_in_usd_where_all_have_a_price(tmp_path: Path) -> None:
    messages = json.loads(long_session(tmp_path / "s.json").read_text())["messages"]
    path = tmp_path / "s.jsonl"

    def ratios(*models: str) -> tuple[float, ...]:
        path.write_text(
            "".join(json.dumps({"id": name, "model": name, "messages": messages}) + "\n" for name in models)
        )
        report = lading("replay", path, "--window", "3000", "--counter", "o200k", "--json").data["replays"][0]
        return report["total"]["cost_ratio"], *(item["cost_ratio"] for item in report["sessions"].values())

    total, cheap, dear = ratios("gpt-5-nano", "claude-opus-4-1")
    assert cheap != dear
    assert abs(total - dear) < 0.02 * abs(cheap - dear)
    total, unpriced, priced = ratios("no-such-model", "gpt-5-nano")
    assert abs(total - priced) > 0.2 * abs(unpriced - priced) > 0


def test_lines_have_the_documented_keys_in_order(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    rounds = [user("Look."), *used_tool(1, "word " * 900), *used_tool(2, "word " * 900), reply()]
    more = [{"id": name, "model": "gpt-4o", "messages": rounds} for name in ("b", "a", "c")]
    path.write_text("".join(json.dumps(item) + "\n" for item in more))
    found = emitted(path, "--window", "1100")
    assert [(line["session"], line["call"]) for line in found] == [
        (name, call) for name in "bac" for call in (1, 2, 3)
    ]
    assert [line["upto"] for line in found[:3]] == [1, 3, 5]
    for line in found:
        middle = ["error"] if "error" in line else ["request", *FACTS]
        assert list(line) == [*LINE, *middle, *EXTRA]
        assert [line[key] for key in EXTRA] == [0, 0, 0]


def test_upto_counts_the_raw_list_also_where_a_message_was_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "s.json", [user("Hi."), {"role": 7}, reply("a"), user("Go."), None, reply("b")])
    out = tmp_path / "o.jsonl"
    assert lading("replay", path, "--emit", out).code == 0
    assert [line["upto"] for line in lines(out)] == [2, 5]


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
def test_the_request_is_the_body_that_the_manifest_records(tmp_path: Path, wire: str) -> None:
    path = long_session(tmp_path / "s.json", result="w\u00f6rd \ud83d ")
    found = emitted(path, "--window", "6000", "--store", tmp_path / "store", "--wire", wire)
    assert len(found) == 13
    assert any(line["edits"] for line in found)
    with open_sqlite(tmp_path / "store", create=False) as store:
        manifests = [json.loads(data) for data in store.manifests("default", "s")]
        for line in found:
            body = rebuild_body(store, tenant="default", session="s", call=line["call"])
            assert json.loads(body) == line["request"]
            assert list(json.loads(body)) == list(line["request"])
            assert len(body) == line["manifest"]["sent"]["body_bytes"]
            assert jsonbytes.dump(line["request"]) == body
    assert [line["manifest"] for line in found] == manifests
    for line in found:
        layers = line["tokens"]["by_layer"]
        assert line["tokens"]["counted"] == sum(layers.values()) - layers["slack"] <= 6000
        assert line["wire"] == wire


def test_nothing_of_the_future_is_used(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json")
    plain = emitted(path, "--window", "3000")
    assert emitted(path, "--window", "3k") == plain
    record = json.loads(path.read_text())
    raw = record["messages"]
    for upto in (3, 9, 17):
        other = [*raw[:upto], reply("Something else."), *used_tool(99, "new " * 4000, name="unheard_of"), reply()]
        changed = emitted(written(path, other), "--window", "3000")
        known = [line for line in plain if line["upto"] <= upto]
        assert changed[: len(known)] == known


def test_strategies_stand_side_by_side(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json")
    both = ("--strategy", "append-only", "--strategy", "priced", "--window", "3000")
    append_only, priced = lading("replay", path, *both, "--json").data["replays"]
    assert (append_only["strategy"], priced["strategy"]) == ("append-only", "priced")
    assert append_only["total"]["calls"] == priced["total"]["calls"] == 13
    assert len(append_only["total"]["typed_errors"]) > 0
    assert append_only["total"]["cost_ratio"] == append_only["total"]["append_only_share"] == 1.0
    assert priced["total"]["typed_errors"] == []
    assert priced["total"]["append_only_share"] < 1.0
    table = lading("replay", path, *both).out
    assert re.search(r"append-only .*\n.*priced ", table)


def test_it_compacts_when_the_caller_says(tmp_path: Path) -> None:
    path, store = long_session(tmp_path / "s.json"), tmp_path / "store"
    given = ("--window", "3000", "--when", "full", "--verbatim", "30%")
    both = ("--strategy", "append-only", "--strategy", "priced")
    ended = lading("replay", path, *given, *both, "--store", store, "--json")
    assert (ended.code, ended.err) == (1, "")
    assert [item["strategy"] for item in ended.data["replays"]] == [
        "append-only",
        "priced(when=full, verbatim=0.3)",
    ]
    place = store / "priced-when-full-verbatim-0-3"
    assert lading("verify", place).code == 0
    assert {
        each["manifest"]["frame"]["strategy"] for each in emitted(path, *given) if "frame" in each["manifest"]
    } == {"priced(when=full, verbatim=0.3)"}


def test_each_strategy_gets_a_store_of_its_own(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json")
    both = ("--strategy", "append-only", "--strategy", "basic")
    assert lading("replay", path, *both, "--store", tmp_path / "store").code == 0
    for name in ("append-only", "basic"):
        assert lading("verify", tmp_path / "store" / name, "--json").data["manifests"] == 13


def test_a_cache_that_cooled_by_the_recorded_times_makes_edits_free(tmp_path: Path) -> None:
    messages = [user("Look around.", timestamp=1_700_000_000)]
    for number in range(6):
        call, result = used_tool(number, "word " * 400)
        at = 1_700_000_000 + 10_000 * number
        messages += [{**call, "timestamp": at + 60}, {**result, "timestamp": at + 70}]
    path = written(tmp_path / "s.json", [*messages, reply("Done.", timestamp=1_700_090_000)], id="s")
    warm, cold = (
        lading("replay", path, "--window", "2800", "--prices", ".1/1.25", "--json", *ttl).data["replays"][0][
            "total"
        ]
        for ttl in ((), ("--ttl", "300"))
    )
    assert warm["edits"]["voluntary"] < cold["edits"]["voluntary"]
    assert cold["cost_ratio"] < warm["cost_ratio"]


def test_the_anthropic_wire(tmp_path: Path) -> None:
    path = written(
        tmp_path / "s.json",
        [{"role": "system", "content": "Be brief."}, user("Hi."), *used_tool(1, "ok"), reply()],
        model="claude-sonnet-4-5",
    )
    first, second = emitted(path, "--wire", "anthropic")
    assert first["upto"] == 2
    assert "Be brief." in json.dumps(first["request"]["system"])
    assert [message["role"] for message in second["request"]["messages"]] == ["user", "assistant", "user"]
    assert second["request"]["messages"][2]["content"][0]["type"] == "tool_result"


def test_a_violation_ends_with_exit_code_1(tmp_path: Path) -> None:
    path = written(tmp_path / "s.json", [user("Hi."), *used_tool(1, "ok", name="not a name"), reply()])
    ended = lading("replay", path, "--wire", "anthropic", "--json")
    assert ended.code == 1
    assert sum(ended.data["replays"][0]["total"]["violations"].values()) > 0


def test_the_page_names_the_keys_that_are_emitted(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "emit.md").read_text(encoding="utf-8")
    path = long_session(tmp_path / "s.json", rounds=14)
    found = emitted(path, "--window", "1500") + emitted(path, "--window", "9", "--strategy", "append-only")
    keys: set[str] = set()
    for line in found:
        keys |= set(line)
        keys |= {f"{outer}.{inner}" for outer in ("tokens", "error") for inner in line.get(outer, ())}
        keys |= {f"edits[].{inner}" for edit in line.get("edits", ()) for inner in edit}
        assert {f"{key}" for key in line.get("manifest", ())} <= set(Manifest.__struct_fields__)
    keys |= {f"manifest.{key}" for key in Manifest.__struct_fields__}
    assert set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)) == keys


def cells(text: str, name: str) -> list[str]:
    """The cells of the first row of a table that starts with this name."""
    row = next(line for line in text.splitlines() if re.match(rf"{re.escape(name)}\s", line))
    return re.split(r"\s{2,}", row.strip())


def test_the_legend_says_what_the_figures_are_relative_to(tmp_path: Path) -> None:
    found = lading("replay", long_session(tmp_path / "s.json")).out
    for words in ("relative to everything sent", "cost the same", "one for each log entry", "--output-reserve"):
        assert words in found


def test_a_row_whose_every_call_failed_has_no_figures(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json")
    out = lading("replay", path, "--window", "3", "--strategy", "append-only").out
    assert cells(out, "append-only") == ["append-only", "13", "13", *["-"] * 5, "0", "0"]


def test_a_strategy_that_edits_and_saves_nothing_is_told_so(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json")
    both = (path, "--strategy", "append-only", "--strategy", "basic", "--window", "3000")
    reports = lading("replay", *both, "--prices", "0/100", "--json").data["replays"]
    ratio = reports[1]["total"]["cost_ratio"]
    assert ratio >= 1.0
    found = lading("replay", *both, "--prices", "0/100").out
    assert [line for line in found.splitlines() if "no gain" in line] == [
        f"basic: {100 * (ratio - 1):.0f} % more expensive than everything sent (no gain)"
    ]
    assert "no gain" not in lading("replay", *both, "--prices", "1/1").out


def test_sessions_without_a_call_are_counted_and_have_no_row(tmp_path: Path) -> None:
    good = {"model": "gpt-4o", "messages": [user("Hi."), reply()]}
    silent = [{"model": "gpt-4o", "messages": [reply(), user("Hi.")]}, {"model": "gpt-4o", "messages": [reply()]}]
    path = tmp_path / "s.jsonl"
    path.write_text(
        "".join(
            json.dumps({**item, "id": name}) + "\n"
            for name, item in zip(("one", "mute", "still", "two"), [good, *silent, good], strict=True)
        )
    )
    ended = lading("replay", path)
    assert ended.code == 0
    assert ended.err.count("2 sessions have no call to replay: no assistant message follows") == 1
    assert cells(ended.out, "one")[1] == cells(ended.out, "two")[1] == "1"
    assert "mute" not in ended.out
    assert "still" not in ended.out
    path.write_text(json.dumps({**silent[1], "id": "still"}) + "\n")
    alone = lading("replay", path)
    assert "1 session has no call to replay" in alone.err
    assert cells(alone.out, "priced")[1:8] == ["0", "0", *["-"] * 5]


def test_a_strategy_of_the_current_folder_is_found_and_shadows_nothing(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json", rounds=2)
    (tmp_path / "mine.py").write_text("from lading.compaction.basic import STRATEGY\n")
    (tmp_path / "tiktoken.py").write_text("raise SystemExit('shadowed')\n")
    ended = elsewhere(
        *("replay", path, "--strategy", "mine:STRATEGY", "--counter", "o200k", "--json"),
        # As the installed command starts: without the current folder at the head of the path.
        environment={"PYTHONSAFEPATH": "1"},
        before=f"import os; os.chdir({str(tmp_path)!r})\n",
    )
    assert (ended.code, ended.err) == (0, "")
    assert ended.data["replays"][0]["total"]["calls"] == 3


@pytest.mark.parametrize("command", [("verify",), ("show", "artifact://default/s/log/1", "--store")])
def test_a_folder_of_stores_is_told_from_a_store(tmp_path: Path, command: tuple[str, ...]) -> None:
    path = long_session(tmp_path / "s.json", rounds=2)
    store = tmp_path / "store"
    both = ("--strategy", "append-only", "--strategy", "basic")
    assert lading("replay", path, *both, "--store", store).code == 0
    ended = lading(*command, store)
    assert ended.code == 2
    assert f"in {store / 'append-only'}, {store / 'basic'}" in ended.err
    assert lading(*command, store / "basic").code == 0


def test_restore_is_offered_when_asked_for_and_what_it_costs_is_said(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json")
    asked = ("--window", "3000", "--restore")
    names = [[tool["function"]["name"] for tool in line["request"]["tools"]] for line in emitted(path, *asked)[1:]]
    assert names == [["run", "restore"]] * 12
    both = ("--strategy", "basic", "--strategy", "append-only")
    data = lading("replay", path, *asked, *both, "--json").data["replays"]
    found = [item["total"]["restore"] for item in data]
    assert found[0]["requests"] == 12
    assert found[1] is None
    out = lading("replay", path, *asked, *both).out
    assert f"basic offers the tool restore in 12 requests: {found[0]['tokens_per_request']:.0f} tokens each" in out
    assert f"{found[0]['cost_share']:.2%} of the input bill" in out
    assert "restore" not in lading("replay", path, "--window", "3000").out
    store = tmp_path / "store"
    assert lading("replay", path, *asked, "--store", store).code == 0
    assert lading("verify", store).code == 0

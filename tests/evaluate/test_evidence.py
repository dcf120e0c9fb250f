from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lading.economics import Rates
from lading.evaluate.compare import Contestant, compare, find_contestant
from lading.evaluate.evidence import (
    EvidenceShares,
    ProbeScore,
    find_texts,
    measure_coverage,
    measure_evidence,
    read_request,
    split_words,
    sum_evidence,
    weigh_words,
)
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.probes import Probe, Quote, SessionProbes, read_probes
from lading.evaluate.session_runs import (
    RecordedSession,
    RunCall,
    make_counter,
    prepare_session,
    run_arm,
    run_strategy,
)
from lading.sources import Recording, read
from tests.evaluate.baselines.cases import arm
from tests.evaluate.contests import TAIL, grid, session, ticking

EQUAL: dict[str, float] = {}


def body(*contents: str, **fields: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": text} for text in contents], **fields}).encode()


def test_names_count_themselves_and_their_pieces() -> None:
    assert split_words("Read src/Main_loop.py at the END, it's 12-a") == [
        *("read", "src/main_loop.py", "src", "main", "loop", "py", "end", "s", "12-a", "12"),
    ]


def test_strings_are_read_in_order_without_ids_and_arguments_as_they_read() -> None:
    arguments = json.dumps({"path": "a.py", "text": 'say "hi"\n', "id": "7", "flag": True})
    call = {"id": "c1", "type": "function", "function": {"name": "edit", "arguments": arguments}}
    message = {"role": "assistant", "content": [{"type": "text", "text": "now"}], "tool_calls": [call]}
    assert list(find_texts([message, {"arguments": "{broken"}])) == ["now", "edit", "a.py", 'say "hi"\n', "{broken"]


@pytest.mark.parametrize("key", ["messages", "input"])
def test_the_system_text_is_read_first(key: str) -> None:
    request = {key: [{"role": "user", "content": "go\n on"}], "system": [{"type": "text", "text": "obey"}]}
    assert read_request(json.dumps(request).encode()).text == "obey go on"


def test_a_rare_word_counts_more() -> None:
    weight = weigh_words([["red fox"], ["red hen", "red red sky"], ["blue"]])
    # Three quotes hold "red", one holds "fox", of three probes.
    assert weight["red"] == 1 + math.log(1 + 3 / 3)
    assert weight["fox"] == 1 + math.log(1 + 3 / 1)


@pytest.mark.parametrize(
    ("request_text", "share"),
    [
        ("red fox jumped high", 1.0),
        ("high RED jumped fox", 1.0),
        ("red fox red fox", 0.5),
        ("nothing there", 0.0),
        # The stretch has 3 x 4 + 20 words: both ends of 32 words are in it, those of 33 are not.
        ("fox " + "word " * 30 + "high", 0.5),
        ("fox " + "word " * 31 + "high", 0.25),
    ],
)
def test_words_count_within_one_stretch(request_text: str, share: float) -> None:
    assert measure_coverage("red fox jumped high", read_request(body(request_text)), weight=EQUAL) == share


def test_a_word_counts_as_often_as_the_quote_has_it() -> None:
    assert measure_coverage("no fox fox fox", read_request(body("fox hen fox")), weight=EQUAL) == 2 / 3


def test_a_quote_stands_from_seven_tenths_on_and_is_verbatim_word_for_word() -> None:
    quotes = ["one1 two2 three3 four4 five5 six6 seven7 eight8 nine9 ten10"]
    most = "one1 two2 three3 four4 five5 six6 seven7"
    assert measure_evidence(quotes, read_request(body(quotes[0].replace(" ", "\n "))), weight=EQUAL) == (
        True,
        True,
        1.0,
    )
    assert measure_evidence(quotes, read_request(body(most)), weight=EQUAL) == (True, False, 0.7)
    assert measure_evidence(quotes, read_request(body(most[:-6])), weight=EQUAL) == (False, False, 0.6)
    both = [quotes[0], "elsewhere entirely"]
    assert measure_evidence(both, read_request(body(quotes[0])), weight=EQUAL) == (False, False, 0.0)


def test_figures_are_by_kind_importance_distance_and_session() -> None:
    found = sum_evidence(
        [
            ProbeScore(1, "s", 3, "order", 3, 100, stands=True, verbatim=True, covered=1.0),
            ProbeScore(2, "s", 3, "open", 1, 4_000, stands=True, verbatim=False, covered=0.8),
            ProbeScore(3, "t", 1, "open", 3, 40_000, stands=False, verbatim=False, covered=0.3),
        ]
    )
    assert found is not None
    assert found.overall == EvidenceShares(3, 2 / 3, 1 / 3, (1.0 + 0.8 + 0.3) / 3)
    assert {name: share.stands for name, share in found.by["kind"].items()} == {"open": 0.5, "order": 1.0}
    assert {name: share.probes for name, share in found.by["importance"].items()} == {"1": 1, "3": 2}
    assert list(found.by["distance"]) == ["under 4k", "4k-8k", "32k on"]
    assert {name: share.probes for name, share in found.by["session"].items()} == {"s": 2, "t": 1}
    assert sum_evidence([]) is None


def probe(call: int, message: int, quote: str, *, line: int = 1, name: str = "s") -> Probe:
    return Probe(name, call, "finding", (Quote(message, quote),), line=line)


def test_probes_are_scored_in_the_request_of_their_call() -> None:
    # Message 2 says that part_1.py comes next; the arm shows the newest two messages and the first one.
    probes = [
        probe(2, 2, "next file part_1.py", line=1),
        probe(5, 2, "next file part_1.py", line=2),
        probe(5, 0, "start with file part_0.py", line=3),
        probe(1, 0, "of another session", line=4, name="t"),
    ]
    rivals = grid(
        find_contestant("append-only"), Contestant("tail", TAIL), find_contestant("basic"), windows=(200,)
    )
    full, tail, basic = (
        item.evidence
        for item in compare((session(),), rivals, advance=lambda _: None, clock=ticking, probes=probes)
    )
    assert full is not None
    assert tail is not None
    assert basic is not None
    assert [item.line for item in full.probes] == [1, 2, 3]
    assert [item.stands for item in full.probes] == [True, True, True]
    assert [item.verbatim for item in tail.probes] == [True, False, True]
    # Each round adds 48 words and marks: call 2 is the first that sees message 2, and call 1 message 0.
    assert [item.distance_tokens for item in tail.probes] == [0, 3 * 48, 4 * 48]
    assert basic.overall.probes == 3


def test_a_call_without_a_request_holds_no_evidence() -> None:
    asked = [probe(2, 0, "start with file")]
    (found,) = compare(
        (session(),), grid(find_contestant("basic"), windows=(30,)), advance=lambda _: None, probes=asked
    )
    assert found.evidence is not None
    assert found.evidence.overall == EvidenceShares(1, 0.0, 0.0, 0.0)


def scored_by_script(script: Path, probes: Path, folder: Path, steps: dict[str, list[RunCall]]) -> dict[int, Any]:
    """What the script says of these requests, by line of the probe file."""
    emitted = folder / "emitted.jsonl"
    with emitted.open("w", encoding="utf-8") as out:
        for name, walked in steps.items():
            for step in walked:
                request = f', "request": {step.body.decode()}' if step.body else ""
                out.write(f'{{"session": "{name}"{request}}}\n')
    command = [sys.executable, str(script), str(probes), str(emitted), "--json"]
    rows = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["probes"]
    return {line: row for line, row in enumerate(rows, 1) if "missing" not in row}


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
@pytest.mark.parametrize("name", ["priced", "window-chunk"])
def test_figures_are_those_of_the_script(shared: Path, tmp_path: Path, wire: str, name: str) -> None:
    path, script = shared / "data" / "probes_dev.jsonl", shared / "tools" / "probes.py"
    probes = list(read_probes(str(path)))
    files = [shared / "data" / f"{stem}.jsonl.gz" for stem in ("swesmith_claude", "sweagent_demos")]
    recordings = [item for file in files for item in read(file) if isinstance(item, Recording)]
    named = {item.session for item in probes}
    weight = weigh_words([[item.quote for item in found.evidence] for found in probes])
    steps: dict[str, list[RunCall]] = {}
    scored: dict[int, ProbeScore] = {}
    for recording in recordings:
        if recording.id not in named:
            continue
        walked, asked = walks(recording, probes, wire=wire)
        steps[walked.name] = requests(walked, name, asked)
        for call, step in enumerate(steps[walked.name]):
            scored |= {
                item.line: item for item in asked.score(call, step.body, weight=weight, full=steps[walked.name])
            }
    rows = scored_by_script(script, path, tmp_path, steps)
    assert len(rows) == len(scored) == 29
    for line, row in rows.items():
        found = scored[line]
        assert (found.stands, found.verbatim, round(found.covered, 3)) == (
            row["stands"],
            row["verbatim"],
            row["covered"],
        )


def walks(recording: Recording, probes: list[Probe], *, wire: str) -> tuple[RecordedSession, SessionProbes]:
    plan, _ = plan_replay(recording, PlanOptions(wire=wire, counter="cl100k", window_tokens=8_000))
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", recording.id)
    found = prepare_session(recording, plan, name=name)
    return found, SessionProbes(found, probes)


def requests(walked: RecordedSession, name: str, asked: SessionProbes) -> list[RunCall]:
    if name == "priced":
        return list(run_strategy(walked, name, rates=Rates(0.1, 1.25), clock=ticking))
    count = make_counter(walked)
    return list(run_arm(walked, arm(name).show, count=count, clock=ticking, bodies=asked.calls))


def test_bodies_of_an_arm_are_kept_where_they_are_asked_for() -> None:
    walked = session()
    steps = list(run_arm(walked, TAIL.show, count=make_counter(walked), clock=ticking, bodies={1}))
    assert [bool(step.body) for step in steps] == [call == 1 for call in range(len(steps))]

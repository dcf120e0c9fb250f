"""The example sessions hold what their page promises, and the recorder says what happened."""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from examples.record import (
    MAX_RESULT_CHARS,
    SCRIPTS,
    TOOLS,
    Player,
    RecordingError,
    main,
    neutral,
    schema,
    shortened,
)

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "examples" / "sessions").glob("*.jsonl.gz"))
MACHINE_PATH = re.compile(r"/(home|root|tmp|Users)/")


def read(file: Path) -> dict[str, Any]:
    """The one session of a file."""
    [line] = gzip.decompress(file.read_bytes()).decode("utf-8").splitlines()
    session = json.loads(line)
    assert isinstance(session, dict)
    return session


@pytest.fixture(params=FILES, ids=lambda file: file.name)
def session(request: pytest.FixtureRequest) -> dict[str, Any]:
    return read(request.param)


def assistants(session: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in session["messages"] if message["role"] == "assistant"]


def results(session: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in session["messages"] if message["role"] == "tool"]


def test_every_script_has_its_session() -> None:
    assert len(FILES) == 3
    for script in SCRIPTS.glob("*.toml"):
        told = tomllib.loads(script.read_text(encoding="utf-8"))
        session = read(ROOT / "examples" / "sessions" / f"{script.stem}.jsonl.gz")
        assert (session["id"], session["model"]) == (told["id"], told["model"])


def test_sessions_differ_in_model_and_are_small() -> None:
    assert len({read(file)["model"] for file in FILES}) == 3
    assert all(file.stat().st_size < 400_000 for file in FILES)


def test_the_scripted_agent_is_named(session: dict[str, Any]) -> None:
    assert session["recorded"] == {"by": "examples/record.py", "agent": "scripted"}
    assert session["license"] == "Apache-2.0"


def test_a_session_is_as_long_as_promised(session: dict[str, Any]) -> None:
    assert 60 <= len(assistants(session)) <= 150
    assert sum(message["role"] == "user" for message in session["messages"]) >= 3
    assert [message["role"] for message in session["messages"][:2]] == ["system", "user"]


def test_some_results_are_huge_and_all_are_capped(session: dict[str, Any]) -> None:
    sizes = sorted(len(message["content"]) for message in results(session))
    assert sizes[-1] / 3 > 20_000
    assert sizes[-1] < MAX_RESULT_CHARS + 100


def test_calls_in_parallel_and_results_that_are_errors(session: dict[str, Any]) -> None:
    assert sum(len(message.get("tool_calls", ())) > 1 for message in assistants(session)) >= 5
    assert any(message["is_error"] for message in results(session))
    assert any("exit code" in message["content"] for message in results(session) if message["is_error"])


def test_one_call_was_interrupted_and_all_others_are_answered(session: dict[str, Any]) -> None:
    messages = session["messages"]
    answered = [message["tool_call_id"] for message in results(session)]
    asked = [call["id"] for message in assistants(session) for call in message.get("tool_calls", ())]
    assert len(asked) == len(set(asked))
    assert len(answered) == len(set(answered))
    [lost] = set(asked) - set(answered)
    where = next(
        index
        for index, message in enumerate(messages)
        if lost in [call["id"] for call in message.get("tool_calls", ())]
    )
    assert messages[where + 1]["role"] == "user"


def test_calls_name_tools_of_the_session_with_valid_arguments(session: dict[str, Any]) -> None:
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in session["tools"]}
    for message in assistants(session):
        for call in message.get("tool_calls", ()):
            parameters = tools[call["function"]["name"]]
            given = json.loads(call["function"]["arguments"])
            assert set(parameters["required"]) <= set(given) <= set(parameters["properties"])


def test_nothing_tells_of_the_recording_machine(session: dict[str, Any]) -> None:
    text = json.dumps(session, ensure_ascii=False)
    assert not MACHINE_PATH.search(text)
    assert {match[0] for match in re.finditer(r"\b\d+\.\d+s\b", text)} <= {"1.00s"}
    assert {match[0] for match in re.finditer(r"\b0x[0-9a-f]{8,16}\b", text)} <= {"0x7f0000000000"}


def play(folder: Path, *steps: dict[str, Any]) -> list[dict[str, Any]]:
    """What a script of these steps records in a folder of its own."""
    repository = folder / "repo"
    repository.mkdir(exist_ok=True)
    return list(Player("test", repository).play(steps))


def test_a_step_records_what_its_tools_answered(tmp_path: Path) -> None:
    write = {"say": "I write.", "do": [["write_file", "a/b.txt", "one\ntwo\nthree\n"]]}
    look = {
        "say": "I look.",
        "do": [["read_file", "a/b.txt", "2-3"], ["grep", "^t", "a"], ["shell", "pwd; exit 3"]],
        "fails": [2],
        "find": {"line": r"^ *(\d+)\tthree"},
    }
    told = play(tmp_path, {"user": "Go on."}, write, look, {"say": "It stands in line <<line>>."})
    roles = "".join(message["role"][0] for message in told)
    assert roles == "uatattta"
    assert [(message["content"], message["is_error"]) for message in told if message["role"] == "tool"] == [
        ("Wrote a/b.txt (14 characters).", False),
        ("     2\ttwo\n     3\tthree", False),
        ("a/b.txt:2:two\na/b.txt:3:three\n", False),
        ("/repo\n\n[exit code 3]", True),
    ]
    assert told[-1] == {"role": "assistant", "content": "It stands in line 3."}


def test_an_interrupted_call_is_neither_run_nor_answered(tmp_path: Path) -> None:
    told = play(tmp_path, {"say": "I write.", "do": [["write_file", "a.txt", "x"]], "interrupted": True})
    assert [message["role"] for message in told] == ["assistant"]
    assert not (tmp_path / "repo" / "a.txt").exists()


def test_a_step_can_be_played_for_each_of_several_values(tmp_path: Path) -> None:
    told = play(tmp_path, {"say": "Now <<each>>.", "each": ["a", "b"], "do": [["shell", "echo <<each>>"]]})
    assert [message["content"] for message in told] == ["Now a.", "a\n", "Now b.", "b\n"]


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ({"say": "x", "do": [["shell", "false"]]}, "was to succeed"),
        ({"say": "x", "do": [["shell", "true"]], "fails": [0]}, "was to fail"),
        ({"say": "x", "do": [["shell", "echo a"]], "find": {"n": r"(\d)"}}, "no n: nothing matches"),
        ({"say": "<<nothing>>"}, "<<nothing>> was not found"),
        ({"say": "x", "do": [["edit_file", "none.txt", "a", "b"]]}, "Nothing was changed"),
        ({"say": "x", "do": [["read_file", "none.txt"]]}, "No such file: none.txt"),
    ],
)
def test_a_story_that_did_not_happen_is_not_recorded(tmp_path: Path, step: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RecordingError, match=f"(?s)step 1 .*{complaint}"):
        play(tmp_path, step)


def test_bytes_that_are_no_text_survive_as_lone_surrogates(tmp_path: Path) -> None:
    [_, result] = play(tmp_path, {"say": "x", "do": [["shell", r"printf 'a\xffb'"]]})
    assert result["content"] == "a\udcffb"


def test_names_of_the_machine_become_neutral(tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    text = f"{repository}/src {tmp_path}/x /home/ann/y pytest-of-ann at 0x7fa1752daad0 in 12.34s"
    expected = "/repo/src /scratch/x /srv/ann/y pytest-of-agent at 0x7f0000000000 in 1.00s"
    assert neutral(text, repository) == expected


def test_long_results_are_cut_with_a_count() -> None:
    assert shortened("a" * MAX_RESULT_CHARS) == "a" * MAX_RESULT_CHARS
    assert shortened("a" * (MAX_RESULT_CHARS + 7)).endswith("a\n[output cut: 7 more characters]")


def test_optional_parameters_are_not_required() -> None:
    assert schema("read_file")["function"]["parameters"]["required"] == ["path"]
    assert {schema(name)["function"]["name"] for name in TOOLS} == set(TOOLS)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["a", "b", "c"]])
def test_without_a_folder_the_recorder_explains_itself(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "Usage: ``python examples/record.py OUT_DIR" in capsys.readouterr().out


def test_an_unknown_revision_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "no-such-revision"]) == 1
    assert "git archive no-such-revision" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

"""The list of mutants is true of the source, and the runner says what the tests made of each."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

from scripts.mutants import LIST, ROOT, Ran, faults, judgement, main, read

SOURCE = '"""Sums."""\n\n\ndef doubled(number: int) -> int:\n    return number * 2\n\n\nSIGN = "+"\n'
TEST = "from calc import doubled\n\n\ndef test_two_doubled_is_four() -> None:\n    assert doubled(2) == 4\n"
SETTINGS = '[tool.pytest.ini_options]\npythonpath = ["src"]\naddopts = ["-rf"]\n'
CAUGHT = {"caught": ("number * 2", "number * 3")}
UNNOTICED = {"unnoticed": ('SIGN = "+"', 'SIGN = "-"')}
BROKEN = {"broken": ("def doubled", "def doubled doubled")}


def tree(folder: Path, mutants: dict[str, tuple[str, str]], *, test: str = TEST) -> list[str]:
    """A tree with one function, its test, and these mutants; the arguments to run them."""
    files = {"src/calc.py": SOURCE, "tests/test_calc.py": test, "pyproject.toml": SETTINGS}
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    rows = [
        f"[[mutant]]\nname = '{name}'\nfile = 'src/calc.py'\nold = '''{old}'''\nnew = '''{new}'''\n"
        "breaks = 'Sums are right.'\ntests = ['tests']\n"
        for name, (old, new) in mutants.items()
    ]
    (folder / "mutants.toml").write_text("".join(rows), encoding="utf-8")
    return ["--root", str(folder), "--list", str(folder / "mutants.toml")]


def test_each_text_is_in_the_source_once_and_its_tests_exist() -> None:
    assert faults(read(LIST), ROOT) == []


def test_each_mutant_is_a_program_still() -> None:
    for mutant in read(LIST):
        text = (ROOT / mutant.file).read_text(encoding="utf-8")
        ast.parse(text.replace(mutant.old, mutant.new), mutant.name)


@pytest.mark.full
def test_the_runner_says_what_the_tests_made_of_each_mutant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tree(tmp_path, CAUGHT | UNNOTICED | BROKEN)) == 1
    printed = capsys.readouterr().out
    assert "caught: caught by tests/test_calc.py::test_two_doubled_is_four (" in printed
    assert "unnoticed: SURVIVED (" in printed
    assert "unnoticed breaks this: Sums are right." in printed
    assert "broken: DOES NOT LOAD (" in printed
    assert "1 of 3 mutants caught" in printed
    assert "Without a mutant they pass" in printed
    assert (tmp_path / "src/calc.py").read_text(encoding="utf-8") == SOURCE


def test_only_a_test_that_fails_or_never_ends_has_noticed() -> None:
    failed = "FAILED tests/test_calc.py::test_sums[a b] - assert 6 == 4\n"
    assert Ran(1, failed).failed == "tests/test_calc.py::test_sums[a b]"
    assert judgement(Ran(1, failed)) == "caught"
    assert judgement(Ran(1, "ERROR tests/test_calc.py::test_sums - no file\n")) == "caught"
    assert judgement(Ran(2, "ERROR tests/test_calc.py - SyntaxError\n")) == "does not load"
    assert judgement(Ran(4, "ERROR: file or directory not found: tests/gone.py\n")) == "does not load"
    assert judgement(Ran(0, "")) == "survived"
    assert judgement(Ran(None, "")) == "times out"


@pytest.mark.full
def test_tests_that_fail_without_a_mutant_prove_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = tree(tmp_path, CAUGHT | UNNOTICED, test=TEST.replace("== 4", "== 5"))
    assert main([*arguments, "--only", "caught", "--json"]) == 1
    report = msgspec.json.decode(capsys.readouterr().out)
    assert report["baseline"] == "tests/test_calc.py::test_two_doubled_is_four"
    assert [(outcome["name"], outcome["state"]) for outcome in report["outcomes"]] == [("caught", "caught")]


@pytest.mark.parametrize(
    ("mutants", "said"),
    [
        ({"gone": ("number * 4", "1")}, "gone: its text is in src/calc.py 0 times, not once; write it anew."),
        ({"often": ("n", "m")}, "times, not once"),
        ({"same": ("number * 2", "number * 2")}, "same: it changes nothing."),
    ],
)
def test_a_list_that_is_not_true_is_refused(
    mutants: dict[str, tuple[str, str]], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tree(tmp_path, mutants)) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*tree(tmp_path, CAUGHT), "--only", "cought"]) == 2
    assert "There is no mutant named 'cought'." in capsys.readouterr().err

"""What a record says of a check that passed elsewhere: in another folder, machine, environment or revision."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest

from lading.compaction.checks import make_up, read_steps
from lading.compaction.shell_commands import parse_command
from lading.messages import Message
from tests.compaction.hostile import HOSTILE
from tests.compaction.test_record import ran, written
from tests.compaction.test_record_calls import called
from tests.examples import quick_first
from tests.growth import assert_linear, ladder

FAILED, PASSED = "2 failed, 7 passed in 1.2s", "9 passed in 1.1s"
CHECKS = ["pytest tests/a.py", "python -m pytest tests/a.py -q", "npx jest src/a.test.ts", "python run_checks.py"]
ELSEWHERE = [
    ("cd api && {}", "cd web && {}"),
    ("cd /repo/api; {}", "cd /repo/web; {}"),
    ("(cd api && {})", "(cd web && {})"),
    ("pushd api && {} && popd", "pushd web && {} && popd"),
    ("{}", "cd web && {}"),
    ("cd api && {}", "{}"),
    ("cd api && cd v1 && {}", "cd api && {}"),
    ("ssh build1 {}", "ssh build2 {}"),
    ("{}", "ssh build2 '{}'"),
    ("ssh build1 'cd /srv && {}'", "ssh build1 'cd /tmp && {}'"),
    ("docker exec api {}", "docker exec web {}"),
    ("docker compose exec -T api {}", "docker compose exec -T web {}"),
    ("docker compose -f a.yml run web {}", "docker compose -f b.yml run web {}"),
    ("docker run --rm app:py38 {}", "docker run --rm app:py312 {}"),
    ("kubectl exec api-1 -- {}", "kubectl exec api-2 -- {}"),
    ("kubectl -n prod exec web -- {}", "kubectl -n dev exec web -- {}"),
    ("{}", "git checkout main && {}; git checkout -"),
    ("git checkout feature && {}", "git checkout main && {}"),
    ("git switch -q feature && {}", "git switch -q main && {}"),
    ("{}", "git stash && {}; git stash pop"),
    ("{}", "git stash -q 2>/dev/null; {}; git stash pop -q"),
    ("DB=postgres {}", "DB=sqlite {}"),
    ("{}", "DB=sqlite {}"),
    ("export DB=postgres; {}", "export DB=sqlite; {}"),
    ("env DB=postgres {}", "env DB=sqlite {}"),
    ("source .venv38/bin/activate && {}", "source .venv312/bin/activate && {}"),
    ("conda activate a && {}", "conda activate b && {}"),
    ("conda run -n a {}", "conda run -n b {}"),
    ("nvm use 16 && {}", "nvm use 20 && {}"),
    ("sudo -u a {}", "sudo -u b {}"),
    ("cd a 2>/dev/null; {} -c a.ini", "cd a 2>/dev/null; {} -c b.ini"),
    ("{} --db=postgres", "{} --db=sqlite"),
    ("{} --config a.ini", "{} --config b.ini"),
    ("nox -s tests-3.8 -- {}", "nox -s tests-3.12 -- {}"),
    ("make lint && {}", "make docs && {}"),
]
SAME = [
    ("{}", "{}"),
    ("cd api && {}", "cd api; {} 2>&1 | tail -5"),
    ("cd api && {}", "cd ./api && {} -v"),
    ("cd api && ls && {}", "cd api && {}"),
    ("cd api/v1 && {}", "cd api && cd v1 && {}"),
    ("(cd web && ls) && {}", "{}"),
    ("{}", "sed -i 's/1/2/' src/a.py && {}"),
    ("{}", "cat > b.py <<'E'\ncd x\nE\n{}"),
    ("{}", "git add -A && {} && git commit -m 'a; b'"),
    ("{}", "pip install -q -e . && {}"),
    ("{}", "echo start; sleep 1; {}; echo done"),
    ("{}", "git stash list; {}"),
    ("{}", "git checkout -b fix && {}"),
    ("{}", "git checkout -- src/a.py && {}"),
    ("{} -x", "{} -vv --tb=short"),
    ("git stash && {}; git stash pop", "git stash; {}; git stash pop"),
    ("ssh build1 {}", "ssh build1 {} -q"),
    ("DB=postgres {}", "DB=postgres {} --tb short"),
    ("{} 2>&1 | head -50", "timeout 60 {} -q --no-header"),
    ("cd api && {} > out.txt; cat out.txt", "cd api && {}"),
]


def says_passed(*history: Sequence[Message]) -> bool:
    """Whether the record of calls says that the first failure passed later; if so, nothing fails at the end."""
    lines = written([message for part in history for message in part])
    first = next(line for line in lines if FAILED in line)
    passed = first.endswith("(passed later)")
    assert not (passed and lines[-1].startswith("Failing at the end") and FAILED in lines[-1]), lines
    return passed


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(("failed", "passed"), ELSEWHERE)
def test_a_check_that_passes_elsewhere_mends_nothing(failed: str, passed: str, check: str) -> None:
    for before, after in ((failed, passed), (passed, failed)):
        first, second = before.format(check), after.format(check)
        assert not says_passed(ran(first, FAILED), ran(second, PASSED)), (first, second)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(("failed", "passed"), SAME)
def test_the_same_check_at_the_same_place_mends_a_failure(failed: str, passed: str, check: str) -> None:
    assert says_passed(ran(failed.format(check), FAILED), ran(passed.format(check), PASSED))


MOVES = ["cd ../web", "pushd ../web", "cd ../web && pwd", "cd ../web; source env.sh", "cd /repo/web && export CI=1"]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("move", MOVES)
def test_a_shell_that_stays_open_is_where_it_was_moved(move: str, check: str) -> None:
    there = [*ran("cd /repo/api", ""), *ran(check, FAILED)]
    assert not says_passed(there, ran(move, ""), ran(check, PASSED))
    assert says_passed(there, ran(move, ""), ran("cd ../api && ls", "a.py"), ran(check, PASSED))
    assert says_passed(there, ran(move, ""), ran(f"cd /repo/api && {check}", PASSED))
    assert says_passed(there, ran(move, ""), ran("cd -", ""), ran(check, PASSED))
    assert says_passed(there, called("other", "", command=move), ran(check, PASSED))
    assert says_passed(there, ran("cd gone", "bash: cd: gone: No such file or directory"), ran(check, PASSED))
    assert says_passed(there, ran("(cd ../web && ls)", "a.py"), ran(check, PASSED))


@pytest.mark.parametrize("check", CHECKS)
def test_where_a_shell_may_stay_open_nothing_is_said(check: str) -> None:
    lines = written([*ran(check, FAILED), *ran("cd web && ls", "a.py"), *ran(check, PASSED)])
    assert lines == [
        f"- shell {check}: failed: {FAILED}",
        "- shell cd web && ls: a.py",
        f"- shell {check}: {PASSED}",
    ]
    look = ran("cd web && ls", "a.py")
    assert says_passed(look, ran(check, FAILED), look, ran(check, PASSED))
    assert says_passed(ran(f"cd web && {check}", FAILED), look, ran(f"cd web && {check}", PASSED))


@pytest.mark.parametrize("check", CHECKS)
def test_revisions_and_stashes_last_between_calls(check: str) -> None:
    def lines(*history: Sequence[Message]) -> list[str]:
        return written([message for part in history for message in part])

    failed, passed = ran(check, FAILED), ran(check, PASSED)
    away, back = ran("git stash", "Saved working directory"), ran("git stash pop", "Dropped refs/stash@{0}")
    assert not says_passed(failed, away, passed, back)
    assert says_passed(failed, away, back, passed)
    assert says_passed(failed, ran("git stash", "No local changes to save"), passed)
    assert "Failing" not in lines(away, failed, back, passed)[-1]
    assert "(passed later)" not in lines(failed, away, passed)[0]
    assert "Failing" not in lines(failed, away, passed)[-1]
    main, feature = ran("git checkout main", "Switched"), ran("git checkout feature", "Switched")
    assert not says_passed(failed, main, passed, feature)
    assert says_passed(failed, main, feature, passed)
    assert says_passed(failed, ran("git checkout -b fix", ""), passed)
    assert says_passed(failed, ran("git checkout -b fix", ""), main, ran("git checkout fix", ""), passed)
    assert not says_passed(failed, main, passed, ran("git checkout -", ""))
    gone = ran("git checkout gone", "error: pathspec 'gone' did not match any file(s) known to git")
    assert "(passed later)" in lines(failed, gone, passed)[0]


@pytest.mark.parametrize("name", quick_first(sorted(HOSTILE), 3))
def test_reading_checks_is_linear(name: str) -> None:
    def read(text: str) -> None:
        steps = read_steps(parse_command(text).statements)
        make_up(steps, steps)

    assert_linear(read, *ladder(f"pytest {HOSTILE[name]}"))


class _Work:
    """An agent that checks files in several folders, revisions and machines, by a shell that stays open or not."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._is_open = seed % 2 == 0
        self._folder, self._branch, self._stashed = "/repo", "work", False
        self.history: list[Message] = []
        self.runs: list[tuple[tuple[str, ...], bool]] = []
        """Where each check acted and which file it read, and whether it passed."""
        self._passing: dict[tuple[str, ...], bool] = {}

    @property
    def files(self) -> tuple[str, ...]:
        """The revision of the files."""
        return (self._branch, str(self._stashed))

    def step(self) -> None:
        choose = self._random.choice
        does = self._random.random()
        if does < 0.15 and self._is_open:
            self._folder = choose(["/repo", "/repo/api", "/repo/web"])
            move = choose(["cd {}", "pushd {}", "cd {} && pwd", "cd {}; source env.sh"])
            self.history += ran(move.format(self._folder), "")
        elif does < 0.25:
            folder = choose(["/repo/api", "/repo/web"])
            self.history += ran(f"cd {folder} && ls", "a.py b.py")
            self._folder = folder if self._is_open else self._folder
        elif does < 0.32:
            self.history += ran(
                "git stash pop" if self._stashed else "git stash", "Dropped" if self._stashed else "Saved"
            )
            self._stashed = not self._stashed
        elif does < 0.37 and not self._stashed:
            self._branch = "main" if self._branch == "work" else "work"
            self.history += ran(f"git checkout {self._branch}", "Switched")
        else:
            self._check()

    def _check(self) -> None:
        choose = self._random.choice
        check = choose(
            ["pytest tests/{}.py", "python -m pytest tests/{}.py -q", "pytest -x tests/{}.py --tb=short"]
        )
        file, folder, elsewhere = choose("ab"), self._folder, ""
        enter = choose(["", "", "/repo", "/repo/api", "/repo/web"])
        check = check.format(file)
        if enter:
            check = choose(["cd {} && {}", "cd {}; {}", "(cd {} && {})"]).format(enter, check)
            folder = enter
            self._folder = folder if self._is_open and not check.startswith("(") else self._folder
        elif self._random.random() < 0.2:
            elsewhere = choose(["ssh a", "ssh b", "docker exec a", "DB=a", "DB=b"])
            check = f"{elsewhere} {check}"
        where = (folder, *self.files, elsewhere, file)
        self._passing[where] = self._random.random() < 0.5
        count = f"9 passed in {len(self.runs)}.1s" if self._passing[where] else f"2 failed in {len(self.runs)}.1s"
        self.runs.append((where, self._passing[where]))
        self.history += ran(check + choose(["", " 2>&1 | tail -5"]), count)


def judge(seed: int) -> tuple[int, int]:
    """Check the lines of failed checks in a record; return how many say that it passed later, and how many did."""
    work = _Work(seed)
    for _ in range(40):
        work.step()
    said = possible = 0
    for line in written(work.history):
        if found := re.search(r": failed: 2 failed in (\d+)\.1s(.*)", line):
            where, _ = work.runs[at := int(found[1])]
            passed = any(later for place, later in work.runs[at + 1 :] if place == where)
            if line.startswith("Failing at the end"):
                assert not passed, line
                assert (where[1], where[2]) == work.files
            else:
                assert passed or "(passed later)" not in line, line
                said, possible = said + ("(passed later)" in line), possible + passed
    return said, possible


@pytest.mark.parametrize("start", quick_first(range(0, 1000, 50), 2))
def test_no_record_says_of_a_check_that_it_passed_where_it_did_not(start: int) -> None:
    said, possible = map(sum, zip(*map(judge, range(start, start + 50)), strict=True))
    assert said > possible / 3

"""What a record says of looking commands that could not show what they were asked for."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence

import pytest

from lading import Session
from lading.compaction.notes import Notes
from lading.compaction.record_lines import parse_record
from lading.messages import Message, Text, ToolCall, tool_result, user_text
from tests.compaction.acted import acted
from tests.compaction.hostile import HOSTILE
from tests.compaction.test_record import ran, written
from tests.examples import quick_first
from tests.growth import assert_linear, ladder

WORDINGS = [
    ("cat {}", "cat: {}: No such file or directory"),
    ("cat '{}'", "cat: '{}': No such file or directory"),
    ("cat {}", "cat: {}: Permission denied"),
    ("cat {}", "cat: {}: Is a directory"),
    ("cat {}/x.py", "cat: {}/x.py: Not a directory"),
    ("cat {} || true", "cat: {}: No such file or directory"),
    ("cat {} 2>&1 | head", "cat: {}: No such file or directory"),
    ("cat {}; echo done", "cat: {}: No such file or directory\ndone"),
    ("cd app && cat {}", "cat: {}: No such file or directory"),
    ("cd {} && ls", "bash: line 1: cd: {}: No such file or directory"),
    ("cd {} && ls", "cd: no such file or directory: {}"),
    ("cd {} && ls", "zsh:cd:1: no such file or directory: {}"),
    ("cd {} && ls", "/bin/sh: 1: cd: can't cd to {}"),
    ("cat < {}", "bash: line 1: {}: No such file or directory"),
    ("cat < {}", "bash: {}: Permission denied"),
    ("rg x {}", "bash: line 1: rg: command not found"),
    ("rg x {}", "/bin/sh: 1: rg: not found"),
    ("rg x {}", "zsh:1: command not found: rg"),
    ("cat {}*", "zsh:1: no matches found: {}*"),
    ("cat ~/{}", "cat: /home/me/{}: No such file or directory"),
    ('cat "$DIR/{}"', "cat: /srv/{}: No such file or directory"),
    ("cat $FILES # {}", "cat: /srv/notes.md: No such file or directory"),
    ("/usr/bin/grep x {}", "/usr/bin/grep: {}: No such file or directory"),
    ("grep -n x {}", "grep: {}: Is a directory"),
    ("egrep x {}", "grep: {}: No such file or directory"),
    ("grep '(' -E {}", "grep: Unmatched ( or \\("),
    ("ls -Z1q9 {}", "ls: invalid option -- '9'\nTry 'ls --help' for more information."),
    ("ls {}", "ls: cannot access '{}': No such file or directory"),
    ("ls {}", "ls: {}: No such file or directory"),
    ("ls -la {}", "ls: cannot open directory '{}': Permission denied"),
    ("ls {}", "ls : Cannot find path 'C:\\app\\{}' because it does not exist."),
    ("head -5 {}", "head: cannot open '{}' for reading: No such file or directory"),
    ("head -5 {}", "head: error reading '{}': Is a directory"),
    ("tail {}", "tail: cannot open `{}' for reading: No such file or directory"),
    ("wc -l {}", "wc: {}: No such file or directory"),
    ("wc -l {}", "wc: {}: open: No such file or directory\n0 {}"),
    ("find {} -name '*.py'", "find: ‘{}’: No such file or directory"),
    ("find {} -name '*.py'", "find: {}: No such file or directory"),
    ("sed -n 1,9p {}", "sed: can't read {}: No such file or directory"),
    ("sed -n 1,9p {}", "sed: couldn't read {}: Is a directory"),
    ("sed -n '1,9' {}", "sed: -e expression #1, char 3: missing command"),
    ("awk '{{print}}' {}", "awk: cannot open \"{}\" (No such file or directory)"),
    ("awk '{{print}}' {}", "awk: fatal: cannot open file `{}' for reading: No such file or directory"),
    ("awk '{{print}}' {}", "awk: can't open file {}\n source line number 1"),
    ("rg x {}", "rg: {}: No such file or directory (os error 2)"),
    ("rg x {}", "rg: {}: IO error for operation on {}: No such file or directory (os error 2)"),
    ("zcat {}", "gzip: {}: No such file or directory"),
    ("find {} | wc -l", "find: ‘{}’: No such file or directory\n0"),
    ("cat {} | jq '.x['", "cat: {}: No such file or directory\njq: error: syntax error, unexpected $end"),
    ("fd x {}", "[fd error]: Search path '{}' is not a directory."),
    ("stat {}", "stat: cannot statx '{}': No such file or directory"),
    ("file {}", "{}: cannot open `{}' (No such file or directory)"),
    ("less {}", "{}: No such file or directory"),
    ("du -sh {}", "du: cannot access '{}': No such file or directory"),
    ("diff a.py {}", "diff: {}: No such file or directory"),
    ("sort {}", "sort: cannot read: {}: No such file or directory"),
    ("jq .x {}", "jq: error: Could not open file {}: No such file or directory"),
    ("git show HEAD:{}", "fatal: path '{}' does not exist in 'HEAD'"),
    ("git log -- {}", "fatal: not a git repository (or any of the parent directories): .git"),
    ("git diff {}", "fatal: ambiguous argument '{}': unknown revision or path not in the working tree.\n"
     "Use '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'"),
    ("kubectl logs {}", 'Error from server (NotFound): pods "{}" not found'),
    ("docker logs {}", "Error response from daemon: No such container: {}"),
    ("cat {} 2>/dev/null || echo MISSING", "MISSING"),
    ("ls {} 2>/dev/null || echo 'no such folder'", "no such folder"),
    ("cat {} b{}", "cat: {}: No such file or directory\ncat: b{}: No such file or directory"),
    ("for f in {} b{}; do cat $f; done", "cat: {}: No such file or directory\ncat: b{}: No such file or directory"),
    ("for f in {} ; do\n  head -20 \"$f\"\ndone", "head: cannot open '{}' for reading: No such file or directory"),
    ("ls x | while IFS= read -r f; do wc -l {}/$f; done", "wc: {}/a.py: No such file or directory"),
    ("if [ -d src ]; then ls {}; fi", "ls: cannot access '{}': No such file or directory"),
    ("cat {}", "cat: {}: Datei oder Verzeichnis nicht gefunden"),
    ("cat {}", "cat: {}: 没有那个文件或目录"),
]  # fmt: skip
"""A command that looks at a file, and what it prints if it cannot."""
WRAPPERS = [
    "{}",
    "{}\n",
    "\x1b[31m{}\x1b[0m\n",
    "{}\n\nCommand exited with code 1",
    "Exit code 2\n{}",
    "Exit code: 1\nWall time: 0.1 seconds\nOutput:\n{}",
    "Chunk ID: 9f\nWall time: 0.0513 seconds\nProcess exited with code 1\nOriginal token count: 12\nOutput:\n{}",
    "<returncode>1</returncode>\n<output>\n{}\n</output>",
    "<stdout></stdout>\n<stderr>{}</stderr>\n<exit_code>1</exit_code>",
    "STDERR:\n{}\n[exit code: 1]",
    "stderr: {}",
    "Error: {}",
    "{}\n(Current directory: /w)\nbash-5.1$",
    "$ {command}\n{}",
    json.dumps({"output": "{}", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}),
    json.dumps({"stdout": "", "stderr": "{}\n", "returncode": 2}),
]
CONTENT = "import os\n\n\ndef main() -> None:\n    print(os.name)\n"


def wrap(wrapper: str, output: str, command: str = "") -> str:
    """What a tool returns for the output of a command."""
    return wrapper.replace("{command}", command).replace(
        "{}", json.dumps(output)[1:-1] if wrapper.startswith('{"') else output
    )


def fill(wording: str, path: str) -> str:
    return wording.format(*[path] * 9)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize(("command", "error"), WORDINGS)
def test_a_look_whose_answer_is_an_error_failed(command: str, error: str, wrapper: str) -> None:
    for path in ("src/old_names.py", "Makefile"):
        error_text = fill(error, path)
        asked = fill(command, path)
        act = acted("bash", {"command": asked}, wrap(wrapper, error_text, asked))
        assert act.failed
        first = error_text.splitlines()[0]
        assert act.brief.startswith(f"{act.short}: failed: {first[:80]}"[:150])
        assert act.brief == act.detail


@pytest.mark.parametrize("command", ["cat", "head -20", "ls", "grep -n x", "sed -n 1,9p", "wc -l", "find", "rg x"])
@pytest.mark.parametrize(
    "reason", ["No such file or directory", "Permission denied", "Is a directory", "Not a directory"]
)
def test_each_program_names_its_operand_and_the_reason(command: str, reason: str) -> None:
    numbers = random.Random(f"{command} {reason}")
    program = command.split()[0]
    for _ in range(20):
        path = "/".join(f"{numbers.choice('abcdxyz')}{numbers.randrange(99)}" for _ in range(numbers.randint(1, 4)))
        path += numbers.choice(["", ".py", ".md", ".tar.gz"])
        shell = numbers.choice(["", "bash: line 1: ", "zsh:1: ", "/bin/sh: 1: "])
        named = numbers.choice(["{}: ", "'{}': ", "cannot access '{}': ", "cannot open `{}' for reading: "])
        behind = numbers.choice(["", " | head -5", " || true", " 2>&1", "; pwd", " && echo found"])
        printed = f"{shell}{program}: {named.format(path)}{reason}"
        asked = f"{command} {path}{behind}"
        act = acted("bash", {"command": asked}, wrap(numbers.choice(WRAPPERS), printed, asked))
        assert act.failed, printed
        assert reason in act.brief


@pytest.mark.parametrize("code", [1, 2, 126, 130])
@pytest.mark.parametrize("wrapper", [one for one in WRAPPERS if re.search("code", one)])
def test_an_exit_code_tells_of_a_failed_look_too(code: int, wrapper: str) -> None:
    result = re.sub(r"(code\D{1,5})[12]\b", rf"\g<1>{code}", wrap(wrapper, "Das gibt es nicht."))
    act = acted("bash", {"command": "cat notes.md"}, result)
    assert (act.failed, "failed: " in act.brief) == (True, True)
    assert acted("bash", {"command": "cat notes.md 2>/dev/null"}, result.replace("Das gibt es nicht.", "")).failed


@pytest.mark.parametrize("wrapper", [one for one in WRAPPERS if re.search(r"code\D{1,5}1\b", one)])
@pytest.mark.parametrize("command", ["cd a && grep -rn foo .", "rg foo", "diff a b", "which fd", "git grep x"])
def test_a_search_without_hits_did_not_fail(command: str, wrapper: str) -> None:
    for is_error in (False, True):
        act = acted("bash", {"command": command}, wrap(wrapper, ""), is_error=is_error)
        assert (act.failed, act.brief) == (False, act.short)


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("cat build.log", "cat: foo: No such file or directory"),
        ("cat build.log", "bash: line 3: foo: command not found\n"),
        ("tail -1 build.log", "Error: tests/build.txt: No such file or directory"),
        ("cat run.sh", "set -e\ncat: never\nexit 1"),
        ("grep -rn 'No such file' src", "src/a.py:4: raise Missing('No such file or directory')"),
        ("grep -n foo a.py b.py", "a.py: foo is b.py\nb.py: foo"),
        ("grep x a.bin", "grep: a.bin: binary file matches"),
        ("grep '\\d' a.py", "grep: warning: stray \\ before d\nExit code: 1"),
        ("diff a.py b.py", "1c1\n< a\n---\n> b\nExit code: 1"),
        ("diff -q a.py b.py", "Files a.py and b.py differ\nExit code: 1"),
        ("grep -c foo a.py", "0\n\nCommand exited with code 1"),
        ("grep foo *", "grep: src: Is a directory\na.py:foo"),
        ("cat a.yml | head -1", "retries: 3\nExit code: 141"),
        ("cat a.txt", "Exit code: 0\nOutput:\ncat: a.txt: No such file or directory"),
        ("cat a.py", f"{CONTENT}\nExit code: 2"),
        ("cat a.py", f"{CONTENT * 40}# cat: b.py: No such file or directory\n{CONTENT * 40}"),
        ("cat a.log", f"{CONTENT * 40}cat: b.py: No such file or directory\n{CONTENT * 40}"),
        ("kubectl logs web", "Error: the queue is full\nError: the queue is full"),
        ("git log -1 --format=%s", "fatal: the word in our messages"),
        ("cat a.py; ls", ""),
        ("for f in a.log b.log; do tail -3 $f; done", "Error: the queue is full\nError: the queue is full"),
        (
            'for f in $(ls src); do echo "== $f"; cat src/$f; done',
            "== a.py\nraise Error: no such thing\n== b.py\nx",
        ),
        ("while read -r f; do cat $f; done < list.txt", "Error: the queue is full\nfatal: no"),
        ("find . -name '*.log' | while read f; do grep -c Error $f; done", "Error: 3\nError: 2"),
        ("if test -f a.log; then tail a.log; else echo none; fi", "Error: the queue is full"),
        ("[ -f a.log ] && cat a.log", "Error: the queue is full"),
        ("{ cat a.log; echo; cat b.log; }", "Error: the queue is full\nfatal: no"),
        ("(cd logs && cat a.log)", "Error: the queue is full\nfatal: no"),
        ("grep -o '[^ ]*: Permission denied$' find.log", "./root: Permission denied"),
        ("grep sort: conf.yml", "sort: conf\nsort: by name"),
        ("file a.py less", "a.py: Python script\nless: directory"),
    ],
)
def test_what_a_look_shows_of_errors_did_not_make_it_fail(command: str, result: str) -> None:
    act = acted("bash", {"command": command}, result)
    assert (act.failed, act.brief) == (False, act.short)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_look_that_shows_a_part_says_what_it_does_not_show(place: int, wrapper: str) -> None:
    error = "cat: gone.py: No such file or directory"
    texts = [CONTENT * 20, "x = 1"]
    texts.insert(place, error)
    command = "cat a.py b.py gone.py"
    for is_error in (False, True):
        result = wrap(wrapper, "\n".join(texts), command)
        act = acted("bash", {"command": command}, result, is_error=is_error)
        assert not act.failed
        assert act.brief == act.detail == f"{act.short}: {error}"
    assert "failed" not in "\n".join(written(ran(command, result)))


WRITERS = ["sed -i 's/1/2/' {}", "perl -pi -e 's/1/2/' {}", "echo 'x = 1' >> {}", "cat > {} <<'E'\nx = 1\nE"]
SHOWN = ["cat {}", "sed -n 1,9p {}", "git diff {}", "grep -n Error {}", "tail -3 b.log"]


@pytest.mark.parametrize("look", SHOWN)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("between", [" && ", "; ", " && cd .. && "])
def test_what_is_shown_of_a_changed_file_did_not_make_the_change_fail(writer: str, look: str, between: str) -> None:
    behind = "\n" if "<<" in writer else between
    command = f"{fill(writer, 'src/a.py')}{behind}{fill(look, 'src/a.py')}"
    for result in ("Error: the queue is full\nfatal: no", "3: Error: no\n\nExit code: 0", "1 failed, 3 errors"):
        act = acted("bash", {"command": command}, result)
        assert (act.edits, act.failed, act.ended.is_made, act.ended.passed) == (True, False, True, False)
    gone = "cat: gone.py: No such file or directory"
    act = acted("bash", {"command": f"{command}; cat gone.py"}, f"x = 1\n{gone}")
    assert (act.failed, act.ended.is_made, act.brief) == (False, True, f"{act.short}: {gone}")


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("sed -i 's/1/2/' {}; cat b.py", "sed: can't read {}: No such file or directory"),
        ("sed -i 's/1/2' {}; cat b.py", "sed: -e expression #1, char 5: unterminated `s' command"),
        ("perl -pi -e 's/1/2/' {}; cat b.py", "Can't open {}: No such file or directory"),
        ("echo x >> {}; cat b.py", "bash: line 1: {}: Permission denied"),
        ("echo x >> {}; cat b.py", "-bash: {}: Read-only file system"),
        ("cp {} c.py; cat b.py", "cp: cannot stat '{}': No such file or directory"),
        ("mv {} c.py; cat b.py", "mv: cannot stat '{}': No such file or directory"),
        ("mkdir {}; cat b.py", "mkdir: cannot create directory ‘{}’: File exists"),
        ("touch {}; cat b.py", "touch: cannot touch '{}': Permission denied"),
        ("rm {}; cat b.py", "rm: cannot remove '{}': No such file or directory"),
        ("git add {}; git status", "fatal: pathspec '{}' did not match any files"),
        ("tee {} < c.py; cat b.py", "tee: {}: Permission denied"),
    ],
)
def test_a_change_that_was_not_made_failed_whatever_is_shown_behind_it(command: str, error: str) -> None:
    for path in ("src/old_names.py", "Makefile"):
        for shown in ("", CONTENT * 3):
            act = acted("bash", {"command": fill(command, path)}, f"{fill(error, path)}\n{shown}")
            assert (act.failed, act.ended.is_made) == (True, False)
            assert f": failed: {fill(error, path)[:60]}" in act.brief
    act = acted("bash", {"command": fill(command, "a.py")}, "raise Error: no\nError: the queue is full")
    assert (act.failed, act.ended.is_made) == (False, True)


@pytest.mark.parametrize(
    ("command", "is_made"),
    [
        ("sed -i 's/1/2/' a.py && pytest a.py", True),
        ("cd app && sed -i 's/1/2/' a.py; make", True),
        ("cat > a.py <<'E'\nx = 1\nE\npython a.py", True),
        ("pytest a.py && sed -i 's/1/2/' a.py", False),
        ("make; sed -i 's/1/2/' a.py", False),
    ],
)
def test_a_file_is_changed_where_what_comes_behind_it_fails(command: str, is_made: bool) -> None:
    for result in ("FAILED a.py::test_one\n1 failed", "a.py:3: SyntaxError: invalid syntax\nExit code: 1"):
        lines = written(ran(command, result))
        assert (lines[-2] == "Files changed: a.py (#0)") is is_made
        assert lines[-1].startswith("Failing at the end: ")
    gone = (
        "sed: can't read a.py: No such file or directory" if "sed" in command else "bash: a.py: Permission denied"
    )
    assert not written(ran(command, f"{gone}\n1 failed"))[-2].startswith("Files changed")


def test_a_failed_look_shares_no_line_and_is_no_failure_of_the_work() -> None:
    gone = "cat: gone.py: No such file or directory"
    history = [
        user_text("Go."),
        *ran("make", "error: no rule"),
        *ran("cat a.py", CONTENT * 9),
        *ran("cat gone.py", gone),
        *ran("cat b.py", CONTENT * 9),
    ]
    assert written(history) == [
        "#0 User: Go.",
        "- shell make: failed: error: no rule",
        "- shell cat a.py",
        f"- shell cat gone.py: failed: {gone}",
        "- shell cat b.py",
        "Failing at the end: shell make: failed: error: no rule",
    ]
    assert written([*history, *ran("cat gone.py", CONTENT * 9)])[3] == (
        f"- shell cat gone.py: failed: {gone} (passed later)"
    )


def test_words_behind_a_failed_look_are_no_diagnosis() -> None:
    def words_after(result: str) -> list[float]:
        notes = Notes()
        said = Message("assistant", (Text("The folder has another name."), ToolCall("d", "read", '{"path": "a"}')))
        for entry, message in enumerate([user_text("Go."), *ran("cat x.py", result), said]):
            notes.add(entry, message, count=len)
        return [form.worth for form in notes.between(3, 3)[0].forms]

    assert words_after("cat: x.py: No such file or directory") == words_after("x = 1")


ROUNDS = 120


def probe(seed: int) -> Iterator[tuple[str, str, str]]:
    """What an agent looks at, the command, and what it prints."""
    numbers = random.Random(seed)
    plain = [one for one in WORDINGS if "{}" in one[1] and "$" not in one[0]]
    for number in range(ROUNDS):
        path = f"src/part_{number}/mod_{numbers.randrange(10**6)}.py"
        if numbers.random() < 0.35:
            command, error = numbers.choice(plain)
            asked = fill(command, path)
            yield path, asked, wrap(numbers.choice(WRAPPERS), fill(error, path), asked)
        else:
            command = numbers.choice(["cat {}", "head -50 {}", "sed -n 1,40p {}", "grep -n part {}", "wc {}"])
            lines = "".join(f"part_{line} = {numbers.randrange(10**9)}\n" for line in range(numbers.randint(1, 60)))
            yield path, fill(command, path), lines


@pytest.mark.parametrize("seed", quick_first(range(6), 2))
def test_no_record_shows_a_missing_file_as_looked_at(seed: int) -> None:
    probed = [*probe(seed)]
    with Session("gpt-4o", window=16_000) as session:
        session.add(user_text("Find where the parts are defined."))
        for number, (_, command, result) in enumerate(probed):
            call = ToolCall(f"c{number}", "bash", json.dumps({"command": command}))
            session.add([Message("assistant", (call,)), tool_result(call.id, result)]).pack()
        records = [parse_record(edit, session.entries) for edit in session.edits]
    lines = [line.text for record in records if record for line in record.lines if line.kind == "call"]
    wrong, shown = judge(lines, probed)
    assert wrong == []
    assert len({*shown}) > 20


def judge(lines: Sequence[str], probed: Sequence[tuple[str, str, str]]) -> tuple[list[str], list[str]]:
    """Return the lines that show a missing file as looked at, or the reverse, and the missing files in lines."""
    wrong, shown = [], []
    for path, _, result in probed:
        is_missing = "part_0 =" not in result
        for line in (line for line in lines if path in line):
            shown += [path] if is_missing else []
            wrong += [line] if is_missing != (": failed: " in line) else []
    return wrong, shown


@pytest.mark.parametrize("name", quick_first(sorted(HOSTILE), 3))
@pytest.mark.parametrize("start", ["", "cat: ", "/"])
def test_reading_a_look_is_linear(name: str, start: str) -> None:
    def read_look(text: str) -> None:
        acted("bash", {"command": f"cat {text[:500]}"}, text)

    assert_linear(read_look, *ladder(start + HOSTILE[name]))

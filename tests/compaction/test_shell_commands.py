from __future__ import annotations

import pytest

from lading.compaction.shell_commands import parse_command
from tests.compaction.hostile import HOSTILE
from tests.examples import quick_first
from tests.growth import assert_linear, ladder


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("pytest -q 2>&1 | tail -5", "pytest -q "),
        ("make > out.txt", "make "),
        ('python -c "print(3 > 2)" | head', 'python -c "print(3 > 2)" '),
        ("awk '$1 > 3' sums.txt > out.txt", "awk '$1 > 3' sums.txt "),
        (r"find . -name \> -print", r"find . -name \> -print"),
        ("node -e 'xs.map(x => x > 1)'", "node -e 'xs.map(x => x > 1)'"),
        ("run --map a=>b", "run --map a=>b"),
        ("it's > odd", "it's "),
    ],
)
def test_what_a_command_runs_ends_at_its_first_filter(command: str, runs: str) -> None:
    assert parse_command(command).runs == runs


def test_a_script_in_a_heredoc_is_part_of_what_runs() -> None:
    first, second = (parse_command(f"python - <<'EOF' | tail\nprint({number} > 2)\nEOF") for number in (1, 2))
    assert first.runs == "python - print(1 > 2)\n"
    assert second.runs == "python - print(2 > 2)\n"
    assert first.text.endswith("EOF")


@pytest.mark.parametrize(
    ("command", "text", "path", "written"),
    [
        ("cat > a.py <<EOF\nx = 1 > 2\nEOF", "cat > a.py", "a.py", "x = 1 > 2\n"),
        ("cd x && cat << 'END' >> b\n1\n\t2\n  END\nmake b", "cd x && cat >> b; make b", "b", "1\n\t2\n"),
        ('sudo tee -a /etc/a <<-"X" >/dev/null\n1\nX\n', "sudo tee -a /etc/a >/dev/null", "/etc/a", "1\n"),
        ("sed -i 's/a > b/c/' src/a.py", "sed -i 's/a > b/c/' src/a.py", "src/a.py", ""),
        ("cd x && sed -E -i '' '/b/d' b.py && make", "cd x && sed -E -i '' '/b/d' b.py && make", "b.py", ""),
        ("cat > /dev/null <<EOF\na\nEOF", "cat > /dev/null <<EOF\na\nEOF", "", ""),
        ('cat > "$FILE" <<EOF\na\nEOF', 'cat > "$FILE" <<EOF\na\nEOF', "", ""),
        ("cat > a.py <<EOF\nit never ends", "cat > a.py <<EOF\nit never ends", "", ""),
        ("python - <<EOF > sums.txt\nprint(1)\nEOF", "python - <<EOF > sums.txt\nprint(1)\nEOF", "", ""),
        ("sed -n '1,5p' a.py", "sed -n '1,5p' a.py", "", ""),
        ("make > out.txt", "make > out.txt", "", ""),
        ("sed -i 's/a/b/' a.py src/b.py && ls", "sed -i 's/a/b/' a.py src/b.py && ls", "a.py src/b.py", ""),
        ("sed -i -e s/a/b/ a.py b.py", "sed -i -e s/a/b/ a.py b.py", "a.py b.py", ""),
        ("perl -0pi -e 's/a b/c/' a.py b.py", "perl -0pi -e 's/a b/c/' a.py b.py", "a.py b.py", ""),
        ("cat > a <<E\n1\nE\ncat > b <<'E'\n2\nE", "cat > a; cat > b <<'E'\n2\nE", "a b", "1\n"),
        ("cd x && echo 'A > B' >> .env", "cd x && echo 'A > B' >> .env", ".env", ""),
        ("cat a.sql b.sql > all.sql; ls", "cat a.sql b.sql > all.sql; ls", "all.sql", ""),
        ("make && echo no 2>&1 | tee log", "make && echo no 2>&1 | tee log", "", ""),
        ("", "", "", ""),
    ],
)  # fmt: skip
def test_a_heredoc_and_sed_write_files(command: str, text: str, path: str, written: str) -> None:
    found = parse_command(command)
    assert (found.text, " ".join(found.paths), found.written) == (text, path, written)
    assert found.only_looks is (command.startswith("sed -n"))


@pytest.mark.parametrize(
    ("command", "only_looks"),
    [
        ("git diff", True),
        ("cd app && git --no-pager -C lib log -3 --stat | head -20", True),
        ("git status; git show HEAD~1:a.py", True),
        ("git commit -m 'show the log'", False),
        ("git push && git log -1", False),
        ("cat a.txt | sort | uniq -c", True),
        ("cat a.txt | python check.py", False),
        ("ls && make", False),
        ("echo 'a && make' | tr a b", True),
        ("/usr/bin/grep -rn 'x | y' src", True),
        ("find . -name '*.pyc' -delete", False),
        ("find . -name '*.py' | xargs grep -l x", True),
        ("find . | xargs rm", False),
        ("FOO=1 rg x", True),
        ("cd src", False),
        ("make 2>&1 | grep error", False),
    ],
)
def test_a_command_only_looks_when_all_its_programs_do(command: str, only_looks: bool) -> None:
    assert parse_command(command).only_looks is only_looks


@pytest.mark.parametrize(
    ("command", "changes", "hides_code"),
    [
        ("git commit -am 'a; b | c'", True, False),
        ("cd app && sudo rm -rf build/cache", True, False),
        ("kubectl -n web delete pod a", True, False),
        ("make; alembic upgrade head", True, True),
        ("docker ps | wc -l", False, True),
        ("git log -1 2>&1", False, False),
        ("python run.py & sleep 1", False, True),
        ("pytest -q || true", False, True),
    ],
)
def test_some_programs_change_what_no_edit_shows(command: str, changes: bool, hides_code: bool) -> None:
    found = parse_command(command)
    assert (found.changes, found.hides_code) == (changes, hides_code)


@pytest.mark.parametrize("name", quick_first(sorted(HOSTILE), 3))
def test_reading_is_linear(name: str) -> None:
    assert_linear(parse_command, *ladder(f"cat > a <<E\n{HOSTILE[name]}"))

"""Breaks the code in known ways and checks that the tests notice.

Usage: ``python -m scripts.mutants [--only NAME] [--whole] [--json]``. Each mutant of ``mutants.toml`` replaces a
text of the source in a copy of the tree and runs the tests that should catch it, with few examples of each
property. The same tests must pass without it. Prints a line for each mutant and exits 1 when one survives, when
one does not load, or when the tests fail without any.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from lading.structs import convert

ROOT = Path(__file__).resolve().parent.parent
LIST = Path(__file__).with_suffix(".toml")
QUICK_TIER = ("tests", "-m", "not full")
"""What ``--whole`` runs when the named tests pass: arguments of pytest."""
TIMEOUT_S = 1800
"""A run that takes longer is ended: a mutant may loop for ever."""
AT_ONCE = 2
PYTEST = ("-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider")
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", ".*_cache", ".hypothesis", ".coverage*", "__pycache__", "demo-store*"
)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - |$)", re.MULTILINE)

State: TypeAlias = Literal["caught", "survived", "does not load", "times out"]


class Mutant(Struct, frozen=True, forbid_unknown_fields=True):
    """One known way to break the code."""

    name: str
    file: str
    """Below the root."""
    old: str
    """Stands in the file exactly once."""
    new: str
    breaks: str
    """The promise that no longer holds."""
    tests: tuple[str, ...]
    """Files of tests that should notice, the likeliest first."""


class Listed(Struct, frozen=True, forbid_unknown_fields=True):
    """The file of mutants."""

    mutant: tuple[Mutant, ...]


class Outcome(Struct, frozen=True):
    """What the tests made of one mutant."""

    name: str
    state: State
    by: str
    """The test that caught it; else the end of what pytest printed."""
    seconds: float

    @property
    def is_good(self) -> bool:
        """Whether the tests noticed; a test that never ends is noticed too."""
        return self.state in ("caught", "times out")


class Ran(Struct, frozen=True):
    """One run of pytest."""

    code: int | None
    """None: it took longer than ``TIMEOUT_S``."""
    output: str

    @property
    def failed(self) -> str:
        """The first test that failed; empty when none is named."""
        found = _FAILED.search(self.output)
        return found[1] if found else ""


def main(arguments: Sequence[str]) -> int:
    """Run the mutants and print what became of each. Returns the exit code."""
    options = _options(arguments)
    mutants = read(options.list)
    unknown = set(options.only).difference(mutant.name for mutant in mutants)
    wrong = [f"There is no mutant named {name!r}." for name in sorted(unknown)] + faults(mutants, options.root)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 2
    if options.check:
        return 0
    chosen = [mutant for mutant in mutants if not options.only or mutant.name in options.only]
    outcomes: dict[str, Outcome] = {}
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        plain = pool.submit(unbroken, options.root, chosen, whole=options.whole)
        running = [pool.submit(judged, mutant, options.root, whole=options.whole) for mutant in chosen]
        for done, future in enumerate(as_completed(running), start=1):
            outcome = outcomes[future.result().name] = future.result()
            print(f"{done}/{len(running)} {line(outcome)}", file=sys.stderr, flush=True)
        baseline = plain.result()
    finally:
        # Interrupted, it starts no other.
        pool.shutdown(cancel_futures=True)
    ordered = [outcomes[mutant.name] for mutant in chosen]
    if options.json:
        print(msgspec.json.encode({"baseline": baseline, "outcomes": ordered}).decode())
    else:
        print(*map(line, ordered), sep="\n")
        bad = [outcome for outcome in ordered if not outcome.is_good]
        print(f"{len(ordered) - len(bad)} of {len(ordered)} mutants caught")
        for mutant in (mutant for mutant in chosen if not outcomes[mutant.name].is_good):
            print(f"{mutant.name} breaks this: {mutant.breaks}\n{outcomes[mutant.name].by}")
        print(f"Without a mutant the same tests fail: {baseline}" if baseline else "Without a mutant they pass")
    return 1 if baseline or not all(outcome.is_good for outcome in ordered) else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description="Break the code and check that the tests notice.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this mutant; may be repeated")
    parser.add_argument(
        "--check", action="store_true", help="only see that each text is in the source, and run none"
    )
    parser.add_argument("--whole", action="store_true", help="run all tests where the named ones pass")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to break")
    parser.add_argument("--list", type=Path, default=LIST, help="the mutants, as TOML")
    return parser.parse_args(arguments)


def read(path: Path) -> tuple[Mutant, ...]:
    """The mutants of a TOML file."""
    return convert(tomllib.loads(path.read_text(encoding="utf-8")), Listed).mutant


def faults(mutants: Sequence[Mutant], root: Path) -> list[str]:
    """What is no longer true of a list of mutants: each fault in a sentence."""
    return [fault for place, mutant in enumerate(mutants) for fault in _faults(mutant, mutants[:place], root)]


def _faults(mutant: Mutant, earlier: Sequence[Mutant], root: Path) -> Iterator[str]:
    file = root / mutant.file
    times = file.read_text(encoding="utf-8").count(mutant.old) if file.is_file() else 0
    if times != 1:
        yield f"{mutant.name}: its text is in {mutant.file} {times} times, not once; write it anew."
    if mutant.old == mutant.new:
        yield f"{mutant.name}: it changes nothing."
    if any(mutant.name == other.name for other in earlier):
        yield f"{mutant.name}: the name is used before."
    if not mutant.tests:
        yield f"{mutant.name}: name the tests that should catch it."
    for test in mutant.tests:
        if not (root / test.partition("::")[0]).exists():
            yield f"{mutant.name}: {test} does not exist."


def judged(mutant: Mutant, root: Path, *, whole: bool) -> Outcome:
    """What the tests make of one mutant: its own first, then all where ``whole``."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        tree = copied(root, Path(folder))
        file = tree / mutant.file
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        ran = run(tree, mutant.tests, root=root)
        if ran.code == 0 and whole:
            ran = run(tree, QUICK_TIER, root=root)
    state = judgement(ran)
    by = ran.failed if state == "caught" else ran.output[-2000:]
    return Outcome(mutant.name, state, by, round(time.monotonic() - began, 1))


def judgement(ran: Ran) -> State:
    """What a run of the tests on a mutant says of it."""
    if ran.code is None:
        return "times out"
    if ran.code == 0:
        return "survived"
    # A file of tests that cannot be imported says nothing of what the tests notice.
    return "caught" if ran.code == 1 and "::" in ran.failed else "does not load"


def unbroken(root: Path, mutants: Sequence[Mutant], *, whole: bool) -> str:
    """What fails of the tests that the mutants name when the code is as it should be; empty when nothing does."""
    named = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        ran = run(copied(root, Path(folder)), QUICK_TIER if whole else tuple(named), root=root)
    return "" if ran.code == 0 else ran.failed or ran.output[-2000:] or "they take too long"


def copied(root: Path, folder: Path) -> Path:
    """A copy of the tree without environments, caches and history."""
    return Path(shutil.copytree(root, folder / "tree", ignore=LEFT_OUT))


def run(tree: Path, tests: Sequence[str], *, root: Path) -> Ran:
    """Run tests in a copied tree, on its own source, with few examples of each property."""
    # What pytest and coverage set for themselves is of the tests that may have called this.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV"))}
    environment = {"LADING_SHARED": str(root.parent / "shared")} | kept
    environment |= {"HYPOTHESIS_PROFILE": "quick", "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
    process = subprocess.Popen(
        [sys.executable, *PYTEST, *tests],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        # Its own session: what the tests have started ends with them.
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return Ran(None, output)
    return Ran(process.returncode, output)


def line(outcome: Outcome) -> str:
    """An outcome as one line."""
    shown = f"caught by {outcome.by}" if outcome.state == "caught" else outcome.state.upper()
    return f"{outcome.name}: {shown} ({outcome.seconds:.0f} s)"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

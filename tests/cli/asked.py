"""Commands that ask a model, against the local provider."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lading.testing import Say, Script, Seen, StrictProvider, Use
from lading.testing.answers import Fault
from tests.cli.commands import Ended, lading

ROOT = Path(__file__).resolve().parents[2]
BUG_HUNT = ROOT / "examples" / "sessions" / "bug_hunt.jsonl.gz"
PROBES = ROOT / "examples" / "probes" / "bug_hunt.jsonl"
NEEDLE = "410 of 410 bad lines hold a parallel call"
"""The evidence of the first probe."""
MODELS = {"openai_chat": "gpt-5-mini", "anthropic": "claude-sonnet-5"}


@contextmanager
def provider(script: Script, *, faults: dict[int, Fault] | None = None) -> Iterator[StrictProvider]:
    """A local provider that is the one of both SDKs."""
    with StrictProvider(script, foreign=True, faults=faults) as local, pytest.MonkeyPatch.context() as patch:
        for name, url in (("OPENAI", f"{local.url}/v1"), ("ANTHROPIC", local.url)):
            patch.setenv(f"{name}_BASE_URL", url)
            patch.setenv(f"{name}_API_KEY", "test")
        yield local
    if not faults:
        assert local.violations == []


def reads(seen: Seen) -> Say:
    """Answer with the needle if the request holds it."""
    found = any(NEEDLE in passage.text for passage in seen.passages())
    return Say(f"They found that {NEEDLE}." if found else "unknown")


def looks(_: Seen) -> Say:
    """Go on with a call that the session has made before, and one that it has not."""
    return Say("I look again.", (Use("shell", {"command": "ls src"}), Use("shell", {"command": "date"})))


def probe(out: Path, *more: str | Path, model: str = "gpt-5-mini") -> Ended:
    return lading("probe", BUG_HUNT, "--probes", PROBES, "--model", model, "--out", out, "--window", "16k", *more)


def resume(out: Path, *more: str | Path, model: str = "gpt-5-mini") -> Ended:
    return lading("resume", BUG_HUNT, "--model", model, "--out", out, "--window", "16k", *more)

"""The recorded bill beside the simulated ones, as ``lading replay`` prints it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.commands import lading, long_session, reply, used_tool, user, written


def billed_session(path: Path, *, model: str = "claude-sonnet-4-5") -> Path:
    """Ten calls, of which the provider billed 1,500 tokens more each and missed the cache once."""
    messages, usage, before = [user("Look around.")], [], 0
    for number in range(10):
        size = 2_000 + 500 * number
        read = 0 if number == 6 else before
        index = len(messages)
        usage.append(
            {"message_index": index, "input": 3, "output": 20, "cacheRead": read, "cacheWrite": size - read}
        )
        messages += [*used_tool(number, "word " * 480)]
        before = size
    return written(path, [*messages, reply("Done.")], model=model, usage=usage, id="s")


def test_bills_stand_side_by_side(tmp_path: Path) -> None:
    path = billed_session(tmp_path / "s.json")
    ended = lading("replay", path, "--window", "3000", "--strategy", "basic", "--strategy", "append-only")
    assert ended.code == 1
    lines = ended.out.splitlines()
    first = next(at for at, line in enumerate(lines) if line == "as billed and as simulated, 10 calls")
    assert [line.split()[0] for line in lines[first + 3 : first + 6]] == ["billed", "everything", "basic"]
    for words in (
        "billed input beyond everything sent: +$",
        "the provider counts ",
        "that were not recorded: system prompt",
    ):
        assert words in ended.out
    assert re.search(r"cache missed: neither idle nor shortened \(all reading nothing at all\)\s+1 ", ended.out)
    assert "1 replayed call without a recorded bill left out" in ended.out
    data = lading("replay", path, "--window", "3000", "--json").data["bills"]
    assert data["calls"] == 10
    assert data["output"][0] == 200


def test_without_a_price_and_without_bills(tmp_path: Path) -> None:
    out = lading("replay", billed_session(tmp_path / "s.json", model="nobody-knows-it")).out
    assert "costs are in base input tokens" in out
    assert "$" not in out
    plain = long_session(tmp_path / "plain.json")
    assert "as billed" not in lading("replay", plain).out
    assert lading("replay", plain, "--json").data["bills"] is None

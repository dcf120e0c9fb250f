"""What the caller pins stays verbatim, whatever leaves the view around it."""

from __future__ import annotations

from pathlib import Path

import pytest

import lading

PINNED = "The invoice number is INV-2093-77 and the ledger closes on the 4th."


def rounds(first: int, last: int) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    for number in range(first, last):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append(
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"line {number} of the book. " * 60}
        )
    return messages


# The contract pins notes under every strategy; this is a whole session, stored and opened again.
@pytest.mark.parametrize(("name", "role"), [("priced", "user"), ("priced", "assistant"), ("basic", "user")])
def test_a_pinned_message_outlives_every_edit(name: str, role: str, tmp_path: Path) -> None:
    session = lading.Session("gpt-4o", store=tmp_path, name="book", strategy=name, window=6_000)
    session.add([{"role": "user", "content": "Read the book."}, *rounds(0, 2)])
    session.add([{"role": role, "content": PINNED}], pin=True)
    for number in range(2, 60):
        session.add(
            [*([{"role": "user", "content": "go on"}] if number % 7 == 2 else []), *rounds(number, number + 1)]
        )
        pack = session.pack()
        assert PINNED in pack.body.decode()
    assert "line 3 of the book" not in pack.body.decode()
    session.close()
    with lading.Session("gpt-4o", store=tmp_path, name="book", strategy=name, window=6_000) as again:
        assert PINNED in again.pack().body.decode()


def test_a_pin_alone_changes_nothing() -> None:
    said = [{"role": "user", "content": "Read the book."}, *rounds(0, 2)]
    plain, pinned = lading.Session("gpt-4o"), lading.Session("gpt-4o")
    assert plain.add(said).pack().body == pinned.add(said, pin=True).pack().body


def test_what_is_known_already_cannot_be_pinned() -> None:
    said = [{"role": "user", "content": "Read the book."}]
    session = lading.Session("gpt-4o").add(said)
    with pytest.raises(lading.InputError, match="nothing new to pin"):
        session.add(said, pin=True)

"""An awaited session has all that a session has."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lading import AsyncSession, Session
from lading.messages import user_text

INNER = {"extend", "has_answer", "offer", "report_missing_usage", "request", "update"}
"""What a session's other parts use of it."""


def test_an_async_session_has_every_method_of_a_session() -> None:
    def public(of: type) -> set[str]:
        return {name for name in dir(of) if not name.startswith("_")}

    assert public(Session) - public(AsyncSession) == INNER


def test_an_async_session_instructs_withdraws_and_forks(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncSession(Session("gpt-4o", store=tmp_path)) as line:
            await line.add([{"role": "system", "content": "Be brief."}, user_text("One?")])
            await line.instruct("Be long.")
            assert "Be long." in (await line.pack()).body.decode()
            await line.add([{"role": "assistant", "content": "One."}, user_text("Two?")])
            assert await line.withdraw(3)
            assert "Two?" not in (await line.pack()).body.decode()
            other = await line.fork([user_text("Three?")])
            assert other.name != line.name
            assert [entry.message.text for entry in other.entries] == ["Three?"]
            assert (line.step, line.own_tools) == (None, frozenset())
            await other.close()

    asyncio.run(main())

"""Streams of which an async caller reads the start and drops the rest."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from lading.clients import wrap
from lading.testing import Say, StrictProvider
from tests.clients.agents import CLIENTS, MODELS
from tests.waiting import happens


@pytest.mark.parametrize("collects", [False, True], ids=["each", "together"])
@pytest.mark.parametrize("name", ["AsyncOpenAI", "AsyncAnthropic"])
def test_the_event_loop_has_no_errors_to_report(name: str, collects: bool) -> None:
    """Its hook closes each generator that is collected; the SDKs' close those inside themselves too."""
    make, wire = CLIENTS[name]
    with StrictProvider(lambda _: Say("words " * 40)) as provider:
        assert asyncio.run(drop(wrap(make(provider)), wire, collects=collects)) == []


async def drop(client: Any, wire: str, *, collects: bool) -> list[str]:
    errors: list[str] = []

    def report(_: object, context: dict[str, Any]) -> None:
        # At its end the loop closes what was closing, and reports it for the plain client too.
        errors.extend([] if "asyncgen" in context else [repr(context)])

    asyncio.get_running_loop().set_exception_handler(report)
    create: Callable[..., Any] = client.messages.create if wire == "anthropic" else client.chat.completions.create
    fields: dict[str, Any] = {"model": MODELS[wire], "stream": True} | (
        {"max_tokens": 99} if wire == "anthropic" else {}
    )
    for number in range(10):
        stream = await create(messages=[{"role": "user", "content": f"hi {number}"}], **fields)
        async for _ in stream:
            break
        del stream
        if not collects:
            errors += await collect()
    errors += await collect()
    await client.close()
    return errors


async def collect() -> list[str]:
    """Collect what was dropped, and let the event loop close it. Returns the errors of that."""
    errors: list[str] = []
    gc.collect()
    idle = 0
    while idle < 10:
        turned = asyncio.Event()
        asyncio.get_running_loop().call_soon(turned.set)
        await happens(turned, "a turn of the loop")
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        idle = 0 if tasks else idle + 1
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            errors += [repr(ended)] if isinstance(ended, BaseException) else []
    return errors

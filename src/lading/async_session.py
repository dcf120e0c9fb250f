"""A session to be awaited: the same methods, run in threads, because stores and packing block."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncIterable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from lading.messages import Message
from lading.pack import Pack
from lading.session import Changed, Session
from lading.why import Answer
from lading.wire.replies import Reply


class AsyncSession:
    """The methods of a ``Session`` as coroutines. Safe to use from several tasks."""

    def __init__(self, session: Session) -> None:
        """``session`` may go on being used as it is, beside this."""
        self.session = session

    async def add(self, messages: object, *, changed: Changed = "error") -> AsyncSession:
        """See ``Session.add``."""
        held_by = await to_thread(self.session.add, messages, changed=changed)
        return self if held_by is self.session else AsyncSession(held_by)

    async def pack(
        self,
        tools: Iterable[object] | None = None,
        *,
        fields: Mapping[str, Any] | None = None,
        at_s: float | None = None,
    ) -> Pack:
        """See ``Session.pack``."""
        return await to_thread(self.session.pack, tools, fields=fields, at_s=at_s)

    async def reply(self, response: object) -> Reply:
        """See ``Session.reply``; the stream may be an asynchronous one."""
        if isinstance(response, AsyncIterable):
            response = [event async for event in response]
        return await to_thread(self.session.reply, response)

    async def handle(self, reply: Reply | Message) -> list[Message]:
        """See ``Session.handle``."""
        return await to_thread(self.session.handle, reply)

    async def retry(self, error: object) -> Pack:
        """See ``Session.retry``."""
        return await to_thread(self.session.retry, error)

    async def why(self, text: str, *, call: int | None = None) -> Answer:
        """See ``Session.why``."""
        return await to_thread(self.session.why, text, call=call)

    async def close(self) -> None:
        """See ``Session.close``."""
        await to_thread(self.session.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

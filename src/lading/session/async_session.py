"""A session to be awaited: the same methods, run in threads, because stores and packing block."""

from __future__ import annotations

from asyncio import (
    CancelledError,
    ensure_future,
    get_running_loop,
    run_coroutine_threadsafe,
    shield,
    to_thread,
    wait,
    wait_for,
    wrap_future,
)
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from lading.audit.verdicts import Explanation
from lading.effects import AWAIT
from lading.history.log import Edit, Entry
from lading.history.observations import ObservationResult
from lading.memory.agent_memory import AgentMemory
from lading.messages import Message, MessageLike
from lading.request.pack import Pack
from lading.request.tool_index import ToolIndex
from lading.session.matching import Changed
from lading.session.session import Session
from lading.session.task_steps import GivenStep, GivenTask
from lading.task.acceptance import Acceptance
from lading.task.artifacts import Artifacts
from lading.task.packing import TaskOptions
from lading.task.task import TaskStep
from lading.validation import check
from lading.wire.replies import Reply

Result = TypeVar("Result")


class AsyncSession:
    """The methods of a ``Session`` as coroutines. Safe to use from several tasks.

    Async functions of the caller (summarizer, provider, ``compress``, transform) are awaited on the loop that
    awaits ``pack`` or ``retry``, and are cancelled with it.
    """

    def __init__(self, session: Session) -> None:
        """``session`` may go on being used as it is, beside this. Raises InputError for anything else."""
        check(session, Session, advice="give AsyncSession(Session(...))")
        self.session = session

    @property
    def name(self) -> str:
        """See ``Session.name``."""
        return self.session.name

    @property
    def entries(self) -> Sequence[Entry]:
        """See ``Session.entries``."""
        return self.session.entries

    @property
    def edits(self) -> Sequence[Edit]:
        """See ``Session.edits``."""
        return self.session.edits

    @property
    def own_tools(self) -> frozenset[str]:
        """See ``Session.own_tools``."""
        return self.session.own_tools

    @property
    def tools(self) -> ToolIndex:
        """See ``Session.tools``."""
        return self.session.tools

    @property
    def step(self) -> TaskStep | None:
        """See ``Session.step``."""
        return self.session.step

    @property
    def artifacts(self) -> Artifacts:
        """See ``Session.artifacts``; its methods block for as long as its store takes."""
        return self.session.artifacts

    @property
    def observations(self) -> list[ObservationResult]:
        """See ``Session.observations``."""
        return self.session.observations

    @property
    def memory(self) -> AgentMemory | None:
        """See ``Session.memory``; its methods block for as long as its store takes."""
        return self.session.memory

    def subscribe(self, of: str | type[Any], function: Callable[[Any], object]) -> Callable[[], None]:
        """See ``Session.subscribe``; the function may be async."""
        return self.session.subscribe(of, function)

    async def add(self, messages: object, *, changed: Changed = "error", pin: bool = False) -> AsyncSession:
        """See ``Session.add``."""
        held_by = await in_thread(partial(self.session.add, messages, changed=changed, pin=pin))
        return self if held_by is self.session else AsyncSession(held_by)

    async def pack(
        self,
        tools: Iterable[object] | None = None,
        *,
        fields: Mapping[str, Any] | None = None,
        at_s: float | None = None,
        tail: str = "",
    ) -> Pack:
        """See ``Session.pack``."""
        return await in_thread(partial(self.session.pack, tools, fields=fields, at_s=at_s, tail=tail))

    async def begin(self, step: GivenStep, *, task: GivenTask = None, options: TaskOptions | None = None) -> None:
        """See ``Session.begin``."""
        await to_thread(self.session.begin, step, task=task, options=options)

    async def check_acceptance(self, output: str | None = None) -> Acceptance:
        """See ``Session.check_acceptance``."""
        return await to_thread(self.session.check_acceptance, output)

    async def reply(self, response: object) -> Reply:
        """See ``Session.reply``; the stream may be asynchronous."""
        if isinstance(response, AsyncIterable):
            response = [event async for event in response]
        return await in_thread(partial(self.session.reply, response))

    async def handle(self, reply: Reply | MessageLike) -> list[Message]:
        """See ``Session.handle``."""
        return await to_thread(self.session.handle, reply)

    async def retry(self, error: object) -> Pack:
        """See ``Session.retry``."""
        return await in_thread(partial(self.session.retry, error))

    async def why(self, text: str, *, call: int | None = None) -> Explanation:
        """See ``Session.why``."""
        return await to_thread(self.session.why, text, call=call)

    async def instruct(self, messages: object) -> None:
        """See ``Session.instruct``."""
        await to_thread(self.session.instruct, messages)

    async def withdraw(self, position: int) -> bool:
        """See ``Session.withdraw``."""
        return await to_thread(self.session.withdraw, position)

    async def fork(self, messages: object) -> AsyncSession:
        """See ``Session.fork``."""
        return AsyncSession(await to_thread(self.session.fork, messages))

    async def close(self) -> None:
        """See ``Session.close``."""
        await to_thread(self.session.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def in_thread(step: Callable[[], Result]) -> Result:
    """Run a step in a thread, which may await on this loop what it has to ask.

    A caller who is cancelled waits until the thread has ended, so that nothing works on a session which the next
    caller already uses.
    """
    loop, asked = get_running_loop(), list[Future[Any]]()
    is_given_up = False

    async def awaited(answer: Awaitable[Any] | Future[Any], timeout_s: float) -> Any:
        return await wait_for(shield(wrap_future(answer)) if isinstance(answer, Future) else answer, timeout_s)

    def start(answer: Awaitable[Any] | Future[Any], timeout_s: float) -> Future[Any]:
        future = run_coroutine_threadsafe(awaited(answer, timeout_s), loop)
        asked.append(future)
        if is_given_up:
            future.cancel()
        return future

    token = AWAIT.set(start)
    try:
        running = ensure_future(to_thread(step))
        return await shield(running)
    except CancelledError:
        is_given_up = True
        for future in asked:
            future.cancel()
        while not running.done():
            with suppress(CancelledError):
                await wait({running})
        # An error that is asked for is not reported as one that nobody saw.
        running.exception()
        raise
    finally:
        AWAIT.reset(token)

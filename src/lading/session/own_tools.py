"""The tools of Lading itself in a session: its methods that offer and answer them, as functions of the session."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import Protocol

from lading.addresses import RESTORE
from lading.audit.restore import SCHEMA, answer_calls, apply_changes
from lading.engine import Engine
from lading.messages import Message, MessageLike, Template, Tool
from lading.request.tool_index import ToolIndex
from lading.session.own_text import OwnText
from lading.session.tool_scope import ScopedStep, ToolScope
from lading.stores import SessionStore
from lading.validation import check
from lading.wire import Wire
from lading.wire.coercion import messages_from
from lading.wire.replies import Reply


class Offering(Protocol):
    """The part of a session that its tools need."""

    store: SessionStore
    wire: Wire
    offers_restore: bool
    _engine: Engine
    _lock: RLock
    _own_text: OwnText | None
    _scope: ToolScope
    _tools: tuple[Tool, ...]
    _fields: Template | None


def get_tool_index(session: Offering) -> ToolIndex:
    """Return the tools that the caller gave last: ``search`` finds some by words, ``find`` one by its name."""
    with session._lock:
        session._scope.shape(list_given(session), session._engine.history.entries)
        return session._scope.index


def list_given(session: Offering) -> tuple[Tool, ...]:
    """List the tools that the caller gave, and ``restore``."""
    return (*session._tools, SCHEMA) if session.offers_restore else session._tools


def limit_tools(session: Offering, tools: tuple[Tool, ...]) -> tuple[tuple[Tool, ...], Template | None]:
    """Return tools and fields of the next request, in the scope of the step that was begun."""
    payload, scope, given = session._own_text and session._own_text.payload, session._scope, session._fields
    step = ScopedStep(payload.task, payload.step, payload.schemas) if payload else None
    offered, fields = scope.limit(session._engine, tools, fields=given, step=step)
    scope.record(session._engine, session.store, tools=offered, fields=(given, fields), step=step)
    return offered, fields


def answer_own_calls(session: Offering, reply: Reply | MessageLike) -> list[Message]:
    """Answer the reply's calls of Lading's own tools, ``restore`` and ``search_tools``. Pass the results to ``add``
    together with your own."""
    check(reply, (Reply, Message, Mapping), advice="give what reply() returned, or its message")
    (message,) = messages_from([reply.message if isinstance(reply, Reply) else reply], wire=session.wire)
    with session._lock:
        calls = [call for call in message.calls if call.name == RESTORE and session.offers_restore]
        entries, room_tokens = apply_changes(session._engine.history), session._engine.room_tokens
        found = session._scope.answer(message.calls)
    restored = answer_calls(  # Without the lock: a search may take a while, and needs nothing that changes.
        calls,
        entries,
        session=session._engine.settings.owner,
        count=session._engine.count,
        room_tokens=room_tokens,
        shows_pictures=session.wire.allows_media_in_results,
    )
    return [*restored, *found]

"""Sessions with a memory for tests: replies that call its tools, and what they were answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lading import Session, Tool, verify
from lading.messages import tool_result

TOOLS = (Tool("look", "Look at a path.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
Call = tuple[str, str, Any]
"""Id, tool and arguments."""


def reply(session: Session, calls: Sequence[Call] = (), text: str | None = None) -> list[Any]:
    """Let the model say this; return what its calls of own tools were answered, as read from JSON."""
    said: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        said["tool_calls"] = [
            {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
            for name, tool, arguments in calls
        ]
    answered = session.reply({"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]})
    results = session.handle(answered)
    own = {result.call_id for message in results for result in message.results}
    results += [tool_result(name, f"{tool}: {arguments}") for name, tool, arguments in calls if name not in own]
    if results:
        session.add(results)
    answers = [result for message in results for result in message.results if result.call_id in own]
    return [one.text if one.is_error else json.loads(one.text) for one in answers]


def contents(pack: Any) -> list[str]:
    """The texts of a request's messages."""
    return [one["content"] for one in pack.request["messages"] if isinstance(one.get("content"), str)]


def list_problems(session: Session) -> list[str]:
    """What differs where the session's requests are built again."""
    found = verify(session.store, tenant=session.settings.tenant, session=session.name)
    return [one.problem for one in found if one.problem]


def note_text(at: int) -> str:
    """The text of a note, of another length each."""
    return f"Part {at}: the lease of berth {4_711 + at * 13} ends on day {at * 7 % 365}. " + "Keep it dry. " * (
        at % 60
    )

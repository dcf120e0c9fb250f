"""All requests of real clients, with the name of their wire."""

from __future__ import annotations

from typing import Any

from tests.wire.anthropic_requests import ANTHROPIC
from tests.wire.chat_requests import OPENAI_CHAT
from tests.wire.responses_requests import OPENAI_RESPONSES

REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    (wire, name, body)
    for wire, bodies in (
        ("anthropic", ANTHROPIC),
        ("openai_chat", OPENAI_CHAT),
        ("openai_responses", OPENAI_RESPONSES),
    )
    for name, body in bodies.items()
]

"""Conversations that the provider keeps (``thread`` of Messages): a request sends only what is new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.testing.answers import Refusal

_KEPT = ("system", "tools")
"""What a thread is begun with; a request that goes on with it does not repeat them."""


class Threads:
    """The threads of a provider, by the id of the reply that each goes on from."""

    def __init__(self) -> None:
        """Keeps nothing yet."""
        self._kept: dict[str, dict[str, Any]] = {}

    def whole(self, body: Mapping[str, Any]) -> dict[str, Any] | Refusal:
        """The request as it is without a thread: with all that was sent before."""
        rest = {key: value for key, value in body.items() if key != "thread"}
        thread = body.get("thread")
        if not isinstance(thread, dict) or thread.get("type") != "continue":
            return rest
        kept = self._kept.get(thread.get("previous_message_id", ""))
        if kept is None or any(field in body for field in _KEPT):
            return Refusal(400, "the thread was not found, or is begun anew", path="thread")
        return rest | kept | {"messages": [*kept["messages"], *rest["messages"]]}

    def keep(self, body: Mapping[str, Any], whole: Mapping[str, Any], *, reply: Mapping[str, Any]) -> None:
        """Keep what was said, where the request asks for that."""
        if body.get("thread"):
            said = {"role": "assistant", "content": reply["content"]}
            kept = {field: whole[field] for field in _KEPT if field in whole}
            self._kept[reply["id"]] = kept | {"messages": [*whole["messages"], said]}

"""An agent whose model asks for removed content again and again, where that is offered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lading.addresses import RESTORE
from lading.testing import Say, Seen, Use
from tests.clients.agents import MODELS

LOOK: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}},
}
FIRST = Use(RESTORE, {"address": "artifact://log/0"})
RESTORES = 6
TASK = "Look around. " + "The task is long. " * 300
ANEW = {"role": "user", "content": "Once more."}


def script(rounds: int, restores: int = RESTORES, *, at: int) -> Callable[[Seen], Say]:
    """A model that looks again and again; after so many looks it asks ``restore``, where that is offered."""

    said = {"look": 0, RESTORE: 0}

    def model(seen: Seen) -> Say:
        if said["look"] == at and said[RESTORE] < restores and RESTORE in seen.tools:
            said[RESTORE] += 1
            return Say(calls=(FIRST,))
        if said["look"] == rounds:
            return Say("Done.")
        said["look"] += 1
        return Say(f"Look {said['look']}.", (Use("look", {"at": said["look"]}),))

    return model


def run(client: Any, rounds: int) -> list[Any]:
    """The caller's loop; its history at the end."""
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for _ in range(rounds + 1):
        reply = client.chat.completions.create(model=MODELS["openai_chat"], messages=messages, tools=[LOOK])
        said = reply.choices[0].message
        messages.append(said.to_dict())
        seen = [(call.id, f"{call.function.arguments} seen " * 300) for call in said.tool_calls or ()]
        messages += [{"role": "tool", "tool_call_id": name, "content": text} for name, text in seen]
    assert said.content == "Done."
    return messages

"""A needle task in a long tool loop: a project, its tools, and a deterministic model that explores it.

Early on a command prints the deployment keys of all services, once. The model then reads the files of the services,
and at the end it must report a key. It uses only the content of the request: if the key is no longer there, it
calls ``restore`` for a pointer in the request, and if that fails, it answers that it does not know.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from lading.addresses import RESTORE
from lading.messages import ToolCall
from lading.testing.script import Passage, Say, Seen, Use

KEYS = Use("run", {"command": "deployctl keys --print-once"})
LIST = Use("run", {"command": "ls services"})

_ADDRESS = re.compile(r"artifact://(?:[\w.-]+/[\w.-]+/)?[a-z]+/[\w-]+(?:\.\d+)?", re.ASCII)
_REQUEST = re.compile(r"deployment key of (\S+)\. Halfway, check that of (\S+)\.")
_TOOLS = {
    "read_file": ("Read a file of the project.", "path"),
    "run": ("Run a command in the project and return what it prints.", "command"),
}


class NeedleTask(Struct, frozen=True):
    """A task with its tools and its model, determined by these fields."""

    rounds: int = 60
    """Number of model calls that make tool calls, without those of ``restore``."""
    services: int = 120
    result_chars: int = 4_000
    """Approximate size of a file in characters."""
    seed: int = 0

    @property
    def system(self) -> str:
        """The system prompt of the agent."""
        return "You review a deployment. Use the tools; never print the keys again, that would rotate them."

    @property
    def prompt(self) -> str:
        """The user's request."""
        wanted, checked = self.asked
        return (
            f"Print the deployment keys with `{KEYS.arguments['command']}`, then review the services one after "
            f"another. At the end tell me the deployment key of {wanted}. Halfway, check that of {checked}."
        )

    @property
    def asked(self) -> tuple[str, str]:
        """The services whose keys are requested: at the end, and halfway."""
        return self._name_service(self.services * 2 // 3), self._name_service(self.services // 4)

    def key(self, service: str) -> str:
        """Return the deployment key of a service."""
        return f"dk-{_hash(self.seed, 'key', service)[:24]}"

    def report(self) -> str:
        """Write the model's final answer if it knows the key."""
        wanted, _ = self.asked
        return _write_report(wanted, self.key(wanted))

    def tools(self, wire: str) -> list[dict[str, Any]]:
        """Declare the tools in the provider format of that name."""
        found: list[dict[str, Any]] = []
        for name, (description, field) in _TOOLS.items():
            schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
            declared: dict[str, Any] = {"name": name, "description": description}
            if wire == "anthropic":
                found.append(declared | {"input_schema": schema})
            elif wire == "openai_responses":
                found.append({"type": "function", **declared, "parameters": schema, "strict": False})
            else:
                found.append({"type": "function", "function": declared | {"parameters": schema}})
        return found

    def run_tool(self, name: str, arguments: str | dict[str, Any]) -> str:
        """Run a tool, given its arguments as JSON or as an object."""
        parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
        if Use(name, parsed) == LIST:
            return "\n".join(self._name_service(index) for index in range(self.services))
        if Use(name, parsed) == KEYS:
            services = [self._name_service(index) for index in range(self.services)]
            lines = [f"{service:<16} {self.key(service)}  owner=team-{len(service)}" for service in services]
            return "service          key\n" + "\n".join(lines) + "\nPrinted once; another print rotates all keys."
        if name in _TOOLS:
            return self._write_text(str(parsed))
        return f"There is no tool named {name!r}; use one of: {', '.join(_TOOLS)}."

    def script(self, seen: Seen) -> Say:
        """Reply as the model, which continues after the newest planned call that the request shows."""
        plan = self._plan_rounds()
        places = {_normalize(use.name, use.written): step for step, uses in enumerate(plan) for use in uses}
        rounds = [message.calls for message in seen.conversation.messages if message.calls]
        shown = [_normalize(call.name, call.arguments) for calls in rounds for call in calls]
        # Rounds with only calls of restore come after the plan: one of them shows that the plan is complete.
        looks = [calls for calls in rounds if all(call.name == RESTORE for call in calls)]
        step = len(plan) if looks else 1 + max((places[call] for call in shown if call in places), default=-1)
        passages = list(seen.passages())
        request = next((match for passage in passages if (match := _REQUEST.search(passage.text))), None)
        if request is None:
            return Say("I do not know what I was asked for.")
        if step < len(plan):
            return _continue(seen, passages, step=step, uses=plan[step], halfway=self.rounds // 2, of=request[2])
        tried = {_normalize(call.name, call.arguments) for calls in looks for call in calls}
        return _finish(seen, passages, service=request[1], tried=tried)

    def _plan_rounds(self) -> list[tuple[Use, ...]]:
        """Plan the calls of each round: one, or in some rounds two or three in parallel."""
        files = self._list_reads()
        plan: list[tuple[Use, ...]] = [(LIST,), (KEYS,)]
        while len(plan) < self.rounds:
            count = 3 if len(plan) % 10 == 7 else 2 if len(plan) % 5 == 3 else 1
            plan.append(tuple(next(files) for _ in range(count)))
        return plan[: self.rounds]

    def _list_reads(self) -> Iterator[Use]:
        index = 0
        while True:
            service = self._name_service(index % self.services)
            yield Use("read_file", {"path": f"services/{service}/part{index // self.services}.py"})
            if index % 4 == 1:
                yield Use("run", {"command": f"tail -n 80 logs/{service}.{index // self.services}.log"})
            index += 1

    def _name_service(self, index: int) -> str:
        areas = ("billing", "search", "mail", "orders", "stock", "login", "maps", "audit")
        return f"{areas[index % len(areas)]}-{index:03}"

    def _write_text(self, name: str) -> str:
        """Write the text of a file, the same in every run."""
        lines: list[str] = []
        size = 0
        while size < self.result_chars:
            word = _hash(self.seed, name, len(lines))
            lines.append(
                f"{len(lines):>5}  handler_{word[:6]}(request, retries={int(word[6:8], 16)})  # {word[8:20]}"
            )
            size += len(lines[-1]) + 1
        return "\n".join(lines)


def _continue(
    seen: Seen, passages: list[Passage], *, step: int, uses: tuple[Use, ...], halfway: int, of: str
) -> Say:
    """Make the next planned calls; halfway also call restore if the key to check is no longer in the request."""
    calls = list(uses)
    if step == halfway and _find_key(passages, of) is None and RESTORE in seen.tools:
        calls += [_make_restore(address, of) for address in _find_pointers(passages)[:1]]
    what = ", ".join(str(next(iter(use.arguments.values()))) for use in calls)
    return Say(f"Step {step + 1}: {what}.", tuple(calls), thinking=f"Nothing speaks against step {step + 1}.")


def _finish(seen: Seen, passages: list[Passage], *, service: str, tried: set[str]) -> Say:
    """Report the key if the request has it, or call restore for the next pointer not yet tried."""
    key = _find_key(passages, service)
    if key is not None:
        return Say(_write_report(service, key))
    pointers = _find_pointers(passages) if RESTORE in seen.tools else []
    for look in (_make_restore(address, service) for address in pointers):
        if _normalize(look.name, look.written) not in tried:
            return Say("The key is no longer before me; it was kept.", (look,), thinking="Restore it.")
    return Say(f"I do not know the deployment key of {service}.")


def _write_report(service: str, key: str) -> str:
    return f"The deployment key of {service} is {key}."


def _find_key(passages: list[Passage], service: str) -> str | None:
    """Find the key of a service in the texts of the request."""
    line = re.compile(rf"{re.escape(service)}\s+(dk-[0-9a-f]{{24}})\b")
    return next((match[1] for passage in passages if (match := line.search(passage.text))), None)


def _find_pointers(passages: list[Passage]) -> list[str]:
    """Find the pointers that may lead to the printed keys: those in the result that had them, then those outside of
    tool results. Pointers in other results lead to other content."""
    own = [passage for passage in passages if passage.call and _prints_keys(passage.call)]
    notes = [passage for passage in passages if passage.role != "tool"]
    return list(dict.fromkeys(address for passage in own + notes for address in _ADDRESS.findall(passage.text)))


def _prints_keys(call: ToolCall) -> bool:
    return _normalize(call.name, call.arguments) == _normalize(KEYS.name, KEYS.written)


def _make_restore(address: str, service: str) -> Use:
    return Use(RESTORE, {"address": address, "query": service})


def _normalize(name: str, arguments: str) -> str:
    """Normalize a call for comparison: arguments that are JSON lose their spacing and the order of keys."""
    try:
        return f"{name} {json.dumps(json.loads(arguments), sort_keys=True)}"
    except ValueError:
        return f"{name} {arguments}"


def _hash(*of: object) -> str:
    return hashlib.sha256("/".join(map(str, of)).encode()).hexdigest()

"""A needle in a long tool loop: a project, its tools, and a deterministic model that explores it.

Early on a command prints the deployment keys of all services, once. The model then reads through the services, and
at the end it has to report a key. It uses only the content of the request: when the key is no longer there, it
calls ``restore`` for a pointer in the request, and if that fails, it says that it does not know.
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
_ASKED = re.compile(r"deployment key of (\S+)\. Halfway, check that of (\S+)\.")
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
    """About the size of a file."""
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
        return self._service(self.services * 2 // 3), self._service(self.services // 4)

    def key(self, service: str) -> str:
        """The deployment key of a service."""
        return f"dk-{_digest(self.seed, 'key', service)[:24]}"

    def report(self) -> str:
        """The model's final answer when it knows the key."""
        wanted, _ = self.asked
        return _known(wanted, self.key(wanted))

    def tools(self, wire: str) -> list[dict[str, Any]]:
        """The tool declarations in the provider format of that name."""
        found: list[dict[str, Any]] = []
        for name, (description, field) in _TOOLS.items():
            schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
            said: dict[str, Any] = {"name": name, "description": description}
            if wire == "anthropic":
                found.append(said | {"input_schema": schema})
            else:
                found.append({"type": "function", "function": said | {"parameters": schema}})
        return found

    def run_tool(self, name: str, arguments: str | dict[str, Any]) -> str:
        """Run a tool, given its arguments as JSON or as an object."""
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
        if Use(name, given) == LIST:
            return "\n".join(self._service(index) for index in range(self.services))
        if Use(name, given) == KEYS:
            services = [self._service(index) for index in range(self.services)]
            lines = [f"{service:<16} {self.key(service)}  owner=team-{len(service)}" for service in services]
            return "service          key\n" + "\n".join(lines) + "\nPrinted once; another print rotates all keys."
        if name in _TOOLS:
            return self._text(str(given))
        return f"There is no tool named {name!r}; use one of: {', '.join(_TOOLS)}."

    def script(self, seen: Seen) -> Say:
        """The model. It continues after the newest planned call that the request shows."""
        plan = self._plan()
        places = {_same(use.name, use.written): step for step, uses in enumerate(plan) for use in uses}
        rounds = [message.calls for message in seen.conversation.messages if message.calls]
        shown = [_same(call.name, call.arguments) for calls in rounds for call in calls]
        # Only at the end does it ask for restore alone, so where such a round is shown the plan is through.
        looks = [calls for calls in rounds if all(call.name == RESTORE for call in calls)]
        step = len(plan) if looks else 1 + max((places[call] for call in shown if call in places), default=-1)
        passages = list(seen.passages())
        asked = next((match for passage in passages if (match := _ASKED.search(passage.text))), None)
        if asked is None:
            return Say("I do not know what I was asked for.")
        if step < len(plan):
            return _next(seen, passages, step=step, uses=plan[step], halfway=self.rounds // 2, of=asked[2])
        tried = {_same(call.name, call.arguments) for calls in looks for call in calls}
        return _end(seen, passages, service=asked[1], tried=tried)

    def _plan(self) -> list[tuple[Use, ...]]:
        """The calls of each round: one, and now and then two or three in parallel."""
        files = self._files()
        plan: list[tuple[Use, ...]] = [(LIST,), (KEYS,)]
        while len(plan) < self.rounds:
            count = 3 if len(plan) % 10 == 7 else 2 if len(plan) % 5 == 3 else 1
            plan.append(tuple(next(files) for _ in range(count)))
        return plan[: self.rounds]

    def _files(self) -> Iterator[Use]:
        index = 0
        while True:
            service = self._service(index % self.services)
            yield Use("read_file", {"path": f"services/{service}/part{index // self.services}.py"})
            if index % 4 == 1:
                yield Use("run", {"command": f"tail -n 80 logs/{service}.{index // self.services}.log"})
            index += 1

    def _service(self, index: int) -> str:
        areas = ("billing", "search", "mail", "orders", "stock", "login", "maps", "audit")
        return f"{areas[index % len(areas)]}-{index:03}"

    def _text(self, name: str) -> str:
        """A text of about the size wanted, the same at every run."""
        lines: list[str] = []
        size = 0
        while size < self.result_chars:
            word = _digest(self.seed, name, len(lines))
            lines.append(
                f"{len(lines):>5}  handler_{word[:6]}(request, retries={int(word[6:8], 16)})  # {word[8:20]}"
            )
            size += len(lines[-1]) + 1
        return "\n".join(lines)


def _next(seen: Seen, passages: list[Passage], *, step: int, uses: tuple[Use, ...], halfway: int, of: str) -> Say:
    """The next planned calls; halfway, together with a look at a key that has left the request."""
    calls = list(uses)
    if step == halfway and _key(passages, of) is None and RESTORE in seen.tools:
        calls += [_restore(address, of) for address in _pointers(passages)[:1]]
    what = ", ".join(str(next(iter(use.arguments.values()))) for use in calls)
    return Say(f"Step {step + 1}: {what}.", tuple(calls), thinking=f"Nothing speaks against step {step + 1}.")


def _end(seen: Seen, passages: list[Passage], *, service: str, tried: set[str]) -> Say:
    """The report, or one more look where a pointer leads."""
    key = _key(passages, service)
    if key is not None:
        return Say(_known(service, key))
    looks = [_restore(address, service) for address in _pointers(passages)] if RESTORE in seen.tools else []
    for look in looks:
        if _same(look.name, look.written) not in tried:
            return Say("The key is no longer before me; it was kept.", (look,), thinking="Restore it.")
    return Say(f"I do not know the deployment key of {service}.")


def _known(service: str, key: str) -> str:
    return f"The deployment key of {service} is {key}."


def _key(passages: list[Passage], service: str) -> str | None:
    """The key of a service, where a text of the request says it."""
    line = re.compile(rf"{re.escape(service)}\s+(dk-[0-9a-f]{{24}})\b")
    return next((match[1] for passage in passages if (match := line.search(passage.text))), None)


def _pointers(passages: list[Passage]) -> list[str]:
    """Where the printed keys may be kept: what their own result points to, then what notes outside of tool
    results point to. The results of other calls keep other things."""
    own = [passage for passage in passages if passage.call and _is_keys(passage.call)]
    notes = [passage for passage in passages if passage.role != "tool"]
    return list(dict.fromkeys(address for passage in own + notes for address in _ADDRESS.findall(passage.text)))


def _is_keys(call: ToolCall) -> bool:
    return _same(call.name, call.arguments) == _same(KEYS.name, KEYS.written)


def _restore(address: str, service: str) -> Use:
    return Use(RESTORE, {"address": address, "query": service})


def _same(name: str, arguments: str) -> str:
    """Equal for equal calls, however the arguments are spaced; those that are no JSON are taken as they are."""
    try:
        return f"{name} {json.dumps(json.loads(arguments), sort_keys=True)}"
    except ValueError:
        return f"{name} {arguments}"


def _digest(*of: object) -> str:
    return hashlib.sha256("/".join(map(str, of)).encode()).hexdigest()

"""What a warm request passes: the files, functions and calls of Lading that one call of a long agent runs through,
and the mutable objects that a session holds.

``python -m bench line`` prints them for a session and for a wrapped client, against their limits and, for a
session, the aim. ``tests/test_line.py`` holds the figures below the limits of ``scripts/check_limits.py``.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import httpx2
from msgspec import Struct
from openai import OpenAI

import lading
from bench.figures import Figure, below, plain
from lading import Session, jsonbytes, wrap
from scripts.check_limits import LINE_CALLS, LINE_FILES, LINE_FUNCTIONS, LINE_LINES, LINE_STATE
from scripts.source_tree import Function, Place, functions

SOURCE = Path(lading.__file__).parent
AIMS = {"files": 30, "lines in them": 8_000, "functions": 130, "calls": 350}
"""What a reader of the session's line should meet, for comparison; the limits are what it may not exceed."""
ROUNDS = 20
"""Before the one that is measured."""
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "run",
        "description": "Run a command.",
        "parameters": {"type": "object", "properties": {}},
    },
}


class Line(NamedTuple):
    """The named functions that ran, as (file, qualified name), with how often each was called."""

    calls: Counter[tuple[str, str]]

    @property
    def files(self) -> list[str]:
        """The files that they are in."""
        return sorted({file for file, _ in self.calls})

    @property
    def lines(self) -> int:
        """Lines of those files."""
        return sum(len((SOURCE / file).read_text(encoding="utf-8").splitlines()) for file in self.files)

    @property
    def own_lines(self) -> int:
        """Lines of the functions that ran, each counted from ``def`` to its end."""
        return sum(
            (place.function.end_lineno or 0) - place.function.lineno + 1
            for file in self.files
            for place in functions(ast.parse((SOURCE / file).read_text(encoding="utf-8")))
            if (file, _qualify(place)) in self.calls
        )


def run() -> list[Figure]:
    """Files, functions, calls and lines of a warm call, of a session and of a wrapped client."""
    state = len(state_objects(grown()))
    figures = [figure for name, trace in TRACES.items() for figure in _figures(name, trace())]
    return [*figures, below("session: objects that hold state", state, LINE_STATE, unit="", digits=0)]


def _figures(name: str, line: Line) -> Iterator[Figure]:
    for what, figure, limits in (
        ("files", len(line.files), LINE_FILES),
        ("lines in them", line.lines, LINE_LINES),
        ("functions", len(line.calls), LINE_FUNCTIONS),
        ("calls", line.calls.total(), LINE_CALLS),
    ):
        yield below(f"{name}: {what}", figure, limits[name], unit="", digits=0)
        if name == "session":
            yield below("  against the aim", figure, AIMS[what], unit="", digits=0)
    yield plain(f"{name}: lines of these functions", f"{line.own_lines:,}")


def _qualify(place: Place) -> str:
    """Return a function's name as Python qualifies it."""
    owners = (owner for owner in place.owners if isinstance(owner, ast.ClassDef | Function))
    names = [owner.name + ("" if isinstance(owner, ast.ClassDef) else ".<locals>") for owner in owners]
    return ".".join([*names, place.function.name])


def grown() -> Session:
    """Return a session in which an agent has made some rounds."""
    session = Session("gpt-4o")
    for number in range(ROUNDS):
        session.add(_history(number)).pack([TOOL])
    return session


def state_objects(root: object) -> list[object]:
    """List the mutable objects of Lading that belong to a session. A store belongs to no session alone."""
    known: set[int] = set()
    found, waiting = list[object](), [root]
    while waiting:
        one = waiting.pop()
        if id(one) in known:
            continue
        known.add(id(one))
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list | tuple | set | frozenset):
            waiting += one
        elif isinstance(one, Struct):
            waiting += [getattr(one, name) for name in one.__struct_fields__]
        elif _is_stateful(one):
            found.append(one)
            waiting += (getattr(one, name) for name in getattr(one, "__slots__", None) or vars(one))
    return found


def _is_stateful(one: object) -> bool:
    module = f"{type(one).__module__}."
    return not isinstance(one, type) and module.startswith("lading.") and not module.startswith("lading.stores.")


def of_session() -> Line:
    """Trace the next round of an agent that hands its whole history to a session."""
    session, history = grown(), _history(ROUNDS)
    return _traced(lambda: session.add(history).pack([TOOL]))


def of_client() -> Line:
    """Trace the next round of an agent whose OpenAI client is wrapped, its answer included."""
    bare = httpx2.Client(transport=httpx2.MockTransport(_answer))
    history = _history(0)
    tools: list[Any] = [TOOL]
    with wrap(OpenAI(api_key="none", http_client=bare)) as client:

        def step() -> None:
            reply = client.chat.completions.create(model="gpt-4o", messages=history, tools=tools)
            history.append(reply.choices[0].message.model_dump(exclude_none=True))
            call_id = history[-1]["tool_calls"][0]["id"]
            history.append({"role": "tool", "tool_call_id": call_id, "content": f"result of {call_id}"})

        for _ in range(ROUNDS):
            step()
        return _traced(step)


TRACES: dict[str, Callable[[], Line]] = {"session": of_session, "client": of_client}


def _history(rounds: int) -> list[Any]:
    history: list[Any] = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Find the fault."},
    ]
    for number in range(rounds):
        history.append({"role": "assistant", "content": None, "tool_calls": [_call(number)]})
        history.append({"role": "tool", "tool_call_id": f"call_{number}", "content": f"result of call_{number}"})
    return history


def _call(number: int) -> dict[str, Any]:
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "run", "arguments": f'{{"command":"step {number}"}}'},
    }


def _answer(request: httpx2.Request) -> httpx2.Response:
    said = jsonbytes.load(request.read())["messages"]
    message = {"role": "assistant", "content": None, "tool_calls": [_call(len(said))]}
    tokens = 40 + 20 * len(said)
    body = {
        "id": f"reply_{len(said)}",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 9, "total_tokens": tokens + 9},
    }
    return httpx2.Response(200, json=body)


def _traced(step: Callable[[], object]) -> Line:
    calls: Counter[tuple[str, str]] = Counter()
    root = f"{SOURCE}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # Comprehensions, generators and lambdas belong to the function around them.
        if event == "call" and code.co_filename.startswith(root) and not code.co_name.startswith("<"):
            calls[code.co_filename.removeprefix(root), code.co_qualname] += 1

    with _profiled(note):
        step()
    return Line(calls)


@contextmanager
def _profiled(note: Callable[[FrameType, str, object], None]) -> Iterator[None]:
    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(None)

"""Digests of every request: ``python -m bench.golden write FILE`` notes them, ``check FILE`` compares, and
``show PLAY`` prints those of one play, a line for each request, to be compared with another checkout's.

A play is a recorded session through a strategy at a window in one provider's format, or through a wrapped client.
Requests are compared byte for byte. Manifests and events are compared as values: without checksums, and under
the old names of ``bench/golden_names.json``. With ``--recorded`` the sessions are those of LADING_SHARED.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import pairwise, product, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import httpx2
import msgspec
import openai
from rich.console import Console
from rich.progress import track

from bench.sessions import ROOT, SHARED
from lading import Session, SessionOptions, wrap
from lading.compaction import STRATEGIES
from lading.errors import LadingError
from lading.messages import Conversation, Message, Tool
from lading.models.catalog import find_card
from lading.sources import Recording, read
from lading.wire import encode, find_wire
from tests.trajectories import WINDOWS, recordings, script

MODELS = {"anthropic": "claude-sonnet-5", "openai_chat": "gpt-4.1"}
PATHS = {"anthropic": "http://here/v1/messages", "openai_chat": "http://here/v1/chat/completions"}
COUNTER = "cl100k"
OWN = ROOT / "examples" / "sessions"
OWN_DIGESTS = ROOT / "bench" / "golden.json"
"""Of the plays over the example sessions."""
NAMES = ROOT / "bench" / "golden_names.json"
"""New names by the old ones, of strategies, fields, event types and kinds of edits."""
WRAPPED = "wrap"
"""Stands for the strategy of a play through a wrapped client, which is ``priced``."""
SEALS = frozenset({"checksum", "digest", "format", "log", "parent", "template", "tools"})
"""What seals the form in which something is stored: it changes with every name in it."""


class Play(NamedTuple):
    """Which session goes through what."""

    session: str
    strategy: str
    wire: str
    window: int

    def __str__(self) -> str:
        return f"{self.session} {_old(self.strategy)} {self.wire} {self.window}"


class Golden(NamedTuple):
    """What one play came to: a line for each request, or for the error in place of one."""

    requests: tuple[str, ...]
    decisions: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Both, in short, and how many requests there are."""
        both = (_sha("\n".join(lines).encode())[:16] for lines in self)
        return " ".join((str(len(self.requests)), *both))


def plays(*, recorded: bool = False) -> list[Play]:
    """Every play over the example sessions, or over the recorded ones."""
    ways = product((*STRATEGIES, WRAPPED), sorted(MODELS), WINDOWS)
    return [Play(session, *way) for way in ways for session in _sessions(recorded)]


def played(play: Play, *, recorded: bool = False) -> Golden:
    """The digests of one play."""
    recording = _sessions(recorded)[play.session]
    return _through_wrap(play, recording) if play.strategy == WRAPPED else _through_session(play, recording)


@cache
def _sessions(recorded: bool) -> dict[str, Recording]:
    if recorded:
        return dict(recordings(SHARED))
    return {
        item.id: item for path in sorted(OWN.glob("*.gz")) for item in read(path) if isinstance(item, Recording)
    }


def _through_session(play: Play, recording: Recording) -> Golden:
    options = SessionOptions(counter=COUNTER)
    requests, decisions = list[str](), list[str]()
    with Session(
        MODELS[play.wire], window=play.window, strategy=play.strategy, wire=play.wire, options=options
    ) as session:
        for step in script(recording):
            try:
                made = session.add(step.messages).pack(tools=step.tools, at_s=step.at_s)
            except LadingError as error:
                requests.append(type(error).__name__)
                decisions.append("")
            else:
                requests.append(_sha(made.body))
                decisions.append(_decisions([made.manifest, *made.events]))
    return Golden(tuple(requests), tuple(decisions))


def _decisions(values: Sequence[Any]) -> str:
    plain = [(type(value).__name__, msgspec.to_builtins(value)) for value in values]
    return _sha(json.dumps(_under_old_names(plain), sort_keys=True).encode())


def _under_old_names(value: Any) -> Any:
    match value:
        case dict():
            return {_old(key): _under_old_names(inner) for key, inner in value.items() if key not in SEALS}
        case list() | tuple():
            return [_under_old_names(inner) for inner in value]
        case str():
            return _old(value)
        case _:
            return value


def _old(name: str) -> str:
    return _old_names().get(name, name)


@cache
def _old_names() -> dict[str, str]:
    return {new: old for old, new in json.loads(NAMES.read_text(encoding="utf-8")).items()}


def _through_wrap(play: Play, recording: Recording) -> Golden:
    """The requests that a wrapped client sends for a session whose answers the provider repeats."""
    sent, decisions = list[bytes](), list[str]()
    said: dict[str, Any] = {}

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.read())
        answered = _answer(play.wire, said, input_tokens=len(sent[-1]) // 4)
        return httpx2.Response(200, content=json.dumps(answered))

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    options = SessionOptions(counter=COUNTER)
    with wrap(
        _client(play.wire, http),
        window=play.window,
        options=options,
        on_event=lambda event: decisions.append(_decisions([event])),
    ) as client:
        given = list[Message]()
        for step, following in pairwise(script(recording)):
            given += step.messages
            said = _body(following.messages[:1], play.wire)["messages"][-1]
            body = json.dumps(_body(given, play.wire, tools=step.tools))
            # The SDKs cannot send lone surrogates, which histories hold: the request is made under them.
            answered = client._client.post(PATHS[play.wire], content=body)
            decisions.append(str(answered.status_code))
    return Golden(tuple(map(_sha, sent)), tuple(decisions))


def _client(wire: str, http: httpx2.Client) -> Any:
    settings: dict[str, Any] = {"api_key": "none", "http_client": http, "max_retries": 0}
    return anthropic.Anthropic(**settings) if wire == "anthropic" else openai.OpenAI(**settings)


def _body(messages: Sequence[Message], wire: str, *, tools: tuple[Tool, ...] = ()) -> dict[str, Any]:
    fields = {"model": MODELS[wire], "max_tokens": 1_000}
    card, _ = find_card(MODELS[wire])
    return encode(Conversation(tuple(messages), tools, wire, fields), find_wire(wire), card=card)


def _answer(wire: str, said: dict[str, Any], *, input_tokens: int) -> dict[str, Any]:
    """A response that says this message."""
    if wire == "anthropic":
        content = (
            [{"type": "text", "text": said["content"]}] if isinstance(said["content"], str) else said["content"]
        )
        message = {"id": "m", "type": "message", "role": "assistant", "model": MODELS[wire], "content": content}
        usage = {"input_tokens": input_tokens, "output_tokens": 9}
        return message | {"stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    choices = [{"index": 0, "message": said, "finish_reason": "stop"}]
    usage = {"prompt_tokens": input_tokens, "completion_tokens": 9, "total_tokens": input_tokens + 9}
    completion = {"id": "c", "object": "chat.completion", "created": 0, "model": MODELS[wire]}
    return completion | {"choices": choices, "usage": usage}


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def differences(noted: dict[str, str], *, recorded: bool = False) -> Iterator[str]:
    """The plays whose digests are others than noted, or that are only on one side."""
    found = dict(_digests(recorded))
    for name in sorted(noted.keys() | found.keys()):
        if noted.get(name) != found.get(name):
            yield f"{name}: {noted.get(name, 'not noted')} -> {found.get(name, 'no such play')}"


def _digests(recorded: bool) -> Iterator[tuple[str, str]]:
    todo = plays(recorded=recorded)
    with ProcessPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 1)) as pool:
        found = pool.map(partial(_digest, recorded=recorded), todo, chunksize=4)
        for play, digest in zip(
            todo, track(found, "Playing", len(todo), console=Console(stderr=True)), strict=True
        ):
            yield str(play), digest


def _digest(play: Play, *, recorded: bool) -> str:
    return played(play, recorded=recorded).digest


def main(arguments: Sequence[str]) -> int:
    """Write, check or show. Returns the exit code: 1 when a digest differs."""
    parser = argparse.ArgumentParser(prog="python -m bench.golden", description=__doc__.partition("\n\n")[0])
    parser.add_argument("action", choices=["write", "check", "show"])
    parser.add_argument("what", help="the file of digests, or a play as that file names it")
    parser.add_argument("--recorded", action="store_true", help="the recorded sessions of LADING_SHARED")
    given = parser.parse_args(arguments)
    if given.action == "show":
        *session, strategy, wire, window = given.what.split(" ")
        golden = played(Play(" ".join(session), strategy, wire, int(window)), recorded=given.recorded)
        print(*(" ".join(pair) for pair in zip_longest(*golden, fillvalue="")), sep="\n")
        return 0
    file = Path(given.what)
    if given.action == "write":
        file.write_text(
            json.dumps(dict(_digests(given.recorded)), indent=0, sort_keys=True) + "\n", encoding="utf-8"
        )
        return 0
    found = list(differences(json.loads(file.read_text(encoding="utf-8")), recorded=given.recorded))
    print(*found, f"{len(found)} plays differ", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

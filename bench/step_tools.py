"""Tools by step: which tools a payload shows, how the rest is found, and what a change of scope costs.

The recorded tool documentation is read where ``LADING_SHARED`` names it, and no part of it is in here.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import lading
from bench.figures import Figure, above, below, plain
from bench.sessions import SHARED
from lading import jsonbytes
from lading.models.tool_policy import ToolPolicy
from lading.presets.aether_frame import STEP_ONLY
from lading.request.tool_index import Bm25, ToolIndex

DOCS, TURNS = "bfcl_tool_docs.json.gz", "bfcl_multi_turn.jsonl.gz"
SHOWN = 10
TOOLS = 40
SESSIONS, SCOPES = 10, 50
"""Changes of scope in each session."""
SCOPED = (
    ("gpt-5", "openai_chat"),
    ("gpt-5", "openai_responses"),
    ("gemini-2.5-pro", "gemini"),
    ("claude-sonnet-4-5", "anthropic"),
    ("gpt-4.1", "openai_chat"),
)
CHECKLIST = ["It is done"]

Rank = Callable[[str, Sequence[str]], list[str]]
"""Return names of tools, the best first, for the user's words and the tools used before."""


class Turn(NamedTuple):
    """The user's words, the tools called in earlier turns, and the tools that this one calls."""

    asked: str
    used: tuple[str, ...]
    needed: frozenset[str]


def read_catalogue(folder: Path) -> list[lading.Tool]:
    """Read the tools of each toolset that any recorded turn calls."""
    called = {name for turn in read_turns(folder) for name in turn.needed}
    toolsets = jsonbytes.load(gzip.decompress((folder / DOCS).read_bytes())).values()
    return [
        lading.Tool(tool["name"], tool["description"], tool["parameters"])
        for toolset in toolsets
        if called & {tool["name"] for tool in toolset}
        for tool in toolset
    ]


def read_turns(folder: Path) -> Iterator[Turn]:
    """Read the turns of all sessions that call a tool."""
    for line in gzip.decompress((folder / TURNS).read_bytes()).splitlines():
        session, used = jsonbytes.load(line), list[str]()
        for messages, calls in zip(session["turns"], session["gold_calls"], strict=True):
            names = [call.partition("(")[0] for call in calls]
            asked = "\n".join(message["content"] for message in messages if message["role"] == "user")
            if names:
                yield Turn(asked, tuple(used), frozenset(names))
            used += names


def rank_plainly(tools: Sequence[lading.Tool]) -> Rank:
    """Rank by BM25 over the words of name, description and parameters, as they are."""
    index = Bm25([Counter(_list_words(_write(tool))) for tool in tools], k1=1.5, b=0.75)

    def rank(asked: str, used: Sequence[str]) -> list[str]:
        del used
        scores = index.score(_list_words(asked))
        return [tools[at].name for at in sorted(range(len(tools)), key=lambda at: (-scores[at], at))[:SHOWN]]

    return rank


def _write(tool: lading.Tool) -> str:
    properties = (tool.schema or {}).get("properties", {})
    return " ".join(
        [tool.name, tool.description, *(f"{name} {of.get('description')}" for name, of in properties.items())]
    )


def _list_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def measure_shown(turns: Sequence[Turn], rank: Rank) -> float:
    """Return the share of turns whose needed tools are all among the first."""
    return sum(turn.needed <= {*rank(turn.asked, turn.used)} for turn in turns) / len(turns)


def measure_payloads(turns: Sequence[Turn], tools: Sequence[lading.Tool]) -> float:
    """Return the share of turns whose needed tools are all shown by the payload of a session's step."""
    met = 0
    for turn in turns:
        with lading.Session("gpt-5") as session:
            calls = tuple(lading.ToolCall(f"c{at}", name, "{}") for at, name in enumerate(turn.used))
            if calls:
                results = [lading.tool_result(call.id, "done") for call in calls]
                session.add([lading.user_text("Begin."), lading.Message("assistant", calls), *results])
                session.add([lading.Message("assistant", (lading.Text("Done."),))])
            session.add(turn.asked)
            session.begin(
                {"id": "s", "text": "Go on.", "checklist": CHECKLIST},
                options=lading.TaskOptions(tools=ToolPolicy(search=True, shown=SHOWN)),
            )
            payload = session.pack(tools).request["messages"][-1]["content"]
            met += all(f'{{"name":"{name}","description"' in payload for name in turn.needed)
    return met / len(turns)


def count_found_by_name(tools: Sequence[lading.Tool]) -> int:
    """Count the tools that stand by name in a request, and whose whole schema one search by that name gives."""
    with lading.Session("gpt-5") as session:
        session.add("Begin.")
        session.begin(
            {"id": "s", "text": "Begin.", "checklist": CHECKLIST},
            options=lading.TaskOptions(tools=ToolPolicy(search=True, shown=0)),
        )
        named = {tool["function"]["name"] for tool in session.pack(tools).request["tools"]}
        found = 0
        for tool in tools:
            call = lading.ToolCall("c", "search_tools", jsonbytes.dump({"query": tool.name}).decode())
            (answer,) = session.handle(lading.Message("assistant", (call,)))
            declared: Any = jsonbytes.load(answer.results[0].text)
            found += tool.name in named and declared["parameters"] == tool.schema
    return found


class ScopeCost(NamedTuple):
    """What changes of scope did to the prefix of the requests."""

    breaks: int
    price: float
    """Of these breaks, in tokens of uncached input."""
    tokens: int
    """Of the last request."""


def change_scopes(model: str, wire: str, *, policy: ToolPolicy, scopes: int, sessions: int = 1) -> ScopeCost:
    """Begin steps in some sessions, each with other tools and ``scopes`` changes of them, with a call and an answer
    in each."""
    tools = [_make_tool(number) for number in range(TOOLS)]
    breaks, price, tokens = 0, 0.0, 0
    for at in range(sessions):
        with lading.Session(model, wire=wire, strategy="append-only") as session:
            session.add("Begin.")
            for number, first in enumerate(islice(cycle(range(at, TOOLS, 3)), scopes + 1)):
                names = [tools[(first + more) % TOOLS].name for more in range(3)]
                step = {"id": f"s{number}", "text": "Go on.", "checklist": CHECKLIST, "tools": names}
                # A task of its own: its payload lists no results of others.
                task = {"id": f"t{number}", "goal": "Go on."}
                session.begin(step, task=task, options=lading.TaskOptions(tools=policy))
                pack = session.pack(tools)
                if pack.manifest.prefix.first_changed and number:
                    breaks, price = breaks + 1, price + pack.manifest.prefix.price
                tokens = pack.tokens
                call = lading.ToolCall(f"c{number}", names[0], "{}")
                session.add([lading.Message("assistant", (call,)), lading.tool_result(call.id, "done")])
                session.add([lading.Message("assistant", (lading.Text("Done."),))])
    return ScopeCost(breaks, price, tokens)


def _make_tool(number: int) -> lading.Tool:
    schema = {"type": "object", "properties": {"query": {"type": "string", "description": "what to look for"}}}
    return lading.Tool(f"source_{number}", f"Look something up in source {number}.", schema)


def run() -> list[Figure]:
    """The tools that payloads show, and the cost of 500 changes of scope."""
    return [*_shown(), *_changes()]


def _shown() -> list[Figure]:
    if not (SHARED / DOCS).exists():
        return [plain("recorded tool documentation", "not there: LADING_SHARED names its folder")]
    tools, turns = read_catalogue(SHARED), [*read_turns(SHARED)]
    plainly, index = measure_shown(turns, rank_plainly(tools)), ToolIndex(tools)
    found = measure_shown(
        turns, lambda asked, used: [tool.name for tool in index.search(asked, used=used, limit=SHOWN)]
    )
    return [
        plain(f"{len(turns)} turns, {len(tools)} tools: needed ones among {SHOWN}, plain BM25", f"{plainly:.3f}"),
        above("  tools.search", found, plainly + 0.10, digits=3),
        above("  tools.search, the aim", found, 0.90, digits=3),
        above("  in the payloads of steps", measure_payloads(turns, tools), plainly + 0.10, digits=3),
        above("tools that stand by name, found whole by it in one search", count_found_by_name(tools), len(tools)),
    ]


def _changes() -> Iterator[Figure]:
    change, changes = partial(change_scopes, scopes=SCOPES, sessions=SESSIONS), SESSIONS * SCOPES
    for model, wire in SCOPED:
        cost = change(model, wire, policy=ToolPolicy())
        yield below(
            f"{changes} changes of scope, {model} ({wire}): prefix breaks", cost.breaks, 0, unit="", digits=0
        )
    searching = change("claude-sonnet-4-5", "anthropic", policy=ToolPolicy(search=True))
    yield below("  with search (deferred tools): prefix breaks", searching.breaks, 0, unit="", digits=0)
    narrow = change("gpt-5", "openai_chat", policy=STEP_ONLY)
    yield plain("step-only array of aether-frame, gpt-5: prefix breaks", f"{narrow.breaks}")
    yield plain(
        f"  their price in tokens of input (the last request has {narrow.tokens:,})", f"{narrow.price:,.0f}"
    )

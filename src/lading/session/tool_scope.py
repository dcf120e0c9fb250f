"""The tools of a session's requests: which a step may call, which stand by name, and what a search has found.

The tools array is the same in each request, except where the policy says otherwise. A tool that was called or found
stays in the scope of later steps.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from lading import jsonbytes
from lading.addresses import RESTORE, SEARCH_TOOLS
from lading.economics import edit_price, is_due, rent
from lading.engine import Engine
from lading.history.log import Entry
from lading.messages import Message, Template, Tool, ToolCall, ToolResult
from lading.models.card import Card
from lading.models.tool_policy import ToolPolicy
from lading.request.tool_index import ToolIndex
from lading.request.tool_record import OfferedTools, ToolRecord, dump_tool_record
from lading.request.tools import reduce_tools
from lading.session.tool_search import SCHEMA, answer_search, list_found, name_deferred, write_schema
from lading.stores import SessionStore
from lading.task.task import StepTool, Task, TaskStep
from lading.wire import Wire

_OWN = (RESTORE, SEARCH_TOOLS)


class ScopedStep(Struct, frozen=True):
    """The step in force, as far as tools go."""

    task: Task
    step: TaskStep
    shown: tuple[str, ...] = ()
    """Names of the tools whose whole schema its payload has."""

    @property
    def names(self) -> frozenset[str] | None:
        """Names of the tools that it may use; None: any."""
        if self.step.tools:
            return frozenset(tool.name for tool in self.step.tools)
        return None if self.task.tools is None else frozenset(self.task.tools)


class ScopeState(Struct):
    """The part of a scope that outlives its session."""

    policy: ToolPolicy = ToolPolicy()
    array: frozenset[str] | None = None
    """Names of the tools in the last array that was narrowed."""
    account: float = 0.0


class ToolScope:
    """The tools of one session."""

    def __init__(self, wire: Wire, card: Card, state: ScopeState) -> None:
        choice, conduct = wire.layout.tools.choice, card.conduct
        is_own = conduct.dialect == "first_party" and conduct.host is UNSET
        if choice and not (is_own and choice.provider == card.provider and re.match(choice.models, card.name)):
            choice = None
        self._choice, self._refer = choice, choice.refer if choice else None
        self._origin = wire.name if self._refer else ""
        self._state = state
        self._given: tuple[Tool, ...] = ()
        """The tools that the caller gave last."""
        self._by_name: dict[str, Tool] = {}
        self._index: ToolIndex | None = None
        self._shaped: tuple[Tool, ...] = ()
        """Of these tools, the last array,"""
        self._shaped_for: tuple[tuple[str, ...], ...] = ()
        """and the names of those that were whole, and found."""
        self.searches = False
        """Whether the last request offered ``search_tools``."""
        self._read = 0
        self._asked: set[str] = set()
        self._used: dict[str, None] = {}
        self._found: dict[str, None] = {}
        self._among: Collection[str] | None = None
        self._recorded: tuple[object, ...] = ()

    def follow(self, policy: ToolPolicy) -> None:
        """Follow this policy from the next request on, also after the end of its task: the array stays as it is."""
        if policy.scope != self._state.policy.scope:
            self._state.array, self._state.account = None, 0.0
        self._state.policy = policy

    @property
    def index(self) -> ToolIndex:
        """The tools that the caller gave last, to search."""
        if self._index is None:
            self._index = ToolIndex(self._by_name.values())
        return self._index

    def shape(self, tools: tuple[Tool, ...], entries: Sequence[Entry]) -> tuple[Tool, ...]:
        """Return the tools array of any step: with a search, tools stand in it by name."""
        if tools != self._given:
            self._given, self._index, self._shaped_for, self._read = tools, None, (), 0
            self._by_name = {tool.name: tool for tool in tools if tool.schema is not None and tool.name != RESTORE}
        self.searches = self._state.policy.search and bool(self._by_name) and SEARCH_TOOLS not in self._by_name
        if not self.searches:
            return tools
        self._read_log(entries)
        shown = (self._state.policy.always, tuple(self._found) if self._refer else ())
        if shown != self._shaped_for:
            whole = {*self._state.policy.always, RESTORE}
            shaped = tuple(tool if tool.name in whole else self._hide(tool) for tool in tools)
            self._shaped = (*shaped, name_deferred(shaped) if self._refer else SCHEMA)
            self._shaped_for = shown
        return self._shaped

    def _hide(self, tool: Tool) -> Tool:
        if tool.schema is None:
            return tool
        if self._refer is None:
            return reduce_tools((tool,), "names")[0]
        return replace(tool, deferred="found" if tool.name in self._found else "waiting")

    def describe(self, step: TaskStep, task: Task, *, request: str) -> tuple[StepTool, ...]:
        """Return the tools that the payload of a step lists: the step's, completed from their declarations; with a
        search and none named, those that fit the step and the request."""
        named = step.tools
        if self.searches and not named:
            query = "\n".join([request, *step.text])
            found = self.index.search(
                query, used={**self._used, **self._found}, among=task.tools, limit=self._state.policy.shown
            )
            named = tuple(StepTool(tool.name) for tool in found)
        return tuple(self._describe(one) for one in named)

    def _describe(self, one: StepTool) -> StepTool:
        declared = self._by_name.get(one.name)
        if declared is None:
            return one
        properties = (declared.schema or {}).get("properties", {})
        inputs = one.inputs or ", ".join(map(str, properties) if isinstance(properties, Mapping) else ())
        hidden = self.searches and self._refer is None and one.name not in self._state.policy.always
        purpose = one.purpose or declared.description.split("\n")[0]
        return replace(one, purpose=purpose, inputs=inputs, schema=write_schema(declared) if hidden else "")

    def limit(
        self, engine: Engine, tools: tuple[Tool, ...], *, fields: Template | None, step: ScopedStep | None
    ) -> tuple[tuple[Tool, ...], Template | None]:
        """Return the tools and fields of the next request, with the scope of the step."""
        names = step.names if step else None
        self._among = step.task.tools if step else None
        if names is None:
            self._state.array = None
            return tools, fields
        self._read_log(engine.history.entries)
        kept = {*names, *_OWN}
        is_priced = self._state.policy.scope == "priced"
        if self._state.policy.scope == "step-only" or (is_priced and self._is_worth_narrowing(engine, tools, kept)):
            narrow = tuple(tool for tool in tools if tool.name in kept)
            self._state.array, self._state.account = frozenset(tool.name for tool in narrow), 0.0
            return narrow, fields
        if is_priced and self._state.array is not None:
            return tuple(tool for tool in tools if tool.name in self._state.array), fields
        choice = self._choice if self._state.policy.scope == "provider" else None
        allowed = [tool for tool in tools if tool.schema is None or tool.name in kept | self._list_sticky()]
        limited = choice.limit(fields or {}, allowed) if choice and allowed else None
        return tools, limited or fields

    def _list_sticky(self) -> set[str]:
        return {*self._state.policy.always, *self._used, *self._found}

    def _is_worth_narrowing(self, engine: Engine, tools: tuple[Tool, ...], kept: Collection[str]) -> bool:
        """Whether to send the step's tools alone from now on: the array lacks one of them, or carrying the others
        has cost as much as writing the request anew."""
        array = [tool for tool in tools if self._state.array is None or tool.name in self._state.array]
        others = tuple(tool for tool in array if tool.name not in kept)
        if len(array) - len(others) < sum(tool.name in kept for tool in tools):
            return True
        rates, cached = engine.settings.rates, engine.recorder.state.last.counted.tokens
        self._state.account += rent(rates, removable_tokens=engine.settings.meter.count_tools(others))
        price = edit_price(rates, cached_suffix_tokens=cached, inserted_tokens=0)
        return bool(others and cached) and is_due(self._state.account, price)

    def answer(self, calls: Iterable[ToolCall]) -> list[Message]:
        """Answer the calls of ``search_tools``."""
        used = {**self._used, **self._found}
        asked = [call for call in calls if call.name == SEARCH_TOOLS and self.searches]
        results: list[ToolResult] = [
            answer_search(call, self.index, used=used, among=self._among, refer=self._refer) for call in asked
        ]
        # Only a message of the format itself may refer to tools.
        return [Message("tool", (result,), origin=self._origin) for result in results]

    def keeps(self, entries: Sequence[Entry]) -> bool:
        """Whether the newest message must stay verbatim: the model sees deferred tools by its references."""
        if not self.searches or self._refer is None:
            return False
        self._read_log(entries)
        return any(result.call_id in self._asked for result in entries[-1].message.results)

    def _read_log(self, entries: Sequence[Entry]) -> None:
        """Read which tools were called and found since the last time."""
        for entry in entries[self._read :]:
            calls = entry.message.calls
            self._asked |= {call.id for call in calls if call.name == SEARCH_TOOLS}
            self._used |= dict.fromkeys(call.name for call in calls if call.name in self._by_name)
            self._found |= dict.fromkeys(list_found(entry.message.results, self._by_name, asked=self._asked))
        self._read = len(entries)

    def record(
        self,
        engine: Engine,
        store: SessionStore,
        *,
        tools: tuple[Tool, ...],
        fields: tuple[Template | None, Template | None],
        step: ScopedStep | None,
    ) -> None:
        """Store what the next request offers, and why. ``fields``: as given, and as sent."""
        names = step.names if step else None
        if names is None and not self.searches:
            engine.recorder.tools, engine.recorder.has_step_tools = "", False
            return
        known = (self._given, tools, fields, names, tuple(self._used), tuple(self._found), step and step.shown)
        if known == self._recorded and engine.recorder.tools:
            return
        given, sent = fields
        limited = given != sent
        offered = self._group(tools, names)
        inside = {name for one in offered if one.rule not in ("by name", "all") for name in one.names}
        everything = [tool.name for tool in self._given]
        blobs = (
            jsonbytes.dump_at("tools", msgspec.to_builtins(self._given)),
            jsonbytes.dump_at("body", given),
        )
        digests = tuple(map(jsonbytes.digest, blobs))
        is_narrow = engine.recorder.has_step_tools = names is not None and self._state.array is not None
        record = ToolRecord(
            scope="none" if names is None else "step-only" if is_narrow else "choice" if limited else "text",
            search=("reference" if self._refer else "text") if self.searches else "",
            offered=offered,
            withheld=tuple(
                name
                for name in everything
                if (limited and name not in inside) or (is_narrow and name not in (self._state.array or ()))
            ),
            shown=step.shown if step else (),
            tools=digests[0],
            template=digests[1],
        )
        digest, data = dump_tool_record(record)
        store.append(*engine.settings.owner, blobs={digest: data, **dict(zip(digests, blobs, strict=True))})
        engine.recorder.tools, self._recorded = digest, known

    def _group(self, tools: tuple[Tool, ...], names: Collection[str] | None) -> tuple[OfferedTools, ...]:
        groups: dict[tuple[str, str], list[str]] = {}
        hidden = "deferred" if self._refer else "names"
        for tool in tools:
            rule = self._find_rule(tool, names or ())
            whole = not self.searches or rule in ("always", "own", "provider")
            groups.setdefault((rule, "full" if whole else hidden), []).append(tool.name)
        return tuple(OfferedTools(rule, detail, tuple(of)) for (rule, detail), of in groups.items())

    def _find_rule(self, tool: Tool, names: Collection[str]) -> str:
        rules = (
            (tool.name in _OWN, "own"),
            (tool.schema is None, "provider"),
            (tool.name in names, "step"),
            (tool.name in self._state.policy.always, "always"),
            (tool.name in self._used, "used"),
            (tool.name in self._found, "found"),
        )
        return next((rule for holds, rule in rules if holds), "by name" if self.searches else "all")

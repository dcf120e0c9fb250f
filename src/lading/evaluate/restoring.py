"""The tool ``restore`` in a replay: offered as a session offers it, and what its schema takes of the bill."""

from __future__ import annotations

from lading.addresses import RESTORE
from lading.economics import Usage
from lading.messages import Tool
from lading.restore import SCHEMA
from lading.tokens.meter import Meter
from lading.toolset import Detail, reduce_tools


class RestoreOffer:
    """The tools of one replayed session, with the tool ``restore`` behind them or without."""

    def __init__(self, meter: Meter, *, is_offered: bool) -> None:
        """``is_offered``: whether it stands beside tools at all."""
        self._meter = meter
        self._is_offered = is_offered
        self._tools: tuple[Tool, ...] = ()
        self._together: tuple[Tool, ...] = ()
        self._tokens: dict[Detail, int] = {}

    def beside(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """What is offered at a call at which the session offered ``tools``: nothing where it offered none, and
        no second tool of that name."""
        if tools != self._tools:
            taken = any(tool.name == RESTORE for tool in tools)
            self._tools, self._tokens = tools, {}
            self._together = (*tools, SCHEMA) if self._is_offered and tools and not taken else tools
        return self._together

    def part(self, billed: Usage, *, detail: Detail) -> Usage:
        """Of the bill of the call just offered for, what the schema takes."""
        if self._together is self._tools:
            return Usage()
        if detail not in self._tokens:
            sizes = (reduce_tools(tools, detail) for tools in (self._together, self._tools))
            together, alone = map(self._meter.count_tools, sizes)
            self._tokens[detail] = together - alone
        tokens = self._tokens[detail]
        # Tools stand in the first unit of a request: that one is read from the cache, or nothing is.
        if billed.read_tokens:
            return Usage(read_tokens=tokens)
        return Usage(written_tokens=tokens) if billed.written_tokens else Usage(fresh_tokens=tokens)

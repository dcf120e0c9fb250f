"""Pair calls and results: each result with the call that it answers, and in a view as the provider format requires
it."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

from lading.events import Repaired
from lading.history.plan import Plan
from lading.history.refitting import draft_shown
from lading.history.repair import make_missing_result
from lading.history.repair_rules import CallNeeds, Repair, has_more_than_results
from lading.messages import Message, ToolCall, ToolResult, take_answered


def pair(plan: Plan, needs: CallNeeds, *, when: str, waiting: Container[str] = (), start: int = 0) -> None:
    """Give each call that the plan shows from ``start`` on its result: one that is apart is moved where the format
    requires that, and a missing one gets a synthetic one. ``when`` starts the reason of each edit. ``waiting``: ids
    of calls whose results may still come."""
    items = plan.view.items[start:]
    messages = [item.message for item in items]
    found = _PairedMessages(messages, needs, waiting)
    for _, places in groupby(range(len(items)), key=lambda at: items[at].entry):
        group = [*places]
        if repairs := [repair for at in group for repair in found.repairs.get(at, ())]:
            shown = tuple(message for at in group for message in found.show(at))
            plan.apply(draft_shown(items[group[0]], shown, repairs=repairs, edits=plan.edits, when=when))
    plan.repairs += [Repaired(repair.rule, items[at].entry, repair.detail) for at, repair in found.told]


class _PairedMessages:
    """How messages are shown so that each call has its result."""

    def __init__(self, messages: Sequence[Message], needs: CallNeeds, waiting: Container[str]) -> None:
        self._messages, self._needs = messages, needs
        self._moved: dict[int, set[str]] = {}
        """By place, the calls whose results are shown elsewhere."""
        self._added: dict[int, list[Message]] = {}
        """By place, the results that are shown behind those of its message."""
        self.repairs: dict[int, list[Repair]] = {}
        """By place, why something else is shown there."""
        self.told: list[tuple[int, Repair]] = []
        """Each repair once, with the place of the call, or of the result that is moved."""
        places = {result.call_id: at for at, message in enumerate(messages) for result in message.results}
        for at, message in enumerate(messages):
            end = self._find_end(at) if message.calls else at
            for call in message.calls:
                place = places.get(call.id, -1)
                is_missing = place < at and not needs.may_stay_open(message)
                may_come = call.id in waiting and (needs.may_be_apart or end == len(messages))
                if is_missing and not may_come:
                    result = make_missing_result(call.id, origin=message.origin)
                    self._add(end - 1, result, Repair("unanswered_call", f"the call {call.id} has no result"))
                    self.told.append((at, self.repairs[end - 1][-1]))
                elif place >= end and not needs.may_be_apart:
                    self._move(call.id, place, end - 1)

    def _find_end(self, at: int) -> int:
        """Return the place behind the results of a message's calls that follow it directly."""
        asked, end = {call.id for call in self._messages[at].calls}, at + 1
        while end < len(self._messages) and any(one.call_id in asked for one in self._messages[end].results):
            end += 1
            if has_more_than_results(self._messages[end - 1]):
                break
        return end

    def _add(self, place: int, result: Message, repair: Repair) -> None:
        self._added.setdefault(place, []).append(result)
        self.repairs.setdefault(place, []).append(repair)

    def _move(self, call_id: str, place: int, to: int) -> None:
        message = self._messages[place]
        result = next(one for one in message.results if one.call_id == call_id)
        repair = Repair("apart_result", f"the result of {call_id} is shown right behind its call")
        self._add(to, message.with_parts((result,)), repair)
        self._moved.setdefault(place, set()).add(call_id)
        self.repairs.setdefault(place, []).append(repair)
        self.told.append((place, repair))

    def show(self, place: int) -> list[Message]:
        """Return the messages that are shown at a place."""
        message, moved, added = self._messages[place], self._moved.get(place, ()), self._added.get(place, [])
        parts = [part for part in message.parts if not isinstance(part, ToolResult) or part.call_id not in moved]
        kept = message if len(parts) == len(message.parts) else message.with_parts(tuple(parts))
        if added and message.results and has_more_than_results(message):
            results, rest = kept.results, tuple(part for part in parts if not isinstance(part, ToolResult))
            before = [message.with_parts(tuple(results))] if results else []
            return [*before, *added, message.with_parts(rest)]
        return [*([kept] if parts or not moved else []), *added]


def find_calls(newest_first: Iterable[Message], ids: Collection[str]) -> int:
    """Return how many of the newest messages have all these calls."""
    left, found = {*ids}, 0
    for message in newest_first:
        if not left:
            break
        left.difference_update(call.id for call in message.calls)
        found += 1
    return found


def find_unanswered(messages: Iterable[Message], ids: Container[str]) -> set[str]:
    """Return which of these calls are shown without a result."""
    calls, answered = set[str](), set[str]()
    for message in messages:
        calls.update(call.id for call in message.calls if call.id in ids)
        answered.update(result.call_id for result in message.results)
    return calls - answered


def name_results(message: Message, newest_first: Iterable[Message]) -> Message:
    """Return a message whose results have the ids of their calls: Google's clients leave them out, also where the
    calls have some. ``newest_first``: the messages before it."""
    since: list[Message] = []
    for before in newest_first:
        since.append(before)
        if before.role == "assistant":
            break
    waiting = [*since[-1].calls] if since else []
    for before in reversed(since):
        take_answered(before.results, waiting)
    calls = iter(take_answered(message.results, waiting))
    parts = [_name_result(part, next(calls)) if isinstance(part, ToolResult) else part for part in message.parts]
    return message.with_parts(tuple(parts))


def _name_result(result: ToolResult, call: ToolCall | None) -> ToolResult:
    return replace(result, call_id=call.id) if call else result

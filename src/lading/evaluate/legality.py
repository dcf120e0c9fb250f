"""Check the unrepaired requests of recorded sessions: the rules they break, and the repairs that would apply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.errors import IllegalRequest, Violation
from lading.evaluate.replay import ReplayPlan
from lading.history.repair import Repairer
from lading.history.repair_rules import Repair
from lading.history.view import View, append_message
from lading.messages import Message, Tool
from lading.request.builder import RequestBuilder
from lading.sources import Recording
from lading.wire import find_wire
from lading.wire.fitting import find_needs


class BrokenRule(Struct, frozen=True):
    """A broken rule of the provider format."""

    rule: str
    requests: int
    """Number of requests that break it; an offending message counts in every request that holds it."""
    places: int
    """Number of different paths in the bodies."""
    session: str
    """Session of its first occurrence, which the fields below describe too."""
    message_index: int
    """Index of the recorded reply to the request in the raw list."""
    path: str
    detail: str


class Legality(Struct, frozen=True):
    """Result of checking requests, each the raw history so far, in the recorded provider format."""

    requests: int = 0
    illegal_requests: int = 0
    broken: tuple[BrokenRule, ...] = ()
    """Broken rules, the most frequent first."""
    repairs: tuple[tuple[str, int], ...] = ()
    """Number of repairs by rule of ``lading.history.repair``, the most frequent first."""

    def __add__(self, other: Legality) -> Legality:
        return Legality(
            self.requests + other.requests,
            self.illegal_requests + other.illegal_requests,
            _merge_broken((*self.broken, *other.broken)),
            _sum_counts((*self.repairs, *other.repairs)),
        )


def check_requests(
    recording: Recording, plan: ReplayPlan, *, tools: tuple[Tool, ...], calls: Sequence[int], tokens: Sequence[int]
) -> Legality:
    """Check every request of a recording, or the history as a whole where no model call is recorded. A request body
    is a request itself, though its reply is not recorded.

    ``calls``: positions of the recorded replies. ``tokens``: tokens of each message. A request that cannot be
    encoded breaks the rule ``JSON``, and so do those after it.
    """
    messages = recording.messages
    is_body = recording.params is not None and not _ends_in_reply(messages)
    ends = [*calls, len(messages)] if is_body or not calls else list(calls)
    firsts: dict[str, BrokenRule] = {}
    requests: Counter[str] = Counter()
    places: set[tuple[str, str]] = set()
    illegal = 0
    for end, violations in zip(ends, _iter_violations(messages, plan, tools, ends, tokens), strict=True):
        illegal += bool(violations)
        requests.update({item.rule for item in violations})
        places.update((item.rule, item.path) for item in violations)
        reply = recording.raw_indices[min(end, len(messages) - 1)]
        for item in violations:
            firsts.setdefault(item.rule, BrokenRule(item.rule, 0, 0, recording.id, reply, item.path, item.detail))
    at = Counter(rule for rule, _ in places)
    broken = (replace(item, requests=requests[rule], places=at[rule]) for rule, item in firsts.items())
    repairs = Counter(repair.rule for repair in _iter_repairs(messages, plan, calls))
    return Legality(len(ends), illegal, _merge_broken(broken), tuple(repairs.most_common()))


def _ends_in_reply(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].role == "assistant"


def _iter_violations(
    messages: Sequence[Message],
    plan: ReplayPlan,
    tools: tuple[Tool, ...],
    ends: Sequence[int],
    tokens: Sequence[int],
) -> Iterator[list[Violation]]:
    """Yield the violations of ``messages[:end]`` for each end; only new messages are encoded."""
    settings = plan.settings
    request, view = RequestBuilder(find_wire(settings.wire), settings.card, strict=settings.strict), View()
    failed: list[Violation] = []
    for end in ends:
        for entry in range(len(view), end):
            append_message(view, messages[entry], entry=entry, tokens=tokens[entry])
        try:
            if not failed:
                request.open(view, tools=tools, tools_tokens=0, template=plan.template)
                request.show(view)
        except IllegalRequest as error:
            failed = list(error.violations)
        yield failed or request.violations()


def _iter_repairs(messages: Sequence[Message], plan: ReplayPlan, calls: Sequence[int]) -> Iterator[Repair]:
    settings = plan.settings
    repairer = Repairer(find_needs(find_wire(settings.wire), settings.card))
    due = set(calls)
    for position, message in enumerate(messages):
        if position in due:
            newest_first = (messages[at] for at in range(position - 1, -1, -1))
            closing = repairer.find_closing(plan.template, newest_first=newest_first)
            repairer.close(closing)
            yield from closing.repairs
        yield from repairer.repair(message).repairs


def _merge_broken(items: Iterable[BrokenRule]) -> tuple[BrokenRule, ...]:
    merged: dict[str, BrokenRule] = {}
    for item in items:
        first = merged.get(item.rule, replace(item, requests=0, places=0))
        sums = {"requests": first.requests + item.requests, "places": first.places + item.places}
        merged[item.rule] = replace(first, **sums)
    return tuple(sorted(merged.values(), key=lambda item: (-item.requests, item.rule)))


def _sum_counts(pairs: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    counts: Counter[str] = Counter()
    for rule, times in pairs:
        counts[rule] += times
    return tuple(counts.most_common())

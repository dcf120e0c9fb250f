"""Which rules the requests of a recorded session break when nothing is mended, and what would be mended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.errors import IllegalRequest, Violation
from lading.evaluate.recorded import ReplayPlan
from lading.history.repair import Repair, Sanitizer
from lading.history.view import View
from lading.messages import Message, Tool
from lading.request.builder import Request
from lading.sources import Recording
from lading.wire import find_wire
from lading.wire.fitting import needs_on


class Broken(Struct, frozen=True):
    """One rule of the wire, and where it is broken."""

    rule: str
    requests: int
    """How many requests break it. A message that breaks a rule does so in each request that holds it."""
    places: int
    """At how many places of the bodies."""
    session: str
    """Of the first place, as are the fields below."""
    message_index: int
    """In the raw list: the recorded reply to the request."""
    path: str
    detail: str


class Legality(Struct, frozen=True):
    """The check of the requests of sessions, each the raw history so far, on the wire they were recorded on."""

    requests: int = 0
    illegal_requests: int = 0
    broken: tuple[Broken, ...] = ()
    """By rule, the most frequent first."""
    repairs: tuple[tuple[str, int], ...] = ()
    """How often each rule of ``lading.history.repair`` would mend something, the most frequent first."""

    def __add__(self, other: Legality) -> Legality:
        return Legality(
            self.requests + other.requests,
            self.illegal_requests + other.illegal_requests,
            _ordered((*self.broken, *other.broken)),
            _counted((*self.repairs, *other.repairs)),
        )


def check_requests(
    recording: Recording, plan: ReplayPlan, *, tools: tuple[Tool, ...], calls: Sequence[int], tokens: Sequence[int]
) -> Legality:
    """The check of every request of a recording; of the history as a whole where no model call is recorded.

    ``calls``: positions of the recorded replies. ``tokens``: of each message. A request that cannot be
    encoded at all breaks the rule ``JSON``, and so do those after it.
    """
    messages = recording.messages
    ends = list(calls) or [len(messages)]
    firsts: dict[str, Broken] = {}
    requests: Counter[str] = Counter()
    places: set[tuple[str, str]] = set()
    illegal = 0
    for end, violations in zip(ends, _violations(messages, plan, tools, ends, tokens), strict=True):
        illegal += bool(violations)
        requests.update({item.rule for item in violations})
        places.update((item.rule, item.path) for item in violations)
        reply = recording.raw_indices[min(end, len(messages) - 1)]
        for item in violations:
            firsts.setdefault(item.rule, Broken(item.rule, 0, 0, recording.id, reply, item.path, item.detail))
    at = Counter(rule for rule, _ in places)
    broken = (replace(item, requests=requests[rule], places=at[rule]) for rule, item in firsts.items())
    repairs = Counter(repair.rule for repair in _repairs(messages, plan, calls))
    return Legality(len(ends), illegal, _ordered(broken), tuple(repairs.most_common()))


def _violations(
    messages: Sequence[Message],
    plan: ReplayPlan,
    tools: tuple[Tool, ...],
    ends: Sequence[int],
    tokens: Sequence[int],
) -> Iterator[list[Violation]]:
    """The violations of ``messages[:end]`` for each end, at the cost of what is new."""
    settings = plan.settings
    request, view = Request(find_wire(settings.wire), settings.card, strict=settings.strict), View()
    failed: list[Violation] = []
    for end in ends:
        for entry in range(len(view), end):
            view.append(messages[entry], entry=entry, tokens=tokens[entry])
        try:
            if not failed:
                request.open(view, tools=tools, tools_tokens=0, template=plan.template)
                request.show(view)
        except IllegalRequest as error:
            failed = list(error.violations)
        yield failed or request.violations()


def _repairs(messages: Sequence[Message], plan: ReplayPlan, calls: Sequence[int]) -> Iterator[Repair]:
    settings = plan.settings
    sanitizer = Sanitizer(needs_on(find_wire(settings.wire), settings.card))
    due = set(calls)
    for position, message in enumerate(messages):
        if position in due:
            closing = sanitizer.closing(plan.template)
            sanitizer.close(closing)
            yield from closing.repairs
        yield from sanitizer.admit(message).repairs


def _ordered(items: Iterable[Broken]) -> tuple[Broken, ...]:
    merged: dict[str, Broken] = {}
    for item in items:
        first = merged.get(item.rule, replace(item, requests=0, places=0))
        sums = {"requests": first.requests + item.requests, "places": first.places + item.places}
        merged[item.rule] = replace(first, **sums)
    return tuple(sorted(merged.values(), key=lambda item: (-item.requests, item.rule)))


def _counted(pairs: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    counts: Counter[str] = Counter()
    for rule, times in pairs:
        counts[rule] += times
    return tuple(counts.most_common())

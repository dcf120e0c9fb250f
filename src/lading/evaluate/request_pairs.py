"""Build the packed request of a recorded call and the one with everything sent, for a model to answer."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from lading import jsonbytes
from lading.compaction import Strategy
from lading.evaluate.asking import AskedModel
from lading.evaluate.plan import PlanOptions
from lading.evaluate.session_runs import (
    RecordedSession,
    RunCall,
    make_counter,
    run_arm,
    run_strategy,
    show_everything,
)
from lading.messages import Message
from lading.wire import Body, encode, find_wire


class RequestPair(Struct, frozen=True):
    """Both requests of one call."""

    session: str
    call: int
    """Number of the call, from 1."""
    packed: RunCall
    full: RunCall


def plan_for(model: AskedModel, options: PlanOptions) -> PlanOptions:
    """Return the options of a plan for this model. The window leaves room for its answer."""
    most = model.input_tokens
    window = min(options.window_tokens or most, most)
    return replace(options, model=model.name, wire=model.wire, window_tokens=window)


def find_packed_calls(session: RecordedSession, strategy: str | Strategy) -> list[int]:
    """Return the calls, from 1, whose packed request differs in size from everything sent."""
    pairs = zip(_run_packed(session, strategy), _run_full(session, ()), strict=True)
    return [call for call, (packed, full) in enumerate(pairs, 1) if packed.body and packed.tokens != full.tokens]


def build_pairs(
    session: RecordedSession, strategy: str | Strategy, *, calls: Collection[int]
) -> Iterator[RequestPair]:
    """Build both requests of these calls, from 1. A packed request that cannot be built is empty."""
    full = _run_full(session, {call - 1 for call in calls})
    for call, (packed, whole) in enumerate(zip(_run_packed(session, strategy), full, strict=True), 1):
        if call in calls:
            yield RequestPair(session.name, call, replace(packed, shown=()), replace(whole, shown=()))


def make_body(model: AskedModel, body: bytes, *, added: Iterable[Message] = ()) -> Body:
    """Return a request body for the model, with further messages at its end. With these, the mark that caches the
    whole request is left out: no later request begins with it."""
    wire = find_wire(model.wire)
    conversation = wire.decode(jsonbytes.load(body))
    template = {**(conversation.template or {}), "model": model.name}
    messages = (*conversation.messages, *added)
    if len(messages) > len(conversation.messages) and (marks := wire.layout.marks):
        template.pop(marks.field, None)
    return encode(replace(conversation, messages=messages, template=template), wire, card=model.card)


def _run_packed(session: RecordedSession, strategy: str | Strategy) -> Iterator[RunCall]:
    rates = session.plan.settings.rates
    return run_strategy(session, strategy, rates=rates, clock=time.perf_counter)


def _run_full(session: RecordedSession, bodies: Collection[int]) -> Iterator[RunCall]:
    count = make_counter(session)
    return run_arm(session, show_everything, count=count, clock=time.perf_counter, bodies=bodies)

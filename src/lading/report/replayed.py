"""A session just replayed as a report's data: what its store holds, the calls without a request, exact bills."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from lading.evaluate.bill_reconciliation import compare_bills, describe
from lading.evaluate.recorded import ReplayedCall, ReplayPlan
from lading.history.log import Reported
from lading.report.data import CallData, SessionData, ShownCounts
from lading.report.stored import read_without_timeline
from lading.report.timeline import add_timeline
from lading.request.manifest import frame
from lading.sources import Recording
from lading.sources.recording import Usage as RecordedUsage
from lading.stores import SessionStore


def read_replay(
    store: SessionStore, calls: Iterable[ReplayedCall], *, recording: Recording, plan: ReplayPlan, session: str
) -> Iterator[SessionData]:
    """The data of a session whose replay into ``store`` gave ``calls``, all of them, in order; nothing when the
    replay ended before anything was stored.

    Calls for which no request could be built are where they would have been made. Raises like ``read_session``.
    """
    outcomes = list(calls)
    tenant = plan.settings.tenant
    if not store.exists(tenant, session):
        return
    at_rest = read_without_timeline(store, tenant=tenant, session=session, source=recording.id)
    frames = at_rest.frames or (frame(plan.settings, tools="", template=""),)
    tools = at_rest.tools or ((),)
    merged = tuple(_merged(at_rest.calls, outcomes, recording))
    bill = compare_bills(recording, plan, walks={plan.settings.strategy_name: outcomes})
    said = tuple(describe(part, bill) for part in bill.differences) if bill else ()
    yield add_timeline(
        replace(at_rest, is_replay=True, frames=frames, tools=tools, calls=merged, bill=bill, bill_words=said)
    )


def _merged(made: Iterable[CallData], outcomes: Iterable[ReplayedCall], recording: Recording) -> Iterator[CallData]:
    requests = iter(made)
    bills = {bill.message_index: _recorded(bill) for bill in recording.usage}
    shows = ShownCounts(0, 0, 0, 0)
    for outcome in outcomes:
        if outcome.pack is None:
            # Everything before the reply was in the log, one entry for each message.
            shows = replace(shows, entries=recording.raw_indices.index(outcome.upto))
            data = CallData(outcome.call, shows, {}, outcome.billed, outcome.append_only, error=str(outcome.error))
        else:
            data = replace(
                next(requests), call=outcome.call, simulated=outcome.billed, append_only=outcome.append_only
            )
            shows = data.shows
        yield replace(data, recorded=bills.get(outcome.upto))


def _recorded(bill: RecordedUsage) -> Reported:
    return Reported(
        input_tokens=bill.input_tokens + bill.cache_read_tokens + bill.cache_write_tokens,
        output_tokens=bill.output_tokens,
        read_tokens=bill.cache_read_tokens,
        written_tokens=bill.cache_write_tokens,
    )

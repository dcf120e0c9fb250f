"""Convert a replayed session to a report's data, with the calls without a request and exact bills."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from lading.evaluate.bill_reconciliation import compare_bills, describe_part
from lading.evaluate.replay import ReplayedCall, ReplayPlan
from lading.history.log import Reported
from lading.report.data import CallData, SessionData, ShownCounts
from lading.report.stored import read_without_timeline
from lading.report.timeline import add_timeline
from lading.request.manifest import frame
from lading.sources import Recording
from lading.sources.recording import RecordedUsage
from lading.stores import SessionStore


def read_replay(
    store: SessionStore, calls: Iterable[ReplayedCall], *, recording: Recording, plan: ReplayPlan, session: str
) -> Iterator[SessionData]:
    """Yield the data of a session replayed into ``store`` as ``calls`` (all calls, in order).

    Calls without a request are included at their position. Yields nothing where there is no call and nothing was
    stored. Raises like ``read_session``.
    """
    outcomes = list(calls)
    tenant = plan.settings.tenant
    if store.exists(tenant, session):
        stored = read_without_timeline(store, tenant=tenant, session=session, source=recording.id)
    elif outcomes:
        stored = SessionData(tenant, session, recording.id, True, (), (), {}, (), (), ())
    else:
        return
    frames = stored.frames or (frame(plan.settings, tools="", template=""),)
    tools = stored.tools or ((),)
    merged = tuple(_merge(stored, outcomes, recording))
    bill = compare_bills(recording, plan, replays={plan.settings.strategy_name: outcomes})
    words = tuple(describe_part(part, bill) for part in bill.differences) if bill else ()
    yield add_timeline(
        replace(stored, is_replay=True, frames=frames, tools=tools, calls=merged, bill=bill, bill_words=words)
    )


def _merge(stored: SessionData, outcomes: Iterable[ReplayedCall], recording: Recording) -> Iterator[CallData]:
    requests = iter(stored.calls)
    bills = {bill.message_index: _convert_bill(bill) for bill in recording.usage}
    shows = ShownCounts(0, 0, 0, 0)
    for outcome in outcomes:
        if outcome.pack is None:
            # The log has an entry for each message before the reply, up to one that it cannot hold.
            shows = replace(shows, entries=min(recording.raw_indices.index(outcome.upto), len(stored.entries)))
            data = CallData(outcome.call, shows, {}, outcome.billed, outcome.append_only, error=str(outcome.error))
        else:
            data = replace(
                next(requests), call=outcome.call, simulated=outcome.billed, append_only=outcome.append_only
            )
            shows = data.shows
        yield replace(data, recorded=bills.get(outcome.upto))


def _convert_bill(bill: RecordedUsage) -> Reported:
    return Reported(
        input_tokens=bill.input_tokens + bill.cache_read_tokens + bill.cache_write_tokens,
        output_tokens=bill.output_tokens,
        read_tokens=bill.cache_read_tokens,
        written_tokens=bill.cache_write_tokens,
    )

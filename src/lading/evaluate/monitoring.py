"""Monitor a stored session as it grows; each update reads only what was stored since the last one."""

from __future__ import annotations

from statistics import median

from msgspec import Struct
from msgspec.structs import astuple, replace

from lading.economics import Usage
from lading.errors import LadingError, StoreFormatError, TamperedError
from lading.evaluate.prices import Price, find_price
from lading.evaluate.simulated import SimulatedBills, find_latest
from lading.evaluate.tally import EditTotals, count_edits
from lading.history.log import NO_COMPACTIONS, Entry, Reported
from lading.request.manifest import Cause, Decision, Frame, Manifest, totals, unseal
from lading.stores import SessionStore
from lading.task.citing import read_record
from lading.task.record import PayloadRecord


class MonitoredCall(Struct, frozen=True):
    """One request of a session, and the reported usage of its reply."""

    call: int
    layers: dict[str, int]
    """Tokens by layer; slack is the unused input budget."""
    simulated: Usage
    """Simulated bill of its input, with a prompt cache that follows the model card."""
    append_only: Usage
    """The same for everything sent; zero where the caller did not make the call."""
    simulated_usd: float | None
    """None without a known price."""
    decisions: tuple[Decision, ...] = ()
    """Edits of strategies at this call."""
    cause: Cause = ""
    expected_tokens: int = 0
    """Expected token count of the provider."""
    at_s: float | None = None
    reported: Reported | None = None
    """Usage that the provider reported with the reply."""
    asks: tuple[str, ...] = ()
    """Names of the tools called by the reply."""
    step: PayloadRecord | None = None
    """The payload that it shows."""

    @property
    def tokens(self) -> int:
        """Input tokens of the request, as counted."""
        return totals(self.layers)

    @property
    def full_tokens(self) -> int:
        """The most input tokens, as counted: the window less the reserve for the answer and the margin."""
        return sum(self.layers.values())


class Costs(Struct, frozen=True):
    """Costs of the calls so far. Amounts in USD cover the calls of models with a known price; None without any.
    ``append_only`` covers the caller's calls only. Requests without a reply are left out, except the newest."""

    simulated: Usage = Usage()
    append_only: Usage = Usage()
    reported: Usage = Usage()
    """Input usage reported by the provider for ``reported_calls``."""
    reported_calls: int = 0
    output_tokens: int = 0
    """Reported output tokens."""
    simulated_usd: float | None = None
    append_only_usd: float | None = None
    reported_usd: float | None = None
    """Cost of the reported input at the card's prices."""
    output_usd: float | None = None
    own_usd: float = 0.0
    """Cost of compaction's own model calls."""
    billed_calls: int = 0
    """Answered requests, and the newest one."""
    uncached_usd: float | None = None
    """Cost of everything sent without a prompt cache."""

    def __add__(self, other: Costs) -> Costs:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Costs(*(two if one is None else one if two is None else one + two for one, two in pairs))

    @property
    def ratio(self) -> float | None:
        """Input cost, with compaction's own model calls, relative to everything sent; None: no known price."""
        if self.simulated_usd is None or self.append_only_usd is None:
            return None
        return (self.simulated_usd + self.own_usd) / self.append_only_usd if self.append_only_usd else 1.0

    @property
    def billed_append_only_usd(self) -> float | None:
        """Cost of everything sent by the provider's counts and caching; None unless it reported every request."""
        full, uncached = self.append_only_usd, self.uncached_usd
        if full is None or uncached is None or self.reported_calls < self.billed_calls or not self.simulated.tokens:
            return None
        if not (self.reported.read_tokens or self.reported.written_tokens):
            # If the simulated cache was never read either, the reports do not show whether there is a cache.
            full = uncached if self.simulated.read_tokens else min(full, uncached)
        return full * self.reported.tokens / self.simulated.tokens

    @property
    def billed_ratio(self) -> float | None:
        """The ratio with input as reported; None where the provider did not report every request."""
        full = self.billed_append_only_usd
        return (self.reported_usd + self.own_usd) / full if full and self.reported_usd is not None else None


class SessionFigures(Struct, frozen=True):
    """Figures of a session so far."""

    tenant: str
    session: str
    entries: int = 0
    calls: int = 0
    model: str = ""
    """Name of the card; empty before the first call."""
    window_tokens: int = 0
    costs: Costs = Costs()
    edits: EditTotals = EditTotals(0, 0, 0, 0)
    last_edit: tuple[int, Decision] | None = None
    """The newest edit with the call that decided it."""
    count_error: float | None = None
    """Median relative error of expected against reported tokens; None: nothing was reported."""
    last_at_s: float | None = None
    """Latest time of a call or an entry, in seconds since 1970."""
    newest: tuple[MonitoredCall, ...] = ()
    """The newest calls, at most ``NEWEST``, in order."""


NEWEST = 50
"""Number of the newest calls that are kept."""
_ERRORS = 500
"""Number of the newest calls that the counting error covers."""


class SessionMonitor:
    """Monitors one session of a store."""

    def __init__(self, store: SessionStore, *, tenant: str, session: str) -> None:
        self._store = store
        self.seen = SessionFigures(tenant, session)
        """The session as of the last update."""
        self._bills = SimulatedBills()
        self._frame: Frame | None = None
        self._price: Price | None = None
        self._awaits_reply = False
        self._settled = self._sent = self._everything = Costs()
        """Costs of answered requests; of the newest request; of everything sent in the caller's last call."""
        self._errors: list[float] = []
        self._payload: tuple[str, PayloadRecord | None] = ("", None)
        """The newest payload, by the digest of its record."""

    def update(self) -> bool:
        """Read what was stored since the last update; return True if there was anything.

        Raises StoreError, TamperedError and StoreFormatError; what was read before the error is kept, and the next
        update continues from there.
        """
        before, name = self.seen, (self.seen.tenant, self.seen.session)
        requests: list[Manifest] = []
        damage: LadingError | None = None
        try:
            requests.extend(map(unseal, self._store.manifests(*name, start=before.calls)))
        except (TamperedError, StoreFormatError) as error:
            damage = error
        # Read after the manifests: every entry that they show is among them.
        entries = list(self._store.entries(*name, start=before.entries))
        start = 0
        for manifest in requests:
            end = max(manifest.seen.entries - before.entries, start)
            self._add_entries(entries[start:end])
            start = end
            self._add_request(manifest)
        self._add_entries(entries[start:])
        if damage is not None:
            raise damage
        return self.seen is not before

    def _add_entries(self, entries: list[Entry]) -> None:
        for entry in entries:
            last_at_s = find_latest(self.seen.last_at_s, entry.at_s)
            self.seen = replace(self.seen, entries=self.seen.entries + 1, last_at_s=last_at_s)
            self._bills.add_entry(entry)
            # The first assistant message after a request is the reply to it.
            if entry.message.role == "assistant" and self._awaits_reply:
                self._awaits_reply = False
                self._add_reply(entry)

    def _add_reply(self, entry: Entry) -> None:
        *others, call = self.seen.newest
        call = replace(call, reported=entry.usage, asks=tuple(made.name for made in entry.message.calls))
        if (usage := entry.usage) is not None:
            fresh = max(usage.input_tokens - usage.read_tokens - usage.written_tokens, 0)
            billed = Usage(usage.read_tokens, usage.written_tokens, fresh)
            self._settled += Costs(
                reported=billed,
                reported_calls=1,
                output_tokens=usage.output_tokens,
                reported_usd=self._to_usd(billed),
                output_usd=self._to_usd(Usage(), usage.output_tokens),
            )
            if usage.input_tokens > 0:
                self._errors = [*self._errors, abs(call.expected_tokens / usage.input_tokens - 1)][-_ERRORS:]
        costs = self._settled + self._sent + self._everything
        error = median(self._errors) if self._errors else None
        self.seen = replace(self.seen, costs=costs, count_error=error, newest=(*others, call))

    def _add_request(self, manifest: Manifest) -> None:
        if manifest.frame is not None:
            self._frame = manifest.frame
            self._price = find_price(manifest.frame.card, manifest.frame.rates)
        frame, seen = self._frame, self.seen
        if frame is None:
            raise TamperedError("The session's first manifest is not a keyframe; run lading verify for details.")
        bill = self._bills.bill(manifest, frame)
        newest = [replace(call, append_only=Usage()) if call.call == bill.repeats else call for call in seen.newest]
        if bill.is_unanswered:
            newest[-1] = replace(newest[-1], simulated=Usage(), simulated_usd=newest[-1].simulated_usd and 0.0)
            self._sent = Costs()
        simulated, append_only, usd = bill.sent, bill.everything, self._to_usd(bill.sent)
        decided = tuple(edit for edit in manifest.decisions if edit.kind not in NO_COMPACTIONS)
        at_s, expected = manifest.place.at_s, manifest.sent.expected
        own, price = manifest.sent.own, self._price
        call = MonitoredCall(
            call=manifest.place.call,
            layers=manifest.counts,
            simulated=simulated,
            append_only=append_only,
            simulated_usd=usd,
            decisions=decided,
            cause=manifest.place.cause,
            expected_tokens=expected.tokens if expected else totals(manifest.counts),
            at_s=at_s,
            step=self._read_payload(manifest.place.task),
        )
        self._settled += self._sent + Costs(own_usd=own.cost * price.base_usd if own and price else 0.0)
        self._sent = Costs(simulated=simulated, simulated_usd=usd, billed_calls=1)
        if append_only.tokens:
            self._settled += Costs() if bill.repeats else self._everything
            full_usd, fresh_usd = self._to_usd(append_only), self._to_usd(Usage(fresh_tokens=append_only.tokens))
            self._everything = Costs(append_only=append_only, append_only_usd=full_usd, uncached_usd=fresh_usd)
        self._awaits_reply = True
        self.seen = replace(
            seen,
            calls=seen.calls + 1,
            model=frame.card.name,
            window_tokens=frame.budget.window_tokens,
            costs=self._settled + self._sent + self._everything,
            edits=seen.edits + count_edits(decided),
            last_edit=(call.call, decided[-1]) if decided else seen.last_edit,
            last_at_s=find_latest(seen.last_at_s, at_s),
            newest=(*newest, call)[-NEWEST:],
        )

    def _read_payload(self, digest: str) -> PayloadRecord | None:
        if digest != self._payload[0]:
            owner = self.seen.tenant, self.seen.session
            self._payload = digest, read_record(self._store, owner, digest=digest)
        return self._payload[1]

    def _to_usd(self, billed: Usage, output_tokens: int = 0) -> float | None:
        price = self._price
        return None if price is None else price.input(billed) + price.output(output_tokens)

"""A stored session as it grows: its figures so far, from what was stored since the last look alone."""

from __future__ import annotations

from statistics import median

from msgspec import Struct
from msgspec.structs import astuple, replace

from lading.economics import Usage
from lading.errors import LadingError, StoreFormatError, TamperedError
from lading.evaluate.prices import Price, find_price
from lading.evaluate.simulated import SimulatedBills, later
from lading.evaluate.tally import EditTotals, count_edits
from lading.history.log import NO_COMPACTIONS, Entry, Reported
from lading.request.manifest import Cause, Decision, Frame, Manifest, totals, unseal
from lading.stores import SessionStore


class SeenCall(Struct, frozen=True):
    """One request of a session, and what is known of its reply."""

    call: int
    layers: dict[str, int]
    """Tokens by layer, without slack."""
    simulated: Usage
    """What its input is billed by a prompt cache that works as the card says."""
    append_only: Usage
    """The same for sending everything; nothing where the caller did not make the call."""
    simulated_usd: float | None
    """None without a known price."""
    decisions: tuple[Decision, ...] = ()
    """Of strategies, at this call."""
    cause: Cause = ""
    expected_tokens: int = 0
    """What the provider was expected to count."""
    at_s: float | None = None
    reported: Reported | None = None
    """What the provider said of it, with the reply."""
    asks: tuple[str, ...] = ()
    """Names of the tools that the reply calls."""

    @property
    def tokens(self) -> int:
        """Input tokens of the request, as counted."""
        return totals(self.layers)


class Costs(Struct, frozen=True):
    """The cost of the calls so far. USD are of calls of models with a known price, and None when no call was.

    ``append_only`` is of the caller's calls alone. Requests without a reply are left out, but the newest.
    """

    simulated: Usage = Usage()
    append_only: Usage = Usage()
    reported: Usage = Usage()
    """Input as providers reported it, of ``reported_calls``."""
    reported_calls: int = 0
    output_tokens: int = 0
    """Reported."""
    simulated_usd: float | None = None
    append_only_usd: float | None = None
    reported_usd: float | None = None
    """Of the reported input, at the card's prices."""
    output_usd: float | None = None
    own_usd: float = 0.0
    """Of compaction's own model calls."""
    billed_calls: int = 0
    """Requests that were answered, and the newest."""
    uncached_usd: float | None = None
    """Everything sent without a prompt cache."""

    def __add__(self, other: Costs) -> Costs:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Costs(*(two if one is None else one if two is None else one + two for one, two in pairs))

    @property
    def ratio(self) -> float | None:
        """Input cost, compaction's own model calls included, relative to everything sent; None: no known price."""
        if self.simulated_usd is None or self.append_only_usd is None:
            return None
        return (self.simulated_usd + self.own_usd) / self.append_only_usd if self.append_only_usd else 1.0

    @property
    def billed_append_only_usd(self) -> float | None:
        """Everything sent as the provider would count and cache it; None where it did not report every request."""
        full, uncached = self.append_only_usd, self.uncached_usd
        if full is None or uncached is None or self.reported_calls < self.billed_calls or not self.simulated.tokens:
            return None
        if not (self.reported.read_tokens or self.reported.written_tokens):
            # Where nothing could have been read either, the reports do not say whether there is a cache.
            full = uncached if self.simulated.read_tokens else min(full, uncached)
        return full * self.reported.tokens / self.simulated.tokens

    @property
    def billed_ratio(self) -> float | None:
        """The ratio with input as reported; None where the provider did not report every request."""
        full = self.billed_append_only_usd
        return (self.reported_usd + self.own_usd) / full if full and self.reported_usd is not None else None


class Watched(Struct, frozen=True):
    """A session so far."""

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
    """The newest edit, and the call it was decided at."""
    count_error: float | None = None
    """Median of how far expected tokens were off reported ones, as a share; None: nothing was reported."""
    last_at_s: float | None = None
    """The latest time that a call or an entry carries, in seconds since 1970."""
    newest: tuple[SeenCall, ...] = ()
    """The newest calls in order."""


NEWEST = 50
"""How many of the newest calls are kept."""
_ERRORS = 500
"""The counting error is of that many of the newest calls."""


class SessionWatch:
    """Follows one session of a store."""

    def __init__(self, store: SessionStore, *, tenant: str, session: str) -> None:
        self._store = store
        self.seen = Watched(tenant, session)
        """The session as of the last look."""
        self._bills = SimulatedBills()
        self._frame: Frame | None = None
        self._price: Price | None = None
        self._awaits_reply = False
        self._settled = self._sent = self._everything = Costs()
        """Of what was answered; of the newest request; of everything sent in the caller's last call."""
        self._errors: list[float] = []

    def look(self) -> bool:
        """Take in what was stored since the last look; whether there was anything.

        Raises StoreError, TamperedError and StoreFormatError; what was taken in before is kept, and the next look
        tries again from there.
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
        taken = 0
        for manifest in requests:
            until = max(manifest.seen.entries - before.entries, taken)
            self._take(entries[taken:until])
            taken = until
            self._add(manifest)
        self._take(entries[taken:])
        if damage is not None:
            raise damage
        return self.seen is not before

    def _take(self, entries: list[Entry]) -> None:
        for entry in entries:
            last_at_s = later(self.seen.last_at_s, entry.at_s)
            self.seen = replace(self.seen, entries=self.seen.entries + 1, last_at_s=last_at_s)
            self._bills.take(entry)
            # The first assistant message after a request is the reply to it.
            if entry.message.role == "assistant" and self._awaits_reply:
                self._awaits_reply = False
                self._reply(entry)

    def _reply(self, entry: Entry) -> None:
        *others, call = self.seen.newest
        call = replace(call, reported=entry.usage, asks=tuple(asked.name for asked in entry.message.calls))
        if (usage := entry.usage) is not None:
            fresh = max(usage.input_tokens - usage.read_tokens - usage.written_tokens, 0)
            billed = Usage(usage.read_tokens, usage.written_tokens, fresh)
            self._settled += Costs(
                reported=billed,
                reported_calls=1,
                output_tokens=usage.output_tokens,
                reported_usd=self._usd(billed),
                output_usd=self._usd(Usage(), usage.output_tokens),
            )
            if usage.input_tokens > 0:
                self._errors = [*self._errors, abs(call.expected_tokens / usage.input_tokens - 1)][-_ERRORS:]
        costs = self._settled + self._sent + self._everything
        error = median(self._errors) if self._errors else None
        self.seen = replace(self.seen, costs=costs, count_error=error, newest=(*others, call))

    def _add(self, manifest: Manifest) -> None:
        if manifest.frame is not None:
            self._frame = manifest.frame
            self._price = find_price(manifest.frame.card, manifest.frame.rates)
        frame, seen = self._frame, self.seen
        if frame is None:
            raise TamperedError("The session's first manifest is not a keyframe; run lading verify for details.")
        bill = self._bills.next(manifest, frame)
        newest = [replace(call, append_only=Usage()) if call.call == bill.repeats else call for call in seen.newest]
        if bill.is_unanswered:
            newest[-1] = replace(newest[-1], simulated=Usage(), simulated_usd=newest[-1].simulated_usd and 0.0)
            self._sent = Costs()
        simulated, append_only, usd = bill.sent, bill.everything, self._usd(bill.sent)
        decided = tuple(edit for edit in manifest.decisions if edit.kind not in NO_COMPACTIONS)
        at_s, expected = manifest.place.at_s, manifest.sent.expected
        own, price = manifest.sent.own, self._price
        call = SeenCall(
            call=manifest.place.call,
            layers=manifest.layers,
            simulated=simulated,
            append_only=append_only,
            simulated_usd=usd,
            decisions=decided,
            cause=manifest.place.cause,
            expected_tokens=expected.tokens if expected else totals(manifest.counts),
            at_s=at_s,
        )
        self._settled += self._sent + Costs(own_usd=own.cost * price.base_usd if own and price else 0.0)
        self._sent = Costs(simulated=simulated, simulated_usd=usd, billed_calls=1)
        if append_only.tokens:
            self._settled += Costs() if bill.repeats else self._everything
            full_usd, fresh_usd = self._usd(append_only), self._usd(Usage(fresh_tokens=append_only.tokens))
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
            last_at_s=later(seen.last_at_s, at_s),
            newest=(*newest, call)[-NEWEST:],
        )

    def _usd(self, billed: Usage, output_tokens: int = 0) -> float | None:
        price = self._price
        return None if price is None else price.input(billed) + price.output(output_tokens)

"""``lading top``: the sessions of a store while they run."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct
from rich.console import Console, ConsoleOptions, Group
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from lading.cli import terminal
from lading.cli.options import json_option
from lading.cli.stores import open_existing
from lading.cli.tables import amount, money, number, sign
from lading.cli.terminal import printable
from lading.economics import Usage
from lading.errors import LadingError, StoreError
from lading.evaluate.tally import describe_saving
from lading.evaluate.watching import Costs, SeenCall, SessionWatch, Watched
from lading.request.layers import LAYERS
from lading.stores.sqlite import SqliteStore
from lading.stores.sqlite_file import FILE_NAME
from lading.validation import did_you_mean


@click.command("top")
@click.argument("store", default="store", metavar="[STORE]")
@click.option(
    "--session", metavar="NAME", help="Session whose calls are listed; default: the most recently active."
)
@click.option(
    "--interval", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True, metavar="S",
    help="Seconds between refreshes.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Print the current state and exit.")
@json_option("With --once: print it as JSON.")
def command(store: str, session: str | None, interval: float, once: bool, as_json: bool) -> None:
    """Watch the sessions in the folder STORE (default: ./store) while another process runs them.

    The last request by layer against the window; what the input cost so far, simulated at list prices beside
    everything sent, and as billed where replies said so; the share read from the cache; edits; how far counts
    were off. Below, the newest calls of one session. Ctrl-C ends it.

    Everything sent: the whole history at each call of the caller. Requests that Lading makes, for restore and
    after a refusal, cost only its own side. A saving as billed needs the usage of every request; everything sent
    stays simulated in it, in tokens as the provider counts them.

    \b
    Exit code 0: done. 2: with --once, the store or the session is not there.

    \b
    Examples:
      lading top
      lading top ./store --session agent-7
      lading top ./store --once --json
    """
    if as_json and not once:
        terminal.fail("--json prints one frame. Give --once with it.")
    if not once and not terminal.out.is_terminal:
        terminal.fail("The output is no terminal, where a live view would go. Give --once.")
    with closing(StoreWatch(store)) as watch:
        if once:
            _print(watch.look(), session, store=store, as_json=as_json)
        else:
            _follow(watch, session, store=store, interval_s=interval)


def _print(glance: Glance, session: str | None, *, store: str, as_json: bool) -> None:
    selected = choose_session(glance, session)
    if glance.troubles and not glance.sessions:
        terminal.fail(glance.troubles[0])
    if session is not None and selected is None:
        terminal.fail(_missing(glance, session))
    shown = partial(screen, glance, selected, folder=store)
    terminal.print_either(
        as_json, partial(as_json_value, glance, selected), show=lambda: terminal.out.print(shown())
    )


def _follow(watch: StoreWatch, session: str | None, *, store: str, interval_s: float) -> None:
    try:
        with Live(console=terminal.out, screen=True, auto_refresh=False) as live:
            while True:
                glance = watch.look()
                selected = choose_session(glance, session)
                if session is not None and selected is None and not glance.troubles:
                    glance = Glance(glance.sessions, (_missing(glance, session),))
                live.update(screen(glance, selected, folder=store, lines=terminal.out.height), refresh=True)
                time.sleep(interval_s)
    except KeyboardInterrupt:
        return  # How a person ends it.


def _missing(glance: Glance, session: str) -> str:
    names = ", ".join(f"{item.watched.tenant}/{item.watched.session}" for item in glance.sessions[:8])
    meant = did_you_mean(session, [item.watched.session for item in glance.sessions])
    return f"There is no session {session!r} yet.{meant} The store holds: {names or 'none'}."


class Active(Struct, frozen=True):
    """A session, and when it was last seen to do something."""

    watched: Watched
    age_s: float | None
    """Seconds since then; None where the session carries no times and nothing happened while it was watched."""


class Glance(Struct, frozen=True):
    """The state of a store at one moment."""

    sessions: tuple[Active, ...]
    """The most recently active first."""
    troubles: tuple[str, ...] = ()
    """What could not be read, in words."""


class StoreWatch:
    """Follows the sessions of the store in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._store: SqliteStore | None = None
        self._file: tuple[int, int] | None = None
        self._watches: dict[tuple[str, str], SessionWatch] = {}
        self._active: dict[tuple[str, str], float] = {}
        self._looks = 0

    def look(self) -> Glance:
        """The sessions as they are now. Where something cannot be read, what was last known of it, and why."""
        troubles: list[str] = []
        try:
            store = self._opened()
            names = store.sessions()
        except LadingError as error:
            return Glance(self._sorted(), (str(error),))
        for name in names:
            watch = self._watches.get(name)
            is_first_sight = watch is None
            if watch is None:
                watch = self._watches[name] = SessionWatch(store, tenant=name[0], session=name[1])
            try:
                is_changed = watch.look()
            except LadingError as error:
                troubles.append(str(error))
                continue
            # What was there when the watch began happened at a time nobody saw.
            if is_changed and not (is_first_sight and self._looks == 0):
                self._active[name] = time.time()
        self._looks += 1
        return Glance(self._sorted(), tuple(troubles))

    def close(self) -> None:
        """Let go of the store."""
        store, self._store = self._store, None
        if store is not None:
            with suppress(StoreError):
                store.close()

    def _opened(self) -> SqliteStore:
        """The store as it lies there now: a file that took another's place is another store."""
        try:
            status = os.stat(Path(self._folder) / FILE_NAME)
            file = (status.st_dev, status.st_ino)
        except OSError:
            file = None
        if self._store is None or file != self._file:
            self.close()
            self._store = open_existing(self._folder)
            self._file, self._looks = file, 0
            self._watches, self._active = {}, {}
        return self._store

    def _sorted(self) -> tuple[Active, ...]:
        now = time.time()
        found = []
        for name, watch in self._watches.items():
            times = [at_s for at_s in (watch.seen.last_at_s, self._active.get(name)) if at_s is not None]
            found.append(Active(watch.seen, max(now - max(times), 0.0) if times else None))
        return tuple(sorted(found, key=lambda item: (item.age_s is None, item.age_s or 0.0)))


_BAR_CELLS = 30
_NAME_CHARS = 60
_REASON_CHARS = 80
_FILLS = (("█", "#", "blue"), ("▓", "=", "magenta"), ("▒", "+", "green"))
"""How the first layers are drawn: a sign, one that any terminal has, a colour."""
_OF_FIGURES = "0123456789,.$+("
_OTHERS = ("░", ":", "yellow")


def choose_session(glance: Glance, name: str | None) -> Watched | None:
    """The session whose calls are listed: the one of that name (or TENANT/NAME), else the most recent one."""
    found = [item.watched for item in glance.sessions]
    if name is not None:
        found = [item for item in found if name in (item.session, f"{item.tenant}/{item.session}")]
    return found[0] if found else None


def screen(glance: Glance, selected: Watched | None, *, folder: str, lines: int | None = None) -> Group:
    """One frame, of so many lines at most."""
    head = [_line((f"{folder}  ", "bold"), (number(len(glance.sessions), "session"), "dim"))]
    head += [_line((trouble, "red")) for trouble in glance.troubles[:3]]
    if not glance.sessions and not glance.troubles:
        head.append(_line(("The store holds no session yet.", "dim")))
    room = None if lines is None else max(lines - len(head) - 2, 0)
    calls = _call_lines(selected, most=10 if room is None else max(min(room // 3, 20), 3))
    # The selected session comes first: the calls listed below are its own.
    blocks = [list(_block(item)) for item in sorted(glance.sessions, key=lambda item: item.watched is not selected)]
    if room is not None and blocks:
        calls = calls[: max(room - len(blocks[0]), 0)]
        ends = list(accumulate(map(len, blocks), initial=len(calls)))
        shown = max(bisect_right(ends, room) - 1, 1)
        more = [_line((f"and {number(len(blocks) - shown, 'session')} more; --session NAME", "dim"))]
        blocks = [*blocks[:shown], *([more] if shown < len(blocks) else [])]
    return Group(*head, *chain.from_iterable(blocks), *calls)


def as_json_value(glance: Glance, selected: Watched | None) -> dict[str, Any]:
    """One frame as JSON has it: the sessions, the newest calls of the selected one, and what is wrong."""
    sessions = []
    for item in glance.sessions:
        fields = msgspec.to_builtins(item.watched)
        newest = fields.pop("newest")
        costs = item.watched.costs
        fields["costs"] |= {"ratio": costs.ratio, "billed_ratio": costs.billed_ratio}
        fields["last_request"] = newest[-1]["layers"] if newest else {}
        sessions.append({**fields, "age_s": item.age_s})
    calls = [] if selected is None else msgspec.to_builtins(selected.newest)
    return {"sessions": sessions, "calls": calls, "troubles": glance.troubles}


def _block(item: Active) -> Iterable[Text]:
    seen = item.watched
    name = f"{seen.tenant}/{seen.session}"[:_NAME_CHARS]
    yield Text("")
    facts = (
        f"  {seen.model}  {number(seen.calls, 'call')}  {_age(item.age_s)}".rstrip()
        if seen.calls
        else "  no call yet"
    )
    yield _line((name, "bold cyan"), (facts, ""))
    if not seen.newest:
        return
    yield from _bar(seen.newest[-1], seen.window_tokens)
    yield from (_line(*pieces) for pieces in (*_money(seen.costs), *_edits(seen)))


def _bar(call: SeenCall, window: int) -> Iterable[Text]:
    """The request by layer against the window, and what each layer takes."""
    bar, drawn, total = _CroppedLine("  ", no_wrap=True), 0, 0
    legend = []
    signs = dict(zip((layer.name for layer in LAYERS), _FILLS, strict=False))
    for layer in (*signs, *(name for name in call.layers if name not in signs)):
        tokens, (fill, plain, colour) = call.layers.get(layer, 0), signs.get(layer, _OTHERS)
        total += tokens
        until = min(round(total / window * _BAR_CELLS), _BAR_CELLS) if window else 0
        bar.append(sign(fill, plain) * (until - drawn), colour)
        drawn = until
        if tokens:
            legend += [(f"  {sign(fill, plain)} ", colour), (f"{layer} {amount(tokens)}", "")]
    bar.append(sign("·", ".") * (_BAR_CELLS - drawn), "dim")
    share = f"{call.tokens / window:.0%}" if window else "?"
    bar.append(f"  {amount(call.tokens)} of {amount(window)} ({share})", "bold")
    yield bar
    yield _line(*legend)


def _money(costs: Costs) -> Iterable[Sequence[tuple[str, str]]]:
    cache = (f"  cache {_cached(costs.simulated)}", "")
    ratio, paid_usd, full_usd = costs.ratio, costs.simulated_usd, costs.append_only_usd
    if ratio is None or paid_usd is None or full_usd is None:
        yield ("  no price in USD is known for this model", "dim"), cache
    else:
        compared = f"  {describe_saving(ratio)} ({money(full_usd)}), simulated"
        yield (f"  input {money(paid_usd)}", "bold"), (compared, ""), cache
    if costs.reported_calls:
        paid = "?" if costs.reported_usd is None else money(costs.reported_usd)
        output = "" if costs.output_usd is None else f", output {money(costs.output_usd)}"
        calls = number(costs.reported_calls, "call")
        yield ((f"  as billed: input {paid}{output}, {calls}, cache {_cached(costs.reported)}", ""),)
    full = costs.billed_append_only_usd
    if full is not None and (ratio := costs.billed_ratio) is not None:
        yield ((f"  as billed: {describe_saving(ratio)} ({money(full)} simulated)", ""),)


def _edits(seen: Watched) -> Iterable[Sequence[tuple[str, str]]]:
    edits = seen.edits
    error = "" if seen.count_error is None else f"  counts off by {seen.count_error:.2%}"
    yield ((f"  edits {edits.forced:,} forced, {edits.voluntary:,} voluntary{error}", ""),)
    if seen.last_edit is not None:
        call, edit = seen.last_edit
        removed = amount(edit.tokens_before - edit.tokens_after)
        reason = edit.reason[:_REASON_CHARS]
        yield ((f"  last at call {call:,}: {edit.kind} {removed} tokens, {reason}", "dim"),)


def _call_lines(selected: Watched | None, *, most: int) -> Sequence[Text]:
    if selected is None or not selected.newest:
        return ()
    lines = [_line((f"newest calls of {selected.session[:_NAME_CHARS]}", "bold"))]
    for call in reversed(selected.newest[-most:]):
        new = call.simulated.written_tokens + call.simulated.fresh_tokens
        facts = [
            f"{call.call:>6,}  {amount(call.tokens):>9}  +{amount(new):<9}  cache {_cached(call.simulated):>4}"
        ]
        facts += [money(call.simulated_usd)] if call.simulated_usd is not None else []
        facts += [f"billed {amount(call.reported.input_tokens)} in"] if call.reported else []
        facts += [call.cause] if call.cause else []
        lines.append(
            _line(
                ("  ".join(facts), ""),
                (f"  {number(len(call.decisions), 'edit')}" if call.decisions else "", "yellow"),
                (f"  {sign('→', '>')} {', '.join(call.asks)[:_REASON_CHARS]}" if call.asks else "", "dim"),
            )
        )
    return (Text(""), *lines)


def _cached(usage: Usage) -> str:
    return f"{usage.read_tokens / usage.tokens:.0%}" if usage.tokens else "0%"


def _age(age_s: float | None) -> str:
    if age_s is None:
        return ""
    if age_s < 120:
        return f"{age_s:.0f} s ago"
    return f"{age_s / 60:,.0f} min ago" if age_s < 7_200 else f"{age_s / 3_600:,.0f} h ago"


class _CroppedLine(Text):
    """One line; what does not fit the terminal ends in an ellipsis, never within a figure."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        shown = self.copy()
        if self.cell_len > options.max_width:
            shown.truncate(max(options.max_width - 1, 0))
            if figures := len(shown) - len(shown.plain.rstrip(_OF_FIGURES)):
                shown.right_crop(figures)
            shown.append(sign("…", "~"))
        return Text.__rich_console__(shown, console, options)


def _line(*pieces: tuple[str, str]) -> Text:
    """Text from anywhere, never read as markup."""
    line = _CroppedLine(no_wrap=True)
    for text, style in pieces:
        line.append(printable(text).replace("\n", " "), style)
    return line

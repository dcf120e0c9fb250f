"""``lading top``: watch the sessions of a store while they run."""

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
from lading.cli.options import FiniteRange, json_option
from lading.cli.stores import open_existing
from lading.cli.tables import choose_sign, format_count, format_tokens, format_usd
from lading.cli.terminal import make_printable
from lading.economics import Usage
from lading.errors import LadingError, StoreError
from lading.evaluate.monitoring import Costs, MonitoredCall, SessionFigures, SessionMonitor
from lading.evaluate.tally import describe_saving
from lading.request.layers import LAYERS
from lading.stores.sqlite import SqliteStore
from lading.stores.sqlite_file import FILE_NAME
from lading.task.allocator import FLEXIBLE
from lading.task.record import PayloadRecord
from lading.validation import did_you_mean


@click.command("top")
@click.argument("store", default="store", metavar="[STORE]")
@click.option(
    "--session", metavar="NAME", help="Session whose calls are listed; default: the most recently active."
)
@click.option(
    "--interval", type=FiniteRange(0.1, 3600), default=1.0, show_default=True, metavar="S",
    help="Seconds between refreshes.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Print the current state and exit.")
@json_option("With --once: print it as JSON.")
def command(store: str, session: str | None, interval: float, once: bool, as_json: bool) -> None:
    """Watch the sessions in the folder STORE (default: ./store) while another process runs them.

    Shown are the last request by layer against the window; the input cost so far, simulated at list prices and
    compared with everything sent, and as billed if replies report usage; the share read from the cache; edits; and
    the error of token counts. Below are the newest calls of one session. Ctrl-C quits.

    Everything sent: the whole history at each call of the caller. Requests that Lading makes, for restore and
    after a refusal, are not part of it. A saving as billed needs the usage of every request; everything sent is
    simulated there too, in tokens as the provider counts them.

    \b
    Exit code 0: done. 2: with --once, the store or a session is not there or cannot be read.

    \b
    Examples:
      lading top
      lading top ./store --session agent-7
      lading top ./store --once --json
    """
    if as_json and not once:
        terminal.fail("--json prints one frame. Give --once with it.")
    if not once and not terminal.out.is_terminal:
        terminal.fail("A live view needs a terminal as output. Give --once.")
    with closing(StoreMonitor(store)) as monitor:
        if once:
            _print_once(monitor.update(), session, store=store, as_json=as_json)
        else:
            _follow(monitor, session, store=store, interval_s=interval)


def _print_once(state: StoreState, session: str | None, *, store: str, as_json: bool) -> None:
    selected = choose_session(state, session)
    if state.troubles and selected is None:
        terminal.fail(state.troubles[0])
    if session is not None and selected is None:
        terminal.fail(_explain_missing(state, session))
    shown = partial(draw_frame, state, selected, folder=store)
    terminal.print_either(as_json, partial(encode_frame, state, selected), show=lambda: terminal.out.print(shown()))
    if state.troubles:
        terminal.fail(state.troubles[0])


def _follow(monitor: StoreMonitor, session: str | None, *, store: str, interval_s: float) -> None:
    try:
        with Live(console=terminal.out, screen=True, auto_refresh=False) as live:
            while True:
                state = monitor.update()
                selected = choose_session(state, session)
                if session is not None and selected is None and not state.troubles:
                    state = StoreState(state.sessions, (_explain_missing(state, session),))
                live.update(draw_frame(state, selected, folder=store, lines=terminal.out.height), refresh=True)
                time.sleep(interval_s)
    except KeyboardInterrupt:
        return  # Ctrl-C is the way to quit.


def _explain_missing(state: StoreState, session: str) -> str:
    names = ", ".join(f"{item.figures.tenant}/{item.figures.session}" for item in state.sessions[:8])
    meant = did_you_mean(session, [item.figures.session for item in state.sessions])
    return f"There is no session {session!r} yet.{meant} The store holds: {names or 'none'}."


class ActiveSession(Struct, frozen=True):
    """A session and the time since its last activity."""

    figures: SessionFigures
    age_s: float | None
    """Seconds since the last activity; None if no times are recorded and nothing happened while it was watched."""


class StoreState(Struct, frozen=True):
    """The state of a store at one time."""

    sessions: tuple[ActiveSession, ...]
    """The most recently active first."""
    troubles: tuple[str, ...] = ()
    """Messages about what could not be read."""


class StoreMonitor:
    """Reads the sessions of the store in a folder again and again."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._store: SqliteStore | None = None
        self._file: tuple[int, int] | None = None
        self._monitors: dict[tuple[str, str], SessionMonitor] = {}
        self._active: dict[tuple[str, str], float] = {}
        self._looks = 0

    def update(self) -> StoreState:
        """Read the sessions as they are now; one that cannot be read keeps its last state."""
        troubles: list[str] = []
        try:
            store = self._open_store()
            names = store.sessions()
        except LadingError as error:
            return StoreState(self._sort_sessions(), (str(error),))
        for name in names:
            monitor = self._monitors.get(name)
            is_new = monitor is None
            if monitor is None:
                monitor = self._monitors[name] = SessionMonitor(store, tenant=name[0], session=name[1])
            try:
                is_changed = monitor.update()
            except LadingError as error:
                troubles.append(str(error))
                if not (monitor.seen.entries or monitor.seen.calls):
                    del self._monitors[name]  # Nothing of it was read: not even whether it has calls.
                continue
            # Calls found at the first update happened at an unknown time.
            if is_changed and not (is_new and self._looks == 0):
                self._active[name] = time.time()
        self._looks += 1
        return StoreState(self._sort_sessions(), tuple(troubles))

    def close(self) -> None:
        """Close the store."""
        store, self._store = self._store, None
        if store is not None:
            with suppress(StoreError):
                store.close()

    def _open_store(self) -> SqliteStore:
        """Return the open store; open it anew, without known sessions, if its file was replaced."""
        try:
            status = os.stat(Path(self._folder) / FILE_NAME)
            file = (status.st_dev, status.st_ino)
        except OSError:
            file = None
        if self._store is None or file != self._file:
            self.close()
            self._store = open_existing(self._folder)
            self._file, self._looks = file, 0
            self._monitors, self._active = {}, {}
        return self._store

    def _sort_sessions(self) -> tuple[ActiveSession, ...]:
        now = time.time()
        found = []
        for name, monitor in self._monitors.items():
            times = [at_s for at_s in (monitor.seen.last_at_s, self._active.get(name)) if at_s is not None]
            found.append(ActiveSession(monitor.seen, max(now - max(times), 0.0) if times else None))
        return tuple(sorted(found, key=lambda item: (item.age_s is None, item.age_s or 0.0)))


_BAR_CELLS = 30
_NAME_CHARS = 60
_REASON_CHARS = 80
_FILLS = (("█", "#", "blue"), ("▓", "=", "magenta"), ("▒", "+", "green"))
"""How the first layers are drawn: a character, its ASCII substitute, a colour."""
_FIGURE_CHARS = "0123456789,.$+("
_OTHER_FILL = ("░", ":", "yellow")


def choose_session(state: StoreState, name: str | None) -> SessionFigures | None:
    """Choose the session whose calls are listed: the one named NAME or TENANT/NAME, by default the most recent."""
    found = [item.figures for item in state.sessions]
    if name is not None:
        found = [item for item in found if name in (item.session, f"{item.tenant}/{item.session}")]
    return found[0] if found else None


def draw_frame(
    state: StoreState, selected: SessionFigures | None, *, folder: str, lines: int | None = None
) -> Group:
    """Draw one frame of at most ``lines`` lines."""
    head = [_make_line((f"{folder}  ", "bold"), (format_count(len(state.sessions), "session"), "dim"))]
    head += [_make_line((trouble, "red")) for trouble in state.troubles[:3]]
    if not state.sessions and not state.troubles:
        head.append(_make_line(("The store holds no session yet.", "dim")))
    room = None if lines is None else max(lines - len(head) - 2, 0)
    calls = _draw_calls(selected, most=10 if room is None else max(min(room // 3, 20), 3))
    # The selected session comes first: the calls below are its own.
    sessions = sorted(state.sessions, key=lambda item: item.figures is not selected)
    blocks = [list(_draw_session(item)) for item in sessions]
    if room is not None and blocks:
        calls = calls[: max(room - len(blocks[0]), 0)]
        ends = list(accumulate(map(len, blocks), initial=len(calls)))
        shown = max(bisect_right(ends, room) - 1, 1)
        more = [_make_line((f"and {format_count(len(blocks) - shown, 'session')} more; --session NAME", "dim"))]
        blocks = [*blocks[:shown], *([more] if shown < len(blocks) else [])]
    return Group(*head, *chain.from_iterable(blocks), *calls)


def encode_frame(state: StoreState, selected: SessionFigures | None) -> dict[str, Any]:
    """Encode one frame for JSON: the sessions, the newest calls of the selected one, and the troubles."""
    sessions = []
    for item in state.sessions:
        fields = msgspec.to_builtins(item.figures)
        newest = fields.pop("newest")
        costs = item.figures.costs
        fields["costs"] |= {"ratio": costs.ratio, "billed_ratio": costs.billed_ratio}
        held = newest[-1]["layers"].items() if newest else ()
        fields["last_request"] = {layer: tokens for layer, tokens in held if layer != "slack"}
        sessions.append({**fields, "age_s": item.age_s})
    calls = [] if selected is None else msgspec.to_builtins(selected.newest)
    return {"sessions": sessions, "calls": calls, "troubles": state.troubles}


def _draw_session(item: ActiveSession) -> Iterable[Text]:
    figures = item.figures
    name = f"{figures.tenant}/{figures.session}"[:_NAME_CHARS]
    yield Text("")
    facts = (
        f"  {figures.model}  {format_count(figures.calls, 'call')}  {_format_age(item.age_s)}".rstrip()
        if figures.calls
        else "  no call yet"
    )
    yield _make_line((name, "bold cyan"), (facts, ""))
    if not figures.newest:
        return
    yield from _draw_layers(figures.newest[-1], figures.window_tokens)
    described = _describe_step(figures.newest[-1]), _describe_costs(figures.costs), _describe_edits(figures)
    yield from (_make_line(*pieces) for pieces in chain.from_iterable(described))


def _draw_layers(call: MonitoredCall, window: int) -> Iterable[Text]:
    """Draw the request by layer against the window, and the tokens of each layer."""
    bar, drawn, total = _CroppedLine("  ", no_wrap=True), 0, 0
    legend = []
    signs = dict(zip((layer.name for layer in LAYERS), _FILLS, strict=False))
    for layer in (*signs, *(name for name in call.layers if name not in signs and name != "slack")):
        tokens, (fill, plain, colour) = call.layers.get(layer, 0), signs.get(layer, _OTHER_FILL)
        total += tokens
        until = min(round(total / window * _BAR_CELLS), _BAR_CELLS) if window else 0
        bar.append(choose_sign(fill, plain) * (until - drawn), colour)
        drawn = until
        if tokens:
            legend += [(f"  {choose_sign(fill, plain)} ", colour), (f"{layer} {format_tokens(tokens)}", "")]
    bar.append(choose_sign("·", ".") * (_BAR_CELLS - drawn), "dim")
    share = f"{call.tokens / window:.0%}" if window else "?"
    bar.append(f"  {format_tokens(call.tokens)} of {format_tokens(window)} ({share})", "bold")
    bar.append(f", full at {format_tokens(call.full_tokens)}", "dim")
    yield bar
    yield _make_line(*legend)


def _describe_step(call: MonitoredCall) -> Iterable[Sequence[tuple[str, str]]]:
    """Describe the step of the newest request: what each layer held of its budget, and what was left out."""
    if (step := call.step) is None:
        return
    repair = f", repair {step.repair}" if step.repair else ""
    yield (f"  step {step.step_id} of {step.task_id} ({step.role}{repair})", "bold"), _list_layers(step)
    dropped = [f"{len(one.dropped_ids):,} of {one.layer} ({one.reason})" for one in step.dropped]
    if dropped:
        yield ((f"  left out: {', '.join(dropped)}", "dim"),)
    if step.evidence_needed:
        yield ((f"  needs evidence: {', '.join(step.evidence_needed)}", "yellow"),)


def _list_layers(step: PayloadRecord) -> tuple[str, str]:
    held = [(name, of) for name, of in step.layers.items() if of.used and name in ("task", *FLEXIBLE)]
    return "".join(f"  {name} {format_tokens(of.used)} of {of.percent}" for name, of in held), ""


def _describe_costs(costs: Costs) -> Iterable[Sequence[tuple[str, str]]]:
    cache = (f"  cache {_format_cached(costs.simulated)}", "")
    ratio, paid_usd, full_usd = costs.ratio, costs.simulated_usd, costs.append_only_usd
    if ratio is None or paid_usd is None or full_usd is None:
        yield ("  no price in USD is known for this model", "dim"), cache
    else:
        compared = f"  {describe_saving(ratio)} ({format_usd(full_usd)}), simulated"
        yield (f"  input {format_usd(paid_usd)}", "bold"), (compared, ""), cache
    if costs.reported_calls:
        paid = "?" if costs.reported_usd is None else format_usd(costs.reported_usd)
        output = "" if costs.output_usd is None else f", output {format_usd(costs.output_usd)}"
        calls = format_count(costs.reported_calls, "call")
        yield ((f"  as billed: input {paid}{output}, {calls}, cache {_format_cached(costs.reported)}", ""),)
    full = costs.billed_append_only_usd
    if full is not None and (ratio := costs.billed_ratio) is not None:
        yield ((f"  as billed: {describe_saving(ratio)} ({format_usd(full)} simulated)", ""),)


def _describe_edits(figures: SessionFigures) -> Iterable[Sequence[tuple[str, str]]]:
    edits = figures.edits
    error = "" if figures.count_error is None else f"  counts off by {figures.count_error:.2%}"
    yield ((f"  edits {edits.forced:,} forced, {edits.voluntary:,} voluntary{error}", ""),)
    if figures.last_edit is not None:
        call, edit = figures.last_edit
        removed = format_tokens(edit.tokens_before - edit.tokens_after)
        reason = edit.reason[:_REASON_CHARS]
        yield ((f"  last at call {call:,}: {edit.kind} {removed} tokens, {reason}", "dim"),)


def _draw_calls(selected: SessionFigures | None, *, most: int) -> Sequence[Text]:
    if selected is None or not selected.newest:
        return ()
    lines = [_make_line((f"newest calls of {selected.session[:_NAME_CHARS]}", "bold"))]
    for call in reversed(selected.newest[-most:]):
        new = call.simulated.written_tokens + call.simulated.fresh_tokens
        tokens = f"{format_tokens(call.tokens):>9}  +{format_tokens(new):<9}"
        facts = [f"{call.call:>6,}  {tokens}  cache {_format_cached(call.simulated):>4}"]
        facts += [format_usd(call.simulated_usd)] if call.simulated_usd is not None else []
        facts += [f"billed {format_tokens(call.reported.input_tokens)} in"] if call.reported else []
        facts += [call.cause] if call.cause else []
        lines.append(
            _make_line(
                ("  ".join(facts), ""),
                (f"  {format_count(len(call.decisions), 'edit')}" if call.decisions else "", "yellow"),
                (f"  {choose_sign('→', '>')} {', '.join(call.asks)[:_REASON_CHARS]}" if call.asks else "", "dim"),
            )
        )
    return (Text(""), *lines)


def _format_cached(usage: Usage) -> str:
    return f"{usage.read_tokens / usage.tokens:.0%}" if usage.tokens else "0%"


def _format_age(age_s: float | None) -> str:
    if age_s is None:
        return ""
    if age_s < 120:
        return f"{age_s:.0f} s ago"
    return f"{age_s / 60:,.0f} min ago" if age_s < 7_200 else f"{age_s / 3_600:,.0f} h ago"


class _CroppedLine(Text):
    """A line that is cut to the terminal's width with an ellipsis, never within a figure."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        shown = self.copy()
        if self.cell_len > options.max_width:
            shown.truncate(max(options.max_width - 1, 0))
            if figures := len(shown) - len(shown.plain.rstrip(_FIGURE_CHARS)):
                shown.right_crop(figures)
            shown.append(choose_sign("…", "~"))
        return Text.__rich_console__(shown, console, options)


def _make_line(*pieces: tuple[str, str]) -> Text:
    """Join styled pieces to a line. Their texts are untrusted and not read as markup."""
    line = _CroppedLine(no_wrap=True)
    for text, style in pieces:
        line.append(make_printable(text).replace("\n", " "), style)
    return line

"""Intelligent Context Synthesis of the Reactive Agents document, as strategies.

``fast`` and ``deep`` show the last turns whole and what is older as prior work; ``deep`` lets a model say where
the task stands; ``auto`` decides between the two at each call; ``custom`` asks a function of the caller's; ``off``
leaves the history as it is. What differs from the document, and why: docs/reference/presets/reactive-agents.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.admission import admit
from lading.compaction.basic import admit as cut_at_ends
from lading.compaction.callers import rewritten_by_caller
from lading.compaction.emergency import emergency
from lading.effects import Steps
from lading.errors import SummaryFailed
from lading.events import ContextSynthesized
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message
from lading.models.card import Tier
from lading.presets.reactive_agents.section_budget import estimate_tokens
from lading.presets.reactive_agents.synthesis_deep import (
    asked_upto,
    is_due,
    lined,
    standing_lines,
    task,
    told_by_model,
)
from lading.presets.reactive_agents.synthesis_fast import WINDOWS, Prior, TurnWindow, folded, shortened
from lading.presets.reactive_agents.synthesis_known import Known
from lading.presets.reactive_agents.synthesis_options import AUTO, SynthesisConfig, SynthesisInput
from lading.presets.reactive_agents.synthesis_signals import (
    NOTHING_SAID,
    Choice,
    Signals,
    SignalsNow,
    Situation,
    auto_path,
    situation,
)

MESSAGE_TOKENS = 4
"""Of each message, beside its characters, where ``estimated_tokens`` are told."""
CUSTOM = "synthesis_strategy"


class Call(Struct, frozen=True):
    """What is decided on at one call."""

    view: View
    pressure: Pressure
    known: Known
    now: Situation
    config: SynthesisConfig
    window: TurnWindow


def synthesis(
    config: SynthesisConfig = AUTO,
    signals: SignalsNow = NOTHING_SAID,
    *,
    window: TurnWindow | None = None,
    name: str = "",
) -> Strategy:
    """The strategy that a configuration describes; ``window``: numbers in place of those of the tier."""
    name = name or ("synthesis" if config.mode == "auto" else f"synthesis-{config.mode}")
    if config.mode == "off":
        return Strategy(name, _plain, admit=cut_at_ends)

    def compact(view: View, pressure: Pressure) -> Compaction | Steps[Compaction]:
        known: Known = view.readings.setdefault(Known, Known())
        known.read(view)
        if known.reader.iteration < 0:
            # Synthesis begins behind the first reply.
            return Compaction()
        now = situation(known.deciding, iteration=known.reader.iteration + 1, signals=signals, tier=pressure.tier)
        call = Call(view, pressure, known, now, config, window or WINDOWS[now.tier])
        return _by_caller(call) if config.mode == "custom" else _by_rules_or_model(call)

    return Strategy(name, compact, admit=admit)


def _plain(view: View, pressure: Pressure) -> Compaction:
    """The history as it is; of one that does not fit the oldest part goes."""
    if view.tokens <= pressure.room_tokens:
        return Compaction()
    cut = emergency(view, pressure)
    return Compaction((replace(cut, reason="the window is full"),) if cut else ())


def _by_caller(call: Call) -> Compaction:
    now, ask = call.now, call.config.synthesis_strategy
    assert ask is not None

    def rewrite(given: Sequence[Message]) -> object:
        return ask(
            SynthesisInput(
                messages=given,
                task=task(call.view, now),
                task_phase=now.phase,
                signals=now.signals,
                available_tools=tuple(now.given.available_tools),
                max_iterations=now.max_iterations,
                token_budget=call.pressure.room_tokens,
                synthesis_config=call.config,
            )
        )

    view, pressure = call.view, call.pressure
    draft = rewritten_by_caller(view, view.messages, rewrite=rewrite, name=CUSTOM, pressure=pressure)
    return _told(call, Choice("custom", f"{CUSTOM} is set"), (draft,) if draft else ())


def _by_rules_or_model(call: Call) -> Compaction | Steps[Compaction]:
    view, pressure, full_turns = call.view, call.pressure, call.window.full_turns
    choice, prior = _choice(call), folded(view, pressure, known=call.known, full_turns=full_turns)
    if prior is None:
        return _decided(call, choice)
    asked, lines = asked_upto(view, pressure), standing_lines(view)
    if choice.path == "fast":
        return _decided(call, choice, lined(prior, (), asked=asked, pressure=pressure))
    if pressure.output_price is None:
        return _decided(call, _fast(choice, "there is no summarizer"), prior.draft)
    if is_due(call.known, asked=asked, full_turns=full_turns):
        return _asking(call, choice, prior)
    if lines:
        choice = Choice("deep", f"{choice.reason}; what a model said stands for {full_turns} turns")
    else:
        choice = _fast(choice, f"a model was asked less than {full_turns} turns ago")
    return _decided(call, choice, lined(prior, lines, asked=asked, pressure=pressure))


def _asking(call: Call, choice: Choice, prior: Prior) -> Steps[Compaction]:
    lines: tuple[str, ...] | None = ()
    rejected: tuple[str, ...] = ()
    try:
        known, config = call.known, call.config
        lines = yield from told_by_model(call.view, call.now, known=known, config=config, pressure=call.pressure)
    except SummaryFailed as failure:
        rejected = (str(failure),)
    if lines is None:
        return _decided(call, _fast(choice, "there is no summarizer"), prior.draft)
    if not lines:
        choice = _fast(choice, "what the model said is not used")
    asked = call.view.last_entry(len(call.view))
    draft = lined(prior, lines, asked=asked, pressure=call.pressure)
    return _decided(call, choice, draft, rejected=rejected)


def _choice(call: Call) -> Choice:
    mode, now = call.config.mode, call.now
    if mode in ("fast", "deep"):
        return Choice(mode, f"synthesis is {mode}")
    has_model = bool(call.config.model)
    return auto_path(now.signals, phase=now.phase, max_iterations=now.max_iterations, has_model=has_model)


def _fast(choice: Choice, why: str) -> Choice:
    """Fast, where the choice was deep."""
    return Choice("fast", f"{choice.reason}; fast all the same: {why}")


def _decided(
    call: Call, choice: Choice, draft: Draft | None = None, *, rejected: tuple[str, ...] = ()
) -> Compaction:
    """Prior work, where there is new, and shorter arguments behind it."""
    start = call.view.span(0, draft.last)[1] if draft else call.view.head
    shorter = shortened(call.view, call.pressure, start=start, most_chars=call.window.argument_chars)
    return _told(call, choice, (*((draft,) if draft else ()), *shorter), rejected=rejected)


def _told(call: Call, choice: Choice, drafts: tuple[Draft, ...], *, rejected: tuple[str, ...] = ()) -> Compaction:
    """These drafts, and the event that tells of them."""
    if not drafts:
        return Compaction(rejected=rejected)
    event = ContextSynthesized(
        call=call.pressure.past.calls + 1,
        path=choice.path,
        reason=choice.reason,
        phase=call.now.phase,
        estimated_tokens=sum(map(_estimated_tokens, _shown(call.view, drafts))),
        signals=call.now.signals,
        steering=call.now.steering,
    )
    return Compaction(drafts, rejected=rejected, told=(event,))


def _shown(view: View, drafts: Sequence[Draft]) -> Iterator[Message]:
    """The messages as these drafts, none of which touches another's entries, show them."""
    messages, position = view.messages, 0
    for draft in sorted(drafts, key=lambda draft: draft.first):
        start, end = view.span(draft.first, draft.last)
        yield from messages[position:start]
        yield from draft.replacement
        position = end
    yield from messages[position:]


def _estimated_tokens(message: Message) -> int:
    said = [message.text, *(result.text for result in message.results)]
    called = [piece for call in message.calls for piece in (call.name, call.arguments)]
    return estimate_tokens("".join([*said, *called])) + MESSAGE_TOKENS


def _fast_of(tier: Tier) -> Strategy:
    return synthesis(SynthesisConfig("fast"), Signals(tier=tier), name=f"synthesis-fast-{tier}")


STRATEGY = synthesis()
DEEP = synthesis(SynthesisConfig("deep"))
FAST = synthesis(SynthesisConfig("fast"))
LOCAL, MID, LARGE, FRONTIER = _fast_of("local"), _fast_of("mid"), _fast_of("large"), _fast_of("frontier")

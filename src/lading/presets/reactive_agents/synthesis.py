"""Intelligent Context Synthesis of the Reactive Agents document, as strategies.

``fast`` and ``deep`` show the last turns in full and older ones as prior work; ``deep`` adds a model's summary of
the task's state; ``auto`` chooses between the two at each call; ``custom`` calls a caller's function; ``off``
leaves the history unchanged while it fits. Differences from the document:
docs/reference/presets/reactive-agents.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.admission import admit
from lading.compaction.basic import admit as cut_at_ends
from lading.compaction.cutting import draft_emergency_cut
from lading.compaction.rewriting import draft_rewrite
from lading.effects import Steps
from lading.errors import SummaryFailed
from lading.events import ContextSynthesized, Event
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message
from lading.models.card import Tier
from lading.models.profiles import Profile, ProfileLike, find_profile
from lading.presets.reactive_agents import synthesis_deep
from lading.presets.reactive_agents.capping import admit_capped
from lading.presets.reactive_agents.section_budget import estimate_tokens
from lading.presets.reactive_agents.step_index import StepIndex
from lading.presets.reactive_agents.synthesis_fast import (
    WINDOWS,
    PriorWork,
    TurnWindow,
    draft_prior_work,
    shorten_arguments,
)
from lading.presets.reactive_agents.synthesis_options import AUTO, SynthesisConfig, SynthesisInput
from lading.presets.reactive_agents.synthesis_signals import (
    NO_SIGNALS,
    STEERING_PREFIX,
    PathChoice,
    Signals,
    SignalsSource,
    Situation,
    choose_path,
    read_situation,
)
from lading.validation import check

MESSAGE_TOKENS = 4
"""Added for each message in the event's ``estimated_tokens``."""
CUSTOM = "synthesis_strategy"


class SynthesisCall(Struct, frozen=True):
    """The input of the decision at one call."""

    view: View
    pressure: Pressure
    known: StepIndex
    now: Situation
    config: SynthesisConfig
    window: TurnWindow


def synthesis(
    config: SynthesisConfig = AUTO,
    signals: SignalsSource = NO_SIGNALS,
    *,
    window: TurnWindow | None = None,
    profile: ProfileLike | None = None,
    name: str = "",
) -> Strategy:
    """Build the strategy of a configuration; ``window``: numbers in place of the tier's; ``profile``: its limit of
    results and of iterations, and its tier, in place of the model's. Raises InputError as ``find_profile`` does,
    and for options, which ``resolve_synthesis_config_for_strategy`` reads."""
    check(config, SynthesisConfig, advice="give resolve_synthesis_config_for_strategy(options, strategy)")
    name = name or f"reactive_agents/synthesis{'' if config.mode == 'auto' else f'_{config.mode}'}"
    find_profile(profile)

    def read(view: View, tier: Tier) -> tuple[StepIndex, Situation | None]:
        """Return the steps, and the situation; None before the first reply, with which synthesis begins."""
        known: StepIndex = view.readings.setdefault(StepIndex, StepIndex())
        known.read(view)
        iteration, chosen = known.reader.iteration + 1, find_profile(profile, tier=tier)
        if not iteration:
            return known, None
        return known, read_situation(known.deciding_steps, iteration=iteration, signals=signals, profile=chosen)

    def compact(view: View, pressure: Pressure) -> Compaction | Steps[Compaction]:
        if config.mode == "off":
            return _cut_when_full(view, pressure)
        known, now = read(view, pressure.tier)
        if now is None:
            return Compaction()
        call = SynthesisCall(view, pressure, known, now, config, window or WINDOWS[now.tier])
        return _synthesize_by_caller(call) if config.mode == "custom" else _synthesize(call)

    def write_tail(view: View, tier: Tier) -> str:
        _, now = read(view, tier)
        return STEERING_PREFIX + now.steering if now else ""

    def with_profile(given: Profile) -> Strategy:
        return synthesis(config, signals, window=window, profile=given, name=name)

    uncapped = cut_at_ends if config.mode == "off" else admit
    return Strategy(
        name,
        compact,
        uncapped if profile is None else partial(admit_capped, profile=profile),
        with_profile=with_profile if profile is None else None,
        write_tail=None if config.mode in ("custom", "off") else write_tail,
    )


def _cut_when_full(view: View, pressure: Pressure) -> Compaction:
    """Return no edit while the view fits, else one that removes the oldest part."""
    if view.tokens <= pressure.room_tokens:
        return Compaction()
    cut = draft_emergency_cut(view, pressure)
    return Compaction((replace(cut, reason="the window is full"),) if cut else ())


def _synthesize_by_caller(call: SynthesisCall) -> Compaction:
    now, ask = call.now, call.config.synthesis_strategy
    assert ask is not None

    def rewrite(given: Sequence[Message]) -> object:
        return ask(
            SynthesisInput(
                messages=given,
                task=synthesis_deep.find_task(call.view, now),
                task_phase=now.phase,
                signals=now.signals,
                available_tools=tuple(now.given.available_tools),
                max_iterations=now.max_iterations,
                token_budget=call.pressure.room_tokens,
                synthesis_config=call.config,
            )
        )

    view, pressure = call.view, call.pressure
    draft = draft_rewrite(view, view.messages, rewrite=rewrite, name=CUSTOM, pressure=pressure)
    return _report(call, PathChoice("custom", f"{CUSTOM} is set"), (draft,) if draft else ())


def _synthesize(call: SynthesisCall) -> Compaction | Steps[Compaction]:
    view, pressure, full_turns = call.view, call.pressure, call.window.full_turns
    choice, prior = _choose(call), draft_prior_work(view, pressure, known=call.known, full_turns=full_turns)
    if prior is None:
        return _decide(call, _fall_back(choice, "there is no prior work yet") if choice.path == "deep" else choice)
    asked, lines = synthesis_deep.find_asked_entry(view, pressure), synthesis_deep.find_model_lines(view)
    if choice.path == "fast":
        return _decide(call, choice, synthesis_deep.append_model_lines(prior, (), asked=asked, pressure=pressure))
    if pressure.output_price is None:
        return _decide(call, _fall_back(choice, "there is no summarizer"), prior.draft)
    if synthesis_deep.is_due(call.known, asked=asked, full_turns=full_turns):
        return _ask_model(call, choice, prior)
    choice = _fall_back(choice, f"a model was asked less than {full_turns} turns ago")
    return _decide(call, choice, synthesis_deep.append_model_lines(prior, lines, asked=asked, pressure=pressure))


def _ask_model(call: SynthesisCall, choice: PathChoice, prior: PriorWork) -> Steps[Compaction]:
    lines: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    rejected: tuple[str, ...] = ()
    try:
        known, config = call.known, call.config
        answer = yield from synthesis_deep.ask_for_lines(
            call.view, call.now, known=known, config=config, pressure=call.pressure
        )
        if answer is None:
            return _decide(call, _fall_back(choice, "there is no summarizer"), prior.draft)
        lines, events = answer
    except SummaryFailed as failure:
        rejected = (str(failure),)
    if not lines:
        choice = _fall_back(choice, "the model's answer was rejected")
    asked = call.view.last_entry(len(call.view))
    draft = synthesis_deep.append_model_lines(prior, lines, asked=asked, pressure=call.pressure)
    decided = _decide(call, choice, draft, rejected=rejected)
    return replace(decided, own_events=(*decided.own_events, *events))


def _choose(call: SynthesisCall) -> PathChoice:
    mode, now = call.config.mode, call.now
    if mode in ("fast", "deep"):
        return PathChoice(mode, f"synthesis is {mode}")
    has_model = bool(call.config.model)
    return choose_path(now.signals, phase=now.phase, max_iterations=now.max_iterations, has_model=has_model)


def _fall_back(choice: PathChoice, why: str) -> PathChoice:
    """Return the choice ``fast`` in place of ``deep``, with the reason appended."""
    return PathChoice("fast", f"{choice.reason}; fast all the same: {why}")


def _decide(
    call: SynthesisCall, choice: PathChoice, draft: Draft | None = None, *, rejected: tuple[str, ...] = ()
) -> Compaction:
    start = call.view.span(0, draft.last)[1] if draft else call.view.head
    shorter = shorten_arguments(call.view, call.pressure, start=start, most_chars=call.window.argument_chars)
    return _report(call, choice, (*((draft,) if draft else ()), *shorter), rejected=rejected)


def _report(
    call: SynthesisCall, choice: PathChoice, drafts: tuple[Draft, ...], *, rejected: tuple[str, ...] = ()
) -> Compaction:
    if not drafts:
        return Compaction(rejected=rejected)
    event = ContextSynthesized(
        call=call.pressure.past.calls + 1,
        path=choice.path,
        reason=choice.reason,
        phase=call.now.phase,
        estimated_tokens=sum(map(_estimate_message, _apply_drafts(call.view, drafts))),
        signals=call.now.signals,
        steering=call.now.steering,
    )
    return Compaction(drafts, rejected=rejected, own_events=(event,))


def _apply_drafts(view: View, drafts: Sequence[Draft]) -> Iterator[Message]:
    """Yield the messages with these non-overlapping drafts applied."""
    messages, position = view.messages, 0
    for draft in sorted(drafts, key=lambda draft: draft.first):
        start, end = view.span(draft.first, draft.last)
        yield from messages[position:start]
        yield from draft.replacement
        position = end
    yield from messages[position:]


def _estimate_message(message: Message) -> int:
    texts = [message.text, *(result.text for result in message.results)]
    called = [piece for call in message.calls for piece in (call.name, call.arguments)]
    return estimate_tokens("".join([*texts, *called])) + MESSAGE_TOKENS


STRATEGY = synthesis()
DEEP = synthesis(SynthesisConfig("deep"))
FAST = synthesis(SynthesisConfig("fast"))
LOCAL, MID, LARGE, FRONTIER = (
    synthesis(SynthesisConfig("fast"), Signals(tier=tier), name=f"reactive_agents/synthesis_fast_{tier}")
    for tier in WINDOWS
)

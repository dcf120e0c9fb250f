"""One prompt for a ReAct step, by the sections of Reactive Agents: tools, memories, history, task, rules.

``build_context`` is what the document describes, for callers who assemble prompts themselves; requests of a
session keep their messages and are compacted by ``scored`` or ``progressive``. Everything that is given reaches
the text or is counted in it as left out: steps are chosen by their score (``scoring``) within the
history's share of the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lading.errors import InputError
from lading.messages import Tool
from lading.models.profiles import Profile
from lading.presets.reactive_agents.levels import level_spans, line, whole
from lading.presets.reactive_agents.scoring import MemoryItem, allocate_context_budget, relevant_memories
from lading.presets.reactive_agents.section_budget import allocate_budget, track_usage, would_exceed_budget
from lading.presets.reactive_agents.steps import STEPS, Step
from lading.presets.reactive_agents.templates import REACT_SYSTEM, REACT_THOUGHT, PromptTemplate, template_for
from lading.validation import snake_case

MOST_FULL_TOOLS = 20
"""More tools are told in a line each."""
_ADVICE = (
    (20, ("Answer now.", "The run ends soon: give the best answer that the results so far allow.")),
    (40, ("Be decisive.", "Few iterations are left: be decisive and act on what is known.")),
)
"""With so few per cent of the iterations left the model is told so, briefly or in a sentence."""
_RULES = (
    ("Act once in a turn.", "Take one action in each turn and wait for its result."),
    ("Use exact parameter names.", "Name the parameters of a tool exactly as its reference does."),
    ("Invent nothing.", "Report only what a result shows; never make up data, paths or outcomes."),
    ("Do not repeat what worked.", "A tool that succeeded with the same arguments is not called again."),
)
_REQUIRED = ("Call before you answer: {}.", "Every one of these tools has to be called before you answer: {}.")
_STORED = (
    "Read what was cut by its pointer.",
    "A result that was cut names a pointer; the rest is read there.",
)
_ON_MEMORIES = "Memories are background: what a result of this run shows goes before them."
_ON_STEPS = "An earlier step stands on one line; call its tool again only where its result is needed whole."
_STATIC = frozenset({"system", "tools", "examples", "task", "rules"})
_DETAILED = "Hand work that needs a context of its own to a sub-agent, with all that it must know."


class ContextInput(Struct, frozen=True, kw_only=True):
    """What a prompt is built from, in the document's words."""

    task: str
    profile: Profile
    iteration: int = 0
    """From 0."""
    max_iterations: int = 0
    """0: the profile's."""
    steps: tuple[Step, ...] = ()
    """``compaction.reactive_agents.steps.steps_of`` reads them out of messages."""
    memory_items: tuple[MemoryItem, ...] = ()
    tool_schemas: str | tuple[Tool, ...] = ()
    """A reference as text stands as it is; tools are told by the profile's detail."""
    required_tools: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    """The profile says how many of them are shown."""
    prior_context: str = ""
    """A plan or a critique, from elsewhere."""
    total_tokens: int = 128_000
    """The model's window; the history takes its share of it (``allocate_budget``)."""
    templates: tuple[PromptTemplate, ...] = ()
    """``templates.TEMPLATES``, or your own: then a system prompt stands first, with the rules where it has a place
    for them, and the iteration is told as a thought. Empty: neither."""


class BuiltContext(Struct, frozen=True):
    """A prompt by its sections, in order."""

    sections: tuple[tuple[str, str], ...]
    """Name and text of each; none is empty."""

    @property
    def text(self) -> str:
        """The whole prompt."""
        return "\n\n".join(text for _, text in self.sections)

    @property
    def static_text(self) -> str:
        """What stays the same from iteration to iteration: for a system prompt that is to be cached."""
        return "\n\n".join(text for name, text in self.sections if name in _STATIC)

    @property
    def dynamic_text(self) -> str:
        """The rest: for the last user message."""
        return "\n\n".join(text for name, text in self.sections if name not in _STATIC)


def context_input(options: Mapping[str, Any]) -> ContextInput:
    """The input from options spelled as here or as in the document (``maxIterations``). Raises InputError naming
    one that is unknown, missing, given twice or of the wrong type."""
    given = snake_case(options)
    unknown = sorted(set(given) - set(ContextInput.__struct_fields__))
    if unknown:
        known = ", ".join(ContextInput.__struct_fields__)
        raise InputError(f"There is no option {unknown[0]!r}. Choose among: {known}.")
    try:
        return msgspec.convert(given, ContextInput)
    except msgspec.ValidationError as error:
        raise InputError(f"The context cannot be built: {error}.") from error


def build_context(given: ContextInput) -> BuiltContext:
    """The prompt of one iteration. Raises InputError for an iteration below 0, and for templates of which none
    fits or one needs a value that is not known here."""
    profile = given.profile
    told = rules(profile, given.required_tools)
    system = _templated(given, REACT_SYSTEM, {"rules": told})
    sections = (
        ("system", system),
        ("tools", tool_reference(given.tool_schemas, profile=profile)),
        ("examples", "\n\n".join(given.examples[: profile.few_shot_example_count])),
        ("prior context", given.prior_context),
        ("memories", _memories(given)),
        ("history", _history(given)),
        ("done", _done(given.steps)),
        ("required tools", _required(given)),
        ("iteration", _iteration(given)),
        ("task", f"Task: {given.task}"),
        ("rules", "" if told in system else told),
    )
    return BuiltContext(tuple((name, text) for name, text in sections if text))


def tool_reference(tools: str | Iterable[Tool], *, profile: Profile) -> str:
    """The tools by ``tool_schema_detail``: names; names with the types of parameters (required ones starred);
    or these with descriptions. With more than ``MOST_FULL_TOOLS`` tools descriptions are left out."""
    if isinstance(tools, str):
        return tools
    listed = list(tools)
    if not listed:
        return ""
    if profile.tool_schema_detail == "names-only":
        return f"Tools: {', '.join(tool.name for tool in listed)}"
    described = profile.tool_schema_detail == "full" and len(listed) <= MOST_FULL_TOOLS
    return "\n".join(["Tools:", *(f"- {_signature(tool, described=described)}" for tool in listed)])


def rules(profile: Profile, required_tools: Sequence[str] = ()) -> str:
    """The rules by ``rules_complexity``: short; in whole sentences; or these and one on delegation."""
    long = profile.rules_complexity != "simplified"
    told = [pair[long] for pair in (*_RULES, _STORED)]
    if required_tools:
        told.insert(len(_RULES), _REQUIRED[long].format(", ".join(required_tools)))
    if profile.rules_complexity == "detailed":
        told.append(_DETAILED)
    return "\n".join(["RULES:", *(f"{number}. {rule}" for number, rule in enumerate(told, 1))])


def _signature(tool: Tool, *, described: bool) -> str:
    schema = tool.schema or {}
    properties, required = schema.get("properties"), schema.get("required")
    parameters = [
        f"{name}: {kind.get('type', 'any') if isinstance(kind, dict) else 'any'}"
        f"{'*' if isinstance(required, list) and name in required else ''}"
        for name, kind in (properties.items() if isinstance(properties, dict) else ())
    ]
    told = f"{tool.name}({', '.join(parameters)})"
    return f"{told}: {tool.description}" if described and tool.description else told


def _memories(given: ContextInput) -> str:
    told = [f"- {item.content}" for item in relevant_memories(given.memory_items)]
    if told and given.profile.prompt_verbosity == "full":
        told.append(_ON_MEMORIES)
    return "\n".join(["[Relevant memories]:", *told]) if told else ""


def _history(given: ContextInput) -> str:
    counted = [number for number, step in enumerate(given.steps) if step.kind in STEPS]
    first_whole = level_spans(len(counted), given.profile).whole
    whole_from = counted[first_whole] if first_whole else 0
    texts = [
        whole(step) if step.pinned or number >= whole_from else line(step)
        for number, step in enumerate(given.steps)
    ]
    chosen = _chosen(given, texts)
    earlier = [texts[number] for number in chosen if number < whole_from]
    told = [f"[Earlier steps — {len(earlier)} steps]:", *earlier] if earlier else []
    if len(chosen) < len(texts):
        told.append(f"[{len(texts) - len(chosen)} steps of the lowest scores are left out]")
    if told and given.profile.prompt_verbosity == "full":
        told.append(_ON_STEPS)
    recent = [texts[number] for number in chosen if number >= whole_from]
    return "\n".join([*told, *(["[Recent steps]:"] if told and recent else []), *recent])


def _chosen(given: ContextInput, texts: Sequence[str]) -> list[int]:
    """The steps that are told: as far as the history's budget goes, pinned ones first, then the newest, then
    by score."""
    limit, full = _max_iterations(given), given.profile.full_detail_steps
    budget = allocate_budget(given.total_tokens, given.profile, iteration=given.iteration, max_iterations=limit)
    split = allocate_context_budget(given.steps, task=given.task, iteration=given.iteration, full_detail_steps=full)
    chosen: list[int] = []
    for number in (*reversed(split.pinned), *reversed(split.recent), *split.scored):
        if not would_exceed_budget(budget, "step_history", text=texts[number]):
            budget = track_usage(budget, "step_history", text=texts[number])
            chosen.append(number)
    return sorted(chosen)


def _done(steps: Sequence[Step]) -> str:
    """Which tools succeeded, by the results themselves."""
    succeeded = Counter(step.tool for step in steps if step.kind == "observation" and not step.failed)
    told = [f"{tool} ({times}x)" if times > 1 else tool for tool, times in succeeded.items() if tool]
    return f"ALREADY DONE: {', '.join(told)}" if told else ""


def _required(given: ContextInput) -> str:
    done = {step.tool for step in given.steps if step.kind == "observation" and not step.failed}
    missing = [tool for tool in given.required_tools if tool not in done]
    return f"Still required: {', '.join(missing)}" if missing else ""


def _iteration(given: ContextInput) -> str:
    limit = _max_iterations(given)
    left = limit - given.iteration
    listed = given.tool_schemas
    values = {
        "task": given.task,
        "iteration": given.iteration + 1,
        "max_iterations": limit,
        "tools": listed if isinstance(listed, str) else ", ".join(tool.name for tool in listed),
    }
    told = _templated(given, REACT_THOUGHT, values) or f"[Iteration {given.iteration + 1}/{limit}]"
    advice = next((said for percent, said in _ADVICE if left <= -(-percent * limit // 100)), None)
    return f"{told} {advice[given.profile.prompt_verbosity != 'minimal']}" if advice else told


def _templated(given: ContextInput, wanted: str, values: Mapping[str, object]) -> str:
    """What a template says for the tier; nothing without templates."""
    if not given.templates:
        return ""
    return template_for(wanted, tier=given.profile.tier, templates=given.templates).filled(values)


def _max_iterations(given: ContextInput) -> int:
    return given.max_iterations or given.profile.max_iterations

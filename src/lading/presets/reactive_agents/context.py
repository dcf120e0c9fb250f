"""Build one prompt for a ReAct step from Reactive Agents' sections: tools, memories, history, task, rules.

``build_context`` implements the document for callers who assemble prompts themselves. Requests of a session keep
their messages, and the strategies ``scored`` and ``progressive`` compact them. All input is in the text or counted
there as left out: steps are selected by score (``scoring``) within the history's share of the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, Unpack, cast

import msgspec
from msgspec import Struct, structs

from lading.errors import InputError
from lading.messages import Message, MessageLike, Tool
from lading.models.profiles import Profile, ProfileLike, find_profile
from lading.presets.reactive_agents.levels import find_level_starts, format_line, format_whole
from lading.presets.reactive_agents.phases import list_completed_tools
from lading.presets.reactive_agents.scoring import MemoryItem, allocate_context_budget, select_relevant_memories
from lading.presets.reactive_agents.section_budget import allocate_budget, track_usage, would_exceed_budget
from lading.presets.reactive_agents.steps import STEPS, Step, steps_of
from lading.presets.reactive_agents.templates import REACT_SYSTEM, REACT_THOUGHT, PromptTemplate, template_for
from lading.structs import convert
from lading.validation import check, check_options, snake_case
from lading.wire import COMMON, find_wire
from lading.wire.declarations import declare

MOST_FULL_TOOLS = 20
"""With more tools than this, descriptions are left out."""
_ADVICE = (
    (20, ("Answer now.", "The run ends soon: give the best answer that the results so far allow.")),
    (40, ("Be decisive.", "Few iterations are left: be decisive and act on what is known.")),
)
"""Advice, brief and in full, by the percentage of iterations left from which it is added."""
_RULES = (
    ("Act once in a turn.", "Take one action in each turn and wait for its result."),
    ("Use exact parameter names.", "Name the parameters of a tool exactly as its reference does."),
    ("Invent nothing.", "Report only what a result shows; never make up data, paths or outcomes."),
    ("Do not repeat what worked.", "A tool that succeeded with the same arguments is not called again."),
)
_REQUIRED = ("Call before you answer: {}.", "Every one of these tools has to be called before you answer: {}.")
_STORED = ("Read what was cut by its pointer.", "A result that was cut names a pointer; the rest is read there.")
_ON_MEMORIES = "Memories are background: what a result of this run shows goes before them."
_ON_STEPS = "An earlier step stands on one line; call its tool again only where its result is needed whole."
_STATIC = frozenset({"system", "tools", "examples", "task", "rules"})
_DETAILED = "Hand work that needs a context of its own to a sub-agent, with all that it must know."


class ContextInput(Struct, frozen=True, kw_only=True):
    """The input of a prompt, with the document's names."""

    task: str
    profile: Profile
    iteration: int = 0
    """Counted from 0."""
    max_iterations: int = 0
    """0: the profile's number."""
    steps: tuple[Step, ...] = ()
    """Read from messages by ``steps.steps_of``."""
    memory_items: tuple[MemoryItem, ...] = ()
    tool_schemas: str | tuple[Tool, ...] = ()
    """A text is used unchanged; tools are described in the profile's detail."""
    required_tools: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    """The profile sets how many are shown."""
    prior_context: str = ""
    """Text from another source, such as a plan or a critique."""
    total_tokens: int = 128_000
    """The model's window; ``allocate_budget`` gives the history its share."""
    templates: tuple[PromptTemplate, ...] = ()
    """``templates.TEMPLATES`` or your own: adds a system prompt, with the rules if it has a place for them, and
    shows the iteration as a thought. Empty: neither."""


class BuiltContext(Struct, frozen=True):
    """The sections of a prompt, in order."""

    sections: tuple[tuple[str, str], ...]
    """Name and text of each non-empty section."""

    @property
    def text(self) -> str:
        """The whole prompt."""
        return "\n\n".join(text for _, text in self.sections)

    def __str__(self) -> str:
        return self.text

    @property
    def static_text(self) -> str:
        """The sections that are the same at every iteration, for a cached system prompt."""
        return "\n\n".join(text for name, text in self.sections if name in _STATIC)

    @property
    def dynamic_text(self) -> str:
        """The other sections, for the last user message."""
        return "\n\n".join(text for name, text in self.sections if name not in _STATIC)


class ContextOptions(TypedDict, total=False):
    """The input of a prompt as options, each as a caller has it."""

    task: str
    profile: ProfileLike
    iteration: int
    max_iterations: int
    steps: Sequence[Step | MessageLike]
    """Messages are read by ``steps.steps_of``."""
    memory_items: Sequence[MemoryItem | Mapping[str, Any]]
    tool_schemas: str | Sequence[Tool | Mapping[str, Any]]
    """Declarations of any provider's format are read as tools."""
    required_tools: Sequence[str]
    examples: Sequence[str]
    prior_context: str
    total_tokens: int
    templates: Sequence[PromptTemplate]


def context_input(options: Mapping[str, Any]) -> ContextInput:
    """Read the input from options in snake_case or in the document's spelling (``maxIterations``). Raises
    InputError naming an option that is unknown, missing, given twice or of the wrong type."""
    check_options(options, ContextInput.__struct_fields__, of="a context")
    given = snake_case(options)
    if given.get("profile") is not None:
        given["profile"] = find_profile(given["profile"])
    if isinstance(given.get("steps"), Iterable):
        given["steps"] = _read_steps(given["steps"])
    if isinstance(tools := given.get("tool_schemas", ""), Iterable) and not isinstance(tools, str):
        given["tool_schemas"] = declare(tools, wire=find_wire(COMMON)).tools
    try:
        return convert(given, ContextInput)
    except msgspec.ValidationError as error:
        raise InputError(f"The context cannot be built: {error}.") from error


def _read_steps(given: Iterable[object]) -> tuple[Any, ...]:
    items = [given] if isinstance(given, Mapping | Message | str) else [*given]
    if any(isinstance(item, Step) or (isinstance(item, Mapping) and "kind" in item) for item in items):
        return tuple(snake_case(item) if isinstance(item, Mapping) else item for item in items)
    return steps_of(cast(Any, items))


def build_context(
    given: ContextInput | Mapping[str, Any] | None = None, **options: Unpack[ContextOptions]
) -> BuiltContext:
    """Build the prompt of one iteration from an input, a mapping of options in either spelling, or options by name,
    which come before those of ``given``.

    Raises InputError as ``context_input`` does, for an iteration below 0, and for templates of which none fits or
    one needs a value that is not known here.
    """
    check(given or {}, (ContextInput, Mapping), advice="give build_context(task=..., ...), or one mapping of it")
    fields = structs.asdict(given) if isinstance(given, ContextInput) else given or {}
    return _build_sections(context_input({**snake_case(fields), **snake_case(options)}))


def _build_sections(given: ContextInput) -> BuiltContext:
    profile = given.profile
    rules = write_rules(profile, given.required_tools)
    system = _fill_template(given, REACT_SYSTEM, {"rules": rules})
    sections = (
        ("system", system),
        ("tools", describe_tools(given.tool_schemas, profile=profile)),
        ("examples", "\n\n".join(given.examples[: profile.few_shot_example_count])),
        ("prior context", given.prior_context),
        ("memories", _write_memories(given)),
        ("history", _write_history(given)),
        ("done", _write_done(given.steps)),
        ("required tools", _write_required(given)),
        ("iteration", _write_iteration(given)),
        ("task", f"Task: {given.task}"),
        ("rules", "" if rules in system else rules),
    )
    return BuiltContext(tuple((name, text) for name, text in sections if text))


def describe_tools(tools: str | Iterable[Tool], *, profile: Profile) -> str:
    """Describe the tools by ``tool_schema_detail``: names; names with parameter types (required ones starred);
    or these with descriptions, which are left out above ``MOST_FULL_TOOLS`` tools."""
    if isinstance(tools, str):
        return tools
    listed = list(tools)
    if not listed:
        return ""
    if profile.tool_schema_detail == "names-only":
        return f"Tools: {', '.join(tool.name for tool in listed)}"
    described = profile.tool_schema_detail == "full" and len(listed) <= MOST_FULL_TOOLS
    return "\n".join(["Tools:", *(f"- {_write_signature(tool, described=described)}" for tool in listed)])


def write_rules(profile: Profile, required_tools: Sequence[str] = ()) -> str:
    """Write the rules by ``rules_complexity``: short; in sentences; or in sentences with one on delegation."""
    long = profile.rules_complexity != "simplified"
    lines = [pair[long] for pair in (*_RULES, _STORED)]
    if required_tools:
        lines.insert(len(_RULES), _REQUIRED[long].format(", ".join(required_tools)))
    if profile.rules_complexity == "detailed":
        lines.append(_DETAILED)
    return "\n".join(["RULES:", *(f"{number}. {rule}" for number, rule in enumerate(lines, 1))])


def _write_signature(tool: Tool, *, described: bool) -> str:
    schema = tool.schema or {}
    properties, required = schema.get("properties"), schema.get("required")
    parameters = [
        f"{name}: {kind.get('type', 'any') if isinstance(kind, dict) else 'any'}"
        f"{'*' if isinstance(required, list) and name in required else ''}"
        for name, kind in (properties.items() if isinstance(properties, dict) else ())
    ]
    signature = f"{tool.name}({', '.join(parameters)})"
    return f"{signature}: {tool.description}" if described and tool.description else signature


def _write_memories(given: ContextInput) -> str:
    lines = [f"- {item.content}" for item in select_relevant_memories(given.memory_items)]
    if lines and given.profile.prompt_verbosity == "full":
        lines.append(_ON_MEMORIES)
    return "\n".join(["[Relevant memories]:", *lines]) if lines else ""


def _write_history(given: ContextInput) -> str:
    counted = [number for number, step in enumerate(given.steps) if step.kind in STEPS]
    first_whole = find_level_starts(len(counted), given.profile).whole
    whole_from = counted[first_whole] if first_whole else 0
    texts = [
        format_whole(step) if step.pinned or number >= whole_from else format_line(step)
        for number, step in enumerate(given.steps)
    ]
    chosen = _choose_steps(given, texts)
    earlier = [texts[number] for number in chosen if number < whole_from]
    lines = [f"[Earlier steps — {len(earlier)} steps]:", *earlier] if earlier else []
    if len(chosen) < len(texts):
        lines.append(f"[{len(texts) - len(chosen)} steps of the lowest scores are left out]")
    if lines and given.profile.prompt_verbosity == "full":
        lines.append(_ON_STEPS)
    recent = [texts[number] for number in chosen if number >= whole_from]
    return "\n".join([*lines, *(["[Recent steps]:"] if lines and recent else []), *recent])


def _choose_steps(given: ContextInput, texts: Sequence[str]) -> list[int]:
    """Select steps within the history's budget: pinned ones first, then the newest, then by score."""
    limit, full = _max_iterations(given), given.profile.full_detail_steps
    budget = allocate_budget(given.total_tokens, given.profile, given.iteration, limit)
    split = allocate_context_budget(given.steps, task=given.task, iteration=given.iteration, full_detail_steps=full)
    chosen: list[int] = []
    for number in (*reversed(split.pinned), *reversed(split.recent), *split.scored):
        if not would_exceed_budget(budget, "step_history", text=texts[number]):
            budget = track_usage(budget, "step_history", text=texts[number])
            chosen.append(number)
    return sorted(chosen)


def _write_done(steps: Sequence[Step]) -> str:
    succeeded = Counter(step.tool for step in steps if step.kind == "observation" and not step.failed)
    counts = [f"{tool} ({times}x)" if times > 1 else tool for tool, times in succeeded.items() if tool]
    return f"ALREADY DONE: {', '.join(counts)}" if counts else ""


def _write_required(given: ContextInput) -> str:
    done = list_completed_tools(given.steps)
    missing = [tool for tool in given.required_tools if tool not in done]
    return f"Still required: {', '.join(missing)}" if missing else ""


def _write_iteration(given: ContextInput) -> str:
    limit = _max_iterations(given)
    left = limit - given.iteration
    listed = given.tool_schemas
    values = {
        "task": given.task,
        "iteration": given.iteration + 1,
        "max_iterations": limit,
        "tools": listed if isinstance(listed, str) else ", ".join(tool.name for tool in listed),
    }
    text = _fill_template(given, REACT_THOUGHT, values) or f"[Iteration {given.iteration + 1}/{limit}]"
    advice = next((texts for percent, texts in _ADVICE if left <= -(-percent * limit // 100)), None)
    return f"{text} {advice[given.profile.prompt_verbosity != 'minimal']}" if advice else text


def _fill_template(given: ContextInput, wanted: str, values: Mapping[str, object]) -> str:
    if not given.templates:
        return ""
    return template_for(wanted, tier=given.profile.tier, templates=given.templates).filled(values)


def _max_iterations(given: ContextInput) -> int:
    return given.max_iterations or given.profile.max_iterations

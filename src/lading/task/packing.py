"""Make the payload of a step: check what is required, divide the window, choose evidence and memories, write.

``assemble`` is a function of values: a ``StepContext`` and the options give text and record of the payload.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lading.compaction.excerpts import clip, collapse_spaces
from lading.errors import FloorsExceedWindow, InputError, PackInvalid
from lading.jsonbytes import digest
from lading.models.tool_policy import ToolPolicy
from lading.stores import NO_BLOBS
from lading.task.acceptance import Acceptance, Checks
from lading.task.allocator import BUDGETS, LAYERS, Floors, LayerBudgets, TaskProfile, allocate
from lading.task.choosing import Shown, choose_by_document, choose_by_value, gather
from lading.task.evidence import Drop, Evidence, Memory, find_terms, may_prove, write_bullets
from lading.task.record import LayerRecord, PayloadRecord, ShownArtifact, ShownMemory, group_dropped
from lading.task.signals import (
    AllocatorSignals,
    measure_checklist_evidence_ratio,
    measure_freshness,
    measure_similarity,
    weigh_risk,
)
from lading.task.task import Constraints, StepTool, Task, TaskStep
from lading.task.templates import RULES, fill, find_template, read_templates
from lading.validation import check

FindEvidence: TypeAlias = Callable[["StepContext"], Iterable[Evidence]]
FindMemories: TypeAlias = Callable[["StepContext"], Iterable[Memory]]
Restate: TypeAlias = Callable[[PackInvalid], "TaskStep | None"]
TOP_EVIDENCE = 3
"""Pieces of evidence that stand last in the payload."""
MOST_REPEATED_TOKENS = 2_000
"""A longer request is not repeated by later payloads of its turn: they name its address."""
NONE = "- none"
"""Of a layer that may be empty: headers are the same in each payload."""


class TaskOptions(Struct, frozen=True, kw_only=True):
    """How the steps of a task are packed. Raises InputError for a value that cannot be used."""

    evidence: FindEvidence | None = None
    """Gives candidates beside the results of tools in earlier steps."""
    memory: FindMemories | None = None
    """Gives candidates."""
    memory_threshold: float = 0.0
    """Memories below this score are not shown."""
    profile: TaskProfile | str = "research"
    floors: Floors | str = "manifest"
    templates: Mapping[str, str] | str | Path | None = None
    """By ``name:tier`` or name (the role); a folder of them; or ``"document"``."""
    contract: Literal["header", "system"] = "header"
    """Where the rules of interpretation are: in the payload, or (``templates.CONTRACT``) in your system prompt."""
    overflow: Literal["value", "document"] = "value"
    """Order in which things give way: first those that bring the least for their tokens, within their layer's
    budget; or the document's order (``overflow.py``)."""
    recitation: bool = False
    """Ask the model to restate STEP and ACCEPTANCE first."""
    planner: Restate | None = None
    """Answers an invalid pack with a step that replaces it; None: the error is raised."""
    checks: Checks = Checks()
    """Functions and the judge of acceptance, and how often a repair is asked for."""
    tools: ToolPolicy = ToolPolicy()
    """How the step's tools are set apart, and whether the model searches for others."""

    def __post_init__(self) -> None:
        check(self.tools, ToolPolicy, advice="tools is ToolPolicy(...)")
        check(self.floors, (Floors, str), advice="floors is the name of a budget, or Floors(...)")
        for name, given in (("evidence", self.evidence), ("memory", self.memory), ("planner", self.planner)):
            if given is not None and not callable(given):
                raise InputError(f"{name} is {given!r}; give a function.")
        if not 0 <= self.memory_threshold <= 1:
            raise InputError("Give a memory_threshold from 0 to 1.")
        if self.contract not in ("header", "system") or self.overflow not in ("value", "document"):
            raise InputError('Choose the contract "header" or "system", and the overflow "value" or "document".')
        read_templates(self.templates)


class LayerUse(Struct, frozen=True, kw_only=True):
    """Tokens of the layers outside of the payload, and the signals of the dialogue."""

    window_tokens: int
    reserve_tokens: int
    """For the answer and the margin of the count."""
    system: int = 0
    tools: int = 0
    conversation: int = 0
    expected_tool_calls: int = 0
    unresolved_questions: int = 0
    dialogue_depth: int = 0
    retrieval_hit_rate: float = 0.0


class StepContext(Struct, frozen=True, kw_only=True):
    """Everything that the payload of a step is made of."""

    task: Task
    step: TaskStep
    request: str = ""
    """The user's words."""
    request_uri: str = ""
    """Not empty: a payload of this turn has them already."""
    tier: str = ""
    tools: Sequence[StepTool] = ()
    """The step's tools, described."""
    evidence: Sequence[Evidence] = ()
    memory: Sequence[Memory] = ()
    failed: Acceptance | None = None
    """The outcome that this payload asks to repair."""
    repair: int = 0
    summary: str = ""
    """Of the conversation that is no longer shown."""
    supersedes: bool = False
    """Whether an earlier payload is in the conversation."""


class Payload(Struct, frozen=True):
    """The text that a model reads, and its record."""

    text: str
    record: PayloadRecord
    texts: Mapping[str, bytes] = NO_BLOBS
    """Of the shown evidence that no log holds, by SHA-256."""


def check_required(step: TaskStep, planner: Restate | None = None) -> TaskStep:
    """Return the step, or the one that the planner gives in its place. Raises PackInvalid."""
    missing: Literal["acceptance", "step"] | None = None
    if not any(line.strip() for line in step.text):
        missing = "step"
    elif not step.checklist.items:
        missing = "acceptance"
    if missing is None:
        return step
    problem = PackInvalid(step=step.id, missing=missing)
    if planner is None or (restated := planner(problem)) is None:
        raise problem
    return check_required(restated)


def assemble(context: StepContext, options: TaskOptions, *, use: LayerUse, count: Callable[[str], int]) -> Payload:
    """Make the payload. ``count``: tokens of a text. Raises FloorsExceedWindow where the fixed layers leave
    nothing: split the step. Raises InputError."""
    step, role = context.step, context.step.role
    template = find_template(role, tier=context.tier, own=read_templates(options.templates))
    values = _write_fixed(context, options, count)
    terms = find_terms([*step.text, *(item.text for item in step.checklist.items), context.request])
    evidence, dropped = _sort_out_evidence(context.evidence)
    memory, unfit = _sort_out_memory(context.memory, options.memory_threshold)
    is_document = options.overflow == "document"
    found = gather(evidence, memory, checklist=step.checklist, terms=terms, is_whole=is_document, count=count)
    signals = _measure(context, use, memory)
    brief = _shorten_fixed(context) if is_document else {}
    used = {
        "system": use.system,
        "task": count(fill(template, values | brief)),
        "tools": use.tools,
        "evidence": sum(found.tokens[uri] for uri in found.bullets),
        "memory": sum(found.tokens[name] for name in found.notes),
        "conversation": use.conversation,
    }
    caps, budgets = _divide_window(used, options=options, use=use, signals=signals)
    if is_document:
        fixed = sum(used[layer] for layer in ("system", "task", "tools", "conversation"))
        fixed -= sum(map(count, brief.values()))
        room = use.window_tokens - caps.unused_tokens - caps.tokens["slack_min"] - fixed
        shown = choose_by_document(found, values, brief=brief, terms=terms, room_tokens=room, count=count)
        used["task"] = count(fill(template, {**values, **shown.values}))
    else:
        shown = choose_by_value(found, budgets)
    values |= {**shown.values, **_write_layers(shown)}
    given = [one for one, _ in shown.evidence]
    record = PayloadRecord(
        task_id=context.task.id,
        step_id=step.id,
        role=role,
        repair=context.repair,
        template=digest(template.encode(errors="backslashreplace")),
        layers=_record_layers(caps, budgets, used | _count_shown(shown, count)),
        signals=msgspec.structs.asdict(signals),
        artifacts=tuple(
            ShownArtifact(one.uri, one.signed, tuple(sorted(of)), one.covers is not None)
            for one, of in shown.evidence
        ),
        memory_ids=tuple(shown.memory_ids),
        memories=tuple(
            ShownMemory(one.id, one.text, one.score, one.date, one.reason)
            for one in context.memory
            if one.id in shown.memory_ids
        ),
        dropped=group_dropped([*dropped, *unfit, *shown.dropped]),
        evidence_needed=tuple(
            item.id
            for item in step.checklist.items
            if item.proof == "evidence" and not any(may_prove(one.covers, item.id) for one in given)
        ),
    )
    texts = {one.signed.sha256: one.data for one in given if not one.is_shown}
    return Payload(fill(template, values), record, {digest: data for digest, data in texts.items() if data})


def _write_layers(shown: Shown) -> dict[str, str]:
    lines = [shown.bullets[one.uri] for one, _ in shown.evidence]
    return {
        "evidence": "\n".join(lines[:-TOP_EVIDENCE]) or ("- below" if lines else NONE),
        "top_evidence": "\n".join(lines[-TOP_EVIDENCE:]),
        "memory": "\n".join(shown.notes[name] for name in shown.memory_ids) or NONE,
    }


def _count_shown(shown: Shown, count: Callable[[str], int]) -> dict[str, int]:
    return {
        "evidence": sum(count(shown.bullets[one.uri]) for one, _ in shown.evidence),
        "memory": sum(count(shown.notes[name]) for name in shown.memory_ids),
    }


def _divide_window(
    used: Mapping[str, int], *, options: TaskOptions, use: LayerUse, signals: AllocatorSignals
) -> tuple[LayerBudgets, LayerBudgets]:
    """Return the budgets before and after unused tokens are handed on. Floors that no layer needs give way before a
    long request or step is refused. Raises FloorsExceedWindow, InputError, UnknownName."""

    def divide(floors: Floors | str) -> tuple[LayerBudgets, LayerBudgets]:
        allotted = partial(allocate, use.window_tokens, floors=floors, profile=options.profile, signals=signals)
        caps = allotted()
        caps = allotted(used={layer: used[layer] for layer in LAYERS[:3] if used[layer] > caps.tokens[layer]})
        return caps, allotted(used=used)

    given = BUDGETS.get(options.floors) if isinstance(options.floors, str) else options.floors
    if given is None:
        return divide(options.floors)
    # The slack holds at least what the session reserves for the answer.
    reserved = min(math.ceil(100 * use.reserve_tokens / use.window_tokens), 100)
    try:
        return divide(replace(given, slack_min=max(given.slack_min, reserved)))
    except FloorsExceedWindow:
        return divide(replace(given, system=0, task=0, tools=0, slack_min=reserved))


def _record_layers(caps: LayerBudgets, budgets: LayerBudgets, used: Mapping[str, int]) -> dict[str, LayerRecord]:
    percent = caps.format_percentages()
    return {
        layer: LayerRecord(percent[layer], tokens, used.get(layer, 0)) for layer, tokens in budgets.tokens.items()
    }


def _write_fixed(context: StepContext, options: TaskOptions, count: Callable[[str], int]) -> dict[str, str]:
    """Write the places of a template that are never truncated."""
    task, step = context.task, context.step
    title = "CONTEXT PACK" + ("\nIt supersedes every earlier CONTEXT PACK." if context.supersedes else "")
    recite = "First restate STEP and ACCEPTANCE in one or two lines." if options.recitation else ""
    request = context.request
    if context.request_uri and count(request) > MOST_REPEATED_TOKENS:
        request = f"(in the conversation above, {context.request_uri})"
    failed = context.failed.failed if context.failed else ()
    return {
        "title": title,
        "rules": (RULES if options.contract == "header" else "NAMES:") + f"\n- {_name_results(context)}",
        "step_id": step.id,
        "goal": write_bullets([task.goal]),
        "step": write_bullets(step.text),
        "constraints": write_bullets(_list_constraints(task.constraints, step.constraints)),
        "tools": write_bullets(f"{_write_tool(one)}{_write_examples(one)}" for one in context.tools),
        "acceptance": write_bullets(f"[{item.id}] {item.text}{_ask(item.proof)}" for item in step.checklist.items),
        "repair": write_bullets(f"[{one.id}] FAILED: {one.why}" for one in failed),
        "stop": write_bullets(
            [*(f"stop: {one}" for one in step.stop_conditions), step.next and f"next: {step.next}"]
        ),
        "summary": write_bullets([context.summary]),
        "recitation": recite,
        "request": request,
    }


def _name_results(context: StepContext) -> str:
    address = f"artifact://tasks/{context.task.id}/{context.step.id}/TOOL@N"
    return f"Result N of the tool TOOL in this step is {address}."


def _ask(proof: str) -> str:
    return " (cite the evidence)" if proof == "evidence" else ""


def _list_constraints(task: Constraints, step: Constraints) -> list[str]:
    def least(name: str) -> Any:
        own = getattr(step, name)
        return getattr(task, name) if own is None or own == "" else own

    latency, cost, tokens, risk = map(least, ("latency_s", "budget_usd", "token_budget", "risk"))
    limits = [
        *([f"Latency <= {latency:g}s"] if latency is not None else []),
        *([f"cost <= ${cost:.2f}"] if cost is not None else []),
        *([f"tokens <= {tokens}"] if tokens is not None else []),
        *([f"risk: {risk}"] if risk else []),
    ]
    return ["; ".join(limits)] if limits else []


def _write_tool(tool: StepTool) -> str:
    call = f"{tool.name}({tool.inputs})" + (f" -> {tool.outputs}" if tool.outputs else "")
    described = f"{call}: {tool.purpose}" if tool.purpose else call
    return f"{described}\n{tool.schema}" if tool.schema else described


def _write_examples(tool: StepTool) -> str:
    return "".join(f"\nexample: {collapse_spaces(one)}" for one in tool.examples)


def _shorten_fixed(context: StepContext) -> dict[str, str]:
    """Write the places that the document's overflow order shortens."""
    summary = clip(context.summary, len(context.summary) // 2)
    return {"tools": write_bullets(map(_write_tool, context.tools)), "summary": write_bullets([summary])}


def _sort_out_evidence(given: Sequence[Evidence]) -> tuple[list[Evidence], list[Drop]]:
    """Return the evidence that proves something, each address once, and what was left out."""
    kept: dict[str, Evidence] = {}
    dropped: list[Drop] = []
    for one in given:
        if one.problem:
            dropped.append(("evidence", one.problem, one.uri))
        else:
            kept.setdefault(one.uri, one)
    return [*kept.values()], dropped


def _sort_out_memory(given: Sequence[Memory], threshold: float) -> tuple[list[Memory], list[Drop]]:
    """Return the memories from the threshold on, each id once, and what was left out."""
    kept = {one.id: one for one in reversed(given) if one.score >= threshold and one.text.strip()}
    left = dict.fromkeys(one.id for one in given if one.id not in kept)
    return [*kept.values()][::-1], [("memory", "below the threshold", name) for name in left]


def _measure(context: StepContext, use: LayerUse, memory: Sequence[Memory]) -> AllocatorSignals:
    step = context.step
    query = "\n".join([*step.text, context.request])
    scores = [one.score for one in memory if one.score]
    ages = [one.age_days for one in memory if one.age_days is not None]
    return AllocatorSignals(
        checklist_evidence_ratio=measure_checklist_evidence_ratio(
            [item.proof == "evidence" for item in step.checklist.items]
        ),
        expected_tool_calls=use.expected_tool_calls,
        risk_weight=weigh_risk(step.constraints.risk or context.task.constraints.risk or 0.0),
        retrieval_hit_rate=use.retrieval_hit_rate,
        similarity=max(scores) if scores else measure_similarity(query, (one.text for one in memory)),
        freshness=measure_freshness(ages),
        unresolved_questions=use.unresolved_questions,
        dialogue_depth=use.dialogue_depth,
    )

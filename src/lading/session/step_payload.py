"""The payload of a session's current step: made once for each turn and step, and again for a repair.

It takes the place of the text of the user's message where that was not sent yet, and is a message of its own where
the step changed since. The edit that shows it names task, step and repair, so a reopened session knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.addresses import relative
from lading.engine import Engine
from lading.errors import InputError, LadingError
from lading.events import ContextLeftOut
from lading.guard import attempt, describe_error
from lading.history.log import Draft, Edit
from lading.history.view import View
from lading.messages import Text, Tool, own_words
from lading.session.tool_scope import ToolScope
from lading.stores import SessionStore
from lading.task.acceptance import Acceptance, KnownEvidence, check_acceptance
from lading.task.artifacts import Artifacts, list_results, name_payload
from lading.task.citing import OUTCOME, know_evidence, read_record
from lading.task.evidence import Evidence, Memory, Provenance
from lading.task.packing import FindMemories, LayerUse, Payload, StepContext, TaskOptions, assemble, check_required
from lading.task.record import dump_record
from lading.task.signals import count_expected_tool_calls, count_unresolved_questions, measure_retrieval_hit_rate
from lading.task.task import Task, TaskStep, read_step
from lading.task.templates import CONTRACT
from lading.validation import check

_WHOLE = frozenset({None, "repaired", "restated", "pinned", "reshaped"})
_REASON_CHARS = 400


class StepPayload:
    """The step of one session, and what its payload needs to know."""

    def __init__(self, task: Task, step: TaskStep, options: TaskOptions, *, store: SessionStore) -> None:
        self.task, self.step, self.options, self._store = task, step, options, store
        self.schemas: tuple[str, ...] = ()
        """Names of the tools whose schema the payload in force has."""
        self._repair = 0
        self._failed: Acceptance | None = None
        """The outcome that the next payload asks to repair."""
        self._is_assembling = False
        self._memories: Mapping[str, str] = {}
        """The memories of the last payload, by id."""

    def prepare(
        self,
        engine: Engine,
        tools: Sequence[Tool],
        *,
        scope: ToolScope,
        memory: FindMemories | None,
        extend: Callable[..., None],
    ) -> None:
        """Make the payload of the next request, unless one of this turn and step was sent. ``memory``: finds
        candidates where the options do not. Raises PackInvalid, FloorsExceedWindow, InputError."""
        history, view, (sent_entries, sent_edits) = engine.history, engine.history.view, engine.sent
        reason = name_payload(self.task.id, self.step.id, repair=self._repair)
        newest = _find_newest(view, history.edits)
        turn = history.entries[-1].turn if history.entries else 0
        is_current = newest is not None and (history.entries[newest.first].turn, newest.reason) == (turn, reason)
        is_sent = newest is not None and newest.index < sent_edits
        if is_current and is_sent and engine.recorder.task:  # Else this session has no record of it.
            return
        if self._is_assembling:
            raise InputError("A function of TaskOptions called pack(). Return candidates from what it is given.")
        self._is_assembling = True
        try:
            self.step = check_required(self.step, self.options.planner)
            payload = self._assemble(engine, tools, scope=scope, memory=self.options.memory or memory)
        finally:
            self._is_assembling = False
        digest, data = dump_record(payload.record)
        logged = {one.artifact.provenance.sha256 for one in list_results(history.entries, history.edits)}
        texts = {of: text for of, text in payload.texts.items() if of not in logged}
        self._store.append(*engine.settings.owner, blobs={digest: data, **texts})
        engine.recorder.task = digest
        asked = view.newest_request[0] if view.newest_request else -1
        if asked >= sent_entries:
            entry = asked
        elif newest is not None and not is_sent:
            entry = newest.first
        else:
            entry = len(history.entries)
            extend([own_words(payload.text)], known_as=[""], stored=False)
        _show(engine, payload.text, entry=entry, reason=reason)

    def _assemble(
        self, engine: Engine, tools: Sequence[Tool], *, scope: ToolScope, memory: FindMemories | None
    ) -> Payload:
        history, view, settings = engine.history, engine.history.view, engine.settings
        asked = view.newest_request
        sent_entries, sent_edits = engine.sent
        has_been_shown = asked is not None and asked[0] < sent_entries
        context = StepContext(
            task=self.task,
            step=self.step,
            request=asked[1].text if asked else "",
            request_uri=relative(str(asked[0])) if asked and has_been_shown else "",
            tier=settings.card.tier,
            tools=scope.describe(self.step, self.task, request=asked[1].text if asked else ""),
            failed=self._failed,
            repair=self._repair,
            summary="Older messages are summarized at the start of the conversation."
            if view.records_end > view.head
            else "",
            supersedes=any(
                edit.kind == "payload" and edit.index < sent_edits and edit.first not in history.withdrawn
                for edit in history.edits
            ),
        )
        self.schemas = tuple(tool.name for tool in context.tools if tool.schema)
        context = msgspec.structs.replace(context, evidence=self._list_evidence(engine, context))
        memories = self._ask(engine, "memory", memory, context, kind=Memory)
        context = msgspec.structs.replace(context, memory=memories)
        answer = next((one.text for one in reversed(view.messages) if one.role == "assistant"), "")
        # The payload takes the place of a request that was not sent, and has it.
        start, end = view.span(asked[0], asked[0]) if asked and not has_been_shown else (0, 0)
        replaced = view.tokens_before(end) - view.tokens_before(start)
        # The user's own words: what a payload quotes asks nothing.
        said = [
            history.entries[item.entry].message if item.kind == "payload" else item.message for item in view.items
        ]
        systems = next((at for at, one in enumerate(view.messages) if one.role != "system"), len(view))
        use = LayerUse(
            window_tokens=settings.budget.window_tokens,
            reserve_tokens=settings.budget.window_tokens - settings.budget.room_tokens,
            system=view.tokens_before(systems),
            tools=settings.meter.count_tools(tuple(tools)),
            conversation=view.tokens - view.tokens_before(systems) - replaced,
            expected_tool_calls=count_expected_tool_calls(view.messages, tools=len(self.step.tools)),
            unresolved_questions=count_unresolved_questions(said),
            dialogue_depth=history.entries[-1].turn if history.entries else 0,
            retrieval_hit_rate=measure_retrieval_hit_rate(self._memories, answer, known=context.request),
        )
        payload = assemble(context, self.options, use=use, count=lambda text: engine.count(own_words(text)))
        shown = {*payload.record.memory_ids}
        self._memories = {one.id: one.text for one in memories if one.id in shown}
        return payload

    def _list_evidence(self, engine: Engine, context: StepContext) -> list[Evidence]:
        """List the results of the caller's tools in this task so far, the named artifacts, and what the caller's
        function gives."""
        view, found = engine.history.view, list[Evidence]()
        for result in list_results(engine.history.entries, engine.history.edits):
            of = result.artifact
            if of.provenance.task == self.task.id and of.provenance.kind != "working":
                found.append(
                    Evidence(of.uri, result.text, provenance=of.provenance, is_shown=_is_whole(view, of.entry))
                )
        artifacts = Artifacts(self._store, engine.settings.owner)
        for of in artifacts.list_named():
            if of.provenance.task == self.task.id and of.provenance.kind != "evaluation":
                text = artifacts.get(of.uri).decode("utf-8", "replace")
                found.append(Evidence(of.uri, text, provenance=of.provenance))
        return [*found, *self._ask(engine, "evidence", self.options.evidence, context, kind=Evidence)]

    def _ask(
        self, engine: Engine, name: str, function: Any, context: StepContext, *, kind: type[Struct]
    ) -> list[Any]:
        """Ask a function of the caller. Whatever goes wrong with it costs its candidates only, with an event."""
        if function is None:
            return []
        answer = attempt(partial(_read_candidates, function, context, kind=kind))
        if not isinstance(answer, Exception):
            return answer
        why = str(answer) if isinstance(answer, LadingError) else describe_error(answer)
        engine.pending.append(ContextLeftOut(engine.call, name, why[:_REASON_CHARS]))
        return []

    def check(self, engine: Engine, output: str | None) -> Acceptance:
        """Check an answer (None: the newest) by the step's checklist, and store the outcome. Where it fails, the
        next payload asks for a repair, up to ``most_repairs``."""
        view = engine.history.view
        if output is None:
            output = next((one.text for one in reversed(view.messages) if one.role == "assistant"), "")
        check(output, str, advice="give the answer as a text")
        outcome = check_acceptance(
            output, self.step.checklist, evidence=self._know_evidence(engine), checks=self.options.checks
        )
        left = 0 if outcome.passed else max(self.options.checks.most_repairs - self._repair, 0)
        outcome = msgspec.structs.replace(outcome, repairs_left=left)
        self._failed = outcome if left else None
        self._repair += bool(left)
        data = jsonbytes.dump({"call": engine.call - 1, **msgspec.to_builtins(outcome)})
        where = f"{self.task.id}/{self.step.id}/{OUTCOME}"
        of = Provenance(kind="evaluation", producer="lading", retention="task")
        Artifacts(self._store, engine.settings.owner).put(where, data, provenance=of)
        return outcome

    def _know_evidence(self, engine: Engine) -> KnownEvidence:
        """Return the evidence of the payload in force, and the results that the model has seen since."""
        owner, history = engine.settings.owner, engine.history
        record = read_record(self._store, owner, digest=engine.recorder.task)
        results = list_results(history.entries, history.edits)
        records = [record] if record else []
        return know_evidence(self._store, owner, records=records, results=results, entries=engine.sent[0])


def find_step(step: object, task: Task | None, *, known: Task | None) -> tuple[Task, TaskStep]:
    """Return the task (``known``: that of the step before) and the step that ``Session.begin`` is given. Raises
    InputError, UnknownName."""
    task = task or known
    if isinstance(step, str):
        if task is None:
            raise InputError(f"The step {step!r} is of no task. Give task=, or a TaskStep.")
        return task, task.plan.find(step)
    found = step if isinstance(step, TaskStep) else read_step(step)
    return task or Task(id="task", goal=""), found


def check_contract(options: TaskOptions, engine: Engine) -> None:
    """Raise InputError where the contract should be in the system prompt and is not."""
    systems = "\n".join(one.text for one in engine.history.view.messages if one.role == "system")
    if options.contract == "system" and CONTRACT not in systems:
        raise InputError(
            "contract is system, and no system message has it. Put lading.task.templates.CONTRACT into the system "
            'prompt before begin(), or use contract="header".'
        )


def _find_newest(view: View, edits: Sequence[Edit]) -> Edit | None:
    """Return the edit of the newest payload; None where none is in force."""
    if view.payload < 0:
        return None
    return next((one for one in reversed(edits) if one.kind == "payload" and one.first == view.payload), None)


def _show(engine: Engine, text: str, *, entry: int, reason: str) -> None:
    """Show a payload in place of the text of an entry that was not sent; the other parts of its message stay."""
    view = engine.history.view
    start, end = view.span(entry, entry)
    *before, last = (item.message for item in view.items[start:end])
    others = tuple(part for part in last.parts if not isinstance(part, Text))
    replaced = next((part for part in last.parts if isinstance(part, Text)), Text(""))
    shown = (*before, last.with_parts((*others, msgspec.structs.replace(replaced, text=text))))
    engine.history.apply(Draft("payload", entry, entry, shown, reason, (relative(str(entry)),)), call=engine.call)


def _is_whole(view: View, entry: int) -> bool:
    start, end = view.span(entry, entry)
    items = view.items[start:end]
    return bool(items) and all(item.entry == entry and item.kind in _WHOLE for item in items)


def _read_candidates(function: Any, context: StepContext, *, kind: type[Struct]) -> list[Any]:
    found = function(context)
    check(found, Iterable, advice=f"give a list of {kind.__name__}")
    listed = [*found]
    for one in listed:
        check(one, kind, advice=f"give a list of {kind.__name__}")
    return listed

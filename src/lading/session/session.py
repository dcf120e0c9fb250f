"""The session, the entry point for agents: messages go in, a request comes out, the reply goes back in.

A ``Session`` is safe to use from several threads; ``AsyncSession`` has the same methods as coroutines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice, takewhile
from typing import Any, Self

from msgspec.structs import replace

from lading.audit.verdicts import Explanation
from lading.audit.why import why
from lading.compaction import DEFAULT, Strategy, When, apply_options
from lading.effects import ContextProvider, Provide, Summarize, Summarizer
from lading.engine import Engine, reopen
from lading.errors import ContextOverflow, InputError, PackError, PastChanged
from lading.events import Event, Forked, UsageMissing
from lading.history.log import Edit, Entry, Reported
from lading.history.observations import ObservationResult, list_observations
from lading.memory.agent_memory import AgentMemory
from lading.messages import Message, MessageLike, Template, Tool
from lading.models.card import Card
from lading.request.manifest import Cause
from lading.request.pack import Pack
from lading.request.tool_index import ToolIndex
from lading.session import options as opening
from lading.session.forking import start_beside
from lading.session.forms import find_reformed
from lading.session.lock import SessionLock
from lading.session.matching import (
    Changed,
    GivenHistory,
    GivenItems,
    Matched,
    fingerprint,
    list_known,
    list_new,
    match,
    may_be_answer,
    read_roles,
    starts_otherwise,
)
from lading.session.own_tools import ALL, name_own_tools
from lading.session.reconciling import reconcile
from lading.session.task_steps import GivenStep, GivenTask, StepState, TaskSteps
from lading.settings import Settings
from lading.stores import SessionStore, SharedStore, resolve_store
from lading.stores.leases import Lease
from lading.subscribers import WHILE_PUBLISHING, PublishedEvents
from lading.task.acceptance import Acceptance
from lading.task.artifacts import Artifacts
from lading.task.packing import TaskOptions
from lading.task.task import TaskStep
from lading.validation import check_count
from lading.wire import find_wire
from lading.wire.coercion import messages_from
from lading.wire.declarations import Declared, declare
from lading.wire.given_replies import error_text, is_stream, reply_from
from lading.wire.overflow import read_overflow
from lading.wire.replies import Reply


class Session:
    """One conversation with one model, in a store."""

    def __init__(
        self,
        model: str | Card,
        *,
        store: SessionStore | str | os.PathLike[str] | None = None,
        name: str = "session",
        strategy: str | Strategy = DEFAULT,
        when: When | None = None,
        summarizer: Summarizer | Summarize | str | None = None,
        providers: Iterable[ContextProvider | Provide] = (),
        memory: AgentMemory | None = None,
        window: int | None = None,
        output_reserve: int | None = None,
        wire: str | None = None,
        options: opening.SessionOptions = opening.DEFAULTS,
    ) -> None:
        """Open the stored session of that name, or start it. ``store``: a store, a SQLite store's folder, None: in
        memory. ``window`` and ``output_reserve`` in tokens; their defaults, and the wire, are the model card's.
        ``when`` to compact: "pays", "full", or a share of the window. ``summarizer``: a function,
        ``Summarizer("provider:model", client=...)``, None: rules. ``providers``: functions that give text for each
        request. ``memory``: ``open_memory(...)``, of the same tenant. Raises InputError, UnknownName, StoreError;
        SessionBusy when another process writes the session."""
        card, events = opening.find_session_card(model)
        self.events: list[Event] = [*events]
        """Events about the model's name, and of everything that happens outside of a pack."""
        options = opening.add_summarizer(options, summarizer)
        self.options = options = opening.add_providers(options, providers)
        used = apply_options(strategy, when=when, verbatim=options.verbatim)
        self.settings = opening.make_settings(
            card, name=name, strategy=used, window=window, output_reserve=output_reserve, wire=wire, options=options
        )
        self._reserves = output_reserve is not None
        self.model = model.name if isinstance(model, Card) else model  # In requests.
        self.memory = opening.bind_memory(memory, self.settings.owner)
        self.wire = find_wire(self.settings.wire)
        self._lock = SessionLock()
        self._lease: Lease | None = None
        self.store = resolve_store(store)
        self._shared = SharedStore(self.store, is_owned=store is None or isinstance(store, str | os.PathLike))
        self._open()

    def _open(self) -> None:
        with ExitStack() as undo:
            undo.callback(self._release)
            self._shared.add_user(self)
            self._hold()
            start = reopen if self.store.exists(*self.settings.owner) else Engine
            self._engine = start(self.settings, self.store, own_tools=name_own_tools(self.memory))
            tools, self._fields, events = opening.load_offer(self._engine, self.store, model=self.model)
            self.events = PublishedEvents([*self.events, *events], self._engine.subscribers.publish)
            self.settings = self._engine.settings
            self._tools = tuple(tool for tool in tools if tool not in ALL)
            undo.pop_all()
        self.known = list_known(self._engine.history)  # Fingerprints of the messages in the caller's history.
        self._own_tools = opening.find_own_tools(self.options, self._engine, memory=self.memory, offered=tools)
        self._followed: tuple[Settings, Template | None, object] | None = None  # What the engine's settings follow.
        self._replies: set[tuple[str, str]] = set()  # Since the last request.
        self._given = GivenItems(self.wire)
        self._declared = Declared([], ())  # The tools that the caller gave last.
        self._last: Pack | None = None
        self._own_text = opening.find_own_text(self.options, self._engine, store=self.store, memory=self.memory)
        self._steps: TaskSteps | None = None
        if self._engine.recorder.task:
            self._find_steps()  # The last request had a step, which is to be reported unless one is begun.
        self._retried, self._tail = False, ""  # The caller's text for the last request alone.

    def _hold(self) -> None:
        """Lock the session for as long as it is open. Raises SessionBusy."""
        self._lease = self.store.lease(*self.settings.owner, wait_s=self.options.wait_s)

    @property
    def name(self) -> str:
        """The session's name in its store."""
        return self.settings.session

    @property
    def entries(self) -> Sequence[Entry]:
        """The log: all messages, raw."""
        return self._engine.history.entries

    @property
    def edits(self) -> Sequence[Edit]:
        """The edits so far: what requests show in place of messages of the log."""
        return self._engine.history.edits

    @property
    def observations(self) -> list[ObservationResult]:
        """The result of each tool call in the log, with its category and kind by the tool's name."""
        return [*list_observations(self.entries)]

    @property
    def artifacts(self) -> Artifacts:
        """The session's named artifacts, and the results of tools in its steps."""
        return Artifacts(self.store, self.settings.owner)

    @property
    def step(self) -> TaskStep | None:
        """The step of a task that was begun; None: there is none."""
        return self._steps.step if self._steps else None

    def begin(self, step: GivenStep, *, task: GivenTask = None, options: TaskOptions | None = None) -> None:
        """Begin a step (a TaskStep, a mapping, the id of a step of the task; None ends the task): from the next
        request on, its payload is in the final user message. ``task`` and ``options`` default to those before.
        Raises InputError, UnknownName, PlanError; ``pack`` PackInvalid, and FloorsExceedWindow: split the step."""
        self._find_steps().begin(step, task=task, options=options)

    def check_acceptance(self, output: str | None = None) -> Acceptance:
        """Check an answer (None: the newest) by the step's checklist, and store the outcome; where it fails, the
        next request asks to repair it, ``repairs_left`` times. Raises InputError without a step, StoreError."""
        return self._find_steps().check_acceptance(output)

    @property
    def tools(self) -> ToolIndex:
        """The tools that were given last: ``search`` finds some by words, ``find`` one by its name."""
        return self._find_steps().index((*self._tools, *self._own_tools.offered))

    def _find_steps(self, state: StepState | None = None) -> TaskSteps:
        if self._steps is None or state is not None:
            memory = self._own_text.memory if self._own_text else None
            self._steps = TaskSteps(self._engine, self.store, lock=self._lock, memory=memory, state=state)
        return self._steps

    def subscribe(self, of: str | type[Any], function: Callable[[Any], object]) -> Callable[[], None]:
        """Call a function with each event of a name or type; return a function that ends it."""
        return self._engine.subscribe(of, function)

    def add(self, messages: object, *, changed: Changed = "error", pin: bool = False) -> Session:
        """Add messages: the whole history or only new messages; known ones are recognised.

        ``messages``: a text of the user, one message or a list, or a request body; as dicts of any wire, SDK
        objects or ``Message`` values. They are stored when this returns. ``pin``: the new ones stay verbatim in all
        requests. Returns the session that has them: this one, or with ``changed="fork"`` a new one where the
        history differs from the known one; else PastChanged is raised. Raises InputError, WireError,
        IllegalRequest, StoreError."""
        with self._lock:
            history, size = self._engine.history, len(self.known)
            start, rest, known = self._given.find_new(messages, self.known, history=history)
            read = messages_from(rest, wire=self.wire, leads=not (start or history.entries))
            given = GivenHistory(read, list(map(fingerprint, read)), known, start)
            is_answer = not self._is_unsent() and may_be_answer(given)
            roles = [*read_roles(read, history.entries, is_answer=is_answer)]
            while (matched := match(given.known, given.known_as, start=start, roles=roles)).kind == "differs":
                wire, card = self.wire, self.settings.card
                if not (found := reconcile(given, matched.position, history=history, wire=wire, card=card)):
                    break
                given, roles = found, [*read_roles(found.messages, history.entries, is_answer=is_answer)]
            if matched == Matched("overlaps", 0) and starts_otherwise(given, roles):
                matched = Matched("differs", 0)
            if matched.kind == "differs":
                if changed == "fork":
                    return self.fork(messages)
                raise PastChanged(position=matched.position, known=size, given=start + len(given.messages))
            new, continues, same = matched.position - start, matched.kind == "continues", len(given.known)
            first = start if continues else same - new
            if new and self.known[first : first + new] == list(given.known_as[:new]):
                new = self.update(given.messages, start=first, end=first + new) - first
            if pin and new == len(given.messages):
                raise InputError("There is nothing new to pin. Pin a message when it is added for the first time.")
            if same < size:
                self.withdraw(same)  # That answer was read again, with what goes on.
            added = list_new(given, new, history=history, roles=roles)
            kept = [*given.messages[:new], *added.messages]
            self._given.keep(rest, kept, start=start if continues else None, known=same + len(added.messages))
            self.extend(added.messages, known_as=added.known_as, pin=pin)
        return self

    def instruct(self, messages: object) -> None:
        """Replace the system messages at the start (a text: one) from the next request on. It is then new to the
        prompt cache; its manifest records it. Raises PastChanged for another number, InputError for others."""
        given = opening.read_instructions(messages, wire=self.wire)
        with self._lock:
            systems = sum(1 for _ in takewhile(lambda entry: entry.message.role == "system", self.entries))
            if len(given) != systems:
                text = (
                    f"The session begins with {systems} system messages, and {len(given)} were given for them. "
                    "Give as many, or start a new session."
                )
                at = min(len(given), systems)
                raise PastChanged(text, position=at, known=len(self.known), given=len(given))
            self.update(given, start=0, end=systems, marked=True)
            self.known[:systems] = map(fingerprint, given)
            self._given.clear()
            self._engine.save()

    def withdraw(self, position: int) -> bool:
        """Continue from the first ``position`` messages of the caller's history: later ones stay in the log and are
        hidden from requests. Stored with the next message or request. Returns False where one edit replaces
        messages on both sides; nothing is changed then. Raises InputError for no number from 0 on."""
        check_count(position, name="position")
        with self._lock:
            self._check_idle()
            if (entry := next(islice(self._engine.history.known, position, None), None)) is not None:
                if not self._engine.withdraw(entry.index):
                    return False
                self._given.clear()
                self.known = self.known[:position]
            return True

    def fork(self, messages: object) -> Session:
        """Start a session with these messages in the same store, with the same settings and step and another
        name."""
        with self._lock, ExitStack() as undo:
            start = partial(Session, memory=self.memory)
            fork = undo.enter_context(start_beside(start, self.settings, store=self.store, options=self.options))
            fork._shared = self._shared  # The last one closed closes the store.
            fork._shared.add_user(fork)
            fork.settings = replace(fork.settings, budget=self.settings.budget)
            fork.model, fork._reserves = self.model, self._reserves
            fork._engine.start_from(self._engine.calibration)
            fork.offer(self._tools, self._fields, own_tools=self._own_tools.may_offer)
            fork._engine.subscribers.join(self._engine.subscribers)
            if self._steps:
                fork._find_steps(self._steps.state.copy())
            fork.add(messages)
            fork.events.append(Forked(self.name, fork.name))
            undo.pop_all()
        return fork

    def pack(
        self,
        tools: Iterable[object] | None = None,
        *,
        fields: Mapping[str, Any] | None = None,
        at_s: float | None = None,
        tail: str = "",
    ) -> Pack:
        """Build the request for the next call. ``tools``: declarations of any wire, or ``lading.Tool``; ``fields``:
        the body's other fields (temperature ...). None: those of the last call. ``tail``: text at the end of this
        request alone. Own tools are added to given ones: ``restore`` where the strategy can remove anything,
        those of the memory. Raises like ``Engine.pack``, and LoopStopped."""
        with self._lock, ExitStack() as undo:
            undo.callback(self.offer, self._tools, self._fields, own_tools=self._own_tools.may_offer)
            if tools is not None and tools != self._declared.given:
                self._declared = declare(tools, wire=self.wire)
            if fields is not None or self._fields is None:
                self._fields = opening.body_fields(self.model, settings=self.settings, fields=fields)
            self.offer(self._tools if tools is None else self._declared.tools, self._fields)
            pack = self.request(at_s=at_s, tail=tail)
            undo.pop_all()
        return pack

    @property
    def own_tools(self) -> frozenset[str]:
        """Names of the tools that ``handle`` answers. The last request offered them, if it asks for one answer."""
        return self._own_tools.names | (self._steps.own_tools if self._steps else frozenset())

    def reply(self, response: object) -> Reply:
        """Add the provider's answer: a response (SDK object, dict, JSON), or the events of a stream, which is read
        to its end. It is stored when this returns; its usage calibrates the counts. Given twice since the last
        request, it is added once; a cut stream (not ``complete``) never. Raises WireError."""
        answered = reply_from(response, wire=self.wire)
        with self._lock:
            named = answered.id, (known_as := fingerprint(answered.message))
            is_known = self.has_answer(known_as) or (answered.id and named in self._replies)
            if answered.complete and not is_known:
                self.extend([answered.message], known_as=[known_as], usage=answered.usage)
                if answered.usage is None and response is not answered:
                    self.report_missing_usage(is_stream=is_stream(response))
                self._replies.add(named)
        return answered

    def has_answer(self, known_as: str) -> bool:
        """Whether the newest message is this answer, added since the last request."""
        return self.known[-1:] == [known_as] and self._is_unsent()

    def _is_unsent(self) -> bool:
        """Whether the newest known message is in no request yet."""
        return any(entry.index >= self._engine.shown for entry in self._engine.history.list_newest_known(1))

    def handle(self, reply: Reply | MessageLike) -> list[Message]:
        """Answer the reply's calls of ``own_tools``. Pass the results to ``add`` together with your own."""
        message = opening.read_message(reply, wire=self.wire)
        with self._lock:
            found = self._steps.answer(message.calls) if self._steps else []
            step = self._steps.step_name if self._steps else ""
            answer = self._own_tools.prepare(message, self._engine, step=step)
        at = {call.id: number for number, call in enumerate(message.calls)}
        # Without the lock: a search may take a while.
        return sorted([*answer(), *found], key=lambda one: at[one.results[0].call_id])

    def retry(self, error: object) -> Pack:
        """Build the last request again, strictly smaller, after a "prompt too long" error: the exception of the
        provider's SDK, its text or its body. Raises other errors again, ContextOverflow when the smaller request
        was too long as well, WindowExceeded when nothing can be removed."""
        found, cause = read_overflow(error_text(error)), error if isinstance(error, BaseException) else None
        if found is None:
            raise cause or InputError("The error does not say that a prompt is too long; retry() is for that only.")
        with self._lock, ExitStack() as undo:
            if self._last is None:
                raise PackError("There is no request to make smaller yet. Call pack() first.")
            if self._retried:
                raise ContextOverflow() from cause
            undo.callback(self._engine.change, self._engine.settings)
            undo.callback(setattr, self, "settings", self.settings)
            most, accepted = found.estimate_smaller(self._last.tokens), self._engine.accepted_tokens
            self.settings = opening.lower_window(self.settings, found.limit, accepted_tokens=accepted)
            self.offer(self._tools, self._fields, own_tools=self._own_tools.may_offer)
            pack = self.request(most_tokens=most, cause="retry", refused_tokens=found.tokens or 0)
            undo.pop_all()
        return pack

    def why(self, text: str, *, call: int | None = None) -> Explanation:
        """Report whether the request of a call (default: the last one) had this text, and if not, why."""
        with self._lock:
            self._engine.save()
            return why(self.store, text, tenant=self.settings.tenant, session=self.name, call=call)

    def close(self) -> None:
        """Release the session and, where the session opened it, close its store."""
        self._engine.asking.close()
        self._release()

    def _release(self) -> None:
        if self._lease is not None:
            self._lease.release()
            self._lease = None
        self._shared.remove_user(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # For ``exchange/``, which adds, offers and requests in steps of its own.

    def extend(
        self,
        messages: Sequence[Message],
        *,
        known_as: Sequence[str],
        usage: Reported | None = None,
        reply_id: str = "",
        pin: bool = False,
        stored: bool = True,
        issued: Collection[str] = (),
    ) -> None:
        """Append new messages, each with its fingerprint in the caller's history (empty: it is not in there).
        ``usage``, ``reply_id``: of the reply that they are. ``pin``: keep them verbatim. ``stored``: at once, else
        with the next request. ``issued``: fingerprints of replies that are as a provider gave them."""
        with self._lock:
            self._check_idle()
            for message, known in zip(messages, known_as, strict=True):
                append = partial(self._engine.append, usage=usage, reply_id=reply_id, is_issued=known in issued)
                append([message], known_as=[known])
                self.known += [known] if known else []
                if pin or (self._steps and self._steps.keeps_newest()):
                    self._engine.history.pin(len(self.entries) - 1, call=self._engine.call)
            if stored:
                self._engine.save()  # Even without new messages: an earlier save may have failed.

    def update(self, given: Sequence[Message], *, start: int, end: int, marked: bool = False) -> int:
        """Replace the known messages from ``start`` to ``end`` that are given changed, or in another form
        (``marked``: or with other cache marks). Return where new ones begin: before ``end`` if one cannot be
        replaced alone."""
        self._check_idle()
        history, wire, card = self._engine.history, self.wire, self.settings.card
        known = history.list_newest_known(len(self.known) - start)[: max(end - start, 0)]
        for at, message in find_reformed(given, known, history=history, wire=wire, card=card, marked=marked):
            known_as = fingerprint(given[at])
            if not self._engine.restate(known[at].index, message, is_other=known_as != self.known[start + at]):
                return start + at if self.withdraw(start + at) else end
            self.known[start + at] = known_as
        return end

    def offer(
        self, tools: tuple[Tool, ...], fields: Template | None, *, own_tools: bool = True, end_mark: object = None
    ) -> None:
        """Set tools and other fields of the next requests. ``own_tools``: whether the session's may be added.
        ``end_mark``: the cache mark at the request's end, if it is not in the fields."""
        if (asked := (self.settings, fields, end_mark)) != self._followed:
            follow = partial(opening.follow_fields, self.settings, fields, end_mark=end_mark)
            self._engine.change(follow(wire=self.wire, is_set=self._reserves))
            self._followed = asked
        self._tools, self._fields = tools, fields
        if (tools, own_tools) != (self._own_tools.tools, self._own_tools.may_offer):
            self._own_tools = self._own_tools.choose(tools, may_offer=own_tools)

    def request(
        self,
        *,
        at_s: float | None = None,
        most_tokens: int | None = None,
        cause: Cause = "",
        refused_tokens: int | None = None,
        tail: str = "",
    ) -> Pack:
        """Build a request with the tools and fields of ``offer``; for a ``cause``, with the last tail. Raises like
        ``pack``."""
        with self._lock:
            self._check_idle()
            own, engine, self._tail = self._own_text, self._engine, self._tail if cause else tail
            tools, fields = (*self._tools, *self._own_tools.offered), self._fields
            if self._steps:
                tools = self._steps.prepare(tools, extend=None if cause else self.extend)
            if own and not cause:
                own.instruct(engine, extend=self.extend)
                own.prepare(engine, tail, in_step=self.step is not None, extend=self.extend, stops=self.events)
            if self._steps:
                tools, fields = self._steps.limit(tools, fields)
            make = partial(engine.pack, tools=tools, template=fields, at_s=at_s, most_tokens=most_tokens)
            make = partial(make, cause=cause, refused_tokens=refused_tokens)
            self._last = own.pack(make, engine, tail=self._tail) if own else make(tail=self._tail)
            self._retried = cause == "retry"
            self._replies.clear()  # Some servers name all answers alike.
            return self._last

    def report_missing_usage(self, *, is_stream: bool = True) -> None:
        """Add the event of a reply without usage to ``events``, once."""
        if not any(isinstance(event, UsageMissing) for event in self.events):
            advice = opening.usage_advice(self.wire, self._fields or {}, is_stream=is_stream)
            self.events.append(UsageMissing(self.name, advice))

    def _check_idle(self) -> None:
        """Raise InputError where a subscriber calls, in the middle of a call."""
        if self._engine.subscribers.is_publishing:
            raise InputError(WHILE_PUBLISHING)

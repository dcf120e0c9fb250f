"""Text that a session adds to its requests by itself: warnings of loops, and what context providers say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from lading.engine import Engine
from lading.errors import WindowExceeded
from lading.events import Event
from lading.messages import Message, Tool, own_words
from lading.request.pack import Pack
from lading.session.loop_detection import LoopDetection, detect
from lading.session.memory_text import MemoryText
from lading.session.providers import ContextProviders, Provided
from lading.session.step_payload import StepPayload


class MakePack(Protocol):
    """Build the request with text for it alone."""

    def __call__(self, *, tail: str, front: str = "") -> Pack: ...


class OwnText:
    """The text that one session adds."""

    def __init__(
        self,
        loop_detection: LoopDetection | None,
        providers: ContextProviders | None,
        memory: MemoryText | None = None,
    ) -> None:
        self._loop_detection, self._providers, self.memory = loop_detection, providers, memory
        self._looped: int | None = None
        """The newest answer that was part of a loop."""
        self._warning = ""
        """The transient warning about it, for requests of the log with ``_judged_entries``."""
        self._judged_entries = 0
        self._provided = Provided()
        self._hits = ""
        """The text of the memory for this request."""
        self.payload: StepPayload | None = None
        """The payload of a task's step (``Session.begin``)."""

    @property
    def step_name(self) -> str:
        """The name of the current step, with its task's; empty: there is none."""
        return f"{self.payload.task.id}/{self.payload.step.id}" if self.payload else ""

    def prepare(
        self,
        engine: Engine,
        tail: str,
        *,
        tools: Sequence[Tool] = (),
        extend: Callable[..., None],
        stops: list[Event],
    ) -> None:
        """Say standing instructions, make the step's payload, detect loops, search the memory, ask the providers;
        add to the log what stays (``Session.extend``), before a request of the caller with this tail. Raises
        LoopStopped, whose event is added to ``stops``, and like ``StepPayload.prepare``."""
        stay: list[Message] = []
        if self.memory is not None:
            self.memory.say_instructions(engine, extend=extend)
        if self.payload is not None:
            self.payload.prepare(engine, tools, extend=extend)
        if (options := self._loop_detection) is not None:
            self._looped, warnings = detect(engine, options=options, judged=self._looped, stops=stops)
            if not options.transient:
                stay += warnings
            elif warnings or len(engine.history.entries) != self._judged_entries:
                self._warning = warnings[0].text if warnings else ""
            self._judged_entries = len(engine.history.entries)
        if self.memory is not None:
            self._hits = self.memory.find_hits(engine) if self.payload is None else self.memory.show_none(engine)
        if self._providers is not None:
            stay += self._providers.say_stable(engine)
            given = join_texts(self._hits, tail)
            tokens = engine.count(own_words(given)) if given else 0
            self._provided = self._providers.ask(engine, given_tokens=tokens)
        # Stored with the request. If this one fails, they are part of the next one, with their event.
        extend(stay, known_as=[""] * len(stay), stored=False)

    def pack(self, make: MakePack, engine: Engine, *, tail: str) -> Pack:
        """Build the request with the text of ``prepare`` and the caller's tail; without that of the memory and
        the providers where nothing else leaves room."""
        provided, tail = self._provided, join_texts(tail, self._warning)
        if self._hits or any(provided):
            try:
                return make(tail=join_texts(self._hits, provided.tail, tail), front=provided.front)
            except WindowExceeded:
                if self._hits and self.memory is not None:
                    self.memory.drop(engine)
                if any(provided) and self._providers is not None:
                    self._providers.drop(engine)
                self._provided, self._hits = Provided(), ""
        return make(tail=tail)


def join_texts(*texts: str) -> str:
    """Join texts that are not blank, one paragraph each."""
    return "\n\n".join(text for text in texts if text.strip())

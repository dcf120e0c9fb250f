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
from lading.session.providers import ContextProviders, Provided
from lading.session.step_payload import StepPayload


class MakePack(Protocol):
    """Build the request with text for it alone."""

    def __call__(self, *, tail: str, front: str = "") -> Pack: ...


class OwnText:
    """The text that one session adds."""

    def __init__(self, loop_detection: LoopDetection | None, providers: ContextProviders | None) -> None:
        self._loop_detection, self._providers = loop_detection, providers
        self._looped: int | None = None
        """The newest answer that was part of a loop."""
        self._warning = ""
        """The transient warning about it, for requests of the log with ``_judged_entries``."""
        self._judged_entries = 0
        self._provided = Provided()
        self._fresh: int | None = None
        """The log entry of the first stable text that no request has shown."""
        self.payload: StepPayload | None = None
        """The payload of a task's step (``Session.begin``)."""

    def prepare(
        self,
        engine: Engine,
        tail: str,
        *,
        tools: Sequence[Tool] = (),
        extend: Callable[..., None],
        stops: list[Event],
    ) -> None:
        """Make the step's payload, detect loops, ask the providers, and add to the log what stays
        (``Session.extend``), before a request of the caller with this tail. Raises LoopStopped, whose event is
        added to ``stops``, and like ``StepPayload.prepare``."""
        stay: list[Message] = []
        if self.payload is not None:
            self.payload.prepare(engine, tools, extend=extend)
        if (options := self._loop_detection) is not None:
            self._looped, warnings = detect(engine, options=options, judged=self._looped, stops=stops)
            if not options.transient:
                stay += warnings
            elif warnings or len(engine.history.entries) != self._judged_entries:
                self._warning = warnings[0].text if warnings else ""
            self._judged_entries = len(engine.history.entries)
        if self._providers is not None:
            fresh = self._providers.say_stable(engine)
            self._fresh = len(engine.history.entries) + len(stay) if fresh else None
            stay += fresh
            tokens = engine.count(own_words(tail)) if tail else 0
            self._provided = self._providers.ask(engine, given_tokens=tokens)
        # Stored with the request. If this one fails, they are part of the next one, with their event.
        extend(stay, known_as=[""] * len(stay), stored=False)

    def pack(self, make: MakePack, engine: Engine, *, tail: str) -> Pack:
        """Build the request with the text of ``prepare`` and the caller's tail; without that of the providers where
        nothing else leaves room."""
        provided, tail = self._provided, join_texts(tail, self._warning)
        if any(provided) and self._providers is not None:
            try:
                return make(tail=join_texts(provided.tail, tail), front=provided.front)
            except WindowExceeded:
                self._provided = Provided()
                self._providers.drop(engine)
        try:
            pack = make(tail=tail)
        except WindowExceeded:
            if self._fresh is None or self._providers is None or not engine.withdraw(self._fresh):
                raise
            taken_back = self._providers.take_back(engine, self._fresh)
            pack = make(tail=tail)
            self._providers.given_up |= taken_back
        self._fresh = None
        return pack


def join_texts(*texts: str) -> str:
    """Join texts that are not blank, one paragraph each."""
    return "\n\n".join(text for text in texts if text.strip())

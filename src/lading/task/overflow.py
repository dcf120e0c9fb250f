"""The overflow order of aether-frame's document for a payload, literally (``TaskOptions(overflow="document")``).

Everything is shown whole until it does not fit. Then, each only while it still does not: (i) memory becomes a
summary, (ii) older evidence a summary of what the step asks for, (iii) examples of tools are trimmed, (iv) the
summary is tightened; then memories are dropped, the lowest score first, and evidence, the lowest coverage and then
the oldest first. Turns of the conversation are for the strategy (``presets/aether_frame``). Task and step stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lading.task.evidence import Drop, Evidence, Memory, write_evidence, write_memory

MEMORY_SUMMARY = "overflow (i), memory becomes a summary"
OLDER_EVIDENCE = "overflow (ii), older evidence becomes a summary"
TOOL_EXAMPLES = "overflow (iii), tool examples are trimmed"
STEP_SUMMARY = "overflow (iv), the summary is tightened"
DROPPED = "overflow"
SUMMARY_CHARS = 80
"""Characters of a memory in the summary."""


class OverflowSteps:
    """The parts of a payload, while they are made to fit."""

    def __init__(
        self,
        evidence: Sequence[Evidence],
        memory: Sequence[Memory],
        *,
        values: Mapping[str, str],
        room_tokens: int,
        count: Callable[[str], int],
    ) -> None:
        """``values``: of the places ``tools`` and ``summary``, which may be shortened. ``room_tokens``: for them,
        the evidence and the memory. ``count``: tokens of a text."""
        self.bullets = {one.uri: write_evidence(one) for one in evidence}
        """Texts of the evidence that is shown, by address, the oldest first,"""
        self.notes = {one.id: write_memory(one) for one in memory}
        """of the memories by id,"""
        self.values = dict(values)
        """and of places of the template."""
        self.dropped: list[Drop] = []
        """Parts that were shortened or dropped."""
        self._evidence, self._memory, self._count = evidence, memory, count
        self._spare = room_tokens - sum(map(count, (*self.bullets.values(), *self.notes.values())))
        self._spare -= sum(map(count, self.values.values()))

    def resolve(
        self, *, covers: Sequence[Mapping[str, float]], terms: Sequence[str], brief: Mapping[str, str]
    ) -> None:
        """Take the steps until it fits. ``covers``: checklist items of each piece of evidence. ``terms``: what the
        step asks for. ``brief``: shorter values of the places."""
        if self._spare < 0:
            for one in self._memory:
                note = write_memory(one.shorten(SUMMARY_CHARS))
                self._shorten("memory", MEMORY_SUMMARY, self.notes, name=one.id, text=note)
        for piece in self._evidence:
            if self._spare < 0:
                extract = write_evidence(piece, terms)
                self._shorten("evidence", OLDER_EVIDENCE, self.bullets, name=piece.uri, text=extract)
        for layer, reason, name in (("tools", TOOL_EXAMPLES, "tools"), ("conversation", STEP_SUMMARY, "summary")):
            if self._spare < 0:
                self._shorten(layer, reason, self.values, name=name, text=brief[name])
        for one in sorted(self._memory, key=lambda one: (one.score, one.id)):
            self._drop("memory", self.notes, name=one.id)
        order = sorted(range(len(self._evidence)), key=lambda at: (sum(covers[at].values()), at))
        for at in order:
            self._drop("evidence", self.bullets, name=self._evidence[at].uri)

    def _shorten(self, layer: str, reason: str, texts: dict[str, str], *, name: str, text: str) -> None:
        saved = self._count(texts[name]) - self._count(text)
        if saved > 0:
            texts[name] = text
            self._spare += saved
            self.dropped.append((layer, reason, name))

    def _drop(self, layer: str, texts: dict[str, str], *, name: str) -> None:
        if self._spare < 0:
            self._spare += self._count(texts.pop(name))
            self.dropped.append((layer, DROPPED, name))

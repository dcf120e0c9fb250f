"""Decode replies of generateContent: whole, and as chunks that are edited on their way to the caller.

A chunk has whole parts; texts are cut anywhere. There is no mark of the end but the reason to finish.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from lading.history.log import Reported
from lading.messages import Message
from lading.wire.gemini.decoding import decode, find_key
from lading.wire.replies import Replies, Reply, SseEvent, make_event, read_counts, read_object, text_or_empty
from lading.wire.streams import EditedStream, StreamFormat, Value, object_at, objects_at, read_index
from lading.wire.templates import as_list, as_object, shape_error

USAGE = "usageMetadata"
_IDENTITY = ("responseId", "modelVersion", "createTime")
_ERROR_CHARS = 2_000
NOTHING: list[Value] = [{"text": ""}]
"""The parts of a content of which none is left. Google's chats send no turn that has an empty content."""


class PartCollector:
    """Collects chunks into the body of the response."""

    def __init__(self) -> None:
        self.finished = False
        self.failed = False
        self._head: Value = {}
        self._candidates: dict[int, Value] = {}

    @property
    def usage(self) -> Value:
        """The usage reported so far: each chunk has the totals."""
        return object_at(self._head, USAGE)

    def add(self, value: Value) -> None:
        """Add the next chunk."""
        self.failed = self.failed or bool(value.get("error"))
        used = self.usage | object_at(value, USAGE)
        self._head |= {key: item for key, item in value.items() if key != "candidates" and item is not None}
        self._head |= {USAGE: used} if used else {}
        for piece in objects_at(value, "candidates"):
            index = read_index(piece) or 0
            candidate = self._candidates.setdefault(index, {"content": {}})
            content = object_at(candidate, "content")
            parts = [*objects_at(content, "parts"), *objects_at(object_at(piece, "content"), "parts")]
            content |= object_at(piece, "content") | {"parts": parts}
            candidate |= {key: item for key, item in piece.items() if item is not None}
            candidate["content"] = content
            self.finished = self.finished or bool(candidate.get("finishReason"))
        self.finished = self.finished or is_blocked(value)

    def body(self) -> Value:
        """Return the response body so far, with at least one candidate."""
        candidates = [self._candidates[index] for index in sorted(self._candidates)]
        return self._head | {"candidates": candidates or [{"content": {"role": "model", "parts": []}}]}


class PartEdits:
    """Edits that remove calls of held tools; all streams of an answer get the id and model of the first."""

    def __init__(self, names: AbstractSet[str], before: Value) -> None:
        self._names = names
        self._identity = {key: before[key] for key in _IDENTITY if key in before}

    def number(self, value: Value) -> Value:
        """Return the chunk unchanged: parts have no numbers."""
        return value

    def split(self, value: Value) -> tuple[Value | None, Value | None]:
        """Hold back everything from the first call of a held tool on."""
        now, later = [], []
        for candidate in objects_at(value, "candidates"):
            parts = _list_parts(candidate)
            begins = next((at for at, part in enumerate(parts) if is_call(part, self._names)), None)
            if begins is None:
                now.append(candidate)
                continue
            if begins:
                passed = {key: item for key, item in candidate.items() if key != "finishReason"}
                now.append(_with_parts(passed, parts[:begins]))
            later.append(_with_parts(candidate, parts[begins:]))
        if not later:
            return value, None
        rest = value | {"candidates": later}
        if not now:
            return None, rest
        return {key: item for key, item in value.items() if key != USAGE} | {"candidates": now}, rest

    def edit(self, value: Value) -> Value | None:
        """Return the chunk for the caller; None if nothing of it remains."""
        edited = value | {key: item for key, item in self._identity.items() if key in value}
        candidates = objects_at(value, "candidates")
        if not any(is_call(part, self._names) for one in candidates for part in _list_parts(one)):
            return edited
        left = [_remove_calls(one, self._names) for one in candidates]
        said = [one for one in left if _list_parts(one) != NOTHING or one.get("finishReason")]
        return edited | {"candidates": said or left} if said or value.get(USAGE) else None


def _list_parts(candidate: Value) -> list[Value]:
    return objects_at(object_at(candidate, "content"), "parts")


def _with_parts(candidate: Value, parts: list[Value]) -> Value:
    return candidate | {"content": object_at(candidate, "content") | {"parts": parts}}


def is_call(part: Mapping[str, Any], names: AbstractSet[str]) -> bool:
    """Whether a part is a call of a tool of these names."""
    return text_or_empty(object_at(part, find_key(part, "functionCall")), "name") in names


def is_blocked(body: Mapping[str, Any]) -> bool:
    """Whether the provider refused the prompt: such an answer has no candidates."""
    feedback = object_at(body, find_key(body, "promptFeedback"))
    return bool(feedback.get(find_key(feedback, "blockReason")))


def read(body: Mapping[str, Any]) -> Reply:
    """Read the reply in a response body; a blocked prompt, or a candidate that only says why it stopped, is one
    without parts. Raises WireError, also where the provider gave no answer."""
    if not isinstance(body, Mapping):
        raise shape_error("body", "an object", found=body)
    given = body.get("candidates")
    candidates = as_list([{"content": {}}] if not given and is_blocked(body) else given, "candidates")
    if not candidates:
        raise shape_error("candidates", "at least one candidate", found=candidates)
    message, *others = (_read_candidate(one, f"candidates.{at}") for at, one in enumerate(candidates))
    return Reply(
        message,
        usage=_read_usage(body),
        id=text_or_empty(body, find_key(body, "responseId")),
        model=text_or_empty(body, find_key(body, "modelVersion")),
        choices=len(candidates),
        others=tuple(others),
    )


def _read_candidate(candidate: Any, where: str) -> Message:
    given = as_object(candidate, where)
    said = given.get("content")
    has_stopped = said is None and given.get(find_key(given, "finishReason"))
    content = {} if has_stopped else as_object(said, f"{where}.content")
    # SDKs write null for a field that is not there.
    source = {key: item for key, item in content.items() if item is not None} | {"role": "model"}
    return decode({"contents": [{"parts": []} | source]}).messages[0]


def without(body: Mapping[str, Any], names: AbstractSet[str]) -> dict[str, Any]:
    """Return the response body without the calls of the tools of these names."""
    left = dict(body)
    if isinstance(body.get("candidates"), list):
        left["candidates"] = [_remove_calls(candidate, names) for candidate in body["candidates"]]
    return left


def _remove_calls(candidate: Any, names: AbstractSet[str]) -> Any:
    if not isinstance(candidate, dict):
        return candidate
    parts = _list_parts(candidate)
    kept = [part for part in parts if not is_call(part, names)]
    return _with_parts(candidate, kept or NOTHING) if len(kept) < len(parts) else candidate


def _read_usage(body: Mapping[str, Any]) -> Reported | None:
    """Return the usage; input tokens include cached ones and results of the provider's tools, output tokens include
    thoughts. None if there are no valid counts."""
    usage = object_at(body, find_key(body, USAGE))
    fields = (
        "promptTokenCount",
        "toolUsePromptTokenCount",
        "cachedContentTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
    )
    counts = read_counts(usage, [find_key(usage, field) for field in fields])
    if counts is None:
        return None
    prompt, tools, cached, said, thought = counts
    if not prompt or cached > prompt:
        return None
    return Reported(prompt + tools, said + thought, read_tokens=cached)


def error_event(content: bytes) -> bytes:
    """Return an error response as the chunk by which the API reports an error within a stream."""
    text = content.decode("utf-8", "replace")
    found = read_object(SseEvent(content, "", text))
    if found is None:
        found = {"error": {"code": 500, "message": text[:_ERROR_CHARS], "status": "INTERNAL"}}
    return make_event(found).raw


def stream(names: AbstractSet[str]) -> EditedStream:
    """Return a new stream that holds back calls of the tools of these names."""
    return EditedStream(StreamFormat(partial(PartEdits, names), PartCollector, read, usage=(USAGE,)))


REPLIES = Replies(read, without, stream, usage=USAGE, error_event=error_event)

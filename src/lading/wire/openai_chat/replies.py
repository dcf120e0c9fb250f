"""What Chat Completions answers, to our values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from lading import jsonbytes
from lading.history.log import Reported
from lading.wire.openai_chat.decoding import CALL_FIELDS, decode
from lading.wire.openai_chat.streaming import CallEdits, Collected, name_of
from lading.wire.replies import Replies, Reply, counted, text_or_empty
from lading.wire.shapes import as_list, as_object, expected
from lading.wire.streams import Passage, PassingStream, object_at, objects_at

SENT_BACK: Final = ("refusal", "reasoning_content", "reasoning_details", "extra_content")
"""Fields of a message that go back as they came: the words of a refusal, DeepSeek's and OpenRouter's reasoning,
Google's signatures. Strict servers refuse any other field of theirs."""


def read(body: Mapping[str, Any]) -> Reply:
    """The reply that a response body holds. Raises WireError."""
    if not isinstance(body, Mapping):
        raise expected("body", "an object", found=body)
    choices = as_list(body.get("choices"), "choices")
    if not choices:
        raise expected("choices", "at least one choice", found=choices)
    source = as_object(as_object(choices[0], "choices.0").get("message"), "choices.0.message")
    return Reply(
        decode({"messages": [_sent_back(source)]}).messages[0],
        usage=_usage(body),
        id=text_or_empty(body, "id"),
        model=text_or_empty(body, "model"),
        choices=len(choices),
    )


def without(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The response body without the calls of the tool of that name."""
    left = dict(body)
    if isinstance(body.get("choices"), list):
        left["choices"] = [_choice_without(choice, name) for choice in body["choices"]]
    return left


def stream(name: str) -> PassingStream:
    """A new stream; calls of the tool of that name are held back."""
    return PassingStream(Passage(partial(CallEdits, name), Collected, read))


REPLIES = Replies(read, without, stream, asks_usage={"stream_options": {"include_usage": True}})


def _sent_back(source: dict[str, Any]) -> dict[str, Any]:
    """The message as a request may hold it."""
    message: dict[str, Any] = {"role": "assistant", "content": source.get("content")}
    message |= {key: source[key] for key in SENT_BACK if source.get(key) is not None}
    calls = list(map(_call, objects_at(source, "tool_calls")))
    if calls:
        message["tool_calls"] = calls
    if isinstance(source.get("function_call"), dict):
        message["function_call"] = source["function_call"]
    if isinstance((audio := object_at(source, "audio")).get("id"), str):
        message["audio"] = {"id": audio["id"]}
    if message["content"] is None and message.keys().isdisjoint(
        {"tool_calls", "function_call", "audio", "refusal"}
    ):
        message["content"] = ""
    return message


def _call(source: dict[str, Any]) -> dict[str, Any]:
    """A call with what every request must say of it. One without an id is not given one here: whoever answers it
    does so without one too, and both are mended together."""
    kind = next((kind for kind in CALL_FIELDS if isinstance(source.get(kind), dict)), "function")
    inner, written = object_at(source, kind), CALL_FIELDS[kind]
    words = inner.get(written)
    if not isinstance(words, str):
        words = "" if words is None else jsonbytes.dump(words).decode()
    said = {"name": inner.get("name") or "", written: words}
    call = {"id": source.get("id") or "", "type": kind, kind: said | _others(inner, said)}
    return call | _others(source, call)


def _others(source: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in source.items() if key not in known and key != "index" and item is not None}


def _choice_without(choice: Any, name: str) -> Any:
    message = object_at(choice, "message") if isinstance(choice, Mapping) else {}
    calls = objects_at(message, "tool_calls")
    kept = [call for call in calls if name_of(call) != name]
    if len(kept) == len(calls):
        return choice
    if kept:
        return {**choice, "message": message | {"tool_calls": kept}}
    left = {key: item for key, item in message.items() if key != "tool_calls"}
    # Without a call a message must have words.
    left["content"] = left.get("content") or ""
    reason = choice.get("finish_reason")
    return {**choice, "message": left, "finish_reason": "stop" if reason == "tool_calls" else reason}


def _usage(body: Mapping[str, Any]) -> Reported | None:
    """The prompt counts as input, the cached part of it too. DeepSeek names that part in a field of its own."""
    usage = object_at(body, "usage")
    counts = counted(usage, ("prompt_tokens", "completion_tokens", "prompt_cache_hit_tokens"))
    cached = counted(object_at(usage, "prompt_tokens_details"), ("cached_tokens", "cache_write_tokens"))
    if counts is None or cached is None:
        return None
    prompt, output, hits = counts
    read_tokens, written_tokens = cached[0] or hits, cached[1]
    if not prompt or read_tokens + written_tokens > prompt:
        return None
    return Reported(prompt, output, read_tokens=read_tokens, written_tokens=written_tokens)

"""Small logs to store."""

from lading import jsonbytes
from lading.history.log import Edit, Entry
from lading.messages import Message, Opaque, Text, ToolCall, ToolResult, user_text


def entry(index: int, text: str = "") -> Entry:
    """An entry with calls, results, templates and a lone surrogate here and there."""
    words = text or f"message {index}"
    message = (
        user_text(words),
        Message("assistant", (Text(words), ToolCall(f"c{index}", "run", '{"cmd": broken')), origin="openai_chat"),
        Message("tool", (ToolResult(f"c{index - 1}", (Text(words + " \ud83d"),), is_error=True),)),
        Message("user", (Opaque({"type": "new", "z": [1, 2.5, None]}),), template={"extra": {"b": 1, "a": 2}}),
    )[index % 4]
    digest = jsonbytes.digest(jsonbytes.dump_value(message))
    return Entry(index, message, digest, tokens=len(words), round=index // 2, turn=index // 4, at_s=index + 0.5)


def entries(start: int, end: int) -> tuple[Entry, ...]:
    return tuple(entry(index) for index in range(start, end))


def edit(index: int, text: str = "cleared") -> Edit:
    return Edit(
        index,
        call=index,
        kind="cleared",
        first=index,
        last=index,
        replacement=(user_text(text),),
        replacement_tokens=(3,),
        tokens_before=10,
        reason="window",
        pointers=(f"artifact://acme/s1/log/{index}",),
    )


def manifest(call: int) -> bytes:
    return jsonbytes.canonical({"call": call, "layers": {"system": 3}})

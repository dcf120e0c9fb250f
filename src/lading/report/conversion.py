"""Convert messages, edits and tools to a report's data: texts in full, images and signatures by type and size."""

from __future__ import annotations

from collections.abc import Sequence

from lading import jsonbytes
from lading.compaction.record_lines import parse_record
from lading.history.log import Edit, Entry
from lading.messages import File, Image, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult
from lading.report.data import EditData, EntryData, MessageData, PartData, ToolData


def convert_entry(entry: Entry) -> EntryData:
    """Convert an entry of the log."""
    return EntryData(convert_message(entry.message), entry.tokens, entry.turn, entry.at_s)


def convert_edit(edit: Edit, entries: Sequence[Entry]) -> EditData:
    """Convert an edit of this log."""
    record = parse_record(edit, entries)
    return EditData(
        kind=edit.kind,
        first=edit.first,
        last=edit.last,
        messages=tuple(map(convert_message, edit.replacement[1 if record else 0 :])),
        tokens=edit.replacement_tokens,
        tokens_before=edit.tokens_before,
        reason=edit.reason,
        forced_tokens=edit.forced_tokens,
        pointers=edit.pointers,
        record=record,
    )


def convert_message(message: Message) -> MessageData:
    """Convert a message."""
    return MessageData(message.role, tuple(map(_convert_part, message.parts)), message.name)


def convert_tool(tool: Tool) -> ToolData:
    """Convert a tool; for a provider's own tool, the provider's object takes the place of the schema."""
    return ToolData(tool.name, tool.description, tool.template if tool.schema is None else tool.schema)


def _convert_part(part: Part) -> PartData:
    match part:
        case Text():
            return PartData("text", part.text)
        case ToolCall():
            return PartData("call", part.arguments, name=part.name, id=part.id)
        case ToolResult():
            pieces = tuple(map(_convert_part, part.parts))
            return PartData("result", name=part.name, id=part.call_id, pieces=pieces, is_error=part.is_error)
        case Reasoning():
            hidden = len(part.signature or "") + len(part.data or "")
            return PartData("reasoning", part.text, note=f"{hidden:,} characters of signature" if hidden else "")
        case Image():
            return PartData("image", note=_describe(part.media_type or "picture", url=part.url, data=part.data))
        case File():
            return _convert_file(part)
        case Opaque():
            return PartData("opaque", jsonbytes.dump(part.value).decode("utf-8"))


def _convert_file(part: File) -> PartData:
    if part.media_type == "text/plain" and part.data:
        return PartData("file", part.data, name=part.name, note=part.media_type)
    where = part.url or part.file_id
    return PartData("file", name=part.name, note=_describe(part.media_type or "file", url=where, data=part.data))


def _describe(kind: str, *, url: str, data: str) -> str:
    if url and not url.startswith("data:"):
        return f"{kind} at {url}"
    return f"{kind}, {len(data or url) * 3 // 4:,} bytes"

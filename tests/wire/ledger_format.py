"""A format of nobody's, as a plug-in brings it: other fields, items that are no messages, the model in the path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from lading.history.log import Reported
from lading.messages import Conversation, Message, Part, Text, Tool, ToolCall, ToolResult
from lading.models.card import Card
from lading.wire import Wire
from lading.wire.checking import Finding, Rule
from lading.wire.layout import CERTAINLY, Demands, Items, Layout, ToolFields
from lading.wire.replies import Replies, Reply
from lading.wire.streams import EditedStream, StreamFormat
from lading.wire.templates import as_list, shape_error

NAME = "ledger"
BESIDE = ("items", "instructions", "tool_defs")
PATH = re.compile(r"/v2/ledgers/([\w.-]+):(?:run|follow)")

Body = dict[str, Any]


def named(path: str) -> Body | None:
    found = PATH.search(path)
    return {"model": found[1]} if found else None


def role(item: Any) -> str:
    kinds = {"function_call": "assistant", "function_call_output": "tool"}
    kind = str(item.get("type")) if isinstance(item, dict) else ""
    return str(item.get("by", "")) if kind == "message" else kinds.get(kind, "")


def unites(before: Any, item: Any) -> bool:
    return role(before) == role(item) == "assistant"


def decode(body: Mapping[str, Any]) -> Conversation:
    runs: list[list[Body]] = []
    for item in as_list(body.get("items"), "items"):
        if not role(item):
            raise shape_error("items", "an item", found=item)
        if runs and unites(runs[-1][-1], item):
            runs[-1].append(item)
        else:
            runs.append([item])
    messages = [Message(role(run[0]), tuple(map(part, run)), origin=NAME) for run in runs]  # type: ignore[arg-type]
    if body.get("instructions"):
        messages.insert(0, Message("system", (Text(body["instructions"]),), origin=NAME))
    tools = [Tool(item["label"], item["about"], item["shape"], origin=NAME) for item in body.get("tool_defs") or ()]
    template = {key: value for key, value in body.items() if key not in BESIDE}
    return Conversation(tuple(messages), tuple(tools), NAME, template)


def part(item: Body) -> Part:
    if item["type"] == "function_call":
        return ToolCall(item["call"], item["label"], item["args"])
    return ToolResult(item["call"], (Text(item["out"]),)) if "out" in item else Text(item["text"])


def leading(messages: Sequence[Message]) -> int:
    return next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))


def envelope(conversation: Conversation) -> Body:
    front = conversation.messages[: leading(conversation.messages)]
    body = {key: value for key, value in (conversation.template or {}).items() if key != "model"}
    body |= {"instructions": "\n\n".join(message.text for message in front)} if front else {}
    tools = [{"label": tool.name, "about": tool.description, "shape": tool.schema} for tool in conversation.tools]
    return body | ({"tool_defs": tools} if tools else {})


def joins(group: Sequence[Message], after: Message, *, card: Card) -> bool:
    del card
    return group[-1].role == after.role == "assistant"


def encode_group(messages: Sequence[Message], card: Card) -> list[Body]:
    del card
    return [item for message in messages for one in message.parts for item in written(one, message.role)]


def written(one: Part, by: str) -> Iterator[Body]:
    match one:
        case ToolCall():
            yield {"type": "function_call", "call": one.id, "label": one.name, "args": one.arguments}
        case ToolResult():
            out = "\n".join(inner.text for inner in one.parts if isinstance(inner, Text))
            yield {"type": "function_call_output", "call": one.call_id, "out": out}
        case Text():
            yield {"type": "message", "by": by, "text": one.text}


class Walk:
    """The calls that wait for their output."""

    def __init__(self) -> None:
        self.position, self.open = 0, list[str]()

    def advance(self, message: Mapping[str, Any]) -> None:
        self.position += 1
        if message["type"] == "function_call":
            self.open.append(message["call"])
        elif message["type"] == "function_call_output" and message["call"] in self.open:
            self.open.remove(message["call"])


def paired(walk: Walk, item: Mapping[str, Any]) -> Iterator[Finding]:
    if item["type"] == "function_call_output" and item["call"] not in walk.open:
        yield Finding(f"items.{walk.position}", "answers no call")
    if item["type"] == "message" and item["by"] == "user" and walk.open:
        yield Finding(f"items.{walk.position}", "stands between a call and its output")


def read(body: Mapping[str, Any]) -> Reply:
    (message,) = decode({"items": as_list(body.get("out"), "out")}).messages
    spent = body.get("spent") or {}
    usage = Reported(spent["in"], spent["out"], read_tokens=spent.get("held", 0)) if spent else None
    return Reply(message, usage=usage, id=body.get("ref", ""))


def without(body: Mapping[str, Any], names: AbstractSet[str]) -> Body:
    return {**body, "out": [item for item in body["out"] if item.get("label") not in names]}


class Gathered:
    """The events of a stream: ``{"item": ...}``, then ``{"end": {"spent": ...}}``."""

    def __init__(self) -> None:
        self.items: list[Body] = []
        self.end: Body | None = None
        self.failed = False

    @property
    def finished(self) -> bool:
        return self.end is not None

    @property
    def usage(self) -> Body:
        return dict((self.end or {}).get("spent", {}))

    def add(self, value: Body) -> None:
        self.failed = self.failed or "error" in value
        self.items += [value["item"]] if "item" in value else []
        self.end = value.get("end", self.end)

    def body(self) -> Body:
        return {"out": self.items, "spent": self.usage}


class Edits:
    """Calls of the held tools are cut out."""

    def __init__(self, names: AbstractSet[str]) -> None:
        self.names = names

    def number(self, value: Body) -> Body:
        return value

    def split(self, value: Body) -> tuple[Body | None, Body | None]:
        return (value, None) if self.edit(value) else (None, value)

    def edit(self, value: Body) -> Body | None:
        return None if value.get("item", {}).get("label") in self.names else value


def stream(names: AbstractSet[str]) -> EditedStream:
    return EditedStream(StreamFormat(lambda _: Edits(names), Gathered, read, usage=("end", "spent")))


WIRE = Wire(
    name=NAME,
    decode=decode,
    envelope=envelope,
    layout=Layout(
        named=named,
        items=Items("items", role, lambda item: CERTAINLY if role(item) else 0, unites),
        tools=ToolFields(lambda declaration: "shape" in declaration, field="tool_defs"),
        leading=leading,
        unread=frozenset({"limits"}),
        limits=("limits.output",),
        system="instructions",
        required=lambda answer_tokens: {"limits": {"output": answer_tokens or 500}},
        demands=lambda body: Demands("must_call" in body),
        kept={"ledger": ""},
    ),
    joins=joins,
    encode_group=encode_group,
    start_check=lambda *_: Walk(),
    rules=(Rule("L1", "E", "calls and outputs are paired", at_message=paired),),
    replies=Replies(read, without, stream, usage="spent"),
)

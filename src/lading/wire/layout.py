"""The layout of a provider format: the fields, items and endpoints by which other rooms read its bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from lading.messages import Message, Role, Template
from lading.models.card import Card
from lading.validation import snake_case
from lading.wire.tool_choice import ToolChoice

Object: TypeAlias = Mapping[str, Any]
V = TypeVar("V")

BlockPath: TypeAlias = tuple[int, ...]
"""Path of a block: the index of the item, of a block in it, of a block in that block."""
DEEPEST_MARK = 3
LAST_BLOCK: BlockPath = (-1,)
"""The path of an item's last block."""
TEXT = "text"
"""Code of the list of items in a template, where a text was in its place."""
_ANSWERS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_OF_ONE_ANSWER = frozenset(
    {"background", "logprobs", "n", "stop", "stop_sequences", "stream", "stream_options", "top_logprobs"}
)
"""Fields of Anthropic and OpenAI that shape one answer and are no part of the prompt."""

MAY, LIKELY, SURELY, CERTAINLY = 1, 2, 3, 4
"""How certain it is that an object is of a format, by the features in it that other formats lack. 0: it is not."""


@cache
def to_snake(name: str) -> str:
    """Return a field's name in snake_case."""
    return next(iter(snake_case({name: None})))


def match_path_ends(*ends: str) -> Callable[[str], Object | None]:
    """Return a ``Layout.named`` for endpoints with these path endings, whose paths contain no fields."""
    return lambda path: {} if path.endswith(ends) else None


def find_role(roles: Mapping[str, Role], item: Any) -> str:
    """Return our role for a message's ``role``; empty for an unknown one."""
    word = item.get("role") if isinstance(item, dict) else None
    return roles.get(word, "") if isinstance(word, str) else ""


class Demands(NamedTuple):
    """The demands of a request on its answer."""

    is_forced: bool
    """Whether it has to be a call."""
    is_several: bool = False
    """Whether there are several at once that cannot be made anew if one of them is a call of ``restore``, because
    they are streamed, or may be."""
    is_streamed: bool = False
    """Whether it is a stream, as far as the body says so."""


def read_demands(body: Object) -> Demands:
    """Return what a request demands of its answer, in fields of Anthropic and OpenAI."""
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if kind == "allowed_tools" and isinstance(choice, dict):
        # A limit of the choice: its mode says what the answer has to be.
        limit = choice.get("allowed_tools", choice)
        choice = kind = limit.get("mode") if isinstance(limit, dict) else None
    is_forced = kind in ("required", "any", "tool") or (isinstance(choice, dict) and kind not in ("auto", "none"))
    is_streamed = bool(body.get("stream"))
    return Demands(is_forced, is_streamed and body.get("n") not in (None, 1), is_streamed)


def read_ttl(mark: object) -> str | None:
    """Return the lifetime of a cache mark; None without a mark."""
    if mark is None:
        return None
    return "1h" if isinstance(mark, dict) and mark.get("ttl") == "1h" else "5m"


def list_blocks(item: Any) -> list[Any]:
    """Return the content blocks of an item or a block."""
    content = item.get("content") if isinstance(item, dict) else None
    return content if isinstance(content, list) else []


def list_block_types(item: Object) -> set[str]:
    """Return the types of an item's content blocks."""
    content = item.get("content")
    if not isinstance(content, list):
        return set()
    kinds = (block.get("type") for block in content if isinstance(block, dict))
    return {kind for kind in kinds if isinstance(kind, str)}


_KEPT = MappingProxyType(
    dict.fromkeys(("previous_response_id", "conversation", "container"), "")
    | {"thread": " With tool_runner: thread=False."}
)


class CacheMarks(Struct, frozen=True):
    """How requests of one format mark the end of a part to cache: by a field of an item or of its blocks."""

    field: str
    most: int
    """Maximum number of marks in a request."""
    own: Template | None = None
    """The mark that asks to cache a whole request; None: the provider caches without one."""
    unmarked: frozenset[str] = frozenset()
    """Types of blocks that cannot have one."""
    look_back: int = 0
    """Number of blocks up to a mark in which the provider looks for the end of a cached prefix. 0: any number."""

    def strip(self, item: Any, *, levels: int = DEEPEST_MARK) -> Any:
        """Return the item without marks on itself, its blocks and theirs; the same object if there are none.
        ``levels``: how deep the blocks are that are read."""
        if not isinstance(item, dict) or not levels:
            return item
        if self.field in item:
            item = {key: inner for key, inner in item.items() if key != self.field}
        if not isinstance(content := item.get("content"), list):
            return item
        blocks = [self.strip(block, levels=levels - 1) for block in content]
        changed = any(new is not old for new, old in zip(blocks, content, strict=True))
        return {**item, "content": blocks} if changed else item

    def count(self, value: Any, *, levels: int = DEEPEST_MARK) -> int:
        """Count the marks on an item, its blocks and theirs; of a list, on those of its items."""
        if isinstance(value, list):
            return sum(self.count(item) for item in value)
        if not isinstance(value, dict) or not levels:
            return 0
        inner = sum(self.count(block, levels=levels - 1) for block in list_blocks(value))
        return inner + (value.get(self.field) is not None)

    def put(self, item: Any, mark: Any, *, path: BlockPath = LAST_BLOCK) -> Any:
        """Return the item with a mark, unless one is there; the same object if no block can have one.
        ``path``: indices of a block and of blocks in it; empty: the item itself. If that block does not exist, it
        is the last one; if it cannot have a mark, one before it."""
        if not path:
            return {self.field: mark} | item
        content = item.get("content")
        blocks = [{"type": "text", "text": content}] if content and isinstance(content, str) else list_blocks(item)
        wanted = path[0] if 0 <= path[0] < len(blocks) else len(blocks) - 1
        at = next((at for at in range(wanted, -1, -1) if self._may_bear(blocks[at])), None)
        if at is None:
            return item
        has_inner = at == wanted and list_blocks(blocks[at])
        marked = self.put(blocks[at], mark, path=path[1:] if has_inner else ())
        return {**item, "content": [*blocks[:at], marked, *blocks[at + 1 :]]}

    def _may_bear(self, block: Any) -> bool:
        is_empty = isinstance(block, dict) and block.get("type") == "text" and not block.get("text")
        return isinstance(block, dict) and block.get("type") not in self.unmarked and not is_empty


class Extend(Protocol):
    """Append a text of the user to an item of the user or a tool; None where it must be an item of its own."""

    def __call__(self, item: Any, text: str, *, card: Card) -> Any | None: ...


def extend_none(item: Any, text: str, *, card: Card) -> None:
    """Return None: each text is an item of its own."""
    del item, text, card


class Items(Struct, frozen=True):
    """The list of a body that contains the messages."""

    field: str
    role: Callable[[Any], str]
    """Return our role for an item; empty if it has none."""
    claim: Callable[[Object], int]
    """Return how certain it is that an object is an item of this format."""
    unites: Callable[[Any, Any], bool] | None = None
    """Whether two neighbours belong to one message; ``decode`` makes one message of each such run. None: each item
    is a message. Items that unite have no cache marks."""
    extend: Extend = extend_none
    spread: Callable[[str], list[Any]] | None = None
    """Return the items that a text in place of the list means. None: it has to be a list."""
    continues: str = ""
    """The field with the id of a response, whose conversation the items continue; empty: there is none."""
    may_be_whole: Callable[[Object], bool] = lambda _body: True
    """Whether a body is legal with the earlier items in place of that id."""

    def read(self, given: Any) -> Any:
        """Return what a body has in this field, as a list if it is a text that means one."""
        return self.spread(given) if self.spread and isinstance(given, str) else given

    def split(self, items: Iterable[Any]) -> list[list[Any]]:
        """Split items into the runs that form one message each."""
        runs: list[list[Any]] = []
        for item in items:
            if runs and self.unites and self.unites(runs[-1][-1], item):
                runs[-1].append(item)
            else:
                runs.append([item])
        return runs

    def join(self, items: list[Any], template: Template | None) -> Any:
        """Return the items as the body had them that this template was decoded from: as a text, or as a list."""
        text = items[0].get("content") if len(items) == 1 and (template or {}).get(self.field) == TEXT else None
        return text if self.spread and isinstance(text, str) and self.spread(text) == items else items


class ToolFields(Struct, frozen=True):
    """The tools of a body."""

    claims: Callable[[Object], bool]
    """Whether the declaration of a tool is written in this format."""
    field: str = "tools"
    choice: ToolChoice | None = None
    """How requests set some of their tools apart; None: they do not."""


class Layout(Struct, frozen=True):
    """The layout of the bodies of one format."""

    named: Callable[[str], Object | None]
    """Return the fields in an endpoint's path, such as the model; None if it is not an endpoint of this format."""
    items: Items
    tools: ToolFields
    unread: frozenset[str]
    """Fields that are not part of the prompt: they do not change what a prompt cache matches."""
    limits: tuple[str, ...]
    """Fields, inner ones with dots, that limit the output tokens. The first depends on the model."""
    leading: Callable[[Sequence[Message]], int] = lambda _messages: 0
    """Return how many of the first messages are written beside the items."""
    system: str = ""
    """The field with the system messages beside the items; empty: all are among the items."""
    required: Callable[[int], Template] = lambda _answer_tokens: {}
    """Return the fields that a body must have beside the model, for an answer of at most that many tokens."""
    demands: Callable[[Object], Demands] = read_demands
    """Return what a request demands of its answer."""
    kept: Mapping[str, str] = _KEPT
    """Fields of a request that continues a conversation stored by the provider, each with additional advice for how
    to omit it."""
    marks: CacheMarks | None = None
    """How requests mark what is to be cached; None: they do not."""

    def respell(self, fields: Mapping[str, V]) -> dict[str, V]:
        """Return the fields of a body by the names in this layout: who takes camelCase takes snake_case too."""
        own = {self.system, *self.unread, *self.kept, *(name.partition(".")[0] for name in self.limits)}
        spelled = {to_snake(name): name for name in own}
        return {spelled.get(name, name): value for name, value in fields.items()}

    @property
    def model_fields(self) -> frozenset[str]:
        """The fields that are not carried over to another model of this format."""
        return frozenset({"model", *self.limits[:1], *([self.marks.field] if self.marks else [])})

    def find_most_tokens(self, fields: Object) -> tuple[str, int]:
        """Return the field with the highest limit of output tokens, thinking included, and that limit."""
        most = "", 0
        for name in self.limits:
            tokens: Any = fields
            for inner in name.split("."):
                tokens = tokens.get(inner) if isinstance(tokens, Mapping) else None
            if type(tokens) is int and most[1] < tokens < 2**63:
                most = name, tokens
        return most

    def ask_text(self, fields: Object, answer_tokens: int, *, thinking_tokens: int) -> Template | None:
        """Return the fields of a request with the same prompt whose answer is a text and not streamed; None if they
        demand another answer. Its limit, if any, is lowered to that answer and the thinking before it."""
        holders = [{"format": fields.get("response_format")}, fields.get("output_config"), fields.get("text")]
        forms = (holder.get("format") for holder in holders if isinstance(holder, dict))
        form = next((form for form in forms if form), {"type": "text"})
        if self.demands(fields).is_forced or form.get("type") != "text":
            return None
        kept = {key: value for key, value in fields.items() if key not in _OF_ONE_ANSWER}
        budget = self.find_most_tokens({key: value for key, value in kept.items() if key not in _ANSWERS})[1]
        most = answer_tokens + max(budget, thinking_tokens)
        own = (name for name in _ANSWERS if name in self.unread and type(kept.get(name)) is int)
        return kept | {name: min(kept[name], most) for name in own}

    def list_unread(self, body: Template) -> frozenset[str]:
        """Return the fields of a body that are no part of its prompt: a limit to some tools changes what the model
        may write, not what it reads."""
        limit = self.tools.choice.find(body) if self.tools.choice else ""
        return self.unread | {limit} if limit else self.unread

    def is_cached(self, body: bytes) -> bool:
        """Whether the provider caches the prompt of a request: some do so only up to its marks."""
        return self.marks is None or not self.marks.own or f'"{self.marks.field}":'.encode() in body

    def strip(self, item: Any) -> Any:
        """Return the item without cache marks; the same object if there are none."""
        return self.marks.strip(item) if self.marks else item

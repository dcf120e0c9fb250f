"""The items of the Responses API: their types, who wrote them, and which of them form one message.

One answer of a model is several items: its reasoning, its texts, its calls. Neighbouring items of the model are one
assistant message, whose parts are the items.
"""

from __future__ import annotations

from typing import Any, Final

from lading.messages import Role
from lading.wire import layout

NAME: Final = "openai_responses"

ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}

CALL_FIELDS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
"""The types of calls that the caller answers with a text, each with the field for the arguments."""
OUTPUT_OF: Final = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""The type of the answer to each."""
REASONING: Final = "reasoning"
SUMMARIES: Final = ("compaction", "compaction_summary", "context_compaction")
"""The provider's own summaries of everything before them."""

HOSTED: Final = frozenset({
    "apply_patch_call", "code_interpreter_call", "computer_call", "file_search_call", "image_generation_call",
    "item_reference", "local_shell_call", "mcp_approval_request", "mcp_call", "mcp_list_tools", "program",
    "program_output", "shell_call", "tool_search_call", "web_search_call",
})  # fmt: skip
"""Items of the model that are kept whole: calls of OpenAI's own tools, and what its servers add to them."""
HOSTED_OUTPUTS: Final = frozenset({
    "apply_patch_call_output", "computer_call_output", "local_shell_call_output", "mcp_approval_response",
    "shell_call_output", "tool_search_output",
})  # fmt: skip
"""The caller's answers to these calls, kept whole."""
KEPT_OUTPUT_OF: Final = {
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "tool_search_call": "tool_search_output",
}
"""The type of the output of each call that is kept whole, where both have the same ``call_id``."""
_ALSO_BY_SERVER = ("shell_call_output", "tool_search_output")
_OF_CALLER = ("additional_tools", "configuration_update")

TEXTS: Final = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""The types of content blocks that are text, each with its field."""
USER_PARTS: Final = ("input_text", "input_image", "input_file", "input_audio")
_BLOCKS = frozenset({*USER_PARTS, "output_text", "refusal", "computer_screenshot"})


def read_type(item: Any) -> str:
    """Return the type of an item, which messages and references may omit; empty for what is no item."""
    if not isinstance(item, dict):
        return ""
    kind = item.get("type")
    if kind is None:
        return "message" if "role" in item else "item_reference" if "id" in item else ""
    return kind if isinstance(kind, str) else ""


def read_role(item: Any) -> str:
    """Return our role for an item; empty for what is no item."""
    kind = read_type(item)
    if kind == "message" or kind in _OF_CALLER:
        return layout.find_role(ROLES, item)
    if kind in OUTPUT_OF.values():
        return "tool"
    if kind in HOSTED_OUTPUTS or (kind.endswith("_output") and kind not in HOSTED):
        # Servers that run the tool write the output themselves, with an id.
        by_server = kind in _ALSO_BY_SERVER and item.get("id") and item.get("execution") != "client"
        return "assistant" if by_server else "tool"
    if kind == "compaction_trigger":
        return "user"
    return "assistant" if kind else ""


def unites(before: Any, item: Any) -> bool:
    """Whether two neighbouring items belong to one message: both are the model's."""
    return read_role(before) == read_role(item) == "assistant"


_OF_OTHERS = "text"
"""The type of plain text in other formats, which this one refuses."""
_ALSO_IN_CHAT = frozenset({"refusal", "input_audio"})
"""Types of blocks that Chat Completions has, too."""


def claim(item: layout.Object) -> int:
    """Return how certain it is that an object is an item of this format."""
    kind = read_type(item)
    if kind == "message":
        kinds = layout.list_block_types(item)
        blocks = _BLOCKS & kinds
        if _OF_OTHERS in kinds or not layout.find_role(ROLES, item):
            return 0
        is_own = "type" in item or not blocks <= _ALSO_IN_CHAT
        is_known = blocks or ("type" in item and not kinds)
        return (layout.CERTAINLY if is_own else layout.LIKELY) if is_known else layout.MAY
    if "role" in item and kind not in _OF_CALLER:
        return 0
    known = kind in HOSTED or kind in HOSTED_OUTPUTS or kind in SUMMARIES or kind in OUTPUT_OF
    if known or kind == REASONING or kind in OUTPUT_OF.values():
        return layout.CERTAINLY
    return layout.LIKELY if kind.endswith(("_call", "_output")) else 0


def spread(text: str) -> list[Any]:
    """Return the items that a text in place of the list means."""
    return [{"role": "user", "content": text}]

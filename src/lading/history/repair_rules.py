"""The rules by which messages are repaired (``repair.py``), in words."""

from __future__ import annotations

RULES: dict[str, str] = {
    "unfit_id": "a tool-call id that the provider format does not allow is replaced, in its result too",
    "unfit_name": "characters that the provider format does not allow in a tool name are replaced",
    "unnamed_call": "a call that came without an id gets one of its own, which no request shows; no event",
    "duplicate_id": "a tool-call id that was used before is renamed, in its result too",
    "starts_with_assistant": "a first message of the assistant gets a user turn before it where one is required",
    "unanswered_call": "a call without a result gets a synthetic error result",
    "orphan_result": "a result without an open call is shown as text of the user turn",
    "empty_text": "empty text parts are left out; a message that holds nothing else says that it is empty",
    "empty_field": "an empty field that the provider format does not allow is removed or filled",
    "same_role_run": "consecutive messages of one role are joined where the dialect requires alternation",
    "system_place": "a system message in an illegal place is moved to the system prompt or a user message",
    "results_first": "the tool results of a message are moved before its other parts",
    "part_translated": "a part in another provider's format is translated",
    "part_moved": "an image or document in a tool result is moved to a user message after it",
    "part_left_out": "a part that the provider format does not allow there is replaced by a note with a pointer",
    "unsigned_call": "a call that came without a signature gets one that the provider takes for any call",
    "reasoning_left_out": "reasoning that the provider does not accept back is left out",
    "reasoning_as_text": "reasoning that the provider does not accept back is shown as text between tags",
    "trailing_space": "whitespace at the end of a prefilled answer is removed where the provider forbids it",
    "ends_with_assistant": "a final assistant message that the model would not continue gets a user turn after it",
}
"""Description of each rule by its name."""

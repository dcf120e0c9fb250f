"""The providers' own words where a request breaks a rule, by which clients know it."""

from __future__ import annotations

PROVIDER_WORDS = {
    "A1": "Field required",
    "A2": 'first message must use the "user" role',
    "A3": 'roles must alternate between "user" and "assistant"',
    "A4": "unknown variant `system`",
    "A5": "`tool_use` ids were found without `tool_result` blocks immediately after",
    "A6": "unexpected `tool_use_id` found in `tool_result` blocks",
    "A7": "Did not find tool_result block(s) at the beginning of this message",
    "A8": "`tool_use` ids must be unique",
    "A9": "unexpected `tool_use_id` found in a server tool's result blocks",
    "A11": "text content blocks must be non-empty",
    "A12": "final assistant content cannot end with trailing whitespace",
    "A13": "This model does not support assistant message prefill. The conversation must end with a user message",
    "A14": "Expected `thinking` or `redacted_thinking`, but found another block",
    "A15": "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
    "A16": "Invalid `signature` in `thinking` block",
    "A20": "A maximum of 4 blocks with cache_control may be provided",
    "A21": "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    "C1": "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages",
    "C2": "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
    "C4": "Duplicate value for 'tool_call_id'",
    "C5": "[] is too short: empty array. Expected an array with minimum length 1",
    "C6": "Invalid value for 'content': expected a string, got null",
    "C7": "string too long. Expected a string with maximum length 40",
    "C9": "The `reasoning_content` in the thinking mode must be passed back to the API",
    "C11": "Conversation roles must alternate",
    "G1": "Please ensure that function call turn comes immediately after a user turn or after a function response "
    "turn",
    "G2": "Please ensure that function response turn comes immediately after a function call turn",
    "G3": "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn",
    "G4": "Please use a valid role: user, model",
    "G5": "required oneof field 'data' must have one initialized field",
    "G6": "Please ensure that multiturn requests ends with a user role or a function response",
    "G8": "Function call is missing a thought_signature in functionCall parts",
    "G9": "Invalid thought signature",
    "R1": "No tool call found for function call output with call_id",
    "R2": "No tool output found for function call",
    "R3": "Duplicate item found with id",
    "R4": "Item of type 'reasoning' was provided without its required following item",
    "R5": "Item was provided without its required 'reasoning' item",
    "R6": "The encrypted content for item could not be verified",
}
"""By the id of the rule, where they are known; of those too that only the provider can judge (A15, G9, R5, R6)."""

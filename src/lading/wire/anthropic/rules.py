"""The strict check of Anthropic's Messages wire: the rows A1 to A26 of docs/reference/wire-rules.md."""

from __future__ import annotations

from lading.wire.anthropic import content_rules, tool_rules, turn_rules
from lading.wire.anthropic.walking import walk
from lading.wire.checking import Rule

__all__ = ["RULES", "walk"]

RULES: tuple[Rule, ...] = (
    Rule(
        "A1",
        "E",
        "model, max_tokens and at least one message are there",
        verified=False,
        at_start=turn_rules.required_fields,
        at_end=turn_rules.some_message,
    ),
    Rule("A2", "P", "the first message is the user's", at_message=turn_rules.user_first),
    Rule("A3", "P", "user and assistant alternate", at_message=turn_rules.alternation),
    Rule("A4", "E", "roles, and the places of system messages", at_message=turn_rules.roles),
    Rule(
        "A5",
        "E",
        "every call is answered in the next user turn",
        at_message=tool_rules.calls_answered,
        at_end=tool_rules.calls_answered_at_end,
    ),
    Rule("A6", "E", "every result answers the turn before", at_message=tool_rules.results_asked_for),
    Rule("A7", "E", "results come first in their turn", at_message=tool_rules.results_first),
    Rule(
        "A8",
        "E",
        "one call per id and one result per call",
        verified=False,
        at_message=tool_rules.ids_unique,
    ),
    Rule(
        "A9",
        "E",
        "a server tool's result follows its call in the same turn",
        at_message=tool_rules.server_results_follow,
    ),
    Rule(
        "A10",
        "E",
        "ids keep to the pattern, input is an object",
        verified=False,
        at_message=tool_rules.call_shapes,
    ),
    Rule(
        "A11",
        "E",
        "content is well formed and not blank",
        at_start=content_rules.system_texts,
        at_message=content_rules.texts,
    ),
    Rule("A12", "E", "a final assistant message ends in no whitespace", at_end=turn_rules.no_trailing_space),
    Rule("A13", "E", "no prefill where the model takes none", at_end=turn_rules.no_prefill),
    Rule(
        "A14",
        "E",
        "the running tool loop starts with thinking where it is enabled",
        at_end=content_rules.loop_starts_with_thinking,
    ),
    Rule("A16", "E", "thinking comes back with its signature", at_message=content_rules.thinking_signed),
    Rule("A19", "E", "the thinking budget is allowed and in bounds", at_start=content_rules.thinking_budget),
    Rule("A20", "E", "at most four cache marks", at_end=content_rules.few_cache_marks),
    Rule(
        "A21",
        "E",
        "no cache mark lives longer than one before it",
        at_start=content_rules.head_cache_order,
        at_message=content_rules.cache_order,
        at_end=content_rules.top_cache_order,
    ),
    Rule(
        "A22",
        "E",
        "no cache mark on thinking or an empty text",
        verified=False,
        at_start=content_rules.system_cacheable,
        at_message=content_rules.cacheable,
    ),
    Rule("A23", "E", "a history with tool calls comes with tools", at_end=tool_rules.tools_declared),
    Rule(
        "A26",
        "E",
        "blocks are of types that the role takes",
        verified=False,
        at_start=content_rules.system_types,
        at_message=content_rules.block_types,
    ),
)
"""In the order of the page; what a body alone cannot show is listed there."""

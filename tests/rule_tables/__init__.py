"""The providers' rules once more, as tables of small functions over a whole body: a second opinion on requests.

Nothing here is shared with ``lading.wire``, so that one mistake cannot be in both. A rule yields the places that
break it. ``Known`` has what a body does not show: facts of the model, and what its provider issued. Bodies are of
the right shape, as Lading writes them.
"""

from __future__ import annotations

from tests.rule_tables import anthropic, gemini, openai_chat, openai_responses
from tests.rule_tables.facts import Body, Issued, Known, Rule

__all__ = ["TABLES", "Issued", "Known", "find_broken"]

TABLES: dict[str, dict[str, Rule]] = {
    "anthropic": anthropic.RULES,
    "openai_chat": openai_chat.RULES,
    "openai_responses": openai_responses.RULES,
    "gemini": gemini.RULES,
}
"""By format and id of the rule."""


def find_broken(wire: str, body: Body, known: Known) -> list[tuple[str, str]]:
    """The rules that a body breaks, each with the place."""
    return [(rule, place) for rule, judge in TABLES[wire].items() for place in judge(body, known)]

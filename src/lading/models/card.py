"""What is known of a model: limits, prices, cache rules, tokenizer, conduct on the wire."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Tier: TypeAlias = Literal["local", "mid", "large", "frontier"]

Dialect: TypeAlias = Literal["first_party", "bedrock", "chat_template", "strict"]
"""Which portability (P) rules count as violations: none, Bedrock's, a strict chat template's, or all."""


class Limits(Struct, frozen=True):
    """Sizes in tokens."""

    window_tokens: int
    max_output_tokens: int


class TokenFacts(Struct, frozen=True):
    """How tokens are counted for this model."""

    counter: str
    """Name in ``lading.tokens.COUNTERS``: o200k, cl100k or estimate."""
    multiplier: float = 1.0
    """Prior factor from the counter's figure to the provider's."""
    margin: float = 0.0
    """Initial safety margin, as a share of the window."""
    call_tokens: int = 0
    """What frames each call, and again its result, in the provider's tokens, beside a message's framing."""
    plain_arguments: bool = False
    """Whether the model is shown the arguments of a call field by field, as text, and not as JSON."""


class Prices(Struct, frozen=True):
    """Input and output in USD per million tokens; cache prices relative to ``input_usd``."""

    input_usd: float
    output_usd: float | None = None
    read: float = 1.0
    """A cached token read again, relative to base input. 1.0 where there is no cache."""
    write: dict[int, float] = {}
    """A token written to the cache, relative to base input, by time to live in seconds."""

    @property
    def output(self) -> float:
        """A token that the model writes, relative to base input; five where the prices do not say."""
        return self.output_usd / self.input_usd if self.output_usd and self.input_usd else 5.0


class CacheRules(Struct, frozen=True):
    """How the provider's prompt cache behaves."""

    min_prefix_tokens: int = 1024
    """Shorter prefixes are silently not cached."""
    ttl_s: int = 300
    """Default time to live, refreshed on use."""
    breakpoints: int = 0
    """Most explicit cache marks in one request; 0 where the cache is automatic."""
    look_back_blocks: int = 0
    """How many blocks before a mark are searched for an earlier one; 0 where it does not apply."""


class Conduct(Struct, frozen=True):
    """What the model's endpoint accepts on the wire (rule ids of docs/reference/wire-rules.md)."""

    dialect: Dialect = "first_party"
    mid_system: bool = False
    """A4: role system inside the messages of Anthropic's wire."""
    prefill: bool = True
    """A13: the conversation may end with an assistant message."""
    thinking_budget: bool = True
    """A19: ``thinking.type = enabled`` with a token budget is accepted."""
    reasoning_echo: Literal["none", "signed", "reasoning_content"] = "none"
    """What of the reasoning must come back: nothing, signed blocks (A14 to A17), or C9's field."""


class Card(Struct, frozen=True):
    """One model, as one dated row says."""

    name: str
    provider: str
    tier: Tier
    limits: Limits
    tokens: TokenFacts
    prices: Prices
    cache: CacheRules = CacheRules()
    conduct: Conduct = Conduct()
    patterns: tuple[str, ...] = ()
    """Further names this row answers to, matched at word boundaries after the provider."""
    source: str = ""
    as_of: str = ""
    """Date of the source, YYYY-MM-DD."""


def same_model(one: Card, other: Card) -> bool:
    """Whether two cards are of one model, whatever else they say of it."""
    return (one.provider, one.name) == (other.provider, other.name)

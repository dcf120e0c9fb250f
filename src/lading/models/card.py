"""Facts about a model: limits, prices, cache rules, tokenizer, accepted request features."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

Tier: TypeAlias = Literal["local", "mid", "large", "frontier"]

Dialect: TypeAlias = Literal["first_party", "bedrock", "chat_template", "strict"]
"""Which portability (P) rules are violations: none, Bedrock's, a strict chat template's, or all."""


class Limits(Struct, frozen=True):
    """Limits in tokens."""

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
    """Overhead of each call, and again of its result, in the provider's tokens, beside a message's framing."""
    plain_arguments: bool = False
    """Whether the model gets the arguments of a call as text, field by field, and not as JSON."""


class Prices(Struct, frozen=True):
    """Input and output in USD per million tokens; cache prices relative to ``input_usd``."""

    input_usd: float
    output_usd: float | None = None
    read: float = 1.0
    """Price of a cache read, relative to base input. 1.0 if there is no cache."""
    write: dict[int, float] = {}
    """Price of a cache write, relative to base input, by time to live in seconds."""

    @property
    def output(self) -> float:
        """Price of an output token, relative to base input; 5.0 if unknown."""
        return self.output_usd / self.input_usd if self.output_usd and self.input_usd else 5.0


class CacheRules(Struct, frozen=True):
    """How the provider's prompt cache behaves."""

    min_prefix_tokens: int = 1024
    """Shorter prefixes are not cached."""
    ttl_s: int = 300
    """Default time to live, refreshed on use."""
    breakpoints: int = 0
    """Maximum number of cache marks in one request; 0 if caching is automatic."""
    look_back_blocks: int = 0
    """Number of blocks before a mark that are searched for an earlier one; 0 if not applicable."""


class Conduct(Struct, frozen=True):
    """Request features that the model's endpoint accepts (rule ids of docs/reference/wire-rules.md)."""

    dialect: Dialect = "first_party"
    host: str | UnsetType = UNSET
    """The host that serves it (``lading.models.hosts``); unset: the provider itself."""
    call_id_chars: int | UnsetType = UNSET
    """Letters and digits that the id of a call must have; unset: as the format says."""
    mid_system: bool = False
    """A4: role system inside the messages of Anthropic's format."""
    prefill: bool = True
    """A13: the conversation may end with an assistant message."""
    thinking_budget: bool = True
    """A19: ``thinking.type = enabled`` with a token budget is accepted."""
    reasoning_echo: Literal["none", "signed", "reasoning_content"] = "none"
    """The reasoning that must be sent back: none, signed blocks (A14 to A17), or C9's field."""


class Card(Struct, frozen=True):
    """A model card: the facts of one model, from one dated row."""

    name: str
    provider: str
    tier: Tier
    limits: Limits
    tokens: TokenFacts
    prices: Prices
    cache: CacheRules = CacheRules()
    conduct: Conduct = Conduct()
    patterns: tuple[str, ...] = ()
    """Further names of the model, matched at word boundaries after the provider."""
    source: str = ""
    as_of: str = ""
    """Date of the source, YYYY-MM-DD."""


def is_same_model(one: Card, other: Card) -> bool:
    """Return whether two cards describe the same model."""
    return (one.provider, one.name) == (other.provider, other.name)

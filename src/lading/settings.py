"""The settings of a session's engine, derived from a model's card."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from lading.budget import Budget, allocate, within
from lading.compaction import DEFAULT, Strategy, name_of
from lading.compaction import find_strategy as named
from lading.economics import Rates, rates_for
from lading.effects import Summarizer
from lading.models.card import Card
from lading.models.profiles import DETAILS, Detail, Profile
from lading.tokens import counter as counter_named
from lading.tokens.meter import Meter, meter
from lading.wire import COMMON


class Settings(Struct, frozen=True):
    """The settings of one session's engine."""

    card: Card
    meter: Meter
    budget: Budget
    rates: Rates
    wire: str = COMMON
    strategy: str | Strategy = DEFAULT
    """A name, a dotted path or a ``Strategy``; manifests hold its name."""
    tenant: str = "default"
    session: str = "session"
    cache_ttl_s: float | None = None
    """Idle seconds after which the prompt cache is assumed expired; None: never."""
    strict: bool = False
    """Raise when a strategy's edits break a rule instead of overruling it, and apply unverified rules."""
    summarizer: Summarizer | None = None
    """The summarization callback of strategies; None: none."""
    tool_detail: Detail = "full"
    """The maximum detail of tool schemas in a request."""

    @property
    def strategy_name(self) -> str:
        """The name of the strategy in manifests and errors."""
        return name_of(self.strategy)

    @property
    def owner(self) -> tuple[str, str]:
        """Tenant and session, to which relative addresses belong."""
        return self.tenant, self.session


def settings_for(
    card: Card,
    *,
    window_tokens: int | None = None,
    output_reserve_tokens: int | None = None,
    margin_tokens: int | None = None,
    wire: str = COMMON,
    strategy: str | Strategy = DEFAULT,
    session: str = "session",
    counter: str | None = None,
) -> Settings:
    """Build the settings for a model; omitted values come from its card.

    A counter named here is used without a multiplier; the card's own counter has its multiplier. Raises InputError
    when the window leaves no input budget, UnknownName for an unknown counter.
    """
    return Settings(
        card,
        Meter(counter_named(counter)) if counter else meter(card.tokens),
        allocate(
            card,
            window_tokens=window_tokens,
            output_reserve_tokens=output_reserve_tokens,
            margin_tokens=margin_tokens,
        ),
        rates_for(card.prices.read, card.prices.write, ttl_s=card.cache.ttl_s),
        wire=wire,
        strategy=strategy,
        session=session,
    )


def apply_profile(settings: Settings, profile: Profile) -> Settings:
    """Apply a context profile to settings: its tier instead of the card's, its share of the window, its detail of
    tools, and its numbers if the strategy uses them.

    Raises InputError when its share leaves no input budget, UnknownName for an unknown strategy.
    """
    chosen = named(settings.strategy).with_profile
    return replace(
        settings,
        card=replace(settings.card, tier=profile.tier),
        budget=within(settings.budget, profile.context_budget_percent),
        strategy=chosen(profile) if chosen else settings.strategy,
        tool_detail=DETAILS[profile.tool_schema_detail],
    )

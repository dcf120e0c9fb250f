"""How many examples a property is given, relative to the profile that is loaded."""

from __future__ import annotations

from hypothesis import settings


def share_of_examples(share: float) -> settings:
    """Settings that give a property this share of the profile's examples: less where one is slow, more where
    faults are rare. At least 2."""
    return settings(max_examples=max(2, round(settings().max_examples * share)))

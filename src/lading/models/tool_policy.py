"""How a request says which tools a step may use, and how much of a large catalogue it shows."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from lading.errors import InputError
from lading.validation import check_fields

Scope: TypeAlias = Literal["provider", "text", "priced", "step-only"]
"""provider: by the provider's own constraint of the choice, where the model has one. text: only in the payload's
section TOOLS, as ``provider`` does elsewhere. priced: the tools array shrinks to the step's tools once carrying the
others has cost as much as the change. step-only: the array always has the step's tools
alone, and each change of it breaks the prompt cache."""


class ToolPolicy(Struct, frozen=True, kw_only=True):
    """How the tools of a step are offered. Raises InputError for a value that cannot be used."""

    scope: Scope = "provider"
    search: bool = False
    """Show the whole schema only of the tools in ``always``: all others stand by name, and the model gets their
    schemas with the tool ``search_tools``. The payload of a step that names no tools shows those that fit it."""
    shown: int = 10
    """Number of tools that such a payload shows at most."""
    always: tuple[str, ...] = ()
    """Names of tools whose whole schema stays in the tools array."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.shown < 0:
            raise InputError("shown is a number of tools from 0 on.")
        if self.search and self.scope in ("priced", "step-only"):
            raise InputError(f"With search the tools array stays as it is. Leave out the scope {self.scope}.")

"""Options that commands share, and parsers of their values: tokens such as ``16k`` or ``64000``, shares such as
``.8`` or ``80%``, prices such as ``.10/1.25`` (cached read / cache write), and comma-separated lists of these."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import click

from lading.compaction import DEFAULT
from lading.economics import Rates

MOST_TOKENS = 10**9
"""The largest window accepted. Everything sent may be larger: it is simulated without a limit."""
_AMOUNT = re.compile(r"(\d{1,20}(?:\.\d{1,3})?)([km]?)", re.ASCII | re.IGNORECASE)
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?|\.\d{1,9})(%?)", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}

Callback: TypeAlias = Callable[[click.Context, click.Parameter, Any], Any]

files_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...")
model_option = click.option("--model", help="Model whose card is used; default: the recorded one.")
wire_option = click.option(
    "--wire", metavar="W", help="Provider format: openai_chat, openai_responses, anthropic; default: as recorded."
)
counter_option = click.option("--counter", metavar="NAME", help="o200k, cl100k or estimate; default: the card's.")


def json_option(help: str = "Print the figures as JSON.") -> Callable[[Any], Any]:  # noqa: A002 - click's name
    """Make the option ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def parse_with(parse: Callable[[str], Any]) -> Callback:
    """Make a callback that parses a value; a ValueError of ``parse`` becomes the text of the usage error."""

    def callback(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return callback


def parse_each(parse: Callable[[str], Any], wanted: str) -> Callback:
    """Make a callback that parses a comma-separated list of distinct items. ``wanted`` describes them in errors."""

    def callback(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[Any, ...]:
        if value is None:
            return ()
        try:
            found = tuple(parse(item.strip()) for item in value.split(","))
        except ValueError as error:
            raise click.BadParameter(f"give {wanted}, with commas between them") from error
        if len(set(found)) < len(found):
            raise click.BadParameter("an item is given twice; give each once")
        return found

    return callback


class FiniteRange(click.FloatRange):
    """A number in a range, neither NaN nor infinite."""

    def convert(self, value: Any, *at: Any) -> float:
        """Return the number. Raises BadParameter."""
        number = float(super().convert(value, *at))
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", *at)
        return number


def parse_tokens(text: str, *, least: int) -> int:
    """Parse a number of tokens, at least ``least``. Raises ValueError with the accepted form."""
    match = _AMOUNT.fullmatch(text)
    tokens = round(float(match[1]) * _UNITS[match[2].lower()]) if match else -1
    if not least <= tokens <= MOST_TOKENS:
        raise ValueError(f"give tokens such as 16k or 64000, a whole number from {least} to {MOST_TOKENS:,}")
    return tokens


def parse_share(text: str, *, words: Sequence[str] = ()) -> str | float:
    """Parse a share, or return one of ``words``. Raises ValueError with the accepted forms."""
    match = _SHARE.fullmatch(text)
    if match:
        return float(match[1]) / (100 if match[2] else 1)
    if text not in words:
        raise ValueError(f"give {' or '.join((*words, 'a share'))} such as 0.8 or 80%")
    return text


parse_when = partial(parse_share, words=("pays", "full"))


def parse_rates(text: str) -> Rates:
    """Parse prices; ``none`` means no cache. Raises ValueError with the accepted form."""
    if text == "none":
        return Rates(1.0, 1.0)
    try:
        read_price, write_price = map(float, text.split("/"))
    except ValueError as error:
        raise ValueError("give two numbers such as .10/1.25, cached read / cache write, or none") from error
    if not 0 <= read_price <= write_price < 1_000:
        raise ValueError(
            "give two numbers such as .10/1.25, the read price not negative and not above the write price"
        )
    return Rates(read_price, write_price)


strategy_option = click.option(
    "--strategy", default=DEFAULT, show_default=True, metavar="NAME", help="Compaction strategy, or module:NAME."
)
window_option = click.option(
    "--window", callback=parse_with(partial(parse_tokens, least=1)), metavar="N",
    help="Window in tokens; 16k is 16,000; default: the card's.",
)  # fmt: skip
when_option = click.option(
    "--when", callback=parse_with(parse_when), metavar="WHEN",
    help="When priced compacts: pays (default), full, or above a share of the window such as 0.8.",
)  # fmt: skip
verbatim_option = click.option(
    "--verbatim", callback=parse_with(parse_share), metavar="SHARE",
    help="The share that priced leaves verbatim, such as 0.3 or 30%.",
)  # fmt: skip
prices_option = click.option(
    "--prices", callback=parse_with(parse_rates), metavar="R/W",
    help="Cached read / cache write relative to base input, e.g. .10/1.25, or none; default: the card's.",
)  # fmt: skip

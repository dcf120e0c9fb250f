"""Types of options, for every command."""

from __future__ import annotations

import importlib

import click
import pytest

from lading.cli import COMMANDS
from lading.cli.options import FiniteRange

FLOATS = [
    (name, parameter.opts[-1], parameter.type)
    for name in COMMANDS
    for parameter in importlib.import_module(f"lading.cli.{name.replace('-', '_')}").command.params
    if isinstance(parameter.type, click.types.FloatParamType)
]


@pytest.mark.parametrize(("name", "option", "type_"), FLOATS)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "NaN", "1e999"])
def test_no_number_of_the_command_line_is_nan_or_infinite(
    name: str, option: str, type_: click.types.FloatParamType, value: str
) -> None:
    assert isinstance(type_, FiniteRange), f"{name} {option}: give it the type FiniteRange"
    with pytest.raises(click.BadParameter):
        type_.convert(value, None, None)

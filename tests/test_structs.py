"""Structs are made of plain values in many threads at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.waiting import PATIENCE_S

MANY = """
import sys, threading
from msgspec import to_builtins
from lading.models.catalog import build_unknown_card
from lading.models.card import Card
from lading.structs import convert

sys.setswitchinterval(0.0005)
value, started, made = to_builtins(build_unknown_card("x")), threading.Barrier(8), []

def make():
    started.wait()
    made.append(convert(value, Card, str_keys=True))

threads = [threading.Thread(target=make) for _ in range(8)]
for one in threads:
    one.start()
for one in threads:
    one.join()
assert len(made) == 8 and all(one == made[0] for one in made)
"""

NESTED = """
from msgspec import Struct
from lading.structs import convert

class Inner(Struct):
    name: str

class Outer(Struct):
    inner: object

    def __post_init__(self):
        self.inner = convert(self.inner, Inner)

assert convert({"inner": {"name": "a"}}, Outer).inner.name == "a"
"""


@pytest.mark.parametrize("_", range(4))
def test_the_first_values_of_a_type_are_made_in_threads_at_once(_: int) -> None:
    """msgspec alone crashes most such processes."""
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_value_may_make_others_as_it_is_made() -> None:
    done = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")

"""Importing Lading reads no environment, opens no store, loads no table, prints nothing."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, sys
class Watched(dict):
    def __getitem__(self, key):
        raise AssertionError("environment read: " + str(key))
    get = __getitem__
os.environ = Watched()
import lading
heavy = {"tiktoken", "sqlite3", "rich", "click", "asyncio", "importlib.metadata"} & set(sys.modules)
assert not heavy, heavy
"""


def test_importing_does_nothing() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

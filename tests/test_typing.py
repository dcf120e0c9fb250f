"""The documents as a type checker reads them: what users copy passes mypy's strict mode and pyright."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.test_docs import PYTHON, Block

ROOT = Path(__file__).resolve().parent.parent
COMMON = "def send(body: bytes) -> tuple[int, str]: ...\n"
OWN = {
    "openai": COMMON
    + """
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Which test is slow?"}]
tools: list[ChatCompletionToolParam] = []
def run_tool(name: str, arguments: str) -> str: ...
""",
    "anthropic": COMMON
    + """
from anthropic.types import MessageParam, ToolParam

messages: list[MessageParam] = [{"role": "user", "content": "Which test is slow?"}]
tools: list[ToolParam] = []
def run_tool(name: str, arguments: Mapping[str, object]) -> str: ...
""",
}

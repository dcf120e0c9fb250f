"""The documents as type checkers read them: what users copy passes mypy and pyright, both in strict mode."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_type_hints

import pytest

import lading
from lading.clients import wrapped
from tests.test_docs import AGENTS, PYTHON

SOURCE = Path(lading.__file__).resolve().parent.parent
CACHE = SOURCE.parent / ".mypy_cache" / "documents"
SENDS = """
def send(body: bytes) -> tuple[int, str]:
    raise NotImplementedError
"""
OPENAI = (
    SENDS
    + """
from typing import Any
from openai.types.chat import ChatCompletionToolParam

messages: list[Any] = [{"role": "user", "content": "Which test is slow?"}]
tools: list[ChatCompletionToolParam] = []

def run_tool(name: str, arguments: str) -> str:
    raise NotImplementedError
"""
)
"""What such a block says is the reader's. The SDK's ``ChatCompletionMessageParam`` does not include its own
``ChatCompletionMessage``, so a list that holds both is one of ``Any``."""
ANTHROPIC = (
    SENDS
    + """
from anthropic.types import MessageParam, ToolParam

messages: list[MessageParam] = [{"role": "user", "content": "Which test is slow?"}]
tools: list[ToolParam] = []

def run_tool(name: str, arguments: dict[str, object]) -> str:
    raise NotImplementedError
"""
)
GEMINI = (
    SENDS
    + """
from typing import Any

messages: list[Any] = [{"role": "user", "parts": [{"text": "Which test is slow?"}]}]
tools: list[Any] = []

def run_tool(name: str, arguments: dict[str, Any]) -> str:
    raise NotImplementedError
"""
)
RESPONSES = """
from typing import Any
from openai.types.responses import ToolParam

messages: list[Any] = [{"role": "user", "content": "Which test is slow?"}]
tools: list[ToolParam] = []

def run_tool(name: str, arguments: str) -> str:
    raise NotImplementedError
"""
CLIENTS = """
from typing import assert_type

import anthropic
import openai
from anthropic.lib.bedrock import AnthropicBedrock
from google import genai

import lading
from lading.clients import wrapped
from lading.events import Event


def on_event(event: Event) -> None: ...


client = lading.wrap(openai.OpenAI(), store="a", when=0.8, on_event=on_event, options=lading.SessionOptions())
assert_type(client, wrapped.WrappedOpenAI)
assert_type(client.lading.session("a"), wrapped.WrappedOpenAI)
assert_type(client.lading.session("a").with_options(timeout=3).lading.sessions, tuple[lading.Session, ...])
assert_type(lading.wrap(openai.AsyncOpenAI()).lading.session("a"), wrapped.WrappedAsyncOpenAI)
assert_type(lading.wrap(openai.AzureOpenAI()).lading.session("a"), wrapped.WrappedOpenAI)
assert_type(lading.wrap(openai.AsyncAzureOpenAI()).lading.session("a"), wrapped.WrappedAsyncOpenAI)
assert_type(lading.wrap(anthropic.Anthropic()).lading.session("a"), wrapped.WrappedAnthropic)
assert_type(lading.wrap(anthropic.AsyncAnthropic()).lading.session("a"), wrapped.WrappedAsyncAnthropic)
assert_type(lading.wrap(AnthropicBedrock()), AnthropicBedrock)
assert_type(lading.wrap(genai.Client()).lading.session("a"), wrapped.WrappedGenai)
taken: openai.OpenAI = client
"""
INPUTS = """
import asyncio
from collections.abc import Sequence
from typing import Any

from anthropic.types import Message, MessageParam, ToolParam
from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam, ChatCompletionToolParam

import lading
from lading.compaction import Compaction, Pressure, Strategy
from lading.history.view import View


def summarize(request: lading.SummaryRequest) -> str:
    return request.prompt


async def summarize_later(request: lading.SummaryRequest) -> lading.Summary:
    await asyncio.sleep(0)
    return lading.Summary(request.prompt)


def summarize_messages(messages: list[dict[str, Any]], context: dict[str, str]) -> str:
    return f"{len(messages)} {context['reason']}"


def compact(view: View, pressure: Pressure) -> Compaction:
    return Compaction()


def use(
    session: lading.Session,
    chat: list[ChatCompletionMessageParam],
    chat_tools: list[ChatCompletionToolParam],
    completion: ChatCompletion,
    messages: Sequence[MessageParam],
    tools: list[ToolParam],
    message: Message,
) -> None:
    session.add(chat).add(messages).add({"role": "user", "content": "text"}).add(completion.choices[0].message)
    session.pack(chat_tools, fields={"temperature": 0.1})
    session.pack(tools, fields={"max_tokens": 100})
    for response in (completion, message):
        session.add(session.handle(session.reply(response)))


options = lading.SessionOptions(summarizer=lading.Summarizer(summarize_later, timeout_s=3))
lading.Session("gpt-5-mini", strategy=Strategy("mine", compact), options=options, when="full")
lading.SessionOptions(summarizer=lading.Summarizer(summarize), verbatim=0.2)
lading.Session("gpt-5-mini", summarizer=summarize_messages)
lading.Session("gpt-5-mini", summarizer=lading.Summarizer("openai:gpt-5-nano", client=OpenAI()))
lading.wrap(OpenAI(), summarizer="self")
"""
PRESETS = """
from collections.abc import Sequence
from typing import Any, assert_type

import lading
from lading.presets import (
    CONTEXT_PROFILES,
    AgentConfig,
    BuiltContext,
    Custom,
    SlidingWindow,
    agent_config,
    allocate_budget,
    build_context,
    compose_transform_contexts,
    context_profile,
    estimate_tokens,
    resolve_synthesis_config_for_strategy,
    steps_of,
    strategy_for,
    synthesis,
)


def run(given: dict[str, Any], chat: list[dict[str, Any]], messages: list[lading.Message]) -> None:
    assert_type(build_context(**given), BuiltContext)
    build_context({"task": "a", "maxIterations": 10, "steps": chat, "profile": CONTEXT_PROFILES["mid"]})
    build_context(task="a", max_iterations=10, steps=chat, memory_items=[], tool_schemas="read()", profile="mid")
    build_context(task="a", steps=steps_of(messages), profile=context_profile("gpt-4o", {"compactAfterSteps": 8}))
    budget = allocate_budget(128_000, context_profile("gpt-4o"), 3, 10)
    assert_type(budget.allocated.step_history, int)
    assert_type(estimate_tokens("text"), int)


def compress(messages: Sequence[lading.Message], estimated_tokens: int) -> list[dict[str, Any]]:
    return [{"role": message.role, "content": message.text} for message in messages[-estimated_tokens:]]


agent: dict[str, object] = {"model": "gpt-4o", "contextStrategy": {"type": "sliding-window", "maxTurns": 20}}
config = agent_config(agent)
assert_type(config, AgentConfig)
assert config == AgentConfig(model="gpt-4o", context_strategy=SlidingWindow(max_turns=20))
lading.Session(config.model, name=config.name, strategy=strategy_for(config))
lading.Session("gpt-4o", strategy=strategy_for(AgentConfig(context_strategy=Custom(compress))))
lading.Session("gpt-4o", strategy=strategy_for({"compressToolResults": {"minChars": 2000}}))
fast = resolve_synthesis_config_for_strategy({"synthesis": "fast"}, "reactive")
lading.Session("gpt-4o", strategy=synthesis(fast))
compose_transform_contexts([lambda messages: messages[-4:], None])
"""
FAULTS = """
import lading
from openai import OpenAI

lading.wrap(OpenAI(), windw=32_000)
lading.wrap(OpenAI(), window="large")
lading.wrap(OpenAI()).lading.session(7)
"""
ALONE = """
from typing import assert_type

from openai import OpenAI

import lading
from lading.clients import wrapped

client = lading.wrap(OpenAI(), store="a")
assert_type(client, wrapped.WrappedOpenAI)
client.lading.session("a").chat.completions.create(model="gpt-5-mini", messages=[])
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project: every block of the documents, and what users hand in."""
    folder = tmp_path_factory.mktemp("project")
    sdks = {"anthropic": ANTHROPIC, "genai": GEMINI, "responses.create": RESPONSES}
    own = {block: next((sdks[name] for name in sdks if name in block.text), OPENAI) for block in AGENTS}
    texts = {re.sub(r"\W", "_", block.where): own.get(block, "") + block.text for block in PYTHON}
    for name, text in {**texts, "clients": CLIENTS, "inputs": INPUTS, "presets": PRESETS}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def checked(command: Sequence[str], *, folder: Path) -> tuple[int, str]:
    """Exit code and output of a type checker that is run in a project."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def mypy(*options: str, folder: Path) -> tuple[int, str]:
    return checked(["mypy", "--strict", "--cache-dir", str(CACHE), *options, "."], folder=folder)


@pytest.mark.full
def test_mypy_accepts_the_documents_and_what_users_hand_in(project: Path) -> None:
    code, output = mypy(folder=project)
    assert (code, output) == (0, f"Success: no issues found in {len(PYTHON) + 3} source files\n")


@pytest.mark.full
def test_pyright_accepts_the_documents_and_what_users_hand_in(project: Path, tmp_path: Path) -> None:
    # The types of google-genai name Pillow's, which it does not depend on: where that is missing, they are unknown.
    pillow = tmp_path / "PIL"
    pillow.mkdir()
    (pillow / "__init__.pyi").touch()
    (pillow / "Image.pyi").write_text("class Image: ...\n", encoding="utf-8")
    settings = {
        "typeCheckingMode": "strict",
        "stubPath": str(tmp_path),
        "extraPaths": [str(SOURCE)],
    }
    (project / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    code, output = checked(["pyright", "--pythonpath", sys.executable], folder=project)
    assert (code, output.splitlines()[-1]) == (0, "0 errors, 0 warnings, 0 informations"), output


@pytest.mark.full
def test_mypy_refuses_options_that_there_are_not(tmp_path: Path) -> None:
    (tmp_path / "faults.py").write_text(FAULTS, encoding="utf-8")
    _, output = mypy(folder=tmp_path)
    assert set(re.findall(r"^faults.py:(\d+): error", output, re.MULTILINE)) == {"5", "6", "7"}, output


@pytest.mark.full
def test_one_sdk_is_enough_for_a_type_checker(tmp_path: Path) -> None:
    """The other is Any, as where it is not installed."""
    (tmp_path / "alone.py").write_text(ALONE, encoding="utf-8")
    skipped = "[mypy-anthropic.*]\nfollow_imports = skip\n[mypy-lading.*]\nignore_errors = True\n"
    (tmp_path / "mypy.ini").write_text("[mypy]\n" + skipped, encoding="utf-8")
    code, output = mypy("--config-file", "mypy.ini", folder=tmp_path)
    assert (code, output) == (0, "Success: no issues found in 1 source file\n")


def test_the_typed_options_of_wrap_are_its_parameters() -> None:
    parameters = {name: item.annotation for name, item in inspect.signature(lading.wrap).parameters.items()}
    del parameters["client"]
    assert {**wrapped.Options.__annotations__}.keys() == parameters.keys()
    hints = get_type_hints(lading.wrap)
    assert get_type_hints(wrapped.Options) == {name: hints[name] for name in parameters}

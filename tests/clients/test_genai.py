"""``wrap`` over the client of google-genai: every way to ask for content, its own loops, and its copies."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from google import genai
from google.genai import types

from lading import wrap
from lading.audit.replay import verify
from lading.errors import InputError
from lading.events import Event, PackingFailed, ReplyLost, Restored, Unpacked
from lading.testing import FakeModel, NeedleTask, Say, StrictProvider, Use
from tests.clients.test_unpacked import LINES, reading
from tests.examples import quick_diagonal, quick_first

MODEL, MODEL_WITHOUT_IDS = "gemini-3-pro", "gemini-2.0-flash"
LOST = (PackingFailed, ReplyLost, Unpacked)


def client_of(provider: StrictProvider, **options: Any) -> Any:
    made = genai.Client(api_key="test", http_options=types.HttpOptions(base_url=provider.url))
    return wrap(made, **{"window": 9_000, "output_reserve": 1_000, **options})


def config(**more: Any) -> types.GenerateContentConfig:
    return types.GenerateContentConfig(**{"system_instruction": "Be brief.", "max_output_tokens": 1_000, **more})


@pytest.fixture
def events() -> list[Event]:
    return []


async def each(found: Any) -> AsyncIterator[Any]:
    """The chunks of a stream of either kind; a whole answer is one."""
    found = await found if inspect.isawaitable(found) else found
    if hasattr(found, "__aiter__"):
        async for one in found:
            yield one
    else:
        for one in found if isinstance(found, Iterator) else [found]:
            yield one


@pytest.mark.parametrize("rounds", quick_first([20, 60], 1))
@pytest.mark.parametrize(
    ("stream", "is_async", "model"), quick_diagonal([False, True], [False, True], [MODEL, MODEL_WITHOUT_IDS])
)
def test_many_rounds_of_tools_are_legal_and_verified(
    stream: bool, is_async: bool, model: str, rounds: int, events: list[Event]
) -> None:
    task = NeedleTask(rounds)
    with StrictProvider(task.script) as provider:
        client = client_of(provider, on_event=events.append)
        models = client.aio.models if is_async else client.models
        ask = models.generate_content_stream if stream else models.generate_content
        said = asyncio.run(run(ask, task, model))
        assert task.report() in said
        assert provider.violations == []
        assert max(answer.prompt_tokens for answer in provider.answers) < 9_000
        (session,) = client.lading.sessions
        kinds = Counter(edit.kind for edit in session._engine.history.edits)
        assert kinds["summarised"] > rounds // 12
        assert "restated" not in kinds
        assert not [event for event in events if isinstance(event, LOST)]
        assert [event for event in events if isinstance(event, Restored)]
        outcomes = list(verify(session.store, tenant="default", session=session.name))
        assert len(outcomes) > task.rounds
        assert {outcome.problem for outcome in outcomes} == {""}
        assert session.model == model


async def run(ask: Callable[..., Any], task: NeedleTask, model: str) -> str:
    """The agent loop: ask, run the tools, hand the whole history in again, until the model is done."""
    by_hand = types.AutomaticFunctionCallingConfig(disable=True)
    asked = config(system_instruction=task.system, tools=task.tools("gemini"), automatic_function_calling=by_hand)
    contents = [types.Content(role="user", parts=[types.Part(text=task.prompt)])]
    while True:
        parts: list[types.Part] = []
        async for chunk in each(ask(model=model, contents=contents, config=asked)):
            parts += chunk.candidates[0].content.parts
        contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts)
        results = [{"result": task.run_tool(one.name or "", one.args or {})} for one in calls]
        answers = [
            types.FunctionResponse(id=one.id, name=one.name, response=result)
            for one, result in zip(calls, results, strict=True)
        ]
        contents.append(types.Content(role="user", parts=[types.Part(function_response=one) for one in answers]))


@pytest.mark.parametrize("model", [MODEL, MODEL_WITHOUT_IDS])
def test_records_know_the_outcome_of_calls_that_the_sdk_answers_without_ids(model: str) -> None:
    """Its own loop leaves out the ids of results, also where the calls have some."""

    def edit_file(path: str, new_text: str) -> str:
        """Write a file."""
        return f"{path}: {new_text}\n" * 60

    edits = [
        Say(f"Step {at}.", (Use("edit_file", {"path": f"src/m{at}.py", "new_text": "x"}),)) for at in range(40)
    ]
    with StrictProvider(FakeModel([*edits, Say("Done.")])) as provider:
        client = client_of(provider)
        on = types.AutomaticFunctionCallingConfig(maximum_remote_calls=50)
        chat = client.chats.create(model=model, config=config(tools=[edit_file], automatic_function_calling=on))
        assert chat.send_message("Edit all.").text == "Done."
        assert provider.violations == []
        contents = provider.requests[-1].body["contents"]
    sent = "\n".join(part.get("text", "") for content in contents for part in content["parts"])
    assert "edit_file src/m0.py" in sent
    assert "no result" not in sent
    assert sent.count("Files changed: ") == sent.count("[Record of") > 0


def own_tool(is_async: bool) -> Any:
    """The tool of the scripted model, as the SDK's own loop takes it."""

    async def later(path: str) -> str:
        return LINES[path]

    def now(path: str) -> str:
        return LINES[path]

    tool = later if is_async else now
    tool.__name__ = "read"
    return tool


@pytest.mark.parametrize(
    "way", ["generate_content", "generate_content_stream", "send_message", "send_message_stream"]
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_loops_of_the_sdk_are_packed(way: str, is_async: bool, events: list[Event]) -> None:
    calling = types.AutomaticFunctionCallingConfig(maximum_remote_calls=50)
    asked = config(tools=[own_tool(is_async)], automatic_function_calling=calling)

    async def talk(client: Any) -> list[str]:
        side = client.aio if is_async else client
        if not way.startswith("send"):
            found = getattr(side.models, way)(model=MODEL, contents="Read all files.", config=asked)
            return [await joined(found)]
        chat = side.chats.create(model=MODEL, config=asked)
        return [await joined(getattr(chat, way)(words)) for words in ("Read all files.", "Thanks.", "And more?")]

    async def joined(found: Any) -> str:
        texts = [
            part.text for one in [chunk async for chunk in each(found)] for part in one.candidates[0].content.parts
        ]
        return "".join(text or "" for text in texts)

    with StrictProvider(reading) as provider:
        client = client_of(provider, on_event=events.append, window=10_500)
        said = asyncio.run(talk(client))
        assert all(one.endswith("I have read 12 files.") for one in said)
        assert provider.violations == []
        (session,) = client.lading.sessions
        assert len(session.entries) == 2 + 2 * 12 + 1 + 2 * (len(said) - 1)
        kinds = {edit.kind for edit in session._engine.history.edits}
        assert "summarised" in kinds
        assert "restated" not in kinds
        assert not [event for event in events if isinstance(event, LOST)]
        assert {one.problem for one in verify(session.store, tenant="default", session=session.name)} == {""}


def test_the_copy_outlives_the_original_and_the_original_the_copy() -> None:
    with StrictProvider(FakeModel([Say("Yes.")])) as provider:
        first = genai.Client(api_key="test", http_options=types.HttpOptions(base_url=provider.url))
        client = wrap(first)
        assert isinstance(client, genai.Client)
        assert type(client).__name__ == "Client"
        del client
        gc.collect()
        assert first.models.generate_content(model=MODEL, contents="hi").text == "Yes."
        client = wrap(first)
        del first
        gc.collect()
        assert client.models.generate_content(model=MODEL, contents="hi").text == "Yes."
        with pytest.raises(InputError, match="wrapped already"):
            wrap(client)


def test_a_session_of_a_name_has_its_own_client() -> None:
    with StrictProvider(FakeModel([Say("Yes.")])) as provider:
        client: Any = client_of(provider)
        named = client.lading.session("mine")
        for one in (named, client):
            one.models.generate_content(model=MODEL, contents="hi")
        assert "mine" in [session.name for session in client.lading.sessions]
        assert len(client.lading.sessions) == 2
        assert all("x-lading-session" not in request.headers for request in provider.requests)


def test_a_request_with_cached_content_goes_out_as_it_is(events: list[Event]) -> None:
    with StrictProvider(FakeModel([Say("Yes.")])) as provider:
        client: Any = client_of(provider, on_event=events.append)
        asked = types.GenerateContentConfig(cached_content="cachedContents/x")
        assert client.models.generate_content(model=MODEL, contents="hi", config=asked).text == "Yes."
        assert client.lading.sessions == ()
        assert [event.what for event in events if isinstance(event, Unpacked)] == ["the field cachedContent"]


def test_a_prompt_that_is_too_long_is_made_smaller(events: list[Event]) -> None:
    task = NeedleTask(rounds=12)
    with StrictProvider(task.script, window_tokens=6_000) as provider:
        client = client_of(provider, window=30_000, on_event=events.append)
        said = asyncio.run(run(client.models.generate_content, task, MODEL))
        assert task.report() in said
        refused = [answer for answer in provider.answers if answer.status == 400]
        assert refused
        assert provider.violations == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_chat_sends_every_turn_whose_call_of_restore_it_does_not_see(stream: bool, events: list[Event]) -> None:
    """The SDK leaves turns with an empty content out of its history."""

    def read_file(path: str) -> str:
        """Read a file."""
        return f"RESULT {path}"

    restore = Use("restore", {"address": "artifact://log/0"})
    reads = [(Use("read_file", {"path": path}),) for path in "abc"]
    says = [Say("", reads[0]), Say("", (*reads[1], restore)), Say("", reads[2]), Say("Done."), Say("Yes.")]
    with StrictProvider(FakeModel(says)) as provider:
        client = client_of(provider, on_event=events.append)
        chat = client.chats.create(model=MODEL_WITHOUT_IDS, config=config(tools=[read_file]))
        for asked in ("Go.", "And?"):
            _ = [*chat.send_message_stream(asked)] if stream else chat.send_message(asked)
        assert provider.violations == []
        assert len(client.lading.sessions) == 1
        sent = provider.requests[-1].raw.decode()
        assert [sent.count(f"RESULT {path}") for path in "abc"] == [1, 1, 1]
        # Another process has no log of it.
        history = chat.get_history(curated=True)
        again = client_of(provider, on_event=events.append)
        again.models.generate_content(model=MODEL_WITHOUT_IDS, contents=[*history, "More."], config=config())
        assert [provider.requests[-1].raw.decode().count(f"RESULT {path}") for path in "abc"] == [1, 1, 1]
        assert provider.violations == []
    assert not any(isinstance(event, LOST) for event in events)

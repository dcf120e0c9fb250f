"""Tools of MCP servers: real ones, started as processes, over HTTP and in this process."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from mcp import StdioServerParameters

import lading
from lading.catalogues import Catalogue, open_mcp
from lading.errors import InputError
from lading.messages import File, Image, Message, Text, ToolCall
from lading.models.tool_policy import ToolPolicy
from lading.wire import WIRES, find_wire
from tests.catalogues.demo_server import PIXEL, make_server
from tests.waiting import together, until

STDIO = StdioServerParameters(command=sys.executable, args=["-m", "tests.catalogues.demo_server", "stdio"])
NOTHING = StdioServerParameters(command=sys.executable, args=["-c", "raise SystemExit(3)"])
TOOLS = ["add", "fetch.report", "odd", "nothing", "grow", "fail", "hang", "die"]


def call(catalogue: Catalogue, name: str, arguments: str = "{}") -> Message:
    asked = Message("assistant", (ToolCall("c1", name, arguments),))
    (answered,) = catalogue.handle(asked)
    return answered


@pytest.fixture(scope="module")
def http_server() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.catalogues.demo_server", "http", str(port)]
    with subprocess.Popen(command) as process:
        until("the server listens", lambda: process.poll() is not None or is_listening(port))
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(params=["in process", "stdio", "http"])
def place(request: pytest.FixtureRequest) -> Any:
    if request.param == "http":
        return request.getfixturevalue("http_server")
    return STDIO if request.param == "stdio" else make_server()


def test_tools_are_listed_and_their_calls_answered(place: Any) -> None:
    with open_mcp(place) as servers:
        catalogue = Catalogue(servers)
        names = [tool.name for tool in catalogue.tools]
        assert names[0] == "add"
        assert len(names) == len(TOOLS)
        assert servers.failures == {}
        assert catalogue.tools[0].description == "Add two numbers."
        answered = call(catalogue, "add", '{"a": 1, "b": 2}')
        assert (answered.results[0].text, answered.results[0].is_error) == ("3", False)
        failed = call(catalogue, "fail")
        assert failed.results[0].is_error


def test_content_of_all_kinds_is_legal_on_every_wire() -> None:
    with open_mcp(make_server()) as servers:
        catalogue = Catalogue(servers)
        name = catalogue.tools[1].name
        answered = call(catalogue, name)
    text, picture, document, link = answered.results[0].parts
    assert text == Text("The report:")
    assert isinstance(picture, Image)
    assert (picture.data, picture.media_type) == (PIXEL, "image/png")
    assert isinstance(document, File)
    assert link == Text("[notes: demo://notes]")
    for wire in WIRES:
        with lading.Session("a-model", wire=wire, window=32_000, output_reserve=1_000) as session:
            session.add("Fetch the report.")
            session.add([Message("assistant", (ToolCall("c1", name, "{}"),)), answered])
            pack = session.pack(catalogue.tools)
            assert pack.violations == ()
            assert "The report:" in pack.body.decode()


def test_names_and_descriptions_are_such_as_providers_take() -> None:
    with open_mcp({"my demo": make_server(), "other": make_server()}) as servers:
        catalogue = Catalogue(servers)
        names = [tool.name for tool in catalogue.tools]
        assert len(set(names)) == 2 * len(TOOLS)
        assert all(len(name) <= 64 and name.replace("_", "a").replace("-", "a").isalnum() for name in names)
        assert names[len(TOOLS)] == "other__add"
        assert max(len(tool.description) for tool in catalogue.tools) < 2_100
        for wire in WIRES:
            declared = json.dumps(catalogue.declare(wire))
            assert "other__add" in declared
            assert find_wire(wire).read_tools(catalogue.declare(wire))[len(TOOLS)].name == "other__add"


def test_a_server_that_fails_costs_its_own_tools_only() -> None:
    servers = {"dead": NOTHING, "nowhere": "http://127.0.0.1:9/mcp", "demo": make_server()}
    with open_mcp(servers, timeout_s=20) as opened:
        catalogue = Catalogue(opened)
        assert next(tool.name for tool in catalogue.tools) == "demo__add"
        assert sorted(opened.failures) == ["dead", "nowhere"]
        assert call(catalogue, "demo__add", '{"a": 2, "b": 2}').results[0].text == "4"


def test_a_call_that_hangs_or_ends_the_server_is_a_failed_result_and_refresh_connects_again() -> None:
    with open_mcp(STDIO, call_timeout_s=0.5) as servers:
        catalogue = Catalogue(servers)
        assert catalogue.tools
        for name in ("hang", "die"):
            answered = call(catalogue, name)
            assert answered.results[0].is_error
            assert "did not answer" in answered.results[0].text
            servers.refresh()
            assert servers.failures == {}
    with open_mcp(STDIO) as servers:
        catalogue = Catalogue(servers)
        assert catalogue.tools
        assert call(catalogue, "die").results[0].is_error
        assert call(catalogue, "add", '{"a": 1, "b": 2}').results[0].text == "3"


@pytest.mark.parametrize("arguments", ["[1]", "{", "null", '"a"'])
def test_arguments_that_are_no_object_are_refused_without_a_call(arguments: str) -> None:
    with open_mcp(make_server()) as servers:
        catalogue = Catalogue(servers)
        assert catalogue.tools
        answered = call(catalogue, "add", arguments)
    assert answered.results[0].is_error
    assert "no JSON object" in answered.results[0].text


def test_no_server_is_refused() -> None:
    with pytest.raises(InputError, match="at least one"), open_mcp({}):
        pass


def test_a_tool_whose_schema_cannot_be_sent_is_left_out() -> None:
    server = make_server()
    server.add_tool(lambda: "", name="huge", description="x" * 10)
    tool = server._tool_manager.get_tool("huge")
    assert tool is not None
    tool.parameters = {"type": "object", "description": "x" * 70_000}
    with open_mcp(server) as servers:
        assert "huge" not in servers.list_tools()
        assert servers.left_out == {"server/huge": "its schema is too large, or not of an object"}


def test_a_step_searches_the_tools_of_a_catalogue() -> None:
    step = {"id": "step-1", "text": "Send a mail.", "checklist": ["Sent"]}
    with open_mcp(make_server()) as servers, lading.Session("gpt-5") as session:
        catalogue = Catalogue(servers)
        session.add("Mail the price to Ann.")
        session.begin(step, options=lading.TaskOptions(tools=ToolPolicy(search=True, shown=0)))
        body = session.pack(catalogue.tools).request
        assert "Add two numbers." not in json.dumps(body["tools"])
        asked = Message("assistant", (ToolCall("c1", "search_tools", '{"query": "sum of numbers"}'),))
        session.add([asked, *session.handle(asked), *catalogue.handle(asked)])
        assert (
            '"description":"Add two numbers."' in session.pack(catalogue.tools).request["messages"][-1]["content"]
        )


def test_an_async_session_uses_a_catalogue_in_a_thread() -> None:
    async def main() -> None:
        async with lading.AsyncSession(lading.Session("gpt-4o")) as session:
            await session.add("Add.")
            asked = Message("assistant", (ToolCall("c1", "add", '{"a": 1, "b": 2}'),))
            await session.add([asked, *await asyncio.to_thread(catalogue.handle, asked)])
            pack = await session.pack(catalogue.tools)
            assert pack.request["messages"][-1]["content"] == "3"

    with open_mcp(make_server()) as servers:
        catalogue = Catalogue(servers)
        asyncio.run(main())


def test_what_no_provider_takes_is_named_and_nothing_is_said_so() -> None:
    with open_mcp(make_server()) as servers:
        catalogue = Catalogue(servers)
        assert catalogue.tools
        odd, nothing = call(catalogue, "odd"), call(catalogue, "nothing")
    assert odd.results[0].text.split("\n") == [
        "[image: image/png left out]",
        "[image: text/html left out]",
        "[audio left out]",
        "[demo://x: application/pdf left out]",
    ]
    for wire in WIRES:
        with lading.Session("a-model", wire=wire, window=32_000, output_reserve=1_000) as session:
            session.add("Do it.")
            session.add([Message("assistant", (ToolCall("c1", "nothing", "{}"),)), nothing])
            pack = session.pack(catalogue.tools)
            assert pack.violations == ()
            assert "[no output]" in pack.body.decode()


def test_a_server_that_says_that_its_tools_changed_is_asked_again(place: Any) -> None:
    with open_mcp(place) as servers:
        catalogue = Catalogue(servers)
        before = [tool.name for tool in catalogue.tools]
        assert call(catalogue, "grow").results[0].text == "done"
        until("the new tool is offered", lambda: "new" in catalogue.names)
        assert [tool.name for tool in catalogue.tools] == [*before, *(["new"] if "new" not in before else [])]
        assert call(catalogue, "new").results[0].text == "I am new."


def test_threads_share_one_connection() -> None:
    with open_mcp(STDIO) as servers:
        catalogue = Catalogue(servers)
        assert catalogue.tools
        calls = [partial(call, catalogue, "add", json.dumps({"a": at, "b": 1})) for at in range(40)]
        assert [answered.results[0].text for answered in together(calls)] == [str(at + 1) for at in range(40)]
        assert len(servers._open) == 1

"""The tools of a step: a limit of the choice, deferral, text or the array; the search; and the record of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lading import Message, Pack, Session, TaskOptions, Text, Tool, ToolCall, tool_result, verify
from lading.addresses import RESTORE, SEARCH_TOOLS
from lading.errors import InputError
from lading.jsonbytes import dump, load
from lading.messages import Opaque
from lading.models.tool_policy import ToolPolicy
from lading.presets.aether_frame import STEP_ONLY
from lading.request.tool_record import ToolRecord, load_tool_record
from lading.stores.memory import MemoryStore
from lading.wire import find_wire

FORMATS = (
    ("gpt-5", "openai_chat"),
    ("gpt-5", "openai_responses"),
    ("gemini-2.5-pro", "gemini"),
    ("claude-sonnet-4-5", "anthropic"),
    ("gpt-4.1", "openai_chat"),
)
SEARCH = ToolPolicy(search=True)


def tool(name: str, description: str, parameter: str) -> Tool:
    properties = {parameter: {"type": "string", "description": f"the {parameter}"}}
    return Tool(name, description, {"type": "object", "properties": properties})


TOOLS = (
    tool("search_web", "Search the web.", "query"),
    tool("read_file", "Read a file.", "path"),
    tool("send_mail", "Send a mail to a person.", "address"),
    tool("list_files", "List the files of a folder.", "folder"),
)


def step(name: str, *tools: str) -> dict[str, Any]:
    return {"id": name, "text": "Go on.", "checklist": ["It is done"], "tools": [*tools]}


def begun(session: Session, name: str, *tools: str, policy: ToolPolicy | None = None) -> Pack:
    """The request of a step with these tools."""
    session.begin(step(name, *tools), options=None if policy is None else TaskOptions(tools=policy))
    return session.pack(TOOLS)


def work(session: Session, name: str) -> None:
    """A call of a tool, its result, and an answer."""
    call = ToolCall(f"{name}-{len(session.entries)}", name, "{}")
    session.add([Message("assistant", (call,)), tool_result(call.id, "done")])
    session.add([Message("assistant", (Text("Done."),))])


def search(session: Session, query: str) -> Message:
    """The answer to a call of the tool, which is added."""
    call = ToolCall(f"s{len(session.entries)}", SEARCH_TOOLS, dump({"query": query}).decode())
    asked = Message("assistant", (call,))
    (answer,) = session.handle(asked)
    session.add([asked, answer])
    return answer


def allowed(pack: Pack) -> list[str] | None:
    """The names to which a request limits the choice."""
    body = pack.request
    if config := body.get("toolConfig"):
        names: list[str] = config["functionCallingConfig"]["allowedFunctionNames"]
        return names
    choice = body.get("tool_choice")
    if choice is None:
        return None
    return [one.get("function", one)["name"] for one in choice.get("allowed_tools", choice)["tools"]]


def record(session: Session, pack: Pack) -> ToolRecord:
    return load_tool_record(session.store.blob("default", "session", digest=pack.manifest.place.tools))


@pytest.mark.parametrize(("model", "wire"), FORMATS)
def test_a_change_of_scope_leaves_the_array_and_the_prefix(model: str, wire: str) -> None:
    store = MemoryStore()
    with Session(model, wire=wire, store=store) as session:
        session.add("Compare the vendors.")
        first = begun(session, "s1", "search_web")
        work(session, "search_web")
        second = begun(session, "s2", "read_file")
        work(session, "read_file")
        third = begun(session, "s3")
    assert first.request["tools"] == second.request["tools"] == third.request["tools"]
    assert [pack.manifest.prefix.first_changed for pack in (second, third)] == ["", ""]
    assert not any(pack.violations for pack in (first, second, third))
    assert not [one for one in verify(store, tenant="default", session="session") if one.problem]


@pytest.mark.parametrize(("model", "wire"), FORMATS[:3])
def test_the_limit_names_the_step_s_tools_our_own_and_those_used_before(model: str, wire: str) -> None:
    with Session(model, wire=wire) as session:
        session.add("Compare the vendors.")
        assert allowed(begun(session, "s1", "search_web")) == ["search_web", "restore"]
        work(session, "search_web")
        assert allowed(begun(session, "s2", "read_file")) == ["search_web", "read_file", "restore"]
        session.begin(None)
        assert allowed(session.pack(TOOLS)) is None


@pytest.mark.parametrize(("model", "wire"), FORMATS[3:])
def test_where_there_is_no_limit_the_payload_says_it(model: str, wire: str) -> None:
    with Session(model, wire=wire) as session:
        session.add("Compare the vendors.")
        pack = begun(session, "s1", "search_web")
        assert allowed(pack) is None
        assert b"TOOLS (step-only):\\n- search_web(query): Search the web." in pack.body
        assert record(session, pack).scope == "text"


def test_the_modes_of_a_limit() -> None:
    with Session("gpt-5") as session:
        session.add("Compare the vendors.")
        session.begin(step("s1", "search_web"))
        required = session.pack(TOOLS, fields={"tool_choice": "required"}).request["tool_choice"]
        assert required["allowed_tools"]["mode"] == "required"
    with Session("gemini-2.5-pro", wire="gemini") as session:
        session.add("Compare the vendors.")
        session.begin(step("s1", "search_web"))
        modes = [
            session.pack(TOOLS, fields={"toolConfig": {"functionCallingConfig": config}}).request["toolConfig"]
            for config in ({}, {"mode": "AUTO"}, {"mode": "ANY"})
        ]
        assert [mode["functionCallingConfig"]["mode"] for mode in modes] == ["VALIDATED", "VALIDATED", "ANY"]


@pytest.mark.parametrize(
    ("model", "wire", "fields"),
    [
        ("gpt-5", "openai_chat", {"tool_choice": {"type": "function", "function": {"name": "read_file"}}}),
        ("gpt-5", "openai_responses", {"tool_choice": "none"}),
        ("gemini-2.5-pro", "gemini", {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}),
        (
            "gemini-2.5-pro",
            "gemini",
            {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read_file"]}}},
        ),
    ],
)
def test_the_caller_s_own_choice_stays(model: str, wire: str, fields: dict[str, Any]) -> None:
    with Session(model, wire=wire) as session:
        session.add("Compare the vendors.")
        session.begin(step("s1", "search_web"))
        body = session.pack(TOOLS, fields=fields).request
        assert {name: body[name] for name in fields} == fields


def test_another_host_of_the_format_gets_no_limit() -> None:
    for model in ("ollama/gpt-5", "gemini-2.5-pro"):
        with Session(model, wire="openai_chat") as session:
            session.add("Compare the vendors.")
            assert allowed(begun(session, "s1", "search_web")) is None


def test_without_a_step_nothing_is_recorded_or_changed() -> None:
    with Session("gpt-5") as session:
        session.add("Compare the vendors.")
        pack = session.pack(TOOLS)
        assert pack.manifest.place.tools == ""
        assert "tool_choice" not in pack.request


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(("model", "wire"), FORMATS)
def test_what_a_step_offered_is_not_what_later_openings_start_from(model: str, wire: str, ends: bool) -> None:
    """A session that goes on without the step, under another model: its last request counts, not the step's."""
    store = MemoryStore()
    with Session(model, wire=wire, store=store) as session:
        session.add("Compare the vendors.")
        begun(session, "s1", "search_web")
        if ends:
            session.begin(None)
            session.add([Message("assistant", (Text("Done."),))]).add("And now?").pack(TOOLS[:1])
    for number in range(3):
        with Session("gpt-4o", wire="openai_chat", store=store) as session:
            session.add([Message("assistant", (Text("Done."),))]).add(f"Go on {number}.")
            pack = session.pack(TOOLS[1:], fields={"temperature": 0.9}) if not number else session.pack()
        named = [tool["function"]["name"] for tool in pack.request["tools"]]
        assert named == [*(tool.name for tool in TOOLS[1:]), RESTORE]
        assert (pack.request["model"], pack.request["temperature"]) == ("gpt-4o", 0.9)
        assert (pack.manifest.place.tools, pack.violations) == ("", ())


def test_step_only_sends_the_step_s_tools_alone_and_the_bill_says_what_it_costs() -> None:
    with Session("gpt-5") as session:
        session.add("Compare the vendors.")
        names = [
            one["function"]["name"] for one in begun(session, "s1", "search_web", policy=STEP_ONLY).request["tools"]
        ]
        assert names == ["search_web", "restore"]
        work(session, "search_web")
        second = begun(session, "s2", "read_file")
        prefix = second.manifest.prefix
        assert (prefix.first_changed, prefix.why) == ("envelope", "the tools of the step changed")
        assert prefix.price > 0
        assert record(session, second).withheld == ("search_web", "send_mail", "list_files")


def test_tools_that_the_caller_changes_in_a_step_are_not_the_step_s() -> None:
    with Session("gpt-5") as session:
        session.add("Compare the vendors.")
        begun(session, "s1", "search_web")
        work(session, "search_web")
        prefix = session.pack(TOOLS[:1]).manifest.prefix
        assert (prefix.first_changed, prefix.why) == ("envelope", "tools, system or other fields changed")


def test_a_priced_array_shrinks_once_carrying_the_others_has_cost_as_much() -> None:
    many = [
        tool(f"other_{number}", "Something else, described at some length. " * 20, "query") for number in range(20)
    ]
    sizes = []
    with Session("claude-sonnet-4-5") as session:
        session.add("Compare the vendors.")
        session.begin(step("s1", "search_web"), options=TaskOptions(tools=ToolPolicy(scope="priced")))
        for _ in range(40):
            sizes.append(len(session.pack([*TOOLS, *many]).request["tools"]))
            work(session, "search_web")
        narrowed = sizes.index(2)
        assert 5 < narrowed < 40
        assert set(sizes[:narrowed]) == {25}
        assert set(sizes[narrowed:]) == {2}
        # A tool that the array lacks is needed: the array changes at once.
        session.begin(step("s2", "read_file"))
        tools = [one["name"] for one in session.pack([*TOOLS, *many]).request["tools"]]
        assert tools == ["read_file", "restore"]


@pytest.mark.parametrize(("model", "wire"), [one for one in FORMATS if one[1] != "anthropic"])
def test_with_a_search_tools_stand_by_name_and_a_result_has_the_schema(model: str, wire: str) -> None:
    with Session(model, wire=wire) as session:
        session.add("Compare the vendors.")
        policy = ToolPolicy(search=True, always=("list_files",))
        first = begun(session, "s1", "search_web", policy=policy)
        session_tools = {one.name: one for one in session.wire.read_tools(first.request["tools"])}
        assert [*session_tools] == [*(one.name for one in TOOLS), "restore", SEARCH_TOOLS]
        assert session_tools["list_files"].schema == TOOLS[3].schema
        assert session_tools["read_file"].schema == {"type": "object"}
        for each in TOOLS:
            (declared,) = map(load, search(session, each.name).results[0].text.splitlines())
            assert declared == {"name": each.name, "description": each.description, "parameters": each.schema}
        pack = session.pack(TOOLS)
        assert pack.manifest.prefix.first_changed == ""
        assert pack.request["tools"] == first.request["tools"]
        if allowed(first) is not None:
            assert "read_file" not in (allowed(first) or ())
            assert "read_file" in (allowed(pack) or ())


def test_the_payload_of_a_step_that_names_no_tools_shows_those_that_fit() -> None:
    with Session("gpt-5") as session:
        session.add("Send a mail to Ann.")
        pack = begun(session, "s1", policy=ToolPolicy(search=True, shown=1))
        payload = pack.request["messages"][-1]["content"]
        assert '- send_mail(address): Send a mail to a person.\n    {"name":"send_mail"' in payload
        assert "search_web" not in payload
        assert record(session, pack).shown == ("send_mail",)
        assert allowed(pack) is None


def test_deferred_tools_are_no_part_of_the_prompt_until_a_result_refers_to_them() -> None:
    store = MemoryStore()
    with Session("claude-sonnet-4-5", store=store) as session:
        session.add("Compare the vendors.")
        first = begun(session, "s1", policy=SEARCH)
        waiting = {one["name"] for one in first.request["tools"] if one.get("defer_loading")}
        assert waiting == {one.name for one in TOOLS}
        own = first.request["tools"][-1]
        assert own["name"] == SEARCH_TOOLS
        assert own["description"].endswith("There are: search_web, read_file, send_mail, list_files.")
        answer = search(session, "send_mail")
        reference = {"type": "tool_reference", "tool_name": "send_mail"}
        assert answer.results[0].parts == (Opaque(reference),)
        second = session.pack(TOOLS)
        assert second.request["messages"][-1]["content"][0]["content"] == [reference]
        assert second.request["tools"] == first.request["tools"]
        assert second.manifest.prefix.first_changed == ""
        assert second.manifest.counts["tools"] > first.manifest.counts["tools"]
        assert not second.violations
        # A compaction would hide the tool again.
        assert session._engine.history.edits[-1].kind == "pinned"
    assert not [one for one in verify(store, tenant="default", session="session") if one.problem]


def test_a_search_stays_within_the_tools_of_the_task() -> None:
    with Session("gpt-5") as session:
        session.add("Compare the vendors.")
        task = {"id": "t", "goal": "Compare.", "plan": [step("s1")], "tools": ["search_web", "read_file"]}
        session.begin("s1", task=task, options=TaskOptions(tools=SEARCH))
        assert allowed(session.pack(TOOLS)) == ["search_web", "read_file", "restore", SEARCH_TOOLS]
        assert search(session, "send_mail").results[0].text.startswith("No tool matches.")


@pytest.mark.parametrize("arguments", ["", "[", "7", '{"query": 7}', '{"other": "x"}'])
def test_a_search_without_words_finds_nothing(arguments: str) -> None:
    with Session("gpt-5") as session:
        session.add("Compare the vendors.")
        begun(session, "s1", policy=SEARCH)
        (answer,) = session.handle(Message("assistant", (ToolCall("c", SEARCH_TOOLS, arguments),)))
        assert answer.results[0].text.startswith("No tool matches.")


def test_a_caller_s_own_tool_of_that_name_is_left_to_the_caller() -> None:
    with Session("gpt-5") as session:
        session.add("Compare the vendors.")
        session.begin(step("s1"), options=TaskOptions(tools=SEARCH))
        pack = session.pack([*TOOLS, Tool(SEARCH_TOOLS, "My own.", {"type": "object"})])
        assert pack.request["tools"][0]["function"]["description"] == "Search the web."
        assert session.handle(Message("assistant", (ToolCall("c", SEARCH_TOOLS, "{}"),))) == []


def test_the_session_has_the_same_search() -> None:
    with Session("gpt-5") as session:
        assert session.tools.search("mail") == []
        session.add("Compare the vendors.")
        session.pack(TOOLS)
        assert [one.name for one in session.tools.search("a mail to Ann")] == ["send_mail"]
        assert session.tools.find("read_file") == TOOLS[1]


@pytest.mark.parametrize(("model", "wire"), FORMATS)
@pytest.mark.parametrize("policy", [ToolPolicy(), SEARCH, STEP_ONLY])
def test_a_reopened_session_goes_on_from_the_tools_that_were_given(
    model: str, wire: str, policy: ToolPolicy, tmp_path: Path
) -> None:
    with Session(model, wire=wire, store=tmp_path) as session:
        session.add("Compare the vendors.")
        first = begun(session, "s1", "search_web", policy=policy)
        work(session, "search_web")
    with Session(model, wire=wire, store=tmp_path) as session:
        session.begin(step("s1", "search_web"), options=TaskOptions(tools=policy))
        session.add("Go on.")
        pack = session.pack()
        assert pack.request["tools"] == first.request["tools"]
        assert pack.manifest.prefix.first_changed == ""
        assert [one.name for one in session.tools.tools] == [one.name for one in TOOLS]
        work(session, "search_web")
        session.begin(None)
        assert allowed(session.pack()) is None


def test_the_record_says_which_tools_are_offered_by_which_rule_at_what_detail() -> None:
    with Session("gpt-5") as session:
        session.add("Compare the vendors.")
        policy = ToolPolicy(search=True, always=("list_files",))
        begun(session, "s1", "search_web", policy=policy)
        search(session, "send_mail")
        pack = session.pack(TOOLS)
        assert record(session, pack).describe() == [
            "tools: scope choice, search by text; 1 step (names), 1 by name (names), 1 found (names), "
            "1 always (full), 2 own (full)",
            "  step: search_web",
            "  found: send_mail",
            "  always: list_files",
            "  own: restore, search_tools",
            "  in the payload: search_web",
            "  withheld: read_file",
        ]


@pytest.mark.parametrize(
    "options",
    [
        {"scope": "else"},
        {"shown": -1},
        {"shown": "ten"},
        {"always": "read_file"},
        {"search": True, "scope": "step-only"},
        {"search": True, "scope": "priced"},
    ],
)
def test_a_policy_that_cannot_be_followed_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ToolPolicy(**options)
    with pytest.raises(InputError):
        TaskOptions(tools="step-only")  # type: ignore[arg-type]


@pytest.mark.parametrize(("mode", "forced"), [("auto", False), ("required", True)])
def test_a_limit_forces_a_call_only_if_its_mode_does(mode: str, forced: bool) -> None:
    inner = {"mode": mode, "tools": []}
    for choice in ({"type": "allowed_tools", "allowed_tools": inner}, {"type": "allowed_tools", **inner}):
        assert find_wire("openai_chat").layout.demands({"tool_choice": choice}).is_forced is forced

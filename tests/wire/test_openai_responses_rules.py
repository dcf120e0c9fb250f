from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import Violation
from lading.models.card import Card
from lading.wire.checking import Checker, WireMessage
from lading.wire.openai_responses.rules import RULES, ItemState
from tests.wire.codec_cards import PLAIN

LONG = "c" * 65
USER: dict[str, Any] = {"role": "user", "content": "hi"}
SAID: dict[str, Any] = {"role": "assistant", "content": "yes"}


def call(name: Any, /, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": "read", "arguments": "{", **more}


def custom(name: Any, /, **more: Any) -> dict[str, Any]:
    return {"type": "custom_tool_call", "call_id": name, "name": "patch", "input": "x", **more}


def hosted(tool: str, name: Any) -> dict[str, Any]:
    return {"type": f"{tool}_call", "call_id": name}


def output(name: Any, given: Any = "ok", kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": name, "output": given}


def reasoning(**more: Any) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "encrypted_content": "gAAA", **more}


def says(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def body(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", **fields, "input": list(items)}


def check(request: Mapping[str, Any], row: Card = PLAIN, *, strict: bool = True) -> list[Violation]:
    checker = Checker(RULES, ItemState(request, row), row, strict=strict)
    items = request.get("input")
    for item in items if isinstance(items, list) else ():
        checker.feed(item)
    return checker.violations()


LOOP = (USER, call("a"), output("a"))
Cases = dict[str, dict[str, tuple[dict[str, Any], Card]]]


def named(**bodies: dict[str, Any]) -> dict[str, tuple[dict[str, Any], Card]]:
    return {name: (request, PLAIN) for name, request in bodies.items()}


LEGAL: Cases = {
    "R1": named(
        parallel=body(USER, call("a"), call("b"), output("b"), output("a")),
        apart=body(USER, call("a"), USER, output("a")),
        custom=body(USER, custom("a"), output("a", kind="custom_tool_call_output")),
        interleaved=body(USER, call("a"), output("a"), call("b"), output("b")),
    ),
    "R2": named(answered=body(*LOOP), hosted=body(USER, {"type": "web_search_call", "id": "w"})),
    "R3": named(
        different=body(USER, call("a", id="1"), output("a"), SAID | {"id": "2"}),
        without=body(*LOOP, call("b"), output("b")),
    ),
    "R4": named(
        a_call=body(USER, reasoning(), call("a"), output("a")),
        two=body(USER, reasoning(), reasoning(), SAID, USER),
        hosted=body(USER, reasoning(), {"type": "web_search_call"}, SAID),
    ),
    "R7": named(
        encrypted=body(USER, reasoning(), SAID, store=False),
        stored=body(USER, {"type": "reasoning", "id": "r", "summary": []}, SAID, {"id": "x"}),
    ),
    "R11": named(
        a_text=body() | {"input": "hi"},
        tools=body(USER, tools=[{"type": "function", "name": "aZ_-9"}, {"type": "web_search"}]),
        longest=body(USER, call(LONG[1:]), output(LONG[1:])),
        typed=body({"type": "message", **USER}, {"type": "something_new"}),
        instructed=body(USER, instructions="Be brief."),
    ),
    "R12": named(
        user=body(
            says("user", {"type": "input_text", "text": "a"}, {"type": "input_image"}, {"type": "input_file"})
        ),
        assistant=body(says("assistant", {"type": "output_text", "text": ""}, {"type": "refusal", "refusal": "n"})),
        a_picture=body(USER, call("a"), output("a", [{"type": "input_image"}])),
    ),
    "R13": named(an_id_used_again=body(*LOOP, call("a"), output("a"))),
    "R14": named(
        apart=body(USER, hosted("shell", "a"), SAID, output("a", [], kind="shell_call_output")),
        two=body(
            USER,
            hosted("computer", "a"),
            hosted("apply_patch", "b"),
            output("b", kind="apply_patch_call_output"),
            output("a", {}, kind="computer_call_output"),
        ),
        by_the_server=body(
            USER,
            {"type": "tool_search_call", "call_id": None, "execution": "server"},
            {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []},
        ),
    ),
}

ILLEGAL: Cases = {
    "R1": named(
        cut=body(USER, output("a")),
        before=body(USER, output("a"), {"type": "web_search_call"}),
        other_type=body(USER, custom("a"), output("a")),
    ),
    "R2": named(last=body(USER, call("a")), one_of_two=body(USER, call("a"), custom("b"), output("a"), USER)),
    "R3": named(twice=body(USER, call("a", id="1"), output("a"), SAID | {"id": "1"})),
    "R4": named(
        before_the_user=body(USER, reasoning(), USER),
        last=body(USER, reasoning()),
        before_an_output=body(USER, call("a"), reasoning(), output("a")),
    ),
    "R7": named(
        not_encrypted=body(USER, {"type": "reasoning", "id": "r", "summary": []}, SAID, store=False),
        referred=body({"type": "item_reference", "id": "x"}, USER, store=False),
    ),
    "R11": named(
        none=body(),
        missing={"model": "m"},
        a_number={"input": 5},
        no_object=body(USER, "hi"),
        no_type=body(USER, {}),
        unknown_role=body({"role": "model", "content": "x"}),
        a_role_that_cannot_be_hashed=body({"role": [], "content": "x"}),
        no_content=body({"role": "user"}),
        content_a_number=body({"role": "user", "content": 5}),
        arguments_as_an_object=body(USER, call("a", arguments={}), output("a")),
        input_as_an_object=body(USER, custom("a", input={}), output("a", kind="custom_tool_call_output")),
        a_name_with_a_space=body(USER, call("a", name="a b"), output("a")),
        too_long=body(USER, call(LONG), output(LONG)),
        no_output=body(USER, call("a"), output("a", None)),
        no_summary=body(USER, {"type": "reasoning", "encrypted_content": "x"}, SAID),
        tools_not_a_list=body(USER, tools="read"),
        a_tool_without_type=body(USER, tools=[{"name": "read"}]),
        a_tool_without_name=body(USER, tools=[{"type": "function", "function": {"name": "read"}}]),
        instructions_a_list=body(USER, instructions=["x"]),
    ),
    "R12": named(
        another_wire=body(says("user", {"type": "text", "text": "a"})),
        output_text_of_a_user=body(says("user", {"type": "output_text", "text": "a"})),
        input_text_of_the_model=body(says("assistant", {"type": "input_text", "text": "a"})),
        no_object=body(says("user", "a")),
        text_a_number=body(says("user", {"type": "input_text", "text": 5})),
        an_output=body(USER, call("a"), output("a", [{"type": "output_text", "text": "x"}])),
    ),
    "R13": named(twice=body(*LOOP, output("a")), later=body(*LOOP, SAID, USER, output("a"))),
    "R14": named(
        last=body(USER, hosted("shell", "a")),
        one_of_two=body(
            USER, hosted("shell", "a"), hosted("shell", "b"), output("b", [], kind="shell_call_output"), SAID
        ),
        cut=body(USER, output("a", {}, kind="computer_call_output")),
        of_another_tool=body(
            USER,
            hosted("shell", "a"),
            output("a", kind="apply_patch_call_output"),
            output("a", [], "shell_call_output"),
        ),
        searched=body(USER, {"type": "tool_search_output", "call_id": "a", "execution": "client", "tools": []}),
    ),
}


def cases(table: Cases) -> list[Any]:
    return [
        pytest.param(rule, request, id=f"{rule} {name}")
        for rule, of in table.items()
        for name, (request, _) in of.items()
    ]


@pytest.mark.parametrize(("rule", "request_body"), cases(LEGAL))
def test_legal(rule: str, request_body: dict[str, Any]) -> None:
    assert check(request_body) == [], rule


@pytest.mark.parametrize(("rule", "request_body"), cases(ILLEGAL))
def test_illegal(rule: str, request_body: dict[str, Any]) -> None:
    request = copy.deepcopy(request_body)
    assert {violation.rule for violation in check(request)} == {rule}
    assert request == request_body


def test_every_rule_has_a_legal_and_an_illegal_case() -> None:
    known = [rule.id for rule in RULES]
    assert list(LEGAL) == known
    assert list(ILLEGAL) == known


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
def test_an_output_of_a_call_that_the_provider_stores_is_legal(field: str) -> None:
    assert check(body(output("a"), **{field: "r"})) == []
    assert check(body(output("a", [], kind="shell_call_output"), **{field: "r"})) == []
    assert check(body(**{field: "r"})) == []
    assert check(body({"type": "item_reference", "id": "fc"}, output("a"))) == []


def test_paths_name_the_item_and_the_field() -> None:
    [unanswered] = check(body(USER, call("a"), call("b"), output("b")))
    assert (unanswered.rule, unanswered.path) == ("R2", "input.1")
    assert "'a'" in unanswered.detail
    [orphan] = check(body(USER, SAID, output("a")))
    assert (orphan.rule, orphan.path) == ("R1", "input.2.call_id")


IDS: st.SearchStrategy[Any] = st.sampled_from(["a", "b", LONG, "", None, 5, [], {}])
GIVEN: st.SearchStrategy[Any] = st.sampled_from(
    ["x", "", None, 5, {}, [], ["x"], [{"type": "input_text", "text": "x"}], [{"type": {}}]]
)
KINDS: st.SearchStrategy[Any] = st.sampled_from(
    ["function_call_output", "custom_tool_call_output", "shell_call_output", [], "x"]
)
ITEMS = st.lists(
    st.one_of(
        st.builds(call, IDS),
        st.builds(custom, IDS),
        st.builds(hosted, st.sampled_from(["shell", "computer"]), IDS),
        st.builds(output, IDS, GIVEN, KINDS),
        st.builds(lambda own: reasoning(id=own), IDS),
        st.builds(lambda role, content: {"role": role, "content": content}, IDS, GIVEN),
        st.sampled_from([None, "hi", [], {}, {"type": []}, {"id": 5}, {"id": "a"}, USER, SAID]),
    ),
    max_size=8,
)
FIELDS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {}, optional={"tools": st.sampled_from([None, 5, [], [None], [{"type": {}}]]), "store": st.booleans()}
)


@given(FIELDS, ITEMS)
def test_a_check_that_grows_says_at_every_point_what_a_whole_check_says(
    fields: dict[str, Any], items: list[WireMessage]
) -> None:
    growing = Checker(RULES, ItemState(fields, PLAIN), PLAIN, strict=True)
    for at, item in enumerate(items):
        assert growing.violations() == check(fields | {"input": items[:at]})
        growing.feed(item)
    assert growing.violations() == check(fields | {"input": items})

"""The index of a catalogue finds tools by name, by words, and by what they share with others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.messages import Tool
from lading.request.tool_index import ToolIndex, list_stems


def tool(name: str, description: str = "", **parameters: str) -> Tool:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    return Tool(name, description, {"type": "object", "properties": properties})


POST = "Part of the postal service."
BANK = "Part of the bank."
TOOLS = (
    tool("sendLetter", f"{POST} Sends a letter.", receiver_id="ID of the receiver"),
    tool("get_receiver_id", f"{POST} Looks somebody up.", person="whom to look up"),
    tool("weigh_parcel", f"{POST} Returns the weight.", parcel="the parcel"),
    tool("open_account", f"{BANK} Opens an account.", owner="who owns it"),
    tool("close_account", f"{BANK} Closes an account.", account="the account"),
    tool("paint", "Paints a wall.", colour="such as red"),
)


def names(query: str, **given_: Any) -> list[str]:
    return [found.name for found in ToolIndex(TOOLS).search(query, **given_)]


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("getUserId", ["get", "user", "id"]),
        ("HTTPServer_port2", ["http", "serv", "port", "2"]),
        ("the accounts", list_stems("account")),
        ("painting walls", list_stems("paint wall")),
        ("Überweisung", list_stems("überweisung")),
        ("", []),
    ],
)
def test_words_are_the_stems_of_the_parts_of_identifiers(text: str, stems: list[str]) -> None:
    assert list_stems(text) == stems


def test_a_name_finds_its_tool_alone_and_whole() -> None:
    index = ToolIndex(TOOLS)
    for each in TOOLS:
        assert index.search(f" {each.name} ") == [each]
        assert index.find(each.name) == each
    assert index.find("nothing") is None


def test_words_match_names_descriptions_and_parameters_in_any_form() -> None:
    assert names("Please close my accounts")[0] == "close_account"
    assert names("sending letters")[0] == "sendLetter"
    assert names("COLOURS")[0] == "paint"


def test_nothing_in_common_finds_nothing() -> None:
    assert names("zzz") == names("") == []
    assert ToolIndex(()).search("paint") == []


def test_a_toolset_comes_along_with_its_best_tool() -> None:
    found = names("the postal service: weigh it")
    assert found[0] == "weigh_parcel"
    assert set(found[1:3]) == {"sendLetter", "get_receiver_id"}


def test_the_toolset_that_was_used_comes_first_among_equals() -> None:
    assert names("returns the account", used=["sendLetter"]) != names("returns the account")
    assert "paint" not in names("account", used=["sendLetter"])
    assert "weigh_parcel" in names("account", used=["sendLetter"])


def test_what_gives_a_parameter_of_the_best_tool_ranks_above_its_neighbours() -> None:
    assert names("send a letter")[:2] == ["sendLetter", "get_receiver_id"]


def test_quoted_values_ask_for_nothing_unless_there_is_nothing_else() -> None:
    assert names("paint it with 'close my account please'")[0] == "paint"
    assert names("'close my account please'")[0] == "close_account"


def test_each_sentence_finds_its_tool() -> None:
    found = names("Close the account that holds the account of the account owner. Then paint.", limit=3)
    assert {"close_account", "paint"} <= {*found}


def test_a_search_may_be_limited() -> None:
    assert names("account", among=["paint", "open_account"]) == ["open_account"]
    assert names("close_account", among=["paint"]) == []
    assert len(names("account of the postal service", limit=2)) == 2


def test_a_provider_s_own_tool_is_not_searched() -> None:
    assert ToolIndex((Tool("web_search", "Searches.", None),)).tools == ()


schemas = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(
    st.lists(
        st.tuples(
            st.text(max_size=12),
            st.text(max_size=40),
            st.dictionaries(st.sampled_from(["properties", "type", "x"]), schemas),
        )
    ),
    st.text(max_size=60),
)
def test_any_catalogue_can_be_searched_and_answers_alike(
    given_: list[tuple[str, str, dict[str, Any]]], query: str
) -> None:
    tools = [Tool(name, description, schema) for name, description, schema in given_]
    index = ToolIndex(tools)
    found = index.search(query, used=[each.name for each in tools[:1]])
    assert found == ToolIndex(tools).search(query, used=[each.name for each in tools[:1]])
    assert len(found) <= 10
    assert all(each in tools for each in found)

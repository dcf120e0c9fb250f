from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import jsonbytes
from lading.messages import Tool
from lading.request.tools import LADDER, reduce_tools

SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Search",
    "description": "WORDS",
    "properties": {
        "description": {"type": "string", "description": "WORDS", "examples": ["WORDS"]},
        "mode": {"enum": ["a", "b"], "default": "a", "title": "WORDS"},
        "where": {"anyOf": [{"$ref": "#/$defs/Place", "description": "WORDS"}, {"type": "null"}]},
        "lines": {"type": "array", "items": {"type": "integer", "description": "WORDS"}, "minItems": 1},
        "pair": {"type": "array", "items": [{"type": "string", "title": "WORDS"}, True]},
        "rest": {"type": "object", "additionalProperties": {"type": "string", "title": "WORDS"}},
    },
    "required": ["description"],
    "additionalProperties": False,
    "$defs": {"Place": {"type": "object", "description": "WORDS", "properties": {"x": {"const": 1}}}},
    "definitions": {"Old": {"allOf": [{"$ref": "#/$defs/Place"}], "description": "WORDS"}},
}
OWN = Tool("bash", schema=None, origin="anthropic", template={"type": "bash_20250124"})
SEARCH = Tool("search", "Searches.", SCHEMA, origin="anthropic", template={"strict": True})


def test_full_detail_is_the_tools_themselves() -> None:
    tools = (SEARCH, OWN)
    assert reduce_tools(tools, "full") is tools


def test_types_keep_the_structure_and_lose_the_words() -> None:
    (reduced,) = reduce_tools((SEARCH,), "types")
    assert reduced.description == ""
    assert reduced.schema == {
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "mode": {"enum": ["a", "b"]},
            "where": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
            "lines": {"type": "array", "items": {"type": "integer"}},
            "pair": {"type": "array", "items": [{"type": "string"}, True]},
            "rest": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["description"],
        "additionalProperties": False,
        "$defs": {"Place": {"type": "object", "properties": {"x": {"const": 1}}}},
        "definitions": {"Old": {"allOf": [{"$ref": "#/$defs/Place"}]}},
    }


def test_names_leave_an_open_schema() -> None:
    (reduced,) = reduce_tools((SEARCH,), "names")
    assert (reduced.name, reduced.description, reduced.schema) == ("search", "", {"type": "object"})
    assert (reduced.origin, reduced.template) == ("anthropic", {"strict": True})


@pytest.mark.parametrize("detail", LADDER)
def test_a_providers_own_tool_stays_as_it_is(detail: Any) -> None:
    assert reduce_tools((OWN,), detail)[0] is OWN


def test_the_input_is_left_alone() -> None:
    before = jsonbytes.dump(SCHEMA)
    for detail in LADDER:
        reduce_tools((SEARCH,), detail)
    assert jsonbytes.dump(SCHEMA) == before


KEYS = st.sampled_from(["type", "properties", "items", "anyOf", "$defs", "description", "title", "required", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, JSON, max_size=5))
def test_whatever_a_schema_holds_each_step_down_is_no_larger(schema: dict[str, Any]) -> None:
    full, types, _ = (reduce_tools((Tool("t", "d", schema),), detail)[0] for detail in LADDER)
    assert len(jsonbytes.dump(types.schema)) <= len(jsonbytes.dump(full.schema))
    again = reduce_tools((types,), "types")[0]
    assert again == types

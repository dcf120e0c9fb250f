"""Answers are compared with JSON schemas."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from lading.errors import InputError
from lading.task.acceptance import check_acceptance
from lading.task.json_schema import MOST_CHARS, find_mismatch
from lading.task.task import Checklist, ChecklistItem

ANSWER = {
    "type": "object",
    "required": ["vendors"],
    "additionalProperties": False,
    "properties": {
        "vendors": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "minLength": 2}},
        "score": {"type": ["integer", "null"], "minimum": 0, "maximum": 5},
        "kind": {"enum": ["a", 1]},
        "any": {"anyOf": [{"type": "string"}, {"const": True}]},
        "all": {"allOf": [{"minimum": 1}, {"maximum": 3}]},
        "never": False,
    },
}


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"vendors": ["Acme"], "score": 3.0, "kind": "a", "any": True, "all": 2}, ""),
        ({"vendors": ["Acme"], "score": None}, ""),
        ([], "$: [] is not of type 'object'"),
        ({}, "$: 'vendors' is a required property"),
        ({"vendors": []}, "$.vendors: [] should be non-empty"),
        ({"vendors": ["Acme", "Blip", "Cord"]}, "$.vendors: ['Acme', 'Blip', 'Cord'] is too long"),
        ({"vendors": ["A"]}, "$.vendors[0]: 'A' is too short"),
        ({"vendors": [7]}, "$.vendors[0]: 7 is not of type 'string'"),
        ({"vendors": ["Acme"], "score": True}, "$.score: True is not of type 'integer', 'null'"),
        ({"vendors": ["Acme"], "score": 1.5}, "$.score: 1.5 is not of type 'integer', 'null'"),
        ({"vendors": ["Acme"], "score": 6}, "$.score: 6 is greater than the maximum of 5"),
        ({"vendors": ["Acme"], "kind": True}, "$.kind: True is not one of ['a', 1]"),
        ({"vendors": ["Acme"], "any": 1}, "$.any: 1 is not valid under any of the given schemas"),
        ({"vendors": ["Acme"], "all": 4}, "$.all: 4 is greater than the maximum of 3"),
        ({"vendors": ["Acme"], "never": 1}, "$: False schema does not allow 1"),
        ({"vendors": ["Acme"], "more": 1}, "$: Additional properties are not allowed ('more' was unexpected)"),
    ],
)
def test_the_first_difference_is_named_with_its_path(value: Any, wrong: str) -> None:
    assert find_mismatch(value, ANSWER) == wrong


def test_what_is_nested_without_end_is_no_match() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = [value]
    assert "too deeply" in find_mismatch(value, {"type": "array", "items": {"$ref": "#"}})
    assert "too deeply" in find_mismatch({"a": 1}, {"properties": {"a": {"$ref": "#/properties/a"}}})


def test_a_difference_quotes_no_more_than_a_part_of_the_answer() -> None:
    assert len(find_mismatch("long " * 10_000, {"type": "object"})) < 2 * MOST_CHARS


VENDOR = {
    "$ref": "#/$defs/vendor",
    "$defs": {"vendor": {"type": "object", "additionalProperties": {"type": "string"}}},
}


@pytest.mark.parametrize(
    ("schema", "value", "wrong"),
    [
        (VENDOR, {"name": "Acme"}, ""),
        (VENDOR, {"name": 7}, "$.name: 7 is not of type 'string'"),
        (VENDOR, "Acme", "$: 'Acme' is not of type 'object'"),
        ({"oneOf": [{"minimum": 0}, {"minimum": 5}]}, 3, ""),
        (
            {"oneOf": [{"minimum": 0}, {"minimum": 5}]},
            7,
            "$: 7 is valid under each of {'minimum': 5}, {'minimum': 0}",
        ),
        ({"oneOf": [{"minimum": 0}, {"minimum": 5}]}, -1, "$: -1 is not valid under any of the given schemas"),
        ({"not": {"type": "string"}}, "Acme", "$: 'Acme' should not be valid under {'type': 'string'}"),
        ({"not": {"type": "string"}}, 1, ""),
        ({"exclusiveMinimum": 0}, 0, "$: 0 is less than or equal to the minimum of 0"),
        ({"exclusiveMaximum": 1.5}, 1.5, "$: 1.5 is greater than or equal to the maximum of 1.5"),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 2}, 1, ""),
        ({"items": {"$ref": "#"}, "maxItems": 1}, [[[[], []]]], "$[0][0]: [[], []] is too long"),
        ({"uniqueItems": True}, [1, 1], "$: [1, 1] has non-unique elements"),
        ({"minProperties": 1}, {}, "$: {} should be non-empty"),
        ({"if": {"type": "string"}, "then": False}, "Acme", "$: False schema does not allow 'Acme'"),
        ({"prefixItems": [{"type": "string"}]}, [1], "$[0]: 1 is not of type 'string'"),
        ({"properties": {"pattern": {"type": "string"}}}, {"pattern": 1}, "$.pattern: 1 is not of type 'string'"),
    ],
)
def test_references_and_exceptions_are_compared(schema: Any, value: Any, wrong: str) -> None:
    assert find_mismatch(value, schema) == wrong
    ChecklistItem("json", "JSON", "json_schema", schema)


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"pattern": "^A"}, "a regular expression"),
        ({"properties": {"a": {"patternProperties": {"^A": {}}}}}, "a regular expression"),
        ({"type": "strng"}, "$.type: 'strng'"),
        ({"type": ["string", {}]}, "$.type: ['string', {}]"),
        ({"$ref": "#/$defs/none"}, "refers to what is not in it: /$defs/none"),
        (
            {"items": {"$ref": "https://example.org/schema"}},
            "refers to what is not in it: https://example.org/schema",
        ),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "type": "string"}, "refers to itself without end"),
        ({"properties": []}, "$.properties: [] is not of type 'object'"),
        ({"minItems": "1"}, "$.minItems: '1' is not of type 'integer'"),
        ({"items": [{}]}, "$.items: [{}]"),
    ],
)
def test_a_schema_that_would_not_be_compared_is_refused_before_any_answer(schema: Any, named: str) -> None:
    with pytest.raises(InputError) as refused:
        ChecklistItem("json", "JSON", "json_schema", schema)
    assert named in str(refused.value)


def test_a_pattern_that_cannot_be_searched_is_refused_before_any_answer() -> None:
    for pattern in ("(", r"\bwhole\b", "(?<!a)b"):
        with pytest.raises(InputError, match="pattern"):
            ChecklistItem("one", "One", "pattern", pattern)


def test_names_that_restrict_nothing_are_read_over() -> None:
    item = ChecklistItem(
        "json", "JSON", "json_schema", {"title": "A", "$schema": "x", "format": "date", "x-own": 1}
    )
    assert check_acceptance("1", Checklist((item,))).passed


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema.exceptions", None)
    with pytest.raises(InputError, match=r"lading\[schema\]"):
        ChecklistItem("json", "JSON", "json_schema", {"type": "object"})
    with pytest.raises(InputError, match=r"lading\[schema\]"):
        find_mismatch(1, {})

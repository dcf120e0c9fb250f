"""The part of JSON Schema that answers are compared with."""

from __future__ import annotations

from typing import Any

import pytest

from lading.task.json_schema import find_mismatch

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
        ([], "$ is no object"),
        ({}, "$.vendors is missing"),
        ({"vendors": []}, "$.vendors has the length 0"),
        ({"vendors": ["Acme", "Blip", "Cord"]}, "$.vendors has the length 3"),
        ({"vendors": ["A"]}, "$.vendors[0] has the length 1"),
        ({"vendors": [7]}, "$.vendors[0] is no string"),
        ({"vendors": ["Acme"], "score": True}, "$.score is no integer or null"),
        ({"vendors": ["Acme"], "score": 1.5}, "$.score is no integer or null"),
        ({"vendors": ["Acme"], "score": 6}, "$.score is 6, out of its range"),
        ({"vendors": ["Acme"], "kind": True}, "$.kind is none of the allowed values"),
        ({"vendors": ["Acme"], "any": 1}, "$.any matches none of the alternatives"),
        ({"vendors": ["Acme"], "all": 4}, "$.all is 4, out of its range"),
        ({"vendors": ["Acme"], "never": 1}, "$.never is not allowed"),
        ({"vendors": ["Acme"], "more": 1}, "$.more is not allowed"),
    ],
)
def test_the_first_difference_is_named_with_its_path(value: Any, wrong: str) -> None:
    assert find_mismatch(value, ANSWER) == wrong


def test_a_schema_that_contains_itself_ends() -> None:
    value: Any = []
    for _ in range(500):
        value = [value]
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    assert find_mismatch(value, schema) == ""

from __future__ import annotations

import json
from typing import Any

import pytest

from lading.shrink import Shrunk, Target
from lading.shrink.json_sampling import SHRINKER
from lading.shrink.shrinking import reduce, shrink

WHOLE = "artifact://acme/s1/log/3"


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {"id": number, "name": f"n{number}", "status": 200, "ms": number % 50} for number in range(1, count + 1)
    ]


def sampled(value: Any, most_tokens: int, *terms: str) -> str:
    found = SHRINKER.reduce(json.dumps(value), Target(most_tokens, terms, WHOLE), len)
    assert found is not None
    assert len(found.text) <= most_tokens
    return found.text


def forms(text: str) -> dict[str, str]:
    return {found.form: found.text for found in SHRINKER.reshape(text)}


def test_a_table_alone_needs_no_count() -> None:
    assert forms('[{"a": 1}, {"a": 2}]') == {"json.rows": "a\n1\n2", "json.minified": '[{"a":1},{"a":2}]'}
    assert SHRINKER.decode("a\n1\n2", "json.rows") == '[{"a":1},{"a":2}]'


def test_a_document_has_columns() -> None:
    text = '{"of": 2, "all": [{"a": 1}, {"a": 2}]}'
    assert forms(text)["json.columns"] == "of: 2\nall[2]: a\n1\n2"


def test_json_lines_come_back_as_lines() -> None:
    text = '{"a": 1, "b": 1.50}\n\n{"a": 2, "b": 3}\n'
    assert forms(text)["json.rows-lines"] == "a,b\n1,1.50\n2,3"
    for form, short in forms(text).items():
        assert SHRINKER.decode(short, form) == '{"a":1,"b":1.50}\n{"a":2,"b":3}'


@pytest.mark.parametrize(
    "text",
    [
        "", "plain", '{"a": 1, "a": 2}', "[NaN]", "[1, 2", '{"a": 1}\n{"a": ', '["\ud800"]', "[1] 2",
        "[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000, '"' + '\\"' * 50_000 + "[" * 200,
    ],
)  # fmt: skip
def test_what_is_no_json_for_us_has_no_form(text: str) -> None:
    assert list(SHRINKER.reshape(text)) == []
    assert SHRINKER.reduce(text, Target(100), len) is None
    assert shrink(text, count=len, kind="json") is None


def test_brackets_in_strings_are_no_levels() -> None:
    text = json.dumps([{"a": "[" * 300, "b": 1}, {"a": "{", "b": 2}])
    assert "json.rows" in forms(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [("a", "json.sampled"), ("a", "json.else"), ("{", "json.columns"), ("a[b\n[", "json.rows"), ('"', "json.rows"),
     ("a: 1\na.b: 2", "json.columns"), ("*,a\n1\n2,3", "json.rows-lines")],
)  # fmt: skip
def test_a_text_in_no_such_form_raises_value_error(text: str, form: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        SHRINKER.decode(text, form)


def test_a_sample_has_header_columns_ends_and_the_place_of_the_whole() -> None:
    assert sampled(rows(100), 180).splitlines() == [
        f"[Rows with their numbers; 97 of 100 lines left out. Original: {WHOLE}]",
        "[100]: id,name,status=200,ms",
        "id 1..100; ms 0..49",
        "1: 1,n1,1",
        "2: 2,n2,2",
        "100: 100,n100,0",
    ]


def test_a_rare_status_a_null_and_a_far_number_stay() -> None:
    value = rows(300)
    value[70]["status"] = 503
    value[120]["name"] = None
    value[200]["ms"] = 90_000
    shown = sampled(value, 500)
    for line in ("71: 71,n71,503,21", "121: 121,,200,21", "201: 201,n201,200,90000"):
        assert line in shown.splitlines()
    assert "status 200 x299, 503 x1" in shown


def test_what_is_asked_for_stays_before_what_is_odd() -> None:
    value = rows(300)
    for number in range(0, 300, 3):
        value[number]["name"] = "failed"
    value[150]["name"] = "Zebra"
    assert "151: 151,Zebra,1" in sampled(value, 330, "zebra").splitlines()


def test_values_beside_a_table_are_told() -> None:
    shown = sampled({"total": 400, "rows": rows(400), "next": "/p2"}, 500)
    assert "total: 400" in shown.splitlines()
    assert "rows[400]: id,name,status=200,ms" in shown.splitlines()
    assert "next: /p2" in shown.splitlines()


def test_a_long_string_is_cut_around_what_is_asked_for() -> None:
    value = [{"id": 1, "text": "a" * 5_000 + " zebra " + "b" * 5_000}, {"id": 2, "text": "c"}]
    shown = sampled(value, 900, "zebra")
    assert " zebra " in shown
    assert " characters left out]" in shown


def test_a_value_cut_short_is_treated_as_lines() -> None:
    text = json.dumps(rows(100), indent=1)[:-30]
    found = reduce(text, Target(400, (), WHOLE), count=len, kind="json")
    assert found is not None
    assert found.form == "text.lines"
    assert WHOLE in found.text


def test_the_lossless_form_is_taken_where_it_fits() -> None:
    text = json.dumps(rows(20), indent=1)
    found = reduce(text, Target(1_000, (), WHOLE), count=len)
    assert found == shrink(text, count=len)
    assert found == Shrunk(forms(text)["json.rows"], "json.rows", True)

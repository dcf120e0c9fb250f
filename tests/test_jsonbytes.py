import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import jsonbytes
from lading.messages import Message, Opaque, Text, ToolCall
from tests.examples import share_of_examples

# Every code point, lone surrogates included: what a terminal may print.
TEXTS = st.text(st.characters(codec=None, exclude_categories=()) | st.sampled_from("\ud83d\ude00\udc80\\\"'"))
EDGES = st.sampled_from([edge * sign for sign in (1, -1) for edge in (0.0, 9.999e-05, 1e-4, 1e16, 2**63, 2**64)])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | EDGES | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_is_read_again_and_gives_the_same_bytes(value: Any) -> None:
    data = jsonbytes.dump(value)
    assert jsonbytes.dump(jsonbytes.load(data)) == data
    assert jsonbytes.load(data) == json.loads(json.dumps(value))


@given(VALUES)
def test_a_value_is_written_alike_beside_a_number_with_an_exponent(value: Any) -> None:
    assert jsonbytes.dump([value, 1e300]) == jsonbytes.dump([value])[:-1] + b",1e+300]"
    assert jsonbytes.canonical([value, 1e300]) == jsonbytes.canonical([value])[:-1] + b",1e+300]"


def test_a_key_that_is_a_number_is_written_as_json_writes_it() -> None:
    assert jsonbytes.dump({1: 2, 0.5: 3}) == b'{"1":2,"0.5":3}'
    assert jsonbytes.canonical({10: 2, 9: 3}) == b'{"9":3,"10":2}'


def test_the_form_is_compact_and_keeps_key_order() -> None:
    assert jsonbytes.dump({"b": [1, 2.5], "a": "é"}) == '{"b":[1,2.5],"a":"é"}'.encode()


def test_the_canonical_form_sorts_keys_at_every_depth() -> None:
    value = {"b": {"d": 1, "c": 2}, "a": None}
    assert jsonbytes.canonical(value) == b'{"a":null,"b":{"c":2,"d":1}}'
    assert jsonbytes.CANONICAL_FORM == "lading-canonical-1"


def test_a_lone_surrogate_is_written_as_its_escape() -> None:
    assert jsonbytes.dump("a\ud83d") == b'"a\\ud83d"'
    assert jsonbytes.load(b'"a\\ud83d"') == "a\ud83d"


def test_a_split_pair_is_written_as_its_character() -> None:
    assert jsonbytes.dump("\ud83d\ude00") == '"😀"'.encode()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_cannot_hold_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        jsonbytes.dump({"x": number})
    with pytest.raises(ValueError, match="JSON"):
        jsonbytes.canonical([number])


def test_a_value_that_is_not_json_is_refused() -> None:
    with pytest.raises(TypeError):
        jsonbytes.dump(object())


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_what_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ValueError, match="too deeply"):
        jsonbytes.load(b"[" * 100_000)
    with pytest.raises(ValueError, match="too deeply"):
        jsonbytes.dump(nested(100_000))
    with pytest.raises(ValueError, match="too deeply"):
        jsonbytes.dump_value(Message("user", (Opaque(nested(100_000)),)))


@pytest.mark.parametrize("data", [b"", b"{", b'{"a":}', b"\xff\xfe\xfd", '"\n"', b"1 2"])
def test_what_is_not_json_is_refused(data: bytes | str) -> None:
    with pytest.raises(ValueError, match=r"."):
        jsonbytes.load(data)


@share_of_examples(0.5)
@given(text=TEXTS, arguments=TEXTS)
def test_a_message_is_read_back_equal(text: str, arguments: str) -> None:
    message = answer(text, arguments)
    data = jsonbytes.dump_value(message)
    again = jsonbytes.load_value(data, Message)
    assert jsonbytes.dump_value(again) == data
    assert again == answer(paired(text), paired(arguments))


def answer(text: str, arguments: str) -> Message:
    return Message("assistant", (Text(text), ToolCall("c1", "run", arguments)), template={"x": [1, None]})


def paired(text: str) -> str:
    """The text with each split pair joined to its character; lone surrogates stay."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"role":"nobody"}', b'{"role":"user","parts":[{"kind":"?"}]}'])
def test_json_of_another_shape_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        jsonbytes.load_value(data, Message)


def test_the_digest_is_sha256_in_hex() -> None:
    assert jsonbytes.digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_value_that_holds_itself_is_refused() -> None:
    value: dict[str, Any] = {"text": "a"}
    value["again"] = [value]
    with pytest.raises(ValueError, match=r"[Cc]ircular|nested"):
        jsonbytes.dump(value)

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lading.evaluate.layers import LAYERS, count_layers
from lading.messages import File, Image, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from lading.tokens.meter import MESSAGE_TOKENS, RESULT_TOKENS, Meter
from tests.evaluate.sessions import WORDS, said

ONE_TO_ONE = Meter(WORDS)


def layers_of(message: Message) -> dict[str, int]:
    totals: dict[str, int] = {}
    for layer, tokens in count_layers(message, ONE_TO_ONE).layers:
        totals[layer] = totals.get(layer, 0) + tokens
    return totals


def test_words_belong_to_who_says_them() -> None:
    assert layers_of(said("system", "be brief")) == {"system": 2}
    assert layers_of(said("user", "one two three")) == {"user_text": 3}
    assert layers_of(said("assistant", "fine")) == {"assistant_text": 1}
    assert layers_of(said("tool", "strange words")) == {"other": 2}


def test_each_kind_of_part_is_a_layer_of_its_own() -> None:
    message = Message(
        "assistant",
        (
            Reasoning("let me think"),
            Text("now"),
            ToolCall("1", "read", '{"path": "a b"}'),
            Opaque({"type": "new"}),
        ),
    )
    assert layers_of(message) == {"reasoning": 3, "assistant_text": 1, "tool_calls": 4, "other": 1}


def test_pictures_inside_a_result_are_not_counted_as_its_text() -> None:
    picture, text = Image(url="https://example.org/a.png"), Text("two words")
    alone = layers_of(Message("user", (picture,)))["images"]
    inside = layers_of(Message("tool", (ToolResult("1", (text, picture)),)))
    assert inside == {"tool_results": 2 + RESULT_TOKENS, "images": alone}
    assert count_layers(Message("tool", (ToolResult("1", (text, picture)),)), ONE_TO_ONE).parts == (
        sum(inside.values()),
    )


def test_framing_holds_the_name() -> None:
    weight = count_layers(Message("user", (Text("hello"),), name="Ann Lee"), ONE_TO_ONE)
    assert weight.framing == MESSAGE_TOKENS + 2
    assert weight.tokens == weight.framing + 1


def test_a_message_without_parts_is_framing_alone() -> None:
    weight = count_layers(Message("user"), ONE_TO_ONE)
    assert (weight.tokens, weight.parts, weight.layers) == (MESSAGE_TOKENS, (), ())


PARTS = st.one_of(
    st.text(max_size=60).map(Text),
    st.text(max_size=60).map(Reasoning),
    st.text(max_size=60).map(lambda text: ToolCall("1", "read", text)),
    st.lists(st.text(max_size=40).map(Text), max_size=3).map(lambda parts: ToolResult("1", tuple(parts))),
    st.just(Image(url="https://example.org/a.png")),
    st.just(File(url="https://example.org/a.pdf")),
    st.just(ToolResult("1", (Image(data="AAAA"),))),
)


@given(
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(PARTS, max_size=5),
    st.sampled_from([1.0, 1.25, 1.62]),
)
def test_parts_and_framing_add_up_to_what_the_meter_counts(
    role: Role, parts: list[Part], multiplier: float
) -> None:
    message = Message(role, tuple(parts))
    meter = Meter(WORDS, multiplier)
    weight = count_layers(message, meter)
    assert weight.tokens == meter.count_message(message)
    assert weight.tokens == sum(weight.parts) + weight.framing
    assert sum(tokens for _, tokens in weight.layers) == sum(weight.parts)
    assert {layer for layer, _ in weight.layers} <= set(LAYERS)

"""What each part counts by the document's estimate."""

from __future__ import annotations

import pytest

from lading.messages import File, Image, Message, Part, Reasoning, Text, ToolCall, ToolResult
from lading.presets.open_multi_agent.sizes import count_result_chars, estimate_tokens

PICTURE = Image(data="d" * 600, media_type="image/png")
FILE = File(data="d" * 600, media_type="application/pdf", name="a.pdf")


@pytest.mark.parametrize(
    ("part", "chars"),
    [
        (Text("x" * 64), 64),
        (Reasoning("x" * 64), 64),
        (ToolCall("id", "a name that counts nothing", '{"path": "a.py"}'), 16),
        (ToolResult("id", (Text("x" * 64),)), 64),
        (PICTURE, 64),
    ],
    ids=lambda it: type(it).__name__,
)
def test_four_characters_are_a_token_and_a_picture_is_64_characters(part: Part, chars: int) -> None:
    assert estimate_tokens([Message("user", (part,))]) == chars / 4


def test_tokens_are_rounded_up_and_system_messages_count_nothing() -> None:
    assert estimate_tokens([Message("system", (Text("x" * 99),)), Message("user", (Text("x" * 5),))]) == 2


def test_a_result_with_data_counts_type_and_name_and_32_characters() -> None:
    assert count_result_chars(ToolResult("id", (Text("see"), PICTURE))) == 3 + 600 + len("image/png") + 32
    assert count_result_chars(ToolResult("id", (FILE,))) == 600 + len("application/pdf") + len("a.pdf") + 32

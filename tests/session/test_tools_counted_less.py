"""A provider that counts tool schemas lower than Lading: OpenAI renders them more compactly than JSON."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import lading
from lading.messages import tool_result
from tests.examples import share_of_examples

PARAMETERS = {f"path_{number}": {"type": "string", "description": "The path of the file."} for number in range(4)}
ANSWER_TOKENS = 500
LARGE = "".join(f"def function_{number}(value): return value * {number}\n" for number in range(1_500))


def _tool(number: int) -> dict[str, Any]:
    schema = {"type": "object", "properties": PARAMETERS}
    function = {"name": f"tool_{number}", "description": "Read a file of the project.", "parameters": schema}
    return {"type": "function", "function": function}


def _reply(number: int, prompt_tokens: int) -> dict[str, Any]:
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "tool_0", "arguments": "{}"}}
    message = {"role": "assistant", "content": f"step {number}", "tool_calls": [call]}
    return {"choices": [{"message": message}], "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 9}}


@share_of_examples(0.3)
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=3),
    st.floats(0.1, 1.0),
    st.lists(st.sampled_from([2, 20, 400, 3_000, 30_000]), min_size=6, max_size=14),
    st.sampled_from(["priced", "basic", "sliding-window"]),
)
def test_no_request_goes_over_the_window(tools: list[int], share: float, results: list[int], strategy: str) -> None:
    window, offers = 8_000, [[_tool(number) for number in range(count)] for count in tools]
    session = lading.Session("gpt-4o", window=window, strategy=strategy).add("Fix the fault.")
    for number, chars in enumerate(results):
        pack = session.pack(offers[number % len(offers)], fields={"max_tokens": ANSWER_TOKENS})
        billed = pack.tokens - int(pack.manifest.counts["tools"] * (1 - share))
        assert billed + ANSWER_TOKENS <= window
        session.reply(_reply(number, billed))
        session.add([tool_result(f"call_{number}", LARGE[:chars])])

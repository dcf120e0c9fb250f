"""Whose words for a prompt that was too long are understood, and what only resembles them."""

from __future__ import annotations

import json

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.wire.overflow import HEAD_CHARS, MOST_CHARS, Overflow, read_overflow

TEXTS = [
    ("prompt is too long: 213462 tokens > 200000 maximum", 213_462, 200_000),
    ("Prompt is too long", None, None),
    ("context_length_exceeded", None, None),
    (
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or"
        " `max_tokens` and try again",
        188_240,
        200_000,
    ),
    ("The prompt is too long: 140000, model maximum context length: 131071", 140_000, 131_071),
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens. Please"
        " reduce the length of the messages.",
        8545,
        8192,
    ),
    (
        "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the"
        " messages, 4000 in the completion). Please reduce the length of the messages or completion.",
        66_000,
        65_536,
    ),
    (
        "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10346 in your"
        " prompt; 0 for the completion). Please reduce your prompt; or completion length.",
        10_346,
        8191,
    ),
    (
        "This endpoint's maximum context length is 200000 tokens. However, you requested about 250000 tokens"
        " (240000 of text input, 10000 in the output). Please reduce the length of either one.",
        240_000,
        200_000,
    ),
    (
        "This endpoint's maximum context length is 200000 tokens. However, you requested about 250000 tokens"
        " (230000 of text input, 10000 of tool input, 10000 in the output). Please reduce the length of either.",
        240_000,
        200_000,
    ),
    (
        "This endpoint's maximum context length is 200000 tokens. However, you requested about 250000 tokens"
        " (240000 text, 10000 output).",
        240_000,
        200_000,
    ),
    (
        "This model's maximum context length is 32768 tokens. However, your request has 40000 input tokens. Please"
        " reduce the length of the input messages.",
        40_000,
        32_768,
    ),
    ("This model's maximum context length is 16385 tokens.", None, 16_385),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192"
        " tokens and your request has 7000 input tokens (4096 > 8192 - 7000).",
        7000,
        8192,
    ),
    (
        "litellm.BadRequestError: OpenAIException - 'max_tokens' or 'max_completion_tokens' is too large: 32000."
        " This model's maximum context length is 40960 tokens and your request has 12000 input tokens (32000 >"
        " 40960 - 12000).",
        12_000,
        40_960,
    ),
    (
        "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your"
        " prompt contains at least 62466 input tokens, for a total of at least 128001 tokens. Please reduce the"
        " length of the input prompt or the number of requested output tokens. (parameter=input_tokens,"
        " value=62466)",
        None,
        128_000,
    ),
    (
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 4109 tokens (4046"
        " in the messages, 63 in the functions). Please reduce the length of the messages or functions.",
        4109,
        4096,
    ),
    (
        "This model's maximum context length is 4096 tokens. However, you requested 5109 tokens (4046 in the"
        " messages, 63 in the functions, and 1000 in the completion). Please reduce the length of the messages,"
        " functions, or completion.",
        4109,
        4096,
    ),
    (
        "This endpoint's maximum context length is 16384 tokens. However, you requested about 94307 tokens (94307"
        ' of text input). Please reduce the length of either one, or use the "middle-out" transform to compress'
        " your prompt automatically.",
        94_307,
        16_384,
    ),
    ("Requested tokens exceed context window of 512", None, 512),
    (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens. Please"
        " reduce the length of the messages.",
        509_178,
        272_000,
    ),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
    (
        "You passed 40001 input tokens and requested 100 output tokens. However, the model's context length is only"
        " 32768 tokens, resulting in a maximum input length of 32668 tokens.",
        40_001,
        32_768,
    ),
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 5000, 4096),
    ("Prompt length of 5016 is longer than the maximum model length of 4096.", 5016, 4096),
    ("The prompt (total length 25938) is too long to fit into the model (context length 4096).", 25_938, 4096),
    ("The engine prompt length 4222 exceeds the max_model_len 4000. Please reduce prompt.", 4222, 4000),
    (
        "Requested token count exceeds the model's maximum context length of 64000 tokens. You requested a total of"
        " 71897 tokens: 67897 tokens from the input messages and 4000 tokens for the completion.",
        67_897,
        64_000,
    ),
    (
        "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
        516_368,
        262_144,
    ),
    ("Input length (265330) exceeds model's maximum context length (262144).", 265_330, 262_144),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens"
        " and 512 `max_new_tokens`",
        9000,
        8193,
    ),
    ("Input validation error: `inputs` must have less than 1024 tokens. Given: 1200", 1200, 1024),
    (
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        1_196_265,
        1_048_575,
    ),
    ("The input token count exceeds the maximum number of tokens allowed 1048576.", None, 1_048_576),
    (
        "Unable to submit request because the input token count is 2000000 but model only supports up to 1048576.",
        2_000_000,
        1_048_576,
    ),
    (
        "An error occurred (ValidationException) when calling the InvokeModel operation: Input is too long for"
        " requested model.",
        None,
        None,
    ),
    (
        "The model returned the following errors: prompt is too long: 205000 tokens > 200000 maximum",
        205_000,
        200_000,
    ),
    ("Too many input tokens. Max input tokens: 1048576, request input token count: 1048577", 1_048_577, 1_048_576),
    (
        "request (9010 tokens) exceeds the available context size (8192 tokens), try increasing it",
        9010,
        8192,
    ),
    ("the request exceeds the available context size. try increasing the context size", None, None),
    ("Requested tokens (5000) exceed context window of 2048", 5000, 2048),
    ("Context size has been exceeded.", None, None),
    (
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the"
        " model with a larger context length",
        None,
        None,
    ),
    (
        "Trying to keep the first 6000 tokens when context the overflows. However, the model is loaded with context"
        " length of only 4096 tokens, which is not enough.",
        6000,
        4096,
    ),
    ("400 `prompt too long; exceeded max context length by 100918 tokens`", None, None),
    ("the input length exceeds the context length", None, None),
    (
        "Prompt contains 300000 tokens and 0 draft tokens, too large for model with 262144 maximum context length",
        300_000,
        262_144,
    ),
    ("Please reduce the length of the messages or completion.", None, None),
    (
        "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
        9000,
        8192,
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        537_812,
        131_072,
    ),
    (
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try"
        " using a shorter prompt or a smaller max_tokens value.",
        6354,
        2048,
    ),
    ("too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs.", None, None),
    ("prompt token count of 150,000 exceeds the limit of 128,000", 150_000, 128_000),
    ("invalid params, context window exceeds limit (2013)", None, None),
    ("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)", 291_351, 262_144),
    ("Prompt exceeds max length", None, None),
    (
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
        None,
        129_024,
    ),
    (
        "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException -"
        " This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.",
        5000,
        4096,
    ),
]


@pytest.mark.parametrize(("text", "tokens", "limit"), TEXTS)
def test_every_provider_is_understood(text: str, tokens: int | None, limit: int | None) -> None:
    expected = Overflow(tokens, limit)
    assert read_overflow(text) == expected
    assert read_overflow({"error": {"message": text, "type": "invalid_request_error"}}) == expected
    assert read_overflow({"message": text}) == expected
    assert read_overflow({"error": text}) == expected
    assert (
        read_overflow("BadRequestError: " + json.dumps({"type": "error", "error": {"message": text}})) == expected
    )
    assert read_overflow(f"Error code: 400 - { ({'error': {'message': text, 'code': None}})!r}") == expected


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Too much of it.", "code": "context_length_exceeded"}},
        {"message": "Too much of it.", "code": "context_length_exceeded"},
        {"error": {"code": 400, "message": "no", "type": "exceed_context_size_error", "n_ctx": 4096}},
        {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}},
        "Error code: 400 - {'error': {'message': 'Too much.', 'param': None, 'code': 'context_length_exceeded'}}",
    ],
)
def test_a_code_says_it_without_words(body: dict[str, object] | str) -> None:
    assert read_overflow(body) == Overflow()


def test_an_error_may_stand_in_another_one() -> None:
    raw = json.dumps({"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}})
    body = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}
    assert read_overflow(body) == Overflow(9, 8)
    assert read_overflow(f"litellm.ContextWindowExceededError: AnthropicException - b'{raw}'") == Overflow(9, 8)


REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1")


def test_the_errors_that_the_sdks_raise_are_understood() -> None:
    text = "This model's maximum context length is 10 tokens. However, your messages resulted in 12 tokens."
    body = {"error": {"message": text, "type": "invalid_request_error", "code": "context_length_exceeded"}}
    answer = httpx2.Response(400, json=body, request=REQUEST)
    chat = openai.OpenAI(api_key="x")._make_status_error_from_response(answer)
    assert isinstance(chat, openai.BadRequestError)
    assert isinstance(chat.body, dict)
    assert read_overflow(str(chat)) == read_overflow(chat.body) == Overflow(12, 10)
    error = {"type": "invalid_request_error", "message": TEXTS[0][0]}
    answer = httpx2.Response(400, json={"type": "error", "error": error}, request=REQUEST)
    messages = anthropic.Anthropic(api_key="x")._make_status_error_from_response(answer)
    assert isinstance(messages.body, dict)
    assert read_overflow(str(messages)) == read_overflow(messages.body) == Overflow(213_462, 200_000)


@pytest.mark.parametrize(
    "text",
    [
        "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 35000."
        " The input or output tokens must be reduced in order to run successfully.",
        "Rate limit reached for model x in organization y on tokens per day (TPD): Limit 100000, Used 99000",
        "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
        "Too many tokens, please wait before trying again.",
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-x",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided"
        " 100000.",
        "'max_tokens' or 'max_completion_tokens' is too large: 4096.",
        "Invalid \"max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length"
        ' is 8192 tokens and your request has 7000 input tokens"',
        "Range of max_tokens should be [1, 8192]",
        "Could not finish the message because max_tokens or model output limit was reached.",
        "length",
        "max_tokens",
        "model_context_window_exceeded",
        "Invalid value for 'content': expected an object, got 'prompt is too long: 9 tokens > 8 maximum'",
        'Invalid message "This model\'s maximum context length is 10 tokens"',
        "No tool call found for `context size has been exceeded`",
        "Invalid API key.",
        "",
    ],
)
def test_what_only_resembles_it_is_something_else(text: str) -> None:
    assert read_overflow(text) is None
    assert read_overflow({"error": {"message": text, "code": "invalid_request_error"}}) is None
    assert read_overflow(f"Error code: 400 - { ({'error': {'message': text, 'code': None}})!r}") is None


def test_what_a_validator_quotes_is_not_read() -> None:
    detail = [{"msg": "Input should be a list", "input": "prompt is too long: 9 tokens > 8 maximum"}]
    assert read_overflow({"detail": detail}) is None


@pytest.mark.parametrize(
    "text",
    [
        "{" * 1_000_000,
        '{"a":' * 500_000,
        "[" * 1_000_000,
        "prompt contains 1 tokens " * 50_000,
        "maximum context length is " + "1" * 1_000_000,
        "'" * 1_000_000,
        "x" * HEAD_CHARS + " prompt is too long: 9 tokens > 8 maximum",
        "trying to keep the first 1 tokens " * 30_000,
        "too many tokens: total number of tokens " * 30_000,
        "\x1b[31m" * 100_000,
    ],
)
def test_a_hostile_text_is_read_to_its_end_or_not_at_all(text: str) -> None:
    assert read_overflow(text) is None
    assert read_overflow({"error": {"message": text, "code": text}}) is None


def test_a_text_beyond_what_is_read_does_not_count() -> None:
    assert read_overflow("{" + " " * MOST_CHARS + '"message": "prompt is too long"}') is None


NESTED = st.recursive(
    st.none() | st.text() | st.integers(),
    lambda inner: st.dictionaries(st.sampled_from(["error", "message", "code", "metadata"]), inner),
)


@given(st.text() | st.dictionaries(st.sampled_from(["error", "message"]), NESTED))
def test_any_error_is_read_without_one(error: str | dict[str, object]) -> None:
    assert read_overflow(error) is None

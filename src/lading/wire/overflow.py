"""Detect context-length errors across providers.

Every provider has its own text and few have a code. A text after a quotation mark is ignored, because an error may
repeat a user's message, and so are errors about rates and output length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct


class Overflow(Struct, frozen=True):
    """A context-length error."""

    tokens: int | None = None
    """Tokens of the prompt by the provider's count, if the error has it. Some include tools or requested output."""
    limit: int | None = None
    """Tokens that the provider accepts, if the error has them."""

    def estimate_smaller(self, tokens: int) -> int:
        """Return the size in tokens to shrink a refused request of ``tokens`` to, by our count."""
        share = min(self.limit / self.tokens, 1) * _CLOSER if self.tokens and self.limit else _SMALLER
        return min(int(tokens * share), tokens - 1)


_SMALLER = 0.8
"""Share of a refused request's tokens to shrink it to, if the error has no numbers."""
_CLOSER = 0.97
"""Margin for the difference between our count and the provider's, if the error has both numbers."""

MOST_CHARS = 20_000
"""Characters of an error text that are read."""

HEAD_CHARS = 600
"""Characters at the start of a message that are searched for known texts."""

MOST_LEVELS = 8
"""Maximum nesting of errors: gateways wrap the errors that they receive."""

CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "request_too_large",
    }
)

_TOKENS = r"(?P<tokens>\d[\d,]{0,14})"
_LIMIT = r"(?P<limit>\d[\d,]{0,14})"
_NUMBER = r"\d[\d,]{0,14}"

_TEXTS = (
    # Anthropic, also on Bedrock and Vertex
    rf"prompt is too long(?:: {_TOKENS} tokens > {_LIMIT} maximum)?",
    rf"input length and .max_tokens. exceed context limit: {_TOKENS} \+ {_NUMBER} > {_LIMIT}",
    # Fireworks
    rf"prompt is too long: {_TOKENS}, model maximum context length: {_LIMIT}",
    # OpenAI, Azure, DeepSeek, OpenRouter, vLLM
    rf"maximum context length (?:is|of) {_LIMIT} tokens"
    rf"(?:[.,] however,? (?:you requested|your \w+ (?:resulted in|has))(?: about)? {_TOKENS} (?:input )?tokens)?",
    rf"input tokens exceed the configured limit of {_LIMIT} tokens"
    rf"(?:\. your messages resulted in {_TOKENS} tokens)?",
    r"(?:input|prompt|request) exceeds the (?:model's )?context window",
    rf"you passed {_TOKENS} input tokens .{{0,60}}context length is only {_LIMIT} tokens",
    rf"prompt \(?length (?:of )?{_TOKENS}\)? is longer than the maximum model length of {_LIMIT}",
    rf"prompt \(total length {_TOKENS}\) is too long to fit into the model \(context length {_LIMIT}\)",
    rf"engine prompt length {_TOKENS} exceeds the max_model_len {_LIMIT}",
    rf"'?max_tokens' or 'max_completion_tokens' is too large: .{{0,70}} {_LIMIT} tokens .{{0,25}} {_TOKENS} input",
    # SGLang, Together
    rf"exceeds the model's maximum context length(?: of {_LIMIT} tokens"
    rf"(?:\. you requested a total of {_NUMBER} tokens: {_TOKENS} tokens from the input)?)?",
    rf"input \({_TOKENS} tokens\) is longer than the model's context length \({_LIMIT} tokens\)",
    rf"input length \({_TOKENS}\) exceeds model's maximum context length \({_LIMIT}\)",
    # Text Generation Inference
    rf".inputs. tokens \+ .max_new_tokens. must be <= {_LIMIT}\. given: {_TOKENS} .inputs. tokens",
    rf".inputs. must have less than {_LIMIT} tokens\. given: {_TOKENS}",
    # Gemini and Vertex
    rf"input token count (?:\({_TOKENS}\) )?exceeds the maximum number of tokens allowed \(?{_LIMIT}",
    rf"input token count is {_TOKENS} but (?:the )?model only supports up to {_LIMIT}",
    # Bedrock
    r"input is too long for requested model",
    rf"too many input tokens\. max input tokens: {_LIMIT}, request input token count: {_TOKENS}",
    # llama.cpp, llama-cpp-python, LM Studio, Ollama
    rf"request(?: \({_TOKENS} tokens\))? exceeds the available context size(?: \({_LIMIT} tokens\))?",
    rf"requested tokens(?: \({_TOKENS}\))? exceed context window of {_LIMIT}",
    r"context size has been exceeded",
    r"number of tokens to keep from the initial prompt is greater than the context length",
    rf"trying to keep the first {_TOKENS} tokens .{{0,80}}context length of only {_LIMIT} tokens",
    r"prompt too long; exceeded (?:max )?context length",
    r"input length exceeds the context length",
    # Mistral
    rf"prompt contains {_TOKENS} tokens.{{0,60}}too large for model with {_LIMIT} maximum context length",
    # Groq, Cerebras
    rf"please reduce the length of the messages(?: or completion\. current length is {_TOKENS} "
    rf"while limit is {_LIMIT})?",
    # xAI
    rf"maximum prompt length is {_LIMIT} but the request contains {_TOKENS} tokens",
    # Cohere
    rf"too many tokens: total number of tokens .{{0,40}}cannot exceed {_LIMIT} - received {_TOKENS}",
    r"too many tokens: size limit exceeded by",
    # GitHub Copilot
    rf"prompt token count of {_TOKENS} exceeds the limit of {_LIMIT}",
    # MiniMax, Moonshot, Z.ai, DashScope
    r"context window exceeds limit",
    rf"request exceeded model token limit: {_LIMIT}(?: \(requested: {_TOKENS}\))?",
    r"prompt exceeds max length",
    rf"range of input length should be \[\d+, {_LIMIT}\]",
    # Gateways that pass on the code alone
    r"\bcontext_length_exceeded\b",
    # LiteLLM, before the text of the provider
    r"^(?:litellm\.)?contextwindowexceedederror\b",
)

_PARTS = re.compile(
    rf"(?i)\(({_NUMBER}) (?:in (?:the|your) (?:messages|prompt)|(?:of )?text(?: input)?)[,;]"
    rf"(?: ({_NUMBER}) (?:in the func|(?:of )?tool))?"
)
"""The split of a request's tokens into messages and functions, and output, by OpenAI, OpenRouter and others."""
_RATE = re.compile(r"\b(?:tokens|requests) per (?:second|min|hour|day)|\bTP[MD]\b|rate.limit", re.IGNORECASE)
_OTHERS = re.compile(r"""["`“«]|(?<!\w)'|'(?!\w)|max_(?:\w{1,20}_)?tokens""")
"""Before a known text: what follows is a quotation, or about the output."""
_LEAD = re.compile(r"^(?:\d{3} )?[`\"']?")
_MESSAGE = re.compile(r"""['"]message['"]:\s?['"]""")
_CODE = re.compile(r"""['"](?:code|type)['"]:\s?['"](\w{1,60})['"]""")
_MESSAGE_FIELDS = ("message", "error", "detail", "msg", "metadata", "raw", "response")


def read_overflow(error: str | Mapping[str, Any]) -> Overflow | None:
    """Return the token counts of a context-length error, given as text or as the body of a response; None for any
    other error."""
    heads: list[str] = []
    codes: set[str] = set()
    _gather(error, heads, codes, levels=MOST_LEVELS)
    if any(_RATE.search(head) for head in heads):
        return None
    found = [overflow for head in heads if (overflow := _read_message(head)) is not None]
    if not found and codes & CODES:
        return Overflow()
    return max(found, key=_count_numbers, default=None)


def _gather(error: Any, heads: list[str], codes: set[str], *, levels: int) -> None:
    """Collect the starts of all messages in an error, and its codes."""
    if isinstance(error, str):
        _gather_text(error[:MOST_CHARS], heads, codes, levels=levels)
    elif isinstance(error, Mapping) and levels:
        codes.update(code for key in ("code", "type") if isinstance(code := error.get(key), str))
        for field in _MESSAGE_FIELDS:
            _gather(error.get(field), heads, codes, levels=levels - 1)


def _gather_text(text: str, heads: list[str], codes: set[str], *, levels: int) -> None:
    start = text.find("{", 0, HEAD_CHARS)
    heads.append(text[:start] if start >= 0 else text[:HEAD_CHARS])
    if start < 0:
        return
    try:
        inner, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        # SDKs print the body as a Python literal.
        if (message := _MESSAGE.search(text, start)) is not None:
            heads.append(text[message.end() : message.end() + HEAD_CHARS].replace("\\'", "'"))
            codes.update(_CODE.findall(text[-HEAD_CHARS:]))
    else:
        _gather(inner, heads, codes, levels=levels - 1)


@cache
def _compile_patterns() -> tuple[re.Pattern[str], ...]:
    # Not at import: there are dozens, and most programs never need them.
    return tuple(re.compile(text, re.IGNORECASE) for text in _TEXTS)


def _read_message(head: str) -> Overflow | None:
    """Match a message against the known texts; of several matches, return the one with most numbers."""
    head = _LEAD.sub("", head, count=1)
    found = []
    for pattern in _compile_patterns():
        match = pattern.search(head)
        if match is None or _OTHERS.search(head, 0, match.start()):
            continue
        numbers = match.groupdict()
        tokens, limit = _parse_number(numbers.get("tokens")), _parse_number(numbers.get("limit"))
        if tokens is not None and (parts := _PARTS.search(head, match.end())) is not None:
            tokens = sum(_parse_number(part) or 0 for part in parts.groups())
        found.append(Overflow(tokens, limit))
    return max(found, key=_count_numbers, default=None)


def _count_numbers(overflow: Overflow) -> int:
    return (overflow.limit is not None) + (overflow.tokens is not None)


def _parse_number(text: str | None) -> int | None:
    return None if text is None else int(text.replace(",", ""))

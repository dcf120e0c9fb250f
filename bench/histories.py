"""Synthetic agent histories of any size, without randomness."""

from __future__ import annotations

from collections.abc import Iterator

from lading.messages import Message, Text, ToolCall, ToolResult, user_text

WORDS = ("module", "returns", "value", "error", "path/to/file.py", "0x1f", "self.cache", "import", "test_case")


def head() -> list[Message]:
    """System prompt and task."""
    return [Message("system", (Text("You are a coding agent. " * 40),)), user_text("Make the test suite pass.")]


def rounds(first: int = 0, *, lines: int = 100) -> Iterator[tuple[Message, Message]]:
    """Endless rounds of one call and its result of about ``16 x lines`` tokens."""
    number = first
    while True:
        call = ToolCall(f"call_{number}", "read", f'{{"path": "src/module_{number}.py", "limit": {lines}}}')
        text = "\n".join(f"{line:4} {_line(number + line)}" for line in range(lines))
        yield (
            Message("assistant", (Text(f"Reading module {number} next."), call)),
            Message("tool", (ToolResult(f"call_{number}", (Text(text),), name="read"),)),
        )
        number += 1


def _line(seed: int) -> str:
    return " ".join(WORDS[(seed * step) % len(WORDS)] for step in range(1, 8))

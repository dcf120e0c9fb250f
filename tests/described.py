"""What the documents' systems do wrong, as it is told of them: the least that shows each fault, in our words.

Tests show the fault on one of these and its absence here on the same input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from lading.messages import File, Image, Message, Text, ToolResult
from lading.presets.reactive_agents.steps import Step

# Reactive Agents


def tier_by_part_words(model: str) -> str:
    """Looks for words anywhere in a name, the small ones before the large ones; reads a size as digits before b."""
    name = model.lower()
    if any(part in name for part in ("opus", "o1", "o3", "gpt-5")):
        return "frontier"
    if any(part in name for part in ("ollama:", "llama", "mistral", "phi", "qwen", "deepseek", "gemma")):
        size = re.search(r"(\d+)b", name)
        return "local" if size and int(size[1]) <= 3 else "mid"
    if any(part in name for part in ("haiku", "mini", "flash")):
        return "mid"
    return "large" if any(part in name for part in ("sonnet", "gpt-4o", "gemini-2.5-pro")) else "mid"


def grouped_actions(steps: Sequence[Step]) -> str:
    """One line for many steps: its actions alone, whatever their results came to."""
    actions = [step.tool for step in steps if step.kind == "action"]
    counted = ", ".join(f"{tool} x{actions.count(tool)}" for tool in dict.fromkeys(actions))
    return f"[Steps 1-{len(steps)}: {counted}]"


def left_under_pressure(steps: Sequence[Step]) -> list[str]:
    """What stays of many steps where the budget is nearly gone: those that are to be preserved."""
    return [step.content for step in steps if step.preserved]


def turns_alone(messages: Sequence[Message]) -> list[Message]:
    """The task, then each message with calls and the results behind it; nothing else that was said."""
    return [messages[0], *(message for message in messages[1:] if message.calls or message.results)]


def phase_by_required(steps: Sequence[Step], *, iteration: int, required_tools: Sequence[str]) -> str:
    """Asks whether anything was required before it asks whether something is left to be written."""
    used = {step.tool for step in steps if step.kind == "action"}
    if iteration <= 1 and not used:
        return "orient"
    if not used.issuperset(required_tools):
        return "gather"
    if any(step.kind == "observation" and not step.failed and "write" in step.tool for step in steps):
        return "verify"
    return "synthesize" if required_tools else "produce"


def synthesised(messages: Sequence[Message], mode: str) -> list[Message]:
    """What ``fast`` gives for every mode, and in ``deep`` a note behind it; nobody looks for ``off``."""
    noted = [Message("user", (Text("Done: so far"),))] if mode == "deep" else []
    return [*turns_alone(messages), *noted]


# open-multi-agent


class Overwriting:
    """A conversation that its compaction overwrites in memory, beside a store that never hears of it."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.stored = list(messages)
        self.conversation = list(messages)

    def compact(self, kept: int) -> list[Message]:
        """The first message and the newest; what was between them is nowhere in this conversation."""
        self.conversation = [self.conversation[0], *self.conversation[-kept:]]
        return self.conversation


def shown_to_summarizer(messages: Sequence[Message]) -> str:
    """All that messages hold, data of pictures included."""
    inner = (
        part.parts if isinstance(part, ToolResult) else (part,) for message in messages for part in message.parts
    )
    return "\n".join(
        part.text if isinstance(part, Text) else str(part.data)
        for parts in inner
        for part in parts
        if isinstance(part, Text | Image | File)
    )


def compressed(results: Sequence[str], least_chars: int) -> list[str]:
    """Each result but the newest as a mark with its length, a mark too."""
    marks = [
        f"[Tool output compressed — {len(text)} chars, already processed]" if len(text) >= least_chars else text
        for text in results[:-1]
    ]
    return [*marks, results[-1]]


def stopped_at_budget(messages: Sequence[Message], most: int) -> list[Message]:
    """A run that ends as soon as its messages are so many, in the midst of a round as well."""
    return list(messages[:most])


def with_text_in_front(messages: Sequence[Message], text: str) -> list[Message]:
    """The text as the first part of the first message of the user, also where that holds results."""
    place = next(number for number, message in enumerate(messages) if message.role != "assistant")
    noticed = Message("user", (Text(text), *messages[place].parts))
    return [*messages[:place], noticed, *messages[place + 1 :]]


def estimated(messages: Iterable[Message]) -> int:
    """A quarter of the characters of what was said behind the system prompt; tools and reserve are not in it."""
    texts = (
        part.text
        for message in messages
        if message.role != "system"
        for part in (*message.parts, *(inner for result in message.results for inner in result.parts))
        if isinstance(part, Text)
    )
    return -(-sum(map(len, texts)) // 4)


# Agentrail


def percent_of_all_turns(reported_tokens: Sequence[int], window_tokens: int) -> int:
    """What all calls of a request took together, of the window that holds one of them."""
    return round(100 * sum(reported_tokens) / window_tokens)


def run_with_compaction_behind(answers: Sequence[int], trigger_tokens: int, ask: Callable[[], object]) -> None:
    """Looks after every answer, the last one too, whether what the call took is above the trigger."""
    for tokens in answers:
        if tokens > trigger_tokens:
            ask()


def folded_unasked(messages: Sequence[Message], kept: int, summarize: Callable[[str], str]) -> list[Message]:
    """Whatever the summarizer says, in place of all that it is shown; once, and without a limit to that."""
    old = "\n".join(
        message.text + "".join(result.text for result in message.results) for message in messages[:-kept]
    )
    return [Message("user", (Text(f"[Summary] {summarize(old)}"),)), *messages[-kept:]]


class Rewriting:
    """A store of one file of messages, read whole and written whole, and archives numbered by the highest."""

    def __init__(self, messages: Sequence[str]) -> None:
        self.messages = list(messages)
        self.archives: dict[int, list[str]] = {}

    def begin(self) -> tuple[list[str], int]:
        """What a request reads before it compacts: the messages, and the number of its archive."""
        return list(self.messages), max(self.archives, default=0) + 1

    def end(self, read: list[str], archive: int) -> None:
        """What it writes then."""
        self.archives[archive] = read[: len(read) // 3]
        self.messages = ["[Compacted]", *read[len(read) // 3 :]]


def protected_by_object(messages: Sequence[Message], prompts: Sequence[Message]) -> list[Message]:
    """The prompts of a request, found as the objects they were."""
    return [message for message in messages if any(message is prompt for prompt in prompts)]


def summary_of_summaries(rounds: Sequence[str], summarize: Callable[[str], str]) -> str:
    """Each time the last summary and what was said since, and no more of what was said before."""
    told = ""
    for said in rounds:
        told = summarize(f"{told}\n{said}")
    return told

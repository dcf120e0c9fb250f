"""Prompt templates by tier: the system prompt of a ReAct agent, and the text for each step.

A template is a value; pass your own beside ``TEMPLATES`` or in their place. A variant for a tier has the id
followed by a colon and the tier. Of equal ids the latest version is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from lading.errors import InputError
from lading.models.card import Tier

REACT_SYSTEM, REACT_THOUGHT = "reasoning.react-system", "reasoning.react-thought"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class PromptTemplate(Struct, frozen=True):
    """A text with placeholders such as ``{task}``. Other braces are plain text."""

    id: str
    """For a variant: ``reasoning.react-system:local``."""
    text: str
    version: int = 1

    def filled(self, values: Mapping[str, object]) -> str:
        """Insert these values verbatim. Raises InputError for a placeholder without a value."""
        missing = [name for name in _PLACEHOLDER.findall(self.text) if name not in values]
        if missing:
            given = ", ".join(values) or "none"
            raise InputError(f"The template {self.id} needs a value for {missing[0]!r}. Given: {given}.")
        return _PLACEHOLDER.sub(lambda place: str(values[place[1]]), self.text)


_SYSTEM_LOCAL = """\
You solve a task with tools. Do one thing at a time: think in one sentence, call one tool, read its result.
When the task is done, write the answer and call no tool.
A text that begins with artifact:// names something out of view. Call restore with it to read it.

{rules}"""

_SYSTEM = """\
You are an agent that solves a task step by step with tools.

In each step, say in a sentence or two what you know and what is missing, then take one action and wait for its
result. Use the tools as their reference says. When a call fails, read the error and change what was wrong before
you call again.

Older results may be shortened to a note that names an address (artifact://...). What it stands for is not lost:
call restore with the address, and with words to look for when it is long.

When the task is done, give the answer and call no further tool. Say in it what you could not do or did not check.

{rules}"""

_SYSTEM_FRONTIER = """\
You are an agent that solves a task step by step with tools, on your own and to its end.

How to work:
- Before the first action, settle what the task asks for and by what you will know that it is done.
- In each step, weigh what the last result showed against that, decide what is missing, then take the one action
  that tells you most, and wait for its result. A plan is there to be changed by results.
- A result that contradicts what you assumed goes before the assumption. A failed call is information: read the
  error, find the cause, and do not send the same call again.
- What has effects (writing, running, sending) comes after what only reads, and its result is checked.

What you see is not all that was said. Older results may be shortened to a note that names an address
(artifact://...). What it stands for is kept whole: call restore with the address, with words to look for or lines
when it is long. Restore what you need before you rely on it; a note or a summary is not the text itself.

When the task is done, stop: give the answer and call no further tool. Name what each claim in it rests on, and say
plainly what was not done, not found or not checked.

{rules}"""

_THOUGHT_LOCAL = """\
Step {iteration} of {max_iterations}. Tools: {tools}
Task: {task}
Call one tool, or answer if the task is done."""

_THOUGHT = """\
Step {iteration} of at most {max_iterations}. Tools: {tools}
The task: {task}
What did the last result show, and what is still missing? Take the one action that brings the task forward, or give
the answer if nothing is missing."""

_THOUGHT_FRONTIER = """\
Step {iteration} of at most {max_iterations}. Tools: {tools}
The task: {task}
Consider what the results so far establish, what contradicts them, and what is still open. Then take the one action
that settles most of what is open. If nothing is, check the answer against the task and give it; if the steps left
do not suffice for all, say so and finish what matters most."""

TEMPLATES = (
    PromptTemplate(REACT_SYSTEM, _SYSTEM),
    PromptTemplate(f"{REACT_SYSTEM}:local", _SYSTEM_LOCAL),
    PromptTemplate(f"{REACT_SYSTEM}:frontier", _SYSTEM_FRONTIER),
    PromptTemplate(REACT_THOUGHT, _THOUGHT),
    PromptTemplate(f"{REACT_THOUGHT}:local", _THOUGHT_LOCAL),
    PromptTemplate(f"{REACT_THOUGHT}:frontier", _THOUGHT_FRONTIER),
)
"""Lading's templates. System prompts use ``rules`` (``context.write_rules``); thoughts use ``task``,
``iteration`` (from 1), ``max_iterations`` and ``tools``."""


def template_for(
    wanted: str, tier: Tier | None = None, *, templates: Sequence[PromptTemplate] = TEMPLATES
) -> PromptTemplate:
    """Return the template of that id for a tier: its variant if there is one, else the general one; the latest
    version, the last of equal versions. Without a tier, the one that the id ends with (``id:local``). Raises
    InputError for an unknown id."""
    for name in (f"{wanted}:{tier}", wanted) if tier else (wanted, wanted.rpartition(":")[0]):
        found = [template for template in templates if template.id == name]
        if found:
            return max(reversed(found), key=lambda template: template.version)
    there = ", ".join(dict.fromkeys(template.id for template in templates)) or "none"
    of = f" for the tier {tier}" if tier else ""
    raise InputError(f"There is no template {wanted!r}{of}. There are: {there}.")

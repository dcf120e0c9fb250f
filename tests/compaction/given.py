"""The sessions of ``given_summaries.toml``, and the criteria that their summaries must meet."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lading.compaction.summaries import make_criteria
from lading.compaction.summary_checking import SummaryCriteria
from lading.effects import SummaryRequest
from lading.messages import Message, Text, ToolCall, tool_result, user_text
from lading.sources import Recording, read
from tests.compaction.test_dialogues import dialogue
from tests.histories import said, tool_loop

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples" / "sessions"
MOST_TOKENS = 900


class Given(NamedTuple):
    """A summary, the messages that it is of, and the style in which it is written."""

    session: str
    upto: int
    style: str
    text: str


def read_given() -> list[Given]:
    """All summaries, in order."""
    with (HERE / "given_summaries.toml").open("rb") as file:
        return [Given(**one) for one in tomllib.load(file)["summary"]]


@cache
def criteria_of(session: str, upto: int) -> SummaryCriteria:
    """The criteria of a summary of the first messages of a session."""
    messages = session_of(session)[:upto]
    request = SummaryRequest("", "source " * 5_000, most_tokens=MOST_TOKENS)
    return make_criteria(request, messages)


@cache
def session_of(name: str) -> Sequence[Message]:
    """A session by its name."""
    if (path := EXAMPLES / f"{name}.jsonl.gz").exists():
        return next(one.messages for one in read(path) if isinstance(one, Recording))
    kind, *numbers = name.split("-")
    if kind == "dialogue":
        return dialogue(int(numbers[0]), int(numbers[1]))[0]
    if kind == "loop":
        return tool_loop(int(numbers[0]))[1:]
    if kind == "dates":
        return [user_text("Repair the import of dates in src/dates.py."), *_read_modules(int(numbers[0]))]
    return WRITTEN[name]


def _read_modules(rounds: int) -> list[Message]:
    made: list[Message] = []
    for number in range(rounds):
        made += _called(
            "read", f'{{"path": "src/mod_{number}.py"}}', f"value_{number} is set\n" * 9, f"I take mod_{number}."
        )
    return made


def _called(tool: str, arguments: str, result: str, text: str) -> list[Message]:
    call = ToolCall(f"c{abs(len(arguments) * 31 + len(result))}", tool, arguments)
    return [Message("assistant", (Text(text), call)), tool_result(call.id, result)]


WRITTEN: dict[str, list[Message]] = {
    "german": [
        user_text("Der Import soll auch Datumsangaben wie 03.05.2024 lesen. Bitte lies_datum nicht umbenennen."),
        *_called(
            "grep", '{"pattern": "strptime"}', "src/import/datum.py:41: strptime(text, '%Y-%m-%d')", "Ich suche."
        ),
        *_called(
            "shell", '{"command": "pytest tests"}', "3 failed, 9 passed in 140s\nValueError: 03.05.2024", "Tests."
        ),
        said("dateutil verwerfe ich: Es soll keine neue Abhängigkeit dazukommen. Ich versuche zuerst %d.%m.%Y."),
        user_text("Einverstanden."),
        *_called("edit", '{"path": "src/import/datum.py"}', "ok", "Ich ändere lies_datum."),
        *_called("shell", '{"command": "pytest tests"}', "12 passed in 90s", "Noch einmal."),
        said("Alle Tests laufen. Offen ist docs/import.md."),
        user_text("Gut, mach weiter."),
    ],
    "release": [
        user_text("Prepare release 2.5.0 until 2024-03-05. Never push to main directly, use a pull request."),
        *_called("edit", '{"path": "pyproject.toml", "new": "2.5.0"}', "ok", "I set the version."),
        user_text("There is no new feature in it: make it 2.4.1."),
        *_called("edit", '{"path": "pyproject.toml", "new": "2.4.1"}', "ok", "Changed to 2.4.1."),
        *_called("edit", '{"path": "CHANGELOG.md", "new": "## 2.4.1"}', "ok", "And the changelog."),
        *_called("shell", '{"command": "gh pr create"}', "https://example.org/pull/118", "I open a pull request."),
        *_called(
            "shell", '{"command": "make ci"}', "1204 passed in 300s\nbuild finished in 412s", "PR 118. CI runs."
        ),
        said("Wheels for Linux and macOS only; Windows was not asked for."),
        *_called("shell", '{"command": "twine upload dist/*"}', "HTTPError: 403 Forbidden", "Now the upload."),
        *_called("shell", '{"command": "twine upload -v dist/*"}', "403 Forbidden: token expired", "A second try."),
        user_text("I renew the token tomorrow. Upload it then, and tell me."),
    ],
}
"""Short sessions for what the others do not have: other languages, dates, versions, rules."""

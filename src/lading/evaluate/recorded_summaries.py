"""Answer requests for summaries from recorded answers, so that a replay with summaries is reproducible.

Each line of the file is a JSON object: the digest of the request and the answer, with its usage where known. A
request without an answer goes to a model, whose answer is recorded, or is collected, to be written to a file of the
same form with its prompt and without a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.effects import Summarizer, Summary, SummaryRequest
from lading.errors import InputError, SummaryFailed
from lading.structs import convert

_ADVICE = 'Write one answer a line: {"request": "<sha256>", "text": "..."}.'


class RecordedAnswer(Struct, frozen=True, omit_defaults=True):
    """A request for a summary by its digest, and its answer."""

    request: str
    """``digest_request`` of the request."""
    text: str = ""
    """The answer; empty: not answered yet."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    read_tokens: int = 0
    """Of the input, read from the prompt cache."""
    written_tokens: int = 0
    """Of the input, written to the prompt cache."""
    asked: Literal["", "self"] = ""
    """``self``: of the session's own model, after its last request."""
    model: str = ""
    """The model that gave it, where known."""
    most_tokens: int = 0
    """Limit of the answer in tokens, for the reader of an unanswered request."""
    prompt: str = ""
    """The request, where it is not answered yet."""


Ask: TypeAlias = Callable[[SummaryRequest, str], RecordedAnswer]
"""Asks a model for the answer to a request with this digest. Raises SummaryFailed if there is none."""
TIMEOUT_S = 600.0
"""A replay waits for a model: an answer that comes late would be paid for and not recorded."""


class RecordedSummaries:
    """Recorded answers by request, and the requests without an answer that were asked so far."""

    def __init__(self, answers: Mapping[str, RecordedAnswer], *, ask: Ask | None = None) -> None:
        """``ask``: for what has no answer."""
        self._answers, self._ask = answers, ask
        self._asked: dict[str, RecordedAnswer] = {}
        self.unanswered: dict[str, RecordedAnswer] = {}
        """Requests without an answer, by digest, in the order in which they were asked."""

    @property
    def summarizer(self) -> Summarizer:
        """A summarizer that gives the recorded answers."""
        return Summarizer(self, TIMEOUT_S)

    @property
    def is_self(self) -> bool:
        """Whether the session's own model gave all of the answers."""
        is_known = bool(self._answers) and self._ask is None
        return is_known and all(answer.asked for answer in self._answers.values())

    def __call__(self, request: SummaryRequest) -> Summary:
        """Return the recorded answer. Raises SummaryFailed where there is none."""
        digest = digest_request(request)
        found = self._answers.get(digest) or self._asked.get(digest)
        if found is None:
            found = self._asked[digest] = self._find_answer(request, digest)
        used = found.input_tokens, found.output_tokens, found.read_tokens, found.written_tokens
        return Summary(found.text, *used)

    def _find_answer(self, request: SummaryRequest, digest: str) -> RecordedAnswer:
        try:
            if self._ask is None:
                raise SummaryFailed("no answer to it is recorded")
            return self._ask(request, digest)
        except SummaryFailed:
            self.unanswered[digest] = RecordedAnswer(digest, most_tokens=request.most_tokens, prompt=request.prompt)
            raise


def digest_request(request: SummaryRequest) -> str:
    """Return the digest by which an answer is recorded: equal prompts have equal answers."""
    return jsonbytes.digest(jsonbytes.dump(request.prompt))


def read_answers(path: str) -> dict[str, RecordedAnswer]:
    """Read the answers of a file by the digest of their request; lines without a text are skipped, and a later line
    replaces an earlier one. Raises InputError for a file that cannot be read and for a line of another form."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        advice = "An empty file is a start: requests without an answer are written beside it."
        raise InputError(f"{path} cannot be read: {error.strerror}. {advice}") from error
    return {answer.request: answer for answer in _read_lines(path, data) if answer.text}


def _read_lines(path: str, data: bytes) -> Iterator[RecordedAnswer]:
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield convert(jsonbytes.load(line), RecordedAnswer)
        except (ValueError, msgspec.ValidationError) as error:
            raise InputError(f"{path}:{number}: This is no recorded answer: {error}. {_ADVICE}") from error

"""Options of the commands that replay with a model's summaries: recorded answers, and a model for missing ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from lading import jsonbytes
from lading.cli import terminal
from lading.cli.model_clients import OptionNames, Usd, find_model, make_sender, parse_usd
from lading.cli.options import FiniteRange, parse_with
from lading.cli.output_file import open_output
from lading.cli.tables import format_count, format_usd
from lading.effects import Summarizer
from lading.errors import InputError
from lading.evaluate.recorded_summaries import RecordedAnswer, RecordedSummaries, read_answers
from lading.evaluate.summary_model import SummaryModel

ANSWER_TOKENS = 8_000
"""Limit of an answer, reasoning included; a summary itself is shorter."""


_NAMES = OptionNames("--summarizer-url", "--summarizer-usd")


class SummaryOptions(Struct, frozen=True):
    """The options that the commands share."""

    summaries: str | None
    """File of recorded answers."""
    summarizer: str | None
    summarizer_url: str | None
    summarizer_usd: Usd | None
    most_usd: float


_OPTIONS = (
    click.option(
        "--summaries", metavar="FILE", help="Use a model's summaries: the answers recorded in FILE.",
    ),
    click.option(
        "--summarizer", metavar="M",
        help="Model to ask for answers that --summaries lacks, and records: a name, or provider:model.",
    ),
    click.option("--summarizer-url", metavar="URL", help="Server of --summarizer; default: its provider's."),
    click.option(
        "--summarizer-usd", callback=parse_with(parse_usd), metavar="IN/OUT",
        help="USD per million tokens of --summarizer, input/output, where no price is known.",
    ),
    click.option(
        "--most-usd", type=FiniteRange(0), default=5.0, show_default=True, metavar="USD",
        help="Ask --summarizer no further before it could cost more.",
    ),
)  # fmt: skip


def summary_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options, as one value ``summarizing``."""

    @wraps(command)
    def run(**given: Any) -> None:
        found = {name: given.pop(name) for name in SummaryOptions.__struct_fields__}
        command(summarizing=SummaryOptions(**found), **given)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run


class OpenSummaries(Struct, frozen=True):
    """The summarizer of a replay, if any."""

    summarizer: Summarizer | None = None
    asked: SummaryModel | None = None

    def check(self) -> None:
        """Raise the error after which the model answers nothing more, if there was one."""
        if self.asked:
            self.asked.check()

    def guard(self, advance: terminal.Advance) -> terminal.Advance:
        """Return ``advance`` after that check."""

        def step(done: int) -> None:
            self.check()
            advance(done)

        return step


@contextmanager
def open_summaries(options: SummaryOptions, *, used: Sequence[str]) -> Iterator[OpenSummaries]:
    """Open the recorded answers, and the model that is asked for others. At the end, write the requests without an
    answer to a file beside the answers. ``used``: files that the command reads. Raises InputError."""
    path = options.summaries
    if path is None:
        if options.summarizer:
            raise InputError("Give --summaries FILE too: the answers of --summarizer are recorded there.")
        yield OpenSummaries()
        return
    if options.summarizer is None:
        recorded, asked = RecordedSummaries(read_answers(path)), None
    else:
        model = find_model(
            options.summarizer,
            answer_tokens=ANSWER_TOKENS,
            rates=None,
            usd=options.summarizer_usd,
            base_url=options.summarizer_url,
            options=_NAMES,
        )
        send = make_sender(model, None, base_url=options.summarizer_url, options=_NAMES)
        keep = _open_file(path, used=used)
        asked = SummaryModel(model, send, keep=keep, most_usd=options.most_usd)
        recorded = RecordedSummaries(read_answers(path), ask=asked)
    yield OpenSummaries(recorded.summarizer, asked)
    if asked:
        _describe_asked(asked, options)
    if recorded.unanswered:
        beside = f"{path}.unanswered"
        with open_output(beside, used=used, option="--summaries", example="answers.jsonl.unanswered") as write:
            for request in recorded.unanswered.values():
                write(jsonbytes.dump_value(request) + b"\n")
        many = format_count(len(recorded.unanswered), "request")
        terminal.warn(f"{path}: {many} without a recorded answer used rules. They were written to {beside}.")


def _open_file(path: str, *, used: Sequence[str]) -> Callable[[RecordedAnswer], None]:
    """Create the file if it is missing; return a function that appends an answer. Raises InputError."""
    if any(os.path.exists(path) and os.path.samefile(path, other) for other in used if os.path.exists(other)):
        raise InputError(f"--summaries would write to {path}, which this command reads. Give another file.")

    def keep(answer: RecordedAnswer) -> None:
        _append(path, jsonbytes.dump_value(answer) + b"\n")

    _append(path, b"")
    return keep


def _append(path: str, line: bytes) -> None:
    try:
        with open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            if line and file.tell() and not Path(path).read_bytes().endswith(b"\n"):
                file.write(b"\n")
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}. Choose another file.") from error


def _describe_asked(asked: SummaryModel, options: SummaryOptions) -> None:
    if asked.sent:
        many, cost = format_count(asked.sent, "answer"), format_usd(asked.spent_usd)
        terminal.warn(f"{many} of {options.summarizer} for {cost}; recorded in {options.summaries}")
    for failure in dict.fromkeys(asked.failures):
        terminal.warn(f"no answer: {failure}")
    if asked.is_capped:
        terminal.warn("The cap was reached. Run it again, with a higher --most-usd, to ask what is missing.")

"""Options of the commands that ask models, and the run that they share: estimate, cap, answers kept, costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import click
from msgspec import Struct

from lading.cli import terminal
from lading.cli.kept_answers import find_answers_path, open_answers
from lading.cli.model_clients import ModelOptions, find_model, parse_usd
from lading.cli.options import (
    counter_option,
    json_option,
    parse_with,
    prices_option,
    strategy_option,
    verbatim_option,
    when_option,
    window_option,
)
from lading.cli.output_file import open_output
from lading.cli.recordings import prepare_all, read_all
from lading.cli.tables import format_count, format_usd, say
from lading.compaction import Strategy, apply_options
from lading.economics import Rates
from lading.evaluate.asking import AskedModel, Asker, Outstanding, Send, Task
from lading.evaluate.plan import PlanOptions
from lading.evaluate.request_pairs import plan_for, without_fields
from lading.evaluate.session_runs import RecordedSession
from lading.sources import Problem

Result = TypeVar("Result")

_SHOWN_FAILURES = 3


class AskingOptions(Struct, frozen=True):
    """The options that the commands share."""

    model: str
    strategy: str | Strategy
    window: int | None
    prices: Rates | None
    counter: str | None
    base_url: str | None
    usd: tuple[float, float] | None
    answer_tokens: int
    most_usd: float
    parallel: int
    out: str
    as_json: bool

    def find(self, name: str, *, base_url: str | None = None) -> AskedModel:
        """Find a model with these options. Raises InputError."""
        return find_model(name, ModelOptions(self.answer_tokens, self.prices, self.usd), base_url=base_url)


_OPTIONS = (
    click.option("--model", required=True, metavar="M", help="Model to ask: a name, or provider:model."),
    strategy_option,
    window_option,
    when_option,
    verbatim_option,
    prices_option,
    counter_option,
    click.option("--base-url", metavar="URL", help="Server of --model; default: its provider's."),
    click.option(
        "--usd", callback=parse_with(parse_usd), metavar="IN/OUT",
        help="USD per million tokens of input/output, for models without a known price.",
    ),
    click.option(
        "--answer-tokens", type=click.IntRange(1), default=4_000, show_default=True, metavar="N",
        help="Limit of an answer in tokens, reasoning included.",
    ),
    click.option(
        "--most-usd", type=click.FloatRange(0), default=5.0, show_default=True, metavar="USD",
        help="Stop before the run could cost more.",
    ),
    click.option(
        "--parallel", type=click.IntRange(1, 64), default=4, show_default=True, metavar="N",
        help="Requests at a time.",
    ),
    click.option(
        "--out", required=True, metavar="OUT.json",
        help="Write the figures here, and each answer beside it at once; a second run asks what is missing.",
    ),
    json_option(),
)  # fmt: skip


def asking_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options, as one value ``options``; report its errors."""

    @wraps(command)
    def run(**given: Any) -> None:
        with terminal.report_errors():
            when, verbatim = given.pop("when"), given.pop("verbatim")
            given["strategy"] = apply_options(given["strategy"], when=when, verbatim=verbatim)
            shared = {name: given.pop(name) for name in AskingOptions.__struct_fields__}
            command(options=AskingOptions(**shared), **given)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run


def prepare_sessions(
    files: Sequence[str], model: AskedModel, *, options: AskingOptions
) -> tuple[list[RecordedSession], list[Problem]]:
    """Read and plan the sessions of files for the model. Raises SourceError, InputError."""
    recordings, problems = read_all(files)
    wanted = PlanOptions(
        window_tokens=options.window, strategy=options.strategy, counter=options.counter, rates=options.prices
    )
    return prepare_all(map(without_fields, recordings), plan_for(model, wanted)), problems


@contextmanager
def open_run(
    options: AskingOptions, send: Send, *, used: Sequence[str]
) -> Iterator[tuple[Asker, Callable[[Any], None]]]:
    """Open the output and its answers; yield what asks, and a function that writes the figures. ``used``: the files
    that the command reads."""
    answers = find_answers_path(options.out)
    with (
        open_output(options.out, used=(*used, str(answers)), option="--out", example="answers.json") as write,
        open_answers(answers) as (kept, keep),
    ):
        asker = Asker(send, kept=kept, keep=keep, most_usd=options.most_usd)
        yield asker, lambda value: write(terminal.encode_json(value).encode() + b"\n")


def ask_all(asker: Asker, tasks: Sequence[Task[Result]], *, options: AskingOptions, noun: str) -> list[Result]:
    """Show the estimate, then run the tasks with a progress bar."""
    left = asker.measure(tasks)
    terminal.warn(_describe_estimate(left, len(tasks), options, noun=noun))
    with terminal.show_progress("asking", len(tasks)) as advance:
        return asker.run(tasks, parallel=options.parallel, advance=advance)


def _describe_estimate(left: Outstanding, tasks: int, options: AskingOptions, *, noun: str) -> str:
    kept = f", {tasks - left.tasks:,} are answered already" if left.tasks < tasks else ""
    cap = "" if left.usd <= options.most_usd else f"; the run stops at {format_usd(options.most_usd)} (--most-usd)"
    return f"{format_count(left.tasks, noun)} to ask{kept}: at most {format_usd(left.usd)}{cap}"


def encode_costs(asker: Asker) -> Mapping[str, Any]:
    """Return what a run cost, and what it left out, for JSON."""
    return {
        "usd": asker.spent_usd,
        "sent": asker.sent,
        "reused": asker.reused,
        "capped": asker.is_capped,
        "failures": asker.failures,
    }


def finish(asker: Asker) -> int:
    """Warn of what is missing; return the exit code."""
    for failure in asker.failures[:_SHOWN_FAILURES]:
        terminal.warn(f"no answer: {failure}")
    if asker.failures:
        terminal.warn(f"{format_count(len(asker.failures), 'request')} failed. Run the command again to ask those.")
    if asker.is_capped:
        terminal.warn("The cap was reached. Run it again, with a higher --most-usd, to ask what is missing.")
    return terminal.FOUND if asker.failures or asker.is_capped else 0


def say_costs(asker: Asker, options: AskingOptions) -> None:
    """Print what the run cost."""
    kept = f", {format_count(asker.reused, 'answer')} of earlier runs" if asker.reused else ""
    say(
        f"{format_usd(asker.spent_usd)} for {format_count(asker.sent, 'answer')}{kept}; kept in "
        f"{find_answers_path(options.out)}"
    )

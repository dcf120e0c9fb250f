"""Options of the commands that ask models, and the run that they share: estimate, cap, answers kept, costs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NoReturn, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from lading.cli import terminal
from lading.cli.kept_answers import find_answers_path, open_answers
from lading.cli.model_clients import Usd, find_model, parse_usd
from lading.cli.options import (
    FiniteRange,
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
from lading.cli.recordings import PreparedSessions, prepare_all, read_all
from lading.cli.tables import format_count, format_usd, say
from lading.compaction import Strategy, apply_options
from lading.economics import Rates
from lading.evaluate.asking import AskedModel, Asker, Outstanding, Send, Task
from lading.evaluate.plan import PlanOptions
from lading.evaluate.request_pairs import plan_for
from lading.sources import Problem

Result = TypeVar("Result")


class AskingOptions(Struct, frozen=True):
    """The options that the commands share."""

    model: str
    strategy: str | Strategy
    window: int | None
    prices: Rates | None
    counter: str | None
    base_url: str | None
    usd: Usd | None
    answer_tokens: int
    most_usd: float
    parallel: int
    out: str
    as_json: bool

    def find(self, name: str, *, base_url: str | None = None) -> AskedModel:
        """Find a model with these options. Raises InputError."""
        return find_model(
            name, answer_tokens=self.answer_tokens, rates=self.prices, usd=self.usd, base_url=base_url
        )


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
        "--answer-tokens", type=click.IntRange(1, 16_000), default=4_000, show_default=True, metavar="N",
        help="Limit of an answer in tokens, reasoning included.",
    ),
    click.option(
        "--most-usd", type=FiniteRange(0), default=5.0, show_default=True, metavar="USD",
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
) -> tuple[PreparedSessions, list[Problem]]:
    """Read and plan the sessions of files for the model. Raises SourceError, InputError."""
    recordings, problems = read_all(files)
    wanted = PlanOptions(
        window_tokens=options.window, strategy=options.strategy, counter=options.counter, rates=options.prices
    )
    # Temperature, thinking and the like belong to the recorded model.
    bare = [replace(recording, params=None) for recording in recordings]
    return prepare_all(bare, plan_for(model, wanted)), problems


def ask_and_print(
    tasks: Sequence[Task[Result]],
    options: AskingOptions,
    *,
    noun: str,
    send: Send,
    used: Sequence[str],
    left_out: dict[str, Any],
    encode: Callable[[list[Result]], dict[str, Any]],
    show: Callable[[list[Result]], None],
) -> NoReturn:
    """Show the estimate and run the tasks; write the figures to ``--out``, print them and exit. ``used``: the files
    that the command reads. ``left_out``: sessions and the like that are not asked about, for JSON. ``encode``: the
    figures for JSON. ``show`` prints them."""
    path = find_answers_path(options.out)
    with (
        open_output(options.out, used=(*used, str(path)), option="--out", example="answers.json") as write,
        open_answers(path) as (kept, keep),
    ):
        asker = Asker(send, kept=kept, keep=keep, most_usd=options.most_usd)
        terminal.warn(_describe_estimate(asker.measure(tasks), len(tasks), options, noun=noun))
        with terminal.show_progress("asking", len(tasks)) as advance:
            results = asker.run(tasks, parallel=options.parallel, advance=advance)
        value = encode(results) | left_out | {"cost": _encode_costs(asker)}
        write(terminal.encode_json(value).encode() + b"\n")
    if options.as_json:
        terminal.print_json(value)
    else:
        show(results)
        again = f", {asker.reused:,} used again" if asker.reused else ""
        say(f"{format_usd(asker.spent_usd)} for {format_count(asker.sent, 'answer')}{again}; kept in {path}")
    _warn_of_missing(asker)
    sys.exit(terminal.FOUND if asker.failures or asker.is_capped or any(left_out.values()) else 0)


def _describe_estimate(left: Outstanding, tasks: int, options: AskingOptions, *, noun: str) -> str:
    kept = f" ({tasks - left.tasks:,} are answered)" if left.tasks < tasks else ""
    cap = f"; the run stops before {format_usd(options.most_usd)}" if left.usd > options.most_usd else ""
    return f"{format_count(left.tasks, noun)} to ask{kept}: at most {format_usd(left.usd)}{cap}"


def _encode_costs(asker: Asker) -> dict[str, Any]:
    return {
        "usd": asker.spent_usd,
        "sent": asker.sent,
        "reused": asker.reused,
        "empty": asker.empty,
        "capped": asker.is_capped,
        "failures": asker.failures,
    }


def _warn_of_missing(asker: Asker) -> None:
    if asker.empty:
        many = format_count(asker.empty, "answer")
        terminal.warn(f"{many} without a word: reasoning may have used them up. Give more --answer-tokens.")
    for failure in dict.fromkeys(asker.failures):
        terminal.warn(f"no answer: {failure}")
    if asker.failures:
        terminal.warn(f"{format_count(len(asker.failures), 'request')} failed. Run the command again to ask again.")
    if asker.is_capped:
        terminal.warn("The cap was reached. Run it again, with a higher --most-usd, to ask what is missing.")

"""``lading resume``: let a model continue recorded sessions from packed requests and from everything sent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from lading.cli.asking import AskingOptions, ask_and_print, asking_options, prepare_sessions
from lading.cli.model_clients import make_sender
from lading.cli.options import files_argument
from lading.cli.tables import Column, print_items, say
from lading.errors import InputError
from lading.evaluate.asking import AskedModel, Task
from lading.evaluate.request_pairs import build_pairs, find_packed_calls
from lading.evaluate.resuming import ResumedPoint, choose_points, describe_points, resume_pair, sum_points
from lading.evaluate.session_runs import RecordedSession

_SIDES = ("packed", "everything sent", "everything, again")
_LEGEND = """\
repeated: calls made before with the same arguments, since the last edit of a file; had failed: of these, calls
whose last result was an error; asked again: questions that the user was asked before
same calls: answers with the calls of the first from everything sent; again: the noise floor"""


@click.command("resume")
@files_argument
@click.option(
    "--points", type=click.IntRange(1), default=5, show_default=True, metavar="N",
    help="Calls of each session at which the model continues.",
)  # fmt: skip
@asking_options
def command(files: tuple[str, ...], points: int, options: AskingOptions) -> None:
    """Let a model continue the sessions in FILEs from packed requests and from everything sent.

    At calls whose packed request differs, the model is asked for its next reply once from the packed request and
    twice from everything sent, and what it repeats is counted. No tool runs. See docs/howto/evaluate.md.

    \b
    Exit code 0: everything was asked. 1: the cap, a failure or the input left something out. 2: bad input.

    \b
    Examples:
      lading resume session.jsonl --model gpt-5-mini --window 32k --out resume.json
      lading resume logs/*.jsonl --model claude-sonnet-5 --window 64k --points 10 --most-usd 20 --out resume.json
    """
    model = options.find(options.model, base_url=options.base_url)
    (sessions, unsendable), problems = prepare_sessions(files, model, options=options)
    send = make_sender(model, None, base_url=options.base_url)

    def encode(resumed: list[ResumedPoint]) -> dict[str, Any]:
        return {
            "verdict": describe_points(resumed),
            "model": model.name,
            "total": dict(zip(("packed", "full", "again"), sum_points(resumed), strict=True)),
            "points": resumed,
            "problems": problems,
        }

    tasks = _make_tasks(sessions, model, points=points, options=options)
    left_out = {"sessions_left_out": unsendable}
    ask_and_print(
        tasks, options, noun="point", send=send, used=files, left_out=left_out, encode=encode, show=print_points
    )


def print_points(resumed: Sequence[ResumedPoint]) -> None:
    """Print a row for each side, the verdict and the meaning of the columns."""
    rows = list(zip(_SIDES, sum_points(resumed), strict=True))
    print_items(
        "continued from packed requests and from everything sent",
        rows,
        columns=(
            (Column("request", left=True), lambda row: row[0]),
            (Column("answers"), lambda row: f"{row[1].answers:,}"),
            (Column("calls"), lambda row: f"{row[1].calls:,}"),
            (Column("repeated"), lambda row: f"{row[1].repeated:,}"),
            (Column("had failed"), lambda row: f"{row[1].against_findings:,}"),
            (Column("asked again"), lambda row: f"{row[1].asked_again:,}"),
            (Column("same calls"), lambda row: f"{row[1].same:,}"),
        ),
    )
    say("")
    say(describe_points(resumed), style="bold")
    say(_LEGEND, style="dim")


def _make_tasks(
    sessions: Sequence[RecordedSession], model: AskedModel, *, points: int, options: AskingOptions
) -> list[Task[ResumedPoint]]:
    """Make the tasks of all points. Raises InputError where every packed request is everything sent."""
    tasks: list[Task[ResumedPoint]] = []
    for session in sessions:
        chosen = choose_points(find_packed_calls(session, options.strategy), points)
        for pair in build_pairs(session, options.strategy, calls=chosen):
            before = session.messages[: session.calls[pair.call - 1]]
            tasks.append(partial(resume_pair, pair, before, model=model))
    if not tasks:
        raise InputError(
            "Every packed request is everything sent, so there is nothing to compare. Give a smaller --window."
        )
    return tasks

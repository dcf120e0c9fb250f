"""``lading probe``: ask a model questions about sessions, from packed requests and from everything sent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from lading.cli.asking import AskingOptions, ask_and_print, asking_options, prepare_sessions
from lading.cli.model_clients import make_sender
from lading.cli.options import files_argument
from lading.cli.recordings import select_probes
from lading.cli.tables import Column, print_items, say
from lading.evaluate.asking import AskedModel, Task
from lading.evaluate.evidence import weigh_words
from lading.evaluate.probes import Probe, read_questions
from lading.evaluate.probing import GradedProbe, ProbeTally, SideTally, ask_probe, describe_probes, tally_probes
from lading.evaluate.request_pairs import build_pairs
from lading.evaluate.session_runs import RecordedSession

_LEGEND = """\
packed, everything: questions answered right from the packed request, and from everything sent, of those compared
compared: both requests were answered and graded
unknown: the model says that the request does not say; holds: the evidence is present in the packed request"""


@click.command("probe")
@files_argument
@click.option(
    "--probes", "probes_path", required=True, metavar="P", help="File of questions, one JSON object a line."
)
@click.option("--judge", metavar="M2", help="Model that grades the answers; default: their words are compared.")
@asking_options
def command(files: tuple[str, ...], probes_path: str, judge: str | None, options: AskingOptions) -> None:
    """Ask a model questions about the sessions in FILEs: from the packed request alone, and from everything sent.

    Each question is asked at its call. What the model answers is graded by the words of the reference answer and of
    the evidence, or by a second model. See docs/howto/evaluate.md.

    \b
    Exit code 0: everything was asked. 1: the cap, a failure or the input left something out. 2: bad input.

    \b
    Examples:
      lading probe session.jsonl --probes probes.jsonl --model gpt-5-mini --window 32k --out probe.json
      lading probe session.jsonl --probes p.jsonl --model openai:qwen3 --base-url http://localhost:8000/v1 \\
        --usd 0/0 --judge claude-sonnet-5 --out probe.json
    """
    model = options.find(options.model, base_url=options.base_url)
    grader = options.find(judge) if judge else None
    (sessions, unsendable), problems = prepare_sessions(files, model, options=options)
    names = [session.name for session in sessions]
    probes, unknown = select_probes(sessions, probes_path, probes=list(read_questions(probes_path, names)))
    send = make_sender(model, grader, base_url=options.base_url)

    def encode(graded: list[GradedProbe]) -> dict[str, Any]:
        total = tally_probes(graded)
        return {
            "verdict": describe_probes(total),
            "model": model.name,
            "judge": grader.name if grader else None,
            "total": total,
            "kinds": _tally_kinds(graded),
            "probes": graded,
            "problems": problems,
        }

    tasks, used = _make_tasks(sessions, probes, model, judge=grader, options=options), (*files, probes_path)
    left_out = {"probes_left_out": unknown, "sessions_left_out": unsendable}
    ask_and_print(
        tasks, options, noun="question", send=send, used=used, left_out=left_out, encode=encode, show=print_probes
    )


def print_probes(graded: Sequence[GradedProbe]) -> None:
    """Print a row for each kind, the total, the verdict and the meaning of the columns."""
    total = tally_probes(graded)
    rows = [*_tally_kinds(graded).items(), ("total", total)]
    print_items(
        "answers from packed requests and from everything sent",
        rows,
        columns=(
            (Column("kind", left=True), lambda row: row[0]),
            (Column("questions"), lambda row: f"{row[1].probes:,}"),
            (Column("compared"), lambda row: f"{row[1].compared:,}"),
            (Column("packed"), lambda row: _format_right(row[1].packed, row[1])),
            (Column("everything"), lambda row: _format_right(row[1].full, row[1])),
            (Column("unknown, packed"), lambda row: f"{row[1].packed.unknown:,}"),
            (Column("unknown, everything"), lambda row: f"{row[1].full.unknown:,}"),
            (Column("holds"), lambda row: f"{row[1].packed.evidence:,} of {row[1].quoted:,}"),
        ),
    )
    say("")
    say(describe_probes(total), style="bold")
    say(_LEGEND, style="dim")


def _format_right(side: SideTally, tally: ProbeTally) -> str:
    return f"{side.right:,} ({side.right / tally.compared:.0%})" if tally.compared else "-"


def _tally_kinds(graded: Sequence[GradedProbe]) -> dict[str, ProbeTally]:
    kinds = sorted({item.kind for item in graded})
    return {kind: tally_probes(item for item in graded if item.kind == kind) for kind in kinds}


def _make_tasks(
    sessions: Sequence[RecordedSession],
    probes: Sequence[Probe],
    model: AskedModel,
    *,
    judge: AskedModel | None,
    options: AskingOptions,
) -> list[Task[GradedProbe]]:
    weight = weigh_words([[item.quote for item in probe.evidence] for probe in probes])
    tasks: list[Task[GradedProbe]] = []
    for session in sessions:
        own = [probe for probe in probes if probe.name == session.name]
        calls = {probe.call for probe in own}
        pairs = {pair.call: pair for pair in build_pairs(session, options.strategy, calls=calls)} if own else {}
        for probe in own:
            pair = pairs[probe.call]
            tasks.append(partial(ask_probe, probe, pair, model=model, judge=judge, weight=weight))
    return tasks

"""``lading memory STORE consolidate`` and ``embed``: care for a whole memory, one group or batch at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from lading.cli import terminal
from lading.cli.memory_names import NamespaceFilter, format_namespace, namespace_options, open_memory_of
from lading.cli.options import json_option
from lading.cli.tables import Column, format_count, print_items, say
from lading.errors import EmbeddingFailed
from lading.memory.consolidation import (
    MOST_GROUPS,
    Consolidation,
    ConsolidationMeans,
    FoldReport,
    consolidate,
    join_runs,
)
from lading.memory.embedders import EMBEDDERS, open_embedder
from lading.memory.reembedding import embed_missing

_ALL = 1_000_000_000
_SHOWN_IDS = 4


@click.command("consolidate")
@namespace_options
@click.option("--dry-run", is_flag=True, help="Say what would be folded, and change nothing.")
@click.option(
    "--groups",
    type=click.IntRange(1),
    default=MOST_GROUPS,
    show_default=True,
    help="The most groups of a namespace in one run.",
)
@click.option(
    "--top", type=click.IntRange(1), default=50, show_default=True, help="The first so many groups are shown."
)
@json_option("Print the groups as JSON.")
@click.pass_obj
def _consolidate_command(
    folder: str, /, dry_run: bool, groups: int, top: int, *, as_json: bool, **names: str
) -> None:
    """Fold what says nothing more than another record: the same words, older records of a key that is spelled in
    several ways, and what expired a week ago. Folded records stay as history: list --history shows them. What the
    user wrote is never folded into what a model or a tool wrote."""
    with open_memory_of(folder) as store, terminal.show_progress("consolidating", None) as advance:
        places = NamespaceFilter(**names).find(store)
        means = ConsolidationMeans(advance=advance)
        report = join_runs(
            [
                consolidate(store, place, at_s=time.time(), dry_run=dry_run, most_groups=groups, means=means)
                for place in places
            ]
        )
    terminal.print_either(as_json, lambda: report, show=lambda: _print_report(report, top=top))


@click.command("embed")
@click.option(
    "--model", required=True, metavar="NAME", help=f"The embedder: {', '.join(EMBEDDERS)}, with :MODEL or :FOLDER."
)
@click.option("--tenant", default="", metavar="NAME", help="Records of this tenant only.")
@click.option("--url", default="", help="The API's URL, where it is not the provider's own.")
@click.option("--size", type=click.IntRange(1), help="Numbers in a vector, where the model lets one choose.")
@json_option("Print the counts as JSON.")
@click.pass_obj
def _embed_command(folder: str, /, model: str, tenant: str, url: str, size: int | None, *, as_json: bool) -> None:
    """Give a vector of the embedder NAME to all records that have none of it, such as after a change of model.

    A run that is cut short has stored what it did, and the next one goes on. The key of a provider is read from its
    environment variable; a folder holds a model on this machine. Agents then open the memory with this embedder.

    \b
    Examples:
      lading memory ./store embed --model model2vec:./potion-base-8M
      lading memory ./store embed --model openai:text-embedding-3-small
    """
    with open_memory_of(folder) as store:
        embedder = open_embedder(model, url=url, size=size or 0)
        places = NamespaceFilter(tenant, "", "", "").find(store)
        tenants = sorted({place.tenant for place in places})
        missing = {name: len(store.list_without_vectors(name, model=embedder.name, limit=_ALL)) for name in tenants}
        done: dict[str, int] = {}
        with terminal.show_progress("embedding", sum(missing.values())) as advance:
            for name in tenants:
                try:
                    done[name] = embed_missing(store, embedder, tenant=name, advance=advance)
                except EmbeddingFailed as failure:
                    left = len(store.list_without_vectors(name, model=embedder.name, limit=_ALL))
                    raise EmbeddingFailed(
                        f"{embedder.name} gave no vectors: {failure}. {format_count(left, 'record')} of the tenant "
                        f"{name} {'is' if left == 1 else 'are'} left; run the command again to go on."
                    ) from failure
    figures = {"model": embedder.name, "size": embedder.size, "embedded": done}
    total = format_count(sum(done.values()), "record")
    terminal.print_either(
        as_json, lambda: figures, show=lambda: say(f"{total} embedded with {embedder.name}; all have its vectors.")
    )


COMMANDS = (_consolidate_command, _embed_command)
"""Commands of ``lading memory STORE``."""


def _print_report(report: Consolidation, *, top: int) -> None:
    verb = "would be folded" if report.is_dry_run else "folded"
    say(f"{format_count(report.records, 'record')} {verb}, in {format_count(len(report.folds), 'group')}.")
    places = {fold.namespace for fold in report.folds}
    columns = [
        (Column("reason", left=True), lambda fold: fold.reason),
        (Column("folded"), _format_ids),
        (Column("into"), lambda fold: fold.into),
        (Column("text", left=True, crop=True), lambda fold: " ".join(fold.text.split())),
        (Column("namespace", left=True), lambda fold: format_namespace(fold.namespace)),
    ]
    print_items("", report.folds, columns=columns if len(places) > 1 else columns[:-1], top=top)
    if report.left:
        say(f"{format_count(report.left, 'group')} left: run the command again.")
    _print_refused(report.refused)


def _print_refused(refused: Sequence[str]) -> None:
    for why in refused:
        say(f"left as it is: {why}")


def _format_ids(fold: FoldReport) -> str:
    more = len(fold.folded) - _SHOWN_IDS
    return " ".join(fold.folded[:_SHOWN_IDS]) + (f" and {more:,} more" if more > 0 else "")

"""Evidence recall of the memory's search on LoCoMo, beside plain BM25: ``python -m bench.locomo``.

The recall of a question is the share of its evidence documents among those that the budget holds (1,000, 2,000
and 4,000 tokens, by cl100k); figures are means over the questions that have evidence. Plain BM25 fills the budget
in the order of its scores, leaving out what no longer fits. Each document is a record with its words as they are;
when it was said, and by whom, which stand in front of it, are the record's time and entity.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias, cast

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.locomo_constants import CONSTANTS, LeftOut, Recalls, check_constants
from bench.plain_bm25 import PlainBm25
from lading.memory.checked_embedder import CheckedEmbedder
from lading.memory.embedders import open_embedder
from lading.memory.records import MemoryRecord, Namespace
from lading.memory.reembedding import embed_missing
from lading.memory.retrieval import MOST_FOUND, Means, Query, find
from lading.memory.scoring import SIGNALS, Signal
from lading.memory.sqlite_store import open_records
from lading.memory.store import RecordStore
from lading.tokens import counter

ROOT = Path(__file__).parents[1]
FILE = Path(os.environ.get("LADING_SHARED") or ROOT.parent / "shared") / "data" / "locomo_NC.jsonl.gz"
BUDGETS = (1_000, 2_000, 4_000)
GOALS = (0.10, 0.10, 0.08)
MULTI_HOP, MULTI_HOP_GOAL = 1, 0.08
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open domain", 4: "single-hop", 5: "adversarial"}
PLAIN = "plain BM25"
WHOLE = "Lading"
_HEAD = re.compile(r"\[(?P<when>[^\]]*)\] (?P<who>[^:]*):")
_WHEN = "%I:%M %p on %d %B, %Y"
_READER = Namespace()

Chosen: TypeAlias = Callable[[str, int], AbstractSet[int]]
"""Returns the indexes of the documents for a question within a budget."""


class Conversation(NamedTuple):
    """A conversation with its questions."""

    id: str
    texts: tuple[str, ...]
    tokens: tuple[int, ...]
    questions: tuple[tuple[str, frozenset[int], int], ...]
    """Each with the indexes of its evidence and its category."""


class Recall(NamedTuple):
    """A question's recall by budget."""

    conversation: str
    category: int
    by_budget: tuple[float, ...]


def remember(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return a read of a store that is made once: what differs between parts and budgets comes after it."""
    known: dict[tuple[object, ...], Any] = {}

    def recall(reader: Namespace, wanted: Collection[object], **limits: object) -> Any:
        key = (reader, tuple(wanted), *limits.values())
        if key not in known:
            known[key] = read(reader, wanted, **limits)
        return known[key]

    return recall


def read_conversations(file: Path) -> list[Conversation]:
    """Read the conversations. Raises OSError."""
    count = counter("cl100k").count
    found = []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            texts = tuple(document["text"] for document in row["documents"])
            places = {document["id"]: at for at, document in enumerate(row["documents"])}
            questions = tuple(
                (one["question"], frozenset(places[name] for name in one["evidence"]), one["category"])
                for one in row["questions"]
                if one["evidence"]
            )
            found.append(Conversation(row["id"], texts, tuple(map(count, texts)), questions))
    return found


def make_record(text: str) -> MemoryRecord:
    """Make the record of a document."""
    head = _HEAD.match(text)
    if head is None:
        return MemoryRecord(text=text)
    when = datetime.strptime(head["when"], _WHEN).replace(tzinfo=UTC)
    return MemoryRecord(text=text, entities=(head["who"],), created_s=when.timestamp())


def prepare_plain(conversation: Conversation) -> Chosen:
    """Index a conversation with plain BM25."""
    index = PlainBm25(conversation.texts)

    def choose(question: str, budget_tokens: int) -> AbstractSet[int]:
        chosen, left = set(), budget_tokens
        for at in index.rank(question):
            if conversation.tokens[at] <= left:
                chosen.add(at)
                left -= conversation.tokens[at]
        return chosen

    return choose


def prepare_memory(conversation: Conversation, embedder: CheckedEmbedder | None) -> Callable[..., AbstractSet[int]]:
    """Add a conversation to a memory."""
    records = [make_record(text) for text in conversation.texts]
    now_s = max(record.created_s for record in records) + 1
    store = open_records(None)
    added = store.add(records, at_s=now_s)
    places = {record.id: at for at, record in enumerate(added)}
    if embedder is not None:
        embed_missing(store, embedder, tenant=_READER.tenant)
    reads = {name: remember(getattr(store, name)) for name in ("get", "around", "search_words", "search_vector")}
    held = cast(RecordStore, SimpleNamespace(**reads))

    def choose(question: str, budget_tokens: int, signals: AbstractSet[Signal] = SIGNALS) -> AbstractSet[int]:
        means = Means(
            count=lambda record: conversation.tokens[places[record.id]], embedder=embedder, signals=signals
        )
        query = Query(
            text=question, reader=_READER, at_s=now_s, budget_tokens=budget_tokens, most_hits=2 * MOST_FOUND
        )
        return {places[hit.record.id] for hit in find(held, query, means=means).hits}

    return choose


def measure(
    conversation: Conversation, choose: Chosen, *, advance: Callable[[], None] = lambda: None
) -> Iterator[Recall]:
    """Measure the recall of each question."""
    for question, evidence, category in conversation.questions:
        by_budget = [len(choose(question, budget) & evidence) / len(evidence) for budget in BUDGETS]
        advance()
        yield Recall(conversation.id, category, tuple(by_budget))


def average(recalls: Sequence[Recall]) -> tuple[float, ...]:
    """Return the mean recall by budget."""
    return tuple(fmean(one.by_budget[at] for one in recalls) for at in range(len(BUDGETS)))


def run(
    conversations: Sequence[Conversation], embedder: CheckedEmbedder | None, *, with_parts: bool, progress: Progress
) -> dict[str, list[Recall]]:
    """Measure plain BM25, the memory, and the memory without each of its parts."""
    signals = SIGNALS if embedder else SIGNALS - {"vectors"}
    arms: dict[str, AbstractSet[Signal]] = {WHOLE: signals}
    if with_parts:
        arms |= {f"without {part}": signals - {part} for part in sorted(signals)}
    task = progress.add_task("questions", total=(1 + len(arms)) * sum(len(one.questions) for one in conversations))
    found: dict[str, list[Recall]] = {arm: [] for arm in (PLAIN, *arms)}
    for conversation in conversations:
        plain, ours = prepare_plain(conversation), prepare_memory(conversation, embedder)
        found[PLAIN] += measure(conversation, plain, advance=lambda: progress.advance(task))
        for arm, used in arms.items():
            found[arm] += measure(conversation, partial(ours, signals=used), advance=lambda: progress.advance(task))
    return found


def run_constants(
    conversations: Sequence[Conversation], embedder: CheckedEmbedder | None, *, progress: Progress
) -> list[LeftOut]:
    """Choose each constant of the search on all conversations but one, and measure it on that."""
    task = progress.add_task("values of constants", total=sum(len(one.values) for one in CONSTANTS))
    signals = SIGNALS if embedder else SIGNALS - {"vectors"}
    memories = [(one, partial(prepare_memory(one, embedder), signals=signals)) for one in conversations]

    def measure_all() -> Recalls:
        return {one.id: average([*measure(one, ours)]) for one, ours in memories}

    return check_constants(measure_all, advance=lambda: progress.advance(task))


def summarize(found: Mapping[str, Sequence[Recall]]) -> dict[str, Any]:
    """Return the figures: recall by arm of all, of each conversation and of each category; gains; goals."""
    names = list(dict.fromkeys(one.conversation for one in found[PLAIN]))
    figures: dict[str, Any] = {"budgets": BUDGETS, "recall": {}, "conversations": {}, "categories": {}}
    for arm, recalls in found.items():
        figures["recall"][arm] = average(recalls)
        figures["conversations"][arm] = {
            name: average([one for one in recalls if one.conversation == name]) for name in names
        }
        figures["categories"][arm] = {
            title: average(chosen)
            for number, title in CATEGORIES.items()
            if (chosen := [one for one in recalls if one.category == number])
        }
    plain, whole = figures["conversations"][PLAIN], figures["conversations"][WHOLE]
    figures["least_gain"] = [min(whole[name][at] - plain[name][at] for name in names) for at in range(len(BUDGETS))]
    hop = CATEGORIES[MULTI_HOP]
    figures["multi_hop_gain"] = figures["categories"][WHOLE][hop][1] - figures["categories"][PLAIN][hop][1]
    figures["met"] = figures["multi_hop_gain"] >= MULTI_HOP_GOAL and all(
        gain >= goal for gain, goal in zip(figures["least_gain"], GOALS, strict=True)
    )
    return figures


def show(figures: Mapping[str, Any]) -> Table:
    """Return the figures as a table."""
    table = Table(title="Evidence recall at 1k / 2k / 4k tokens", title_justify="left", title_style="bold")
    names = list(figures["conversations"][PLAIN])
    groups = [*names, *figures["categories"][PLAIN]]
    for column in ("", "all", *groups):
        table.add_column(column, justify="right" if column else "left")
    for arm, recall in figures["recall"].items():
        of_groups = figures["conversations"][arm] | figures["categories"][arm]
        table.add_row(arm, _write(recall), *(_write(of_groups[group]) for group in groups))
    return table


def show_constants(found: Sequence[LeftOut]) -> Table:
    """Return the check of the constants as a table."""
    title = "Constants chosen on the other conversations, and the recall that they give on the one left out"
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("constant", "left out", "chosen", "recall", "as shipped"):
        table.add_column(column)
    for one in found:
        given = (f"{one.chosen:g}", _write(one.by_budget), _write(one.shipped))
        table.add_row(one.constant, one.conversation, *given)
    return table


def _write(recall: Sequence[float]) -> str:
    return " ".join(f"{value:.3f}"[1:] if value < 1 else "1.00" for value in recall)


def main(given: Sequence[str] | None = None) -> int:
    """Print the figures; returns 1 where a goal is not met, 2 without data."""
    parser = argparse.ArgumentParser(prog="python -m bench.locomo", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="", metavar="NAME", help="an embedder: hashed, model2vec:PATH, ...")
    parser.add_argument("--parts", action="store_true", help="also measure without each part")
    parser.add_argument("--constants", action="store_true", help="also leave each conversation out of their choice")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(given)
    errors = Console(stderr=True)
    if not FILE.is_file():
        errors.print(f"{FILE} is not there: LADING_SHARED names the folder of recorded data.")
        return 2
    embedder = open_embedder(options.model) if options.model else None
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        conversations = read_conversations(FILE)
        found = run(conversations, embedder, with_parts=options.parts, progress=progress)
        constants = run_constants(conversations, embedder, progress=progress) if options.constants else []
    figures = summarize(found) | {"constants": [one._asdict() for one in constants]}
    if options.json:
        print(json.dumps(figures, indent=2))
        return 0 if figures["met"] else 1
    Console(width=None if sys.stdout.isatty() else 200).print(show(figures))
    if constants:
        Console(width=None if sys.stdout.isatty() else 200).print(show_constants(constants))
    gains = " / ".join(f"{gain:+.3f}" for gain in figures["least_gain"])
    goals = " / ".join(f"{goal:.2f}" for goal in GOALS)
    print(f"Least gain over plain BM25 of the conversations: {gains} (goals {goals})")
    print(f"Gain on multi-hop questions at 2k: {figures['multi_hop_gain']:+.3f} (goal {MULTI_HOP_GOAL:.2f})")
    return 0 if figures["met"] else 1


if __name__ == "__main__":
    sys.exit(main())

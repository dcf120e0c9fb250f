"""Shrink file listings, as printed by find, ls and tree: each folder once, with its names below it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby

from lading.shrink import Count, Sample, Shrinker, Shrunk, Target
from lading.shrink.folding import count_shared, fold, unfold, verify
from lading.shrink.line_selection import Rank, RankedLine, RankedLines, rank_terms, select_lines, split_lines
from lading.shrink.terms import pluralize

GROUPED = "listing.grouped"
FOLDED = "listing.folded"
_FORM = "listing.folders"
TREES: dict[str, tuple[str, str, str]] = {
    "listing.tree": ("│   ", "├── ", "└── "),
    "listing.tree-wide": ("│\xa0\xa0 ", "├── ", "└── "),
    "listing.tree-ascii": ("|   ", "|-- ", "`-- "),
}
"""The forms of drawn trees: the marks for a continued folder, before a name, and before the last name."""

_LISTING_LINE = re.compile(
    r"^(?:[-dlcbps][rwxsStT-]{9}[.+@]?\s|total \d+$|[\s│|]*[├└]── "
    r"|[\w@.~+-]*/[\w@.~+ ()\[\]/-]*$|[\w@.~+-]+\.\w{1,8}$)"
)
_NO_BAR = "    "
_START_CHARS = 8_000
_HEADING = ":"
"""The end of a folder's line."""
_ROOT = "~/ is "
_ROOT_MARK = "~/"
_LONG = re.compile(r"[-dlcbps][rwxsStT-]{9}\S*\s")
_TOTAL = re.compile(r"total [0-9]+$")
_MOST_KINDS = 5
_MOST_CHARS = 300
_MOST_SUFFIX_CHARS = 10


def _is_listing(sample: Sample) -> bool:
    return len(sample.lines) >= 2 and sample.share(_LISTING_LINE) >= 0.6


def _reshape(text: str) -> Iterator[Shrunk]:
    lines = text.split("\n")
    forms = {GROUPED: _share_root(_group(lines), lines), FOLDED: fold(text)}
    if tree := _detect_tree_form(text):
        forms[tree] = "\n".join("  " * depth + name for depth, name in _read_depths(lines, tree))
    return verify(text, forms, decoders=SHRINKER.decoders)


def _reduce(text: str, target: Target, count: Count) -> Shrunk | None:
    texts = split_lines(text)
    tree = _detect_tree_form(text)
    lines = _make_tree_lines(texts, tree, target) if tree else _make_folder_lines(texts, target)
    return select_lines(text, lines, target=target, count=count)


def _group(lines: Iterable[str]) -> list[str]:
    """Write adjacent names of one folder below the folder's name."""
    shown: list[str] = []
    current = ""
    for folder, run in groupby(map(_split_path, lines), key=lambda pair: pair[0]):
        names = [name for _, name in run]
        if folder != current and (len(names) > 1 or not folder):
            shown.append(folder + _HEADING)
            current = folder
        shown += names if folder == current else [folder + name for name in names]
    return shown


def _ungroup(text: str) -> str:
    first, _, rest = text.partition("\n")
    root = first.removeprefix(_ROOT) if first.startswith(_ROOT) else ""
    lines: list[str] = []
    current = ""
    for line in (rest if root else text).split("\n"):
        if root and line.startswith(_ROOT_MARK):
            line = root + line.removeprefix(_ROOT_MARK)
        folder, name = _split_path(line)
        if name == _HEADING:
            current = folder
        else:
            lines.append(line if folder else current + line)
    return "\n".join(lines)


def _share_root(shown: Sequence[str], lines: Iterable[str]) -> str:
    """Write the common parent folder once, if that is shorter."""
    folders = {folder for folder, _ in map(_split_path, lines) if folder}
    first, last = min(folders, default=""), max(folders, default="")
    root = first[: first.rfind("/", 0, count_shared(first, last)) + 1]
    with_root = [_ROOT_MARK + line[len(root) :] if line.startswith(root) else line for line in shown]
    return min("\n".join(shown), "\n".join((_ROOT + root, *with_root)), key=len) if root else "\n".join(shown)


def _split_path(line: str) -> tuple[str, str]:
    """Split into the folder, its last slash included, and the name, which may end with one."""
    end = line.rfind("/", 0, len(line) - 1) + 1
    return line[:end], line[end:]


def _detect_tree_form(text: str) -> str:
    """Find the form of the drawn tree; empty for none."""
    start = text[:_START_CHARS]
    forms = [form for form, (_, branch, _) in TREES.items() if branch in start]
    return next((form for form in forms if TREES[form][0] in start), forms[0] if forms else "")


def _read_depths(lines: Iterable[str], form: str) -> Iterator[tuple[int, str]]:
    """Yield the depth and the name of each line of a drawn tree; depth 0 for other lines."""
    bar, *branches = map(re.escape, TREES[form])
    drawn = re.compile(f"(?:{bar}|{_NO_BAR})*(?:{'|'.join(branches)})")
    for line in lines:
        found = drawn.match(line)
        yield (found.end() // len(_NO_BAR), line[found.end() :]) if found else (0, line)


def _draw(text: str, bar: str, branch: str, last: str) -> str:
    """Draw the tree of indented names."""
    shown: list[str] = []
    goes_on: list[bool] = []
    # Bottom up: later lines determine whether a folder continues.
    for line in reversed(text.split("\n")):
        name = line.lstrip(" ")
        depth = (len(line) - len(name)) // 2
        goes_on[depth + 1 :] = []
        goes_on += [False] * (depth + 1 - len(goes_on))
        bars = "".join(bar if later else _NO_BAR for later in goes_on[1:depth])
        shown.append(bars + (branch if goes_on[depth] else last) + name if depth else line)
        goes_on[depth] = True
    return "\n".join(reversed(shown))


def _make_tree_lines(texts: Sequence[str], form: str, target: Target) -> RankedLines:
    """Indent the tree, and add a summary of its names to each folder; names require their folder."""
    depths = list(_read_depths(texts, form))
    names: dict[int, list[str]] = {}
    under, positions = [], []
    path: list[int] = []
    for place, (depth, name) in enumerate(depths):
        del path[depth:]
        under.append(path[-1] if path else -1)
        siblings = names.setdefault(under[-1], [])
        positions.append(len(siblings))
        siblings.append(name)
        path.append(place)
    ranks = [
        _rank_folder(depth) if place in names else _rank_name(positions[place], len(names[under[place]]))
        for place, (depth, _) in enumerate(depths)
    ]
    shown = [
        f"{'  ' * depth}{name}{f' ({_summarize_names(names[place])})' if place in names else ''}"
        for place, (depth, name) in enumerate(depths)
    ]
    ranks = rank_terms([name for _, name in depths], ranks, terms=target.terms)
    return RankedLines(
        shown, ranks, _FORM, under=under, unnoted_from=0, most_chars=_MOST_CHARS, title="Tree, indented"
    )


def _make_folder_lines(texts: Sequence[str], target: Target) -> RankedLines:
    """List the folders, each with its names below it."""
    found = rank_terms(texts, [Rank.NEVER] * len(texts), terms=target.terms)
    folders: dict[str, list[tuple[str, int]]] = {}
    current = ""
    for line, below, rank in zip(texts, [*texts[1:], "/"], found, strict=True):
        folder, name = ("", line) if _LONG.match(line) else _split_path(line)
        # ls prints a folder's name like this, but never above lines that are paths.
        if line.endswith(_HEADING) and (_LONG.match(below) or not _split_path(below)[0]):
            current = line.removesuffix(_HEADING).removesuffix("/") + "/"
            folders.setdefault(current, [])
        elif line.strip() and not _TOTAL.match(line):
            folders.setdefault(folder or current, []).append((name, rank))
    rows: list[RankedLine] = []
    for folder, names in folders.items():
        head = len(rows)
        kinds = _summarize_names([name for name, _ in names])
        rows.append(RankedLine(f"{folder or './'}: {kinds}", _rank_folder(folder.count("/")), 0))
        rows += (
            RankedLine(name, min(rank, _rank_name(position, len(names))), 1, head)
            for position, (name, rank) in enumerate(names)
        )
    lines = RankedLines(
        (),
        (),
        _FORM,
        entries="folders",
        unnoted_from=0,
        most_chars=_MOST_CHARS,
        title=f"{sum(map(len, folders.values())):,} names in {len(folders):,} folders",
    )
    return lines.with_rows(rows)


def _rank_folder(depth: int) -> int:
    return Rank.RARE + min(depth, 50)


def _rank_name(position: int, names: int) -> int:
    """Rank names near the ends of their folder first, so that some of every folder are kept."""
    return Rank.REST + min(position, names - 1 - position).bit_length()


def _summarize_names(names: Sequence[str]) -> str:
    """Count names and their suffixes."""
    kinds = Counter(map(_find_suffix, names))
    shown = [f"{kind} {number:,}" for kind, number in kinds.most_common(_MOST_KINDS) if kind]
    return ", ".join([pluralize(len(names), "name"), *shown])


def _find_suffix(name: str) -> str:
    """Find the suffix of a name, or of a line that ends with one; empty for none."""
    _, dot, suffix = name[1:].rpartition(".")
    return dot + suffix if dot and suffix.isalnum() and len(suffix) <= _MOST_SUFFIX_CHARS else ""


_DECODERS = {form: partial(_draw, bar=bar, branch=branch, last=last) for form, (bar, branch, last) in TREES.items()}
SHRINKER = Shrinker("listing", _is_listing, _reduce, _reshape, {GROUPED: _ungroup, FOLDED: unfold, **_DECODERS})

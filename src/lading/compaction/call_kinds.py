"""Classify a call by the shape of its arguments and words of its tool's name: edit, command, read or data."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lading.compaction.patches import BEGIN, Patch, read_patch

MOST_VERB_CHARS = 20


def _spell(names: str) -> frozenset[str]:
    """Return names of arguments in snake_case, and in camelCase without capitals."""
    return frozenset([*names.split(), *names.replace("_", "").split()])


PATHS = _spell("path file_path filename file file_name notebook_path target_file relative_path target_notebook")
_MOVED = _spell("source destination old_path new_path source_path destination_path src dst")
"""Names of the paths of a call that moves a file."""
_REPLACED = _spell("old_text old_string old_str")
"""Names that alone show that the text is replaced."""
OLD = _REPLACED | {"search", "old", "find"}
NEW = _spell("new_text new_string new_str replace replacement replacement_text new")
WRITTEN = _spell("content contents file_text text new_content insert_text new_source code_edit")
_PATCH = frozenset(["patch", "diff", "patch_text", "patchtext"])
_SENDS = re.compile(r"(?:to|subject)$|recipient|channel|chat|thread")
"""Start of a key of a call that sends something: a path beside it is an attachment."""
_SEARCHES = frozenset(["url", "query", "pattern"])
_LOOKS_UP = frozenset(["read", "get", "list", "view", "show", "search", "find", "fetch", "describe", "retrieve"])
"""A tool with one of these words in its name gives data, of builds and tests too: it runs none."""
READS = _LOOKS_UP | {"open", "query", "ask", "grep", "diff", "compare", "count", "load", "summarize", "parse"}
READS |= {"extract", "validate", "check"}
"""A tool with one of these words in its name, and none of the following, changes no file."""
_WRITES = frozenset(["write", "create", "edit", "replace", "save"])
_ADDS = frozenset(["insert", "append", "add", "update", "format", "apply", "set", "merge"])
"""A tool with one of these words changes a file if it is also given something else."""
_FOLDERS = frozenset(["directory", "folder", "dir"])
_DRY = frozenset(["dryrun", "preview", "previewonly", "checkonly", "simulate"])
"""A call with one of these set to true changes nothing."""
_DELETES = frozenset(["delete", "remove", "undo", "rename", "move"])
_GIVES = frozenset(
    ["upload", "send", "post", "publish", "submit", "share", "attach", "comment", "annotate", "review"]
)
_GIVES |= {"transcribe", "translate", "ocr", "convert", "query", "ask"}
"""A tool with one of these words in its name sends or judges a file, or turns it into something else."""
_PATCHES = frozenset(["patch", "apply", "edit", "replace"])
CHECKS = frozenset(["test", "tests", "pytest", "build", "compile", "lint", "typecheck"])
_PLACES = _spell(
    "workdir cwd directory dir workspace repo repository project owner branch host hostname server machine"
)
_PLACES |= _spell("device container pod namespace cluster region database db env environment account")
"""Words of a key that says where a command runs or a file is: elsewhere, the same call is another one."""
_SETTING = re.compile(r"-?\d[\d.]*|true|false")
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def list_words(name: str) -> list[str]:
    """List the words of a tool's name, in lower case."""
    return [word.lower() for word in _NAME_WORD.findall(name)]


def split_name(name: str) -> frozenset[str]:
    """Return the words of a tool's name."""
    return frozenset(list_words(name))


def find_kind(
    pairs: Sequence[tuple[str, str]], words: frozenset[str], *, paths: Sequence[str], command: str, is_patch: bool
) -> str:
    """Return the kind of a call (``Action.kind``), by its arguments and the words of its tool's name."""
    old, new = (join_values(pairs, names) for names in (OLD, NEW))
    sends = not _GIVES.isdisjoint(words) or any(_SENDS.match(key) for key, _ in pairs)
    searches = any(key in _SEARCHES for key, _ in pairs)
    is_dry = any(key.replace("_", "").replace("-", "") in _DRY and value == "true" for key, value in pairs)
    puts = new or join_values(pairs, WRITTEN) or join_values(pairs, _REPLACED)
    # The verb of a call says more than the name of a tool with several.
    verbs = (split_name(command) if len(command) < MOST_VERB_CHARS else None) or words
    deletes = not _DELETES.isdisjoint(words | verbs)
    gives = any(key not in PATHS and not _SETTING.fullmatch(value) for key, value in pairs)
    is_writer = not _WRITES.isdisjoint(verbs) or (gives and not _ADDS.isdisjoint(verbs))
    is_writer = (is_writer and _FOLDERS.isdisjoint(words)) or deletes
    writes = paths and (is_writer or (puts and READS.isdisjoint(verbs))) and not (sends or searches)
    checks = not CHECKS.isdisjoint(words) and _LOOKS_UP.isdisjoint(words)
    if not (checks or is_dry) and (is_patch or (old and new) or writes):
        return "edit"
    if checks or (command and not paths):
        return "command"
    return "read" if paths and not (is_dry or sends) else ""


def find_paths(pairs: Sequence[tuple[str, str]], words: frozenset[str]) -> tuple[str, ...]:
    """Return the paths among the arguments."""
    names = PATHS if _DELETES.isdisjoint(words) else PATHS | _MOVED
    return tuple(dict.fromkeys(value for key, value in pairs if key in names))


def list_places(given: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """List the arguments that say where a call acts."""
    return [
        (key, value)
        for key, value in given
        if key.rpartition(".")[2].casefold() not in PATHS
        and not _PLACES.isdisjoint({key.casefold(), *split_name(key)})
    ]


def find_patch(pairs: Sequence[tuple[str, str]], words: frozenset[str]) -> Patch | None:
    """Return the patch among the arguments; None if there is none."""
    for key, value in pairs:
        is_begun = value.lstrip().startswith(BEGIN) or ("apply_patch" in value[:200] and BEGIN in value)
        if is_begun or (key in _PATCH and not _PATCHES.isdisjoint(words)):
            return read_patch(value)
    return None


def join_values(pairs: Sequence[tuple[str, str]], keys: frozenset[str]) -> str:
    """Join the values of these keys by newlines."""
    return "\n".join(value for key, value in pairs if key in keys)

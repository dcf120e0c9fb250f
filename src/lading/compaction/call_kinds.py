"""Classify a call by the shape of its arguments and words of its tool's name: edit, command, read or data."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lading.compaction.patches import BEGIN, Patch, read_patch

MOST_VERB_CHARS = 20


def _spell(names: str) -> frozenset[str]:
    """Return names of arguments in snake_case, and in camelCase without capitals."""
    return frozenset([*names.split(), *names.replace("_", "").split()])


PATHS = _spell("path file_path filename file file_name notebook_path target_file")
_REPLACED = _spell("old_text old_string old_str")
"""Names that alone show that the text is replaced."""
OLD = _REPLACED | {"search", "old", "find"}
NEW = _spell("new_text new_string new_str replace replacement replacement_text new")
WRITTEN = _spell("content contents file_text text new_content insert_text new_source code_edit")
_PATCH = frozenset(["patch", "diff", "patch_text", "patchtext"])
_SENDS = re.compile(r"(?:to|subject)$|recipient|channel|chat|thread")
"""Start of a key of a call that sends something: a path beside it is an attachment."""
_SEARCHES = frozenset(["url", "query", "pattern"])
_DRY = frozenset(["dryrun", "preview", "previewonly", "checkonly", "simulate"])
"""A call with one of these set to true changes nothing."""
_DELETES = frozenset(["delete", "remove", "undo", "rename"])
_GIVES = frozenset(
    ["upload", "send", "post", "publish", "submit", "share", "attach", "transcribe", "translate", "ocr", "convert"]
)
"""A tool with one of these words in its name turns a file into something else, or sends it: the call is data."""
_PATCHES = frozenset(["patch", "apply", "edit", "replace"])
CHECKS = frozenset(["test", "tests", "pytest", "build", "compile", "lint", "typecheck"])
_PLACES = _spell(
    "workdir cwd directory dir workspace repo repository project owner branch host hostname server machine"
)
_PLACES |= _spell("device container pod namespace cluster region database db env environment account")
"""Words of a key that says where a command runs or a file is: elsewhere, the same call is another one."""
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def split_name(name: str) -> frozenset[str]:
    """Return the words of a tool's name."""
    return frozenset(word.lower() for word in _NAME_WORD.findall(name))


def find_kind(
    pairs: Sequence[tuple[str, str]], words: frozenset[str], *, paths: Sequence[str], command: str, is_patch: bool
) -> str:
    """Return the kind of a call (``Action.kind``), by its arguments and the words of its tool's name."""
    old, new = (join_values(pairs, names) for names in (OLD, NEW))
    sends = not _GIVES.isdisjoint(words) or any(_SENDS.match(key) for key, _ in pairs)
    searches = any(key in _SEARCHES for key, _ in pairs)
    is_dry = any(key.replace("_", "").replace("-", "") in _DRY and value == "true" for key, value in pairs)
    puts = new or join_values(pairs, WRITTEN) or join_values(pairs, _REPLACED)
    verbs = _NAME_WORD.findall(command) if len(command) < MOST_VERB_CHARS else ()
    deletes = not _DELETES.isdisjoint(words.union(verbs))
    writes = paths and (puts or deletes) and not (sends or searches)
    checks = not CHECKS.isdisjoint(words)
    if not (checks or is_dry) and (is_patch or (old and new) or writes):
        return "edit"
    if checks or (command and not paths):
        return "command"
    return "read" if paths and not (is_dry or sends) else ""


def list_places(given: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """List the arguments that say where a call acts."""
    return [
        (key, value)
        for key, value in given
        if key.casefold() not in PATHS and not _PLACES.isdisjoint({key.casefold(), *split_name(key)})
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

"""Skills, each a folder with ``SKILL.md``, as tools: their descriptions are in the request, the rest comes on call.

The form is that of Agent Skills: YAML front matter with ``name`` and ``description``, then the instructions. Other
files of a skill are read by the same tool, with ``file``. Only what lies in the skill's folder is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lading.catalogues.catalogue import make_name, read_arguments, refuse, shorten
from lading.errors import InputError
from lading.folder import Folder, FoundFile, open_folder, show_name
from lading.messages import Text, Tool, ToolCall, ToolResult

SKILL_FILE = "SKILL.md"
MOST_SKILLS = 500
MOST_BYTES = 1_000_000
"""Of a file, as much is read."""
MOST_LISTED = 100
"""Files of a skill that its answer names."""
_FRONT_BYTES = 16_384
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_CALL = "A skill: instructions for a kind of task. Call this before you begin such a task. {}"
_SCHEMA = {
    "type": "object",
    "properties": {
        "file": {
            "type": "string",
            "description": "A file of the skill to read, as its instructions name it; without it, the instructions",
        }
    },
}


class Skill(Struct, frozen=True):
    """One skill, as a tool, and where it is."""

    name: str
    tool: Tool
    folder: Folder


class SkillFolder:
    """The skills of a folder, read anew when a ``SKILL.md`` changes. A source of a ``Catalogue``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises InputError where there is no such folder."""
        self._folder = open_folder(path)
        if not os.path.isdir(self._folder.root):
            raise InputError(f"There is no folder of skills at {os.fspath(path)!r}.")
        self._skills: dict[str, Skill] = {}
        self._seen: dict[str, FoundFile] = {}
        self.left_out: dict[str, str] = {}
        """By folder: why it is no skill."""

    def list_tools(self) -> Mapping[str, Tool]:
        """Return a tool for each skill, by name, in the order of the folders. Raises InputError where PyYAML is not
        installed."""
        self._read()
        return {name: skill.tool for name, skill in self._skills.items()}

    def answer(self, call: ToolCall) -> ToolResult:
        """Return the instructions of a skill, or one of its files."""
        arguments = read_arguments(call)
        wanted = (arguments or {}).get("file", "")
        if arguments is None or not isinstance(wanted, str):
            return refuse(call, 'Give {"file": "..."}, or {} for the instructions of the skill.')
        folder = self._skills[call.name].folder
        wanted = wanted.removeprefix("./") or SKILL_FILE
        found = folder.read_start(wanted, most_bytes=MOST_BYTES)
        if found is None:
            return refuse(call, f"The skill has no file {show_name(wanted)}. {_list_files(folder)}".strip())
        facts, text = found
        if not text and facts.size_bytes:
            return refuse(call, f"{show_name(wanted)} is no text ({facts.size_bytes:,} bytes).")
        cut = facts.size_bytes > MOST_BYTES
        rest = f"\n[The first {MOST_BYTES:,} of {facts.size_bytes:,} bytes.]" if cut else ""
        if wanted == SKILL_FILE:
            text = _FRONT.sub("", text, count=1)
            rest += f"\n\n[{listed}]" if (listed := _list_files(folder)) else ""
        return ToolResult(call.id, (Text(text.rstrip() + rest),), name=call.name)

    def _read(self) -> None:
        files = {name: file for name in self._folder.list_names() if (file := self._find_file(name))}
        if files == self._seen:
            return
        self._seen, self._skills, self.left_out = files, {}, {}
        for name in [*files][:MOST_SKILLS]:
            found = _read_skill(self._folder, name)
            if isinstance(found, str):
                self.left_out[name] = found
            elif found.tool.name in self._skills:
                self.left_out[name] = f"another skill is named {found.name}"
            else:
                self._skills[found.tool.name] = found
        self.left_out |= dict.fromkeys([*files][MOST_SKILLS:], f"there are more than {MOST_SKILLS} skills")

    def _find_file(self, name: str) -> FoundFile | None:
        if (folder := self._folder.enter(name)) is None:
            return None
        path = os.path.join(folder.root, SKILL_FILE)
        try:
            facts = os.stat(path, follow_symlinks=False)
        except OSError:
            return None
        return FoundFile(f"{name}/{facts.st_ino}", facts.st_size, facts.st_mtime)


def _read_skill(root: Folder, name: str) -> Skill | str:
    """Return the skill in a folder; why there is none otherwise."""
    folder = root.enter(name)
    found = folder.read_start(SKILL_FILE, most_bytes=_FRONT_BYTES) if folder else None
    if folder is None or found is None:
        return f"{SKILL_FILE} cannot be read"
    front = _FRONT.match(found[1])
    if front is None:
        return f"{SKILL_FILE} does not begin with front matter between two lines of --- (in {_FRONT_BYTES:,} bytes)"
    fields = _load_yaml(front[1])
    said = (
        {key: value for key, value in fields.items() if isinstance(value, str)} if isinstance(fields, dict) else {}
    )
    missing = [key for key in ("name", "description") if not said.get(key, "").strip()]
    if missing:
        return f"its front matter has no {' and no '.join(missing)}"
    name = said["name"].strip()
    tool = Tool(make_name("skill", name), _CALL.format(shorten(said["description"])), _SCHEMA)
    return Skill(show_name(name), tool, folder)


def _load_yaml(text: str) -> Any:
    try:
        import yaml  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise InputError("Reading skills needs PyYAML: pip install 'lading[skills]'.") from error
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _list_files(folder: Folder) -> str:
    """Name the other files of a skill; empty where there are none."""
    names = sorted(file.shown for file in folder.list_files() if file.path != SKILL_FILE)
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"Files of this skill, which `file` reads: {', '.join(names[:MOST_LISTED])}{more}" if names else ""

"""Parse a shell command: what it runs, which file it writes, whether it only shows existing data.

Quoted text and heredocs are not syntax: a pipe, a redirect or a program name in them is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

MOST_COMMAND_CHARS = 2_000
"""Characters of a command that are read; commands that are equal so far count as the same."""
LOOKS = re.compile(
    r"cat|[ef]?grep|rg|ag|sed|head|tail|awk|find|fd|ls|tree|less|sort|uniq|wc|cut|tr|nl|column|diff|echo|printf|pwd"
    r"|which|true|file|stat|du|jq|zcat|zgrep|tac|ps|env|date|journalctl|dmesg"
    r"|git-(?:diff|log|show|status|blame|grep|ls-files)|(?:kubectl|docker)-(?:logs|get|describe|ps|inspect)"
)
"""Programs that show existing data: an error in their output is part of that data."""
IDLE = re.compile(r"read|seq|sleep|wait|break|continue|set|clear|exit|basename|dirname|realpath|readlink")
"""Programs that neither show data of files nor change anything."""
WRITES = re.compile(r"tee|cp|mv|rm|ln|mkdir|touch|chmod|git-add")
"""Programs that change files and print nothing of them beside errors."""
CHANGES = re.compile(
    r"git-(?:commit|push|pull|merge|rebase|reset|revert|checkout|switch|restore|tag|stash|cherry-pick|rm|mv|apply|am"
    r"|clone|branch|init)|(?:kubectl|docker)-(?!logs|get|describe|ps|inspect|images|version)[a-z-]+"
    r"|rm|rmdir|mv|cp|mkdir|ln|chmod|chown|touch|kill|pkill|crontab|systemctl|service|scp|rsync|ssh|twine"
    r"|pip3?|uv|conda|poetry|npm|pnpm|yarn|gem|bundle|cargo|apt|apt-get|dnf|yum|apk|brew"
    r"|alembic|flyway|psql|mysql|mariadb|mongosh|redis-cli|sqlite3"
    r"|terraform|tofu|helm|ansible|ansible-playbook|pulumi|aws|gcloud|az|gh|glab|heroku|flyctl|vercel|netlify"
)
"""Programs that change what no edit of a file shows: what they did cannot be read again."""
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)([A-Za-z_]\w*)\1")
QUOTED = re.compile(r"'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|\\.", re.DOTALL)
_FILTER = re.compile(r"2>&1|\||(?:(?<=\s)[0-9&])?(?<![-=])>")
_KEYWORD = re.compile(
    r"(?<![^\s;&|(])(?:for\s+\w+\s+in\b[^;\n]*|(?:do|then|else|elif|if|while|until|!|\{)(?=\s)|test\s+-[^;&|\n]*|(?:done|fi)\b|\}(?!\S))"
)
_HIDES = re.compile(r"\|\s*(?:[ef]?grep|rg|head|wc)\b|(?<![-=2])>(?!&)(?!.*\b(?:tail|cat)\b)")
_HEAD = re.compile(r"\|\s*head\b(?:\s+(?:-n\s*|-|--lines[=\s])(\d{1,6})\b)?")
_SEVERAL = re.compile(r"[;|\n]\s*\S|(?<![&>])&(?![&>\d])")
_GOES_ON = re.compile(r"(?:[;\n]|\|\|)\s*\S|(?<![&>])&(?![&>\d])")
_END = re.compile(r"&&|[;\n]|(?<![&>])&(?![&>\d])")
"""The end of a statement."""
_PROGRAM = re.compile(
    r"(?:^|[;|\n(]|&&)\s*(?!cd\b)(?:\w+=\S*\s+)*(?:(?:sudo|xargs|time|env)\s+(?:-\S+\s+)*)?"
    r"(?:[^\s;|&]*/)?(?:(?P<host>git|kubectl|docker)(?:\s+-[Cn]\s+\S+|\s+-\S+)*\s+(?P<verb>[a-z-]+)|(?P<name>[\w.-]+))"
)
_TARGET = re.compile(r"\bcat\b[^;&|\n>]*>>?\s*([^\s;&|<>]+)|\btee\s+(?:-a\s+)?([^\s;&|<>]+)")
_REDIRECT = re.compile(r"\b(?:echo|printf|cat)\b[^;&|\n<>]*(?<![\d&])>>?\s*([^\s;&|<>]+)(?![^\n]*<<)")
_IN_PLACE = re.compile(
    r"\b(?:sed\b(?=[^;&|\n]*\s-(?:\w*i|-in-place))|perl\b(?=[^;&|\n]*\s-[0lnpw]*i))[^;&|\n>]*\s([^\s;&|>]+)"
)
_LATER = re.compile(r"(?:^|;)[ \t]*(?:sudo )?cat\s*>>?\s*([^\s;&|<>'\"$]+)\s*<<", re.MULTILINE)
_PREPARES = re.compile(r"(?:\s*(?:cd|pushd|mkdir)\b[^;&|\n]*(?:&&|[;\n]))*+\s*(?:sudo\s+)?")
_ACTS = re.compile(r"\bfind\b[^;|]*\s-(?:delete|exec)")


class Command(Struct, frozen=True):
    """The parsed parts of a shell command."""

    text: str
    """The command without the text of a heredoc that is written to a file."""
    runs: str
    """The command without trailing filters and redirects."""
    paths: tuple[str, ...] = ()
    """The files that it writes."""
    written: str = ""
    """The text of a heredoc that is written to that file."""
    writes_first: bool = False
    """Whether it writes the file before all else, so that a later failure does not prevent it."""
    statements: tuple[str, ...] = ()
    """Its statements without filters and redirects."""
    shows: bool = False
    """Whether it prints existing data and errors of its own only."""
    only_looks: bool = False
    """Whether it also changes nothing."""
    changes: bool = False
    """Whether it changes something beside files that edits show: a repository, packages, a database, a service."""
    is_filtered: bool = False
    hides_end: bool = False
    """Whether the end of its output is filtered out or redirected."""
    hides_code: bool = False
    """Whether it is several commands, of which one may fail though the exit code is zero."""

    @property
    def goes_on(self) -> bool:
        """Whether a command of it runs though one before it failed, so that its end does not speak for all."""
        return _GOES_ON.search(self._plain) is not None

    @property
    def head_lines(self) -> int:
        """The most lines that ``head`` leaves of its output; 0: it is not used."""
        return min((int(found[1] or 10) for found in _HEAD.finditer(self._plain)), default=0)

    @property
    def _plain(self) -> str:
        return QUOTED.sub("_", self.text[:MOST_COMMAND_CHARS])


def parse_command(command: str) -> Command:
    """Parse a shell command."""
    head, body, rest = _split(command)
    text = f"{head}; {rest}" if rest else head
    plain = QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text[:MOST_COMMAND_CHARS])
    written = _TARGET.search(plain, 0, len(head)) if body else _IN_PLACE.search(plain) or _REDIRECT.search(plain)
    path = text[slice(*written.span(written.lastindex or 0))] if written else ""
    found = [one["name"] or f"{one['host']}-{one['verb']}" for one in _PROGRAM.finditer(_KEYWORD.sub(" ", plain))]
    programs = [program for program in found if not IDLE.fullmatch(program)]
    others = {program for program in programs if not LOOKS.fullmatch(program)}
    statements = tuple(_split_statements(text, plain))
    if written and path and path[0] not in "'\"$" and not path.startswith("/dev/"):
        shows = len(programs) > 1 and all(map(WRITES.fullmatch, others - {"perl"}))
        return Command(
            text,
            runs=text[:MOST_COMMAND_CHARS],
            paths=tuple(_list_written(text, plain, written)),
            written=body,
            writes_first=_PREPARES.fullmatch(plain, 0, written.start()) is not None,
            statements=statements,
            shows=shows,
        )
    cut = _FILTER.search(plain)
    shows = bool(programs) and not (written or _ACTS.search(plain)) and all(map(WRITES.fullmatch, others))
    return Command(
        command,
        runs=("; ".join(statements) + body)[:MOST_COMMAND_CHARS],
        # A script is an argument of its program.
        statements=(*statements, f"<< {body[:MOST_COMMAND_CHARS]!r}") if body else statements,
        shows=shows,
        only_looks=shows and not others,
        changes=any(map(CHANGES.fullmatch, programs)),
        is_filtered=cut is not None,
        hides_end=(cut is not None and _HIDES.search(plain, cut.start()) is not None) or _is_started(plain),
        hides_code=_SEVERAL.search(plain) is not None,
    )


def _is_started(plain: str) -> bool:
    """Return whether the last command is started and not waited for."""
    return plain.rstrip().endswith("&")


def _list_written(text: str, plain: str, first: re.Match[str]) -> Iterator[str]:
    """Yield the files that a command writes: all operands of an editor, or those of later heredocs too."""
    if first.re is not _IN_PLACE:
        yield text[slice(*first.span(first.lastindex or 0))]
        yield from (found[1] for found in _LATER.finditer(text, first.end()))
        return
    words = [text[slice(*word.span())] for word in re.compile(r"\S+").finditer(plain, *first.span())]
    operands = [word for word in words[1:] if word[0] not in "-'\""]
    is_quoted = any(word[0] in "'\"" for word in words)
    yield from operands if is_quoted else operands[1:]


def _split_statements(text: str, plain: str) -> Iterator[str]:
    """Yield the statements of a text without filters and redirects; ``plain`` is the text without quoted parts."""
    start = 0
    for end, following in [*(found.span() for found in _END.finditer(plain)), (len(plain), 0)]:
        cut = _FILTER.search(plain, start, end)
        if one := text[start : cut.start() if cut else end]:
            yield one
        start = following


def _split(command: str) -> tuple[str, str, str]:
    """Split a command at its first heredoc: the line that opens it, its text, and the rest."""
    opening = _HEREDOC.search(command, 0, MOST_COMMAND_CHARS)
    start = command.find("\n", opening.end()) + 1 if opening else 0
    closing = re.compile(rf"^[ \t]*{opening[2]}[ \t]*$", re.MULTILINE) if opening and start else None
    end = closing.search(command, start) if closing else None
    if opening is None or end is None:
        return command, "", ""
    line = f"{command[: opening.start()].rstrip()} {command[opening.end() : start].strip()}"
    return line.rstrip(), command[start : end.start()], command[end.end() :].strip()

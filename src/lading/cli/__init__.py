"""The command line: ``lading inspect``, ``replay`` and the other commands of ``COMMANDS``, a file for each.

Knows every other room; none knows it. Start with ``options.py`` and ``tables.py``, then the file of a command."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from lading.cli import terminal
from lading.validation import did_you_mean

COMMANDS = {
    "inspect": "where the tokens and the money of recorded sessions went",
    "replay": "build the request of every call of recorded sessions, and price it",
    "compare": "compare strategies: what they cost, and what they keep",
    "probe": "ask a model questions about sessions, from packed requests and from everything sent",
    "resume": "let a model continue sessions from packed requests, and count what it repeats",
    "verify": "build every recorded request again and compare",
    "report": "write one page that shows every request of sessions, what was removed, and its cost",
    "top": "watch the sessions of a store while they run",
    "show": "list a store, print a request as the model saw it, or read an address",
    "why": "find whether a text was in a request, and if not, what removed it",
    "search": "find what was said in any session of a store",
    "memory": "list, search, show, edit and forget what agents remember, and index notes",
    "tune": "find the layers that starved or wasted their budget, over the steps of many sessions",
    "strict-provider": "run a local provider that follows a script and refuses what real ones refuse",
    "cite-check": "check what an answer cites: it exists, was shown, and holds what is quoted",
    "diff": "show the difference between two requests, and its cause",
}
"""The commands and their summaries. Each is a module of that name (``_`` for ``-``), imported when it is called."""


class _CommandGroup(click.Group):
    """The group of all commands; it imports the module of a command only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"lading.cli.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands with their summaries, uncut."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for a misspelt name suggests a similar one."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            meant = did_you_mean(args[0], COMMANDS)
            ctx.fail(f"There is no command {args[0]!r}.{meant} Choose one of: {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options. ``--help`` and ``--version`` print and exit here."""
        with _report_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with _report_usage_errors(ctx):
            return super().invoke(ctx)


@contextmanager
def _report_usage_errors(ctx: click.Context) -> Iterator[None]:
    """Report invalid arguments and failed output in one paragraph on stderr, like bad input."""
    with terminal.report_errors():
        try:
            yield
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else ctx.command_path
            text = error.format_message()
            terminal.fail(f"{text}{'' if text.endswith(('.', '?')) else '.'} See {where} --help.")


@click.group(cls=_CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="lading")
def main() -> None:
    """Know what your model sees, and what it costs.

    \b
    Examples:
      lading inspect ~/.claude/projects/*/*.jsonl
      lading replay session.jsonl --window 32000 --strategy priced --strategy basic
      lading replay session.jsonl --window 32000 --store ./store && lading verify ./store
    """
    # A strategy given as module:NAME may be in the current folder. The folder goes to the end of the path, so that
    # no file there shadows an installed module.
    with suppress(FileNotFoundError):
        if (here := os.getcwd()) not in sys.path:
            sys.path.append(here)

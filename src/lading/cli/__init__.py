"""The command line: ``lading inspect``, ``replay`` and the other commands of ``COMMANDS``."""

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
    "verify": "build every recorded request again and compare",
    "report": "write one page that shows every request of sessions, what left it, and its cost",
    "top": "watch the sessions of a store while they run",
    "show": "list a store, read a request as the model saw it, or what an address points to",
    "why": "say whether a text was in a request, and if not, what became of it",
    "diff": "say what changed between two requests, and who caused it",
}
"""Each command lives in a module of its name, loaded when it is called."""


class _Commands(click.Group):
    """Loads a command's module only when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"lading.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands with their whole summaries."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is asked for; a misspelt one is answered with the one it resembles."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            meant = did_you_mean(args[0], COMMANDS)
            ctx.fail(f"There is no command {args[0]!r}.{meant} Choose one of: {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; ``--help`` and ``--version`` are printed here."""
        with _one_paragraph(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with _one_paragraph(ctx):
            return super().invoke(ctx)


@contextmanager
def _one_paragraph(ctx: click.Context) -> Iterator[None]:
    """Report arguments that cannot be used and output that cannot be written in one paragraph, like bad input."""
    with terminal.clear_errors():
        try:
            yield
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else ctx.command_path
            text = error.format_message()
            terminal.fail(f"{text}{'' if text.endswith(('.', '?')) else '.'} See {where} --help.")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="lading")
def main() -> None:
    """Know what your model is told, and what it costs.

    \b
    Examples:
      lading inspect ~/.claude/projects/*/*.jsonl
      lading replay session.jsonl --window 32000 --strategy priced --strategy basic
      lading replay session.jsonl --window 32000 --store ./store && lading verify ./store
    """
    # A strategy of the user's own (module:NAME) is in the current folder. At the end of the path, so that
    # nothing there takes the place of an installed module.
    with suppress(FileNotFoundError):
        if (here := os.getcwd()) not in sys.path:
            sys.path.append(here)

"""``lading strict-provider``: a local provider that follows a script and refuses what real ones refuse."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from lading.cli import terminal
from lading.cli.options import json_option, parse_tokens, parse_with
from lading.cli.tables import format_count, format_tokens, say
from lading.errors import InputError
from lading.testing.answers import Answer, Request
from lading.testing.provider import StrictProvider
from lading.testing.script_file import read_script

_POLL_S = 0.05
_STDERR = 2
"""A file descriptor."""
_KEY = "local"


@click.command("strict-provider", context_settings={"ignore_unknown_options": True})
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--script", "file", required=True, metavar="FILE", help="The replies of the model, in JSON.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    metavar="N",
    help="Listen on this port; default: a free one.",
)
@click.option(
    "--window",
    callback=parse_with(partial(parse_tokens, least=1)),
    metavar="T",
    help="Refuse longer prompts; default: the card's.",
)
@click.option("--foreign", is_flag=True, help="Accept calls and signatures that it did not issue.")
@json_option("Print one line of JSON with the URL, then one for each request; COMMAND prints to standard error.")
def command(
    command_line: tuple[str, ...], file: str, port: int, window: int | None, foreign: bool, as_json: bool
) -> None:
    """Run a provider on 127.0.0.1 whose model follows a script: Chat Completions, Responses, Messages and
    generateContent, streamed or not. It refuses what the real ones refuse, in their words, and prints each request.

    It runs COMMAND with the base URLs and keys of the common clients in its environment, and ends with it; without
    COMMAND it runs until Ctrl-C.

    \b
    Exit code 0: no request broke a rule. 1: some did. 2: bad input. Else: that of COMMAND.

    \b
    Examples:
      lading strict-provider --script script.json
      lading strict-provider --script script.json --port 8080 --window 32k --foreign
      lading strict-provider --script script.json -- python agent.py
      lading strict-provider --script script.json --json -- npx agent | jq '.violations[]?'
    """
    with terminal.report_errors():
        script = read_script(Path(file))
        provider = StrictProvider(
            script.make_model(), window_tokens=window, faults=script.faults, foreign=foreign, port=port
        )
        with provider:
            if as_json:
                click.echo(terminal.encode_json_line({"url": provider.url}))
            else:
                say(f"listening on {provider.url} (OpenAI's base URL: {provider.url}/v1)")
            # With --json, what the command prints goes to standard error: standard output is JSON alone.
            running = _start(command_line, provider.url, stdout=_STDERR if as_json else None)
            code = _serve(provider, running, _print_json if as_json else _print_line)
        broken = sum(bool(answer.violations) for answer in provider.answers)
        if not as_json:
            said = f"{broken:,} broke a rule" if broken else "none broke a rule"
            style = "bold red" if broken else "bold green"
            say(f"{format_count(len(provider.requests), 'request')}, {said}", style=style)
    sys.exit(code or (terminal.FOUND if broken else 0))


def _serve(
    provider: StrictProvider, running: subprocess.Popen[bytes] | None, show: Callable[[Request, Answer], None]
) -> int:
    """Print requests until the command ends, or an interrupt; return its exit code."""
    shown, is_over = 0, False
    try:
        while not is_over:
            is_over = running is not None and running.poll() is not None
            while shown < len(provider.answers):
                show(provider.requests[shown], provider.answers[shown])
                shown += 1
            if not is_over:
                time.sleep(_POLL_S)
    except KeyboardInterrupt:
        if running is not None:
            running.terminate()
    return running.wait() if running is not None else 0


def _start(command_line: Sequence[str], url: str, *, stdout: int | None) -> subprocess.Popen[bytes] | None:
    if not command_line:
        return None
    try:
        return subprocess.Popen(command_line, env={**os.environ, **make_environment(url)}, stdout=stdout)
    except OSError as error:
        raise InputError(f"{command_line[0]} cannot be started: {error.strerror or error}") from error


def make_environment(url: str) -> Mapping[str, str]:
    """Make the variables by which the common clients find a provider, and keys that it takes."""
    bases = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url}
    return bases | dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), _KEY)


def encode_request(request: Request, answer: Answer) -> dict[str, Any]:
    """Encode a request and its answer for JSON, without the body."""
    usage = answer.issue.usage if answer.issue else None
    return {
        "call": request.call,
        "method": request.method,
        "path": request.path,
        "status": answer.status,
        "prompt_tokens": answer.prompt_tokens,
        "read_tokens": usage.read_tokens if usage else 0,
        "output_tokens": answer.issue.output_tokens if answer.issue else 0,
        "violations": answer.violations,
    }


def _print_json(request: Request, answer: Answer) -> None:
    click.echo(terminal.encode_json_line(encode_request(request, answer)))


def _print_line(request: Request, answer: Answer) -> None:
    line = f"{request.call or '':>4} {answer.status} {request.method} {request.path}"
    if answer.prompt_tokens:
        read = answer.issue.usage.read_tokens if answer.issue else 0
        line += f", {format_tokens(answer.prompt_tokens)} tokens, {format_tokens(read)} of them from the cache"
    say(line)
    for broken in answer.violations:
        say(f"     {broken.rule} at {broken.path}: {broken.detail}", style="red")

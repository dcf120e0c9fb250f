"""Logs: messages that public code really writes, filled in from a seed, as common programs write their lines."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from scripts.estimator.documents import Document

LINES = 400
_FEWEST_MESSAGES = 20

_MESSAGE = re.compile(
    r"\blog(?:ger|ging)?\.(?:debug|info|warning|warn|error|exception|critical)\(\s*_?\(?f?\"([^\"\n]{8,})\"", re.I
)
_PLACE = re.compile(r"%\(\w+\)[sdr]|%[sdrif]|%\.\d+f|\{[^{}]*\}")
_AGENTS = (
    "curl/8.5.0",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36",
    "python-requests/2.32.3",
    "kube-probe/1.29",
)


class Material(NamedTuple):
    """What the code of a package gives: messages, words, lines for tracebacks and names of functions."""

    messages: list[str]
    words: list[str]
    frames: list[str]
    names: list[str]


class Line(NamedTuple):
    """What a line says, and where its further numbers come from. Seconds count from midnight."""

    seconds: float
    level: str
    module: str
    message: str
    chance: random.Random

    @property
    def clock(self) -> str:
        """Hours, minutes and seconds."""
        whole = int(self.seconds)
        return f"{whole // 3600 % 24:02}:{whole // 60 % 60:02}:{whole % 60:02}"

    @property
    def milli(self) -> str:
        """Thousandths of a second, three digits."""
        return f"{int(self.seconds * 1000) % 1000:03}"

    @property
    def file(self) -> str:
        """The last word of the module."""
        return self.module.rpartition(".")[2]


def logs(code: dict[str, str], *, seed: int = 11) -> Iterator[Document]:
    """For the code of each package with messages enough, one file in each of the formats."""
    chance = random.Random(seed)
    for package, written in sorted(code.items()):
        found = material(written)
        if len(found.messages) >= _FEWEST_MESSAGES:
            for form, write in FORMATS.items():
                yield Document("logs", f"logs/{package}/{form}", "\n".join(_lines(chance, found, write)))


def material(code: str) -> Material:
    """The messages a piece of Python code logs, as written: places for values are still places; and its words."""
    return Material(
        sorted(set(_MESSAGE.findall(code))),
        re.findall(r"[a-z]{3,10}", code)[:20_000],
        [line for line in re.findall(r"^ +(\w[^\n]{10,90})$", code, re.MULTILINE)[:4000] if "#" not in line],
        re.findall(r"def (\w+)", code),
    )


def _lines(chance: random.Random, found: Material, write: Callable[[Line], str]) -> Iterator[str]:
    seconds = chance.uniform(0, 80_000)
    for _ in range(LINES):
        seconds += chance.expovariate(1.5)
        level = chance.choice(["INFO", "INFO", "INFO", "DEBUG", "WARNING", "ERROR"])
        message = _PLACE.sub(lambda _: _value(chance, found.words), chance.choice(found.messages))
        module = ".".join(chance.sample(found.words, chance.randrange(1, 4)))
        yield write(Line(seconds, level, module, message, chance))
        if level == "ERROR" and found.frames and found.names and chance.random() < 0.15:
            yield _traceback(chance, found, module=module, message=message)


def _value(chance: random.Random, words: list[str]) -> str:
    word, other = chance.choice(words), chance.choice(words)
    return chance.choice(
        [
            word,
            f"{word}_{other}",
            f"/var/lib/{word}/{other}.{chance.choice(['json', 'log', 'py', 'conf'])}",
            str(chance.randrange(10 ** chance.randrange(1, 7))),
            f"{chance.uniform(0, 300):.3f}",
            _address(chance),
            f"{chance.getrandbits(128):032x}"[: chance.choice([8, 12, 32])],
            f"{word}-{chance.getrandbits(40):010x}-{chance.getrandbits(20):05x}",
            f"https://{word}.example.com/v2/{other}/{chance.randrange(9999)}",
            f"{{'{word}': {chance.randrange(99)}, '{other}': None}}",
        ]
    )


def _address(chance: random.Random) -> str:
    return f"10.{chance.randrange(256)}.{chance.randrange(256)}.{chance.randrange(256)}"


def _traceback(chance: random.Random, found: Material, *, module: str, message: str) -> str:
    path = f"/usr/lib/python3.11/site-packages/{module.replace('.', '/')}.py"
    places = []
    for _ in range(chance.randrange(2, 7)):
        place = f'  File "{path}", line {chance.randrange(2000)}, in {chance.choice(found.names)}'
        places.append(f"{place}\n    {chance.choice(found.frames)}")
    error = chance.choice(
        ["ValueError", "KeyError", "ConnectionError", "TypeError", "django.db.utils.OperationalError"]
    )
    return "\n".join(["Traceback (most recent call last):", *places, f"{error}: {message}"])


def _python(line: Line) -> str:
    return f"2026-10-17 {line.clock},{line.milli} {line.level} [{line.module}] {line.message}"


def _plain(line: Line) -> str:
    return f"{line.level}:{line.module}:{line.message}"


def _syslog(line: Line) -> str:
    node, process = line.chance.randrange(40), line.chance.randrange(32768)
    return f"Oct 17 {line.clock} node-{node} {line.module}[{process}]: {line.message}"


def _java(line: Line) -> str:
    name = "".join(word.title() for word in line.module.split("."))
    thread = line.chance.choice(["main", "pool-2-thread-7", "http-nio-8080-exec-3"])
    moment = f"2026-10-17 {line.clock},{line.milli}"
    return f"{moment} {line.level:5} [{thread}] org.example.{line.module}.{name}: {line.message}"


def _klog(line: Line) -> str:
    micro, thread = int(line.seconds * 1e6) % 1_000_000, line.chance.randrange(9, 9999)
    place = f"{line.file}.go:{line.chance.randrange(900)}"
    return f"{line.level[0]}1017 {line.clock}.{micro:06} {thread:7} {place}] {line.message}"


def _json(line: Line) -> str:
    trace = f"{line.chance.getrandbits(64):016x}"
    said = {"level": line.level.lower(), "logger": line.module, "msg": line.message, "trace_id": trace}
    return json.dumps({"time": f"2026-10-17T{line.clock}.{line.milli}Z", **said})


def _access(line: Line) -> str:
    chance = line.chance
    ending = chance.choice(["", "/", f"/{chance.randrange(9999)}", f"?page={chance.randrange(50)}"])
    path = "/" + line.module.replace(".", "/") + ending
    agent = chance.choice(_AGENTS)
    status, size = chance.choice([200, 200, 200, 304, 404, 500, 302]), chance.randrange(60_000)
    verb = chance.choice(["GET", "GET", "GET", "POST", "HEAD"])
    request = f'[17/Oct/2026:{line.clock} +0000] "{verb} {path} HTTP/1.1"'
    return f'{_address(chance)} - - {request} {status} {size} "-" "{agent}"'


def _kernel(line: Line) -> str:
    bus, slot = line.chance.randrange(16), line.chance.randrange(256)
    return f"[{line.seconds:12.6f}] {line.module.replace('.', ' ')} {bus:04x}:{slot:02x}:00.0: {line.message}"


def _logfmt(line: Line) -> str:
    moment = f"2026-10-17T{line.clock}.{int(line.seconds * 1e9) % 10**9:09}Z"
    caller = f"{line.file}.go:{line.chance.randrange(999)}"
    duration = f"{line.chance.uniform(0, 90):.6f}s"
    named = f"ts={moment} level={line.level.lower()} component={line.module} caller={caller}"
    return f'{named} msg="{line.message}" duration={duration}'


def _android(line: Line) -> str:
    thread = line.chance.randrange(1000, 32000)
    other = thread + line.chance.randrange(40)
    source = line.module.title().replace(".", "")
    return f"10-17 {line.clock}.{line.milli} {thread:5} {other:5} {line.level[0]} {source}: {line.message}"


FORMATS: dict[str, Callable[[Line], str]] = {
    "python": _python,
    "plain": _plain,
    "syslog": _syslog,
    "java": _java,
    "klog": _klog,
    "json": _json,
    "access": _access,
    "kernel": _kernel,
    "logfmt": _logfmt,
    "android": _android,
}
"""How a line is written, by the kind of program that writes it so."""

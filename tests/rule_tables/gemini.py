"""Gemini's generateContent: neighbouring contents of the model are one turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from tests.rule_tables.facts import Body, Known, Rule

FILLER = "skip_thought_signature_validator"


class _Content(Struct):
    role: str
    at: int
    parts: list[dict[str, Any]] = []

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [part for part in self.parts if kind in part]


def _contents(body: Body) -> list[_Content]:
    """Contents, with neighbours of the model as one."""
    found: list[_Content] = []
    for at, content in enumerate(body["contents"]):
        role = content.get("role", "user")
        if not found or role != "model" or found[-1].role != "model":
            found.append(_Content(role, at))
        found[-1].parts.extend(content["parts"])
    return found


def _g1(body: Body, _known: Known) -> Iterator[str]:
    for at, content in enumerate(_contents(body)):
        if content.of("functionCall") and (content.role != "model" or at == 0):
            yield str(content.at)


def _g2(body: Body, _known: Known) -> Iterator[str]:
    contents = _contents(body)
    for before, content in zip([_Content("", 0), *contents[:-1]], contents, strict=True):
        if content.of("functionResponse") and not before.of("functionCall"):
            yield str(content.at)


def _g3(body: Body, _known: Known) -> Iterator[str]:
    contents = _contents(body)
    for content, after in zip(contents, [*contents[1:], _Content("", -1)], strict=True):
        if (calls := content.of("functionCall")) and len(after.of("functionResponse")) != len(calls):
            yield str(content.at)


def _g4(body: Body, _known: Known) -> Iterator[str]:
    yield from (str(content.at) for content in _contents(body) if content.role not in ("user", "model"))


DATA = {
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult",
    "toolCall", "toolResponse", "function_call", "function_response", "inline_data", "file_data",
}  # fmt: skip


def _g5(body: Body, _known: Known) -> Iterator[str]:
    for content in _contents(body):
        if not content.parts or any(len(DATA & part.keys()) != 1 for part in content.parts):
            yield str(content.at)


def _g8(body: Body, known: Known) -> Iterator[str]:
    contents = _contents(body)
    texts = [at for at, one in enumerate(contents) if one.role == "user" and not one.of("functionResponse")]
    for content in contents[texts[-1] if texts else 0 :] if known.conduct.reasoning_echo == "signed" else ():
        yield from (str(content.at) for part in content.of("functionCall")[:1] if not part.get("thoughtSignature"))


def _g9(body: Body, known: Known) -> Iterator[str]:
    for content in _contents(body):
        for part in content.of("thoughtSignature"):
            if part["thoughtSignature"] not in {FILLER, *known.issued.thought}:
                yield f"{content.at} {part['thoughtSignature']}"


def _g11(body: Body, _known: Known) -> Iterator[str]:
    contents = _contents(body)
    for before, content in zip([_Content("", 0), *contents[:-1]], contents, strict=True):
        asked = [part["functionCall"].get("id") for part in before.of("functionCall")]
        given = [part["functionResponse"].get("id") for part in content.of("functionResponse")]
        if all(asked) and any(one and one not in asked for one in given):
            yield str(content.at)


RULES: dict[str, Rule] = {
    "G1": _g1,
    "G2": _g2,
    "G3": _g3,
    "G4": _g4,
    "G5": _g5,
    "G8": _g8,
    "G9": _g9,
    "G11": _g11,
}

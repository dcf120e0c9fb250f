"""Templates of payloads: the text of a step with places for what it shows, one for each role.

A template is sections, divided by blank lines. ``fill`` leaves out a section all of whose places are empty. A
template is found by ``name:tier``, then ``name``, in the caller's own and then in ``TEMPLATES``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from lading.errors import InputError, UnknownName
from lading.validation import check

CONTRACT = """\
You will receive a CONTEXT PACK in the final user message.

Rules:
- Treat TASK/STEP/ACCEPTANCE in the pack as authoritative for the current step.
- Use EVIDENCE links (artifact:// URIs) to justify claims; do not fabricate.
- If evidence is missing, say "unknown" and request the needed tool/action.
- Use only the provided tools; do not assume hidden tools exist."""
"""Option A of the document: for the system prompt of the caller."""
RULES = """\
INTERPRETATION RULES:
- Follow TASK/STEP/ACCEPTANCE below.
- Cite EVIDENCE (artifact:// URIs); do not fabricate.
- If evidence is missing, say "unknown" and request tools."""
"""Option B: at the start of the payload."""
PLACES = (
    *("title", "rules", "step_id", "goal", "step", "constraints", "tools", "evidence", "memory", "summary"),
    *("stop", "acceptance", "repair", "recitation", "request", "top_evidence"),
)
"""Names of the places of a template, in the order of ``TEMPLATES``."""
_NEEDED = ("step", "acceptance", "request")
_START = """\
{title}

{rules}

ROLE:
- You are the $ROLE {step_id}. $DUTY

GOAL:
{goal}

STEP:
{step}

CONSTRAINTS:
{constraints}
"""
_TOOLS = """
TOOLS (step-only):
{tools}

EVIDENCE:
{evidence}
"""
_MEMORY = """
MEMORY:
{memory}
"""
_SUMMARY = """
CONVERSATION SUMMARY:
{summary}
"""
_REQUEST = """
{recitation}

USER REQUEST (VERBATIM):
{request}
"""
_ACCEPTANCE = """
STOP CONDITIONS AND NEXT:
{stop}

ACCEPTANCE:
{acceptance}

REPAIR (failed items of ACCEPTANCE):
{repair}
"""
_TOP = """
TOP EVIDENCE:
{top_evidence}
"""
_DUTIES = {
    "planner": ("Planner of step", "Plan it and restate what is unclear; carry nothing out."),
    "operator": ("Operator executing step", "Do this step and nothing else."),
    "reviewer": ("Critic of step", "Judge its output by each item of ACCEPTANCE."),
}


def _write(template: str) -> Mapping[str, str]:
    return MappingProxyType(
        {role: template.replace("$ROLE", name).replace("$DUTY", duty) for role, (name, duty) in _DUTIES.items()}
    )


TEMPLATES = _write(_START + _TOOLS + _MEMORY + _SUMMARY + _ACCEPTANCE + _REQUEST + _TOP)
"""By role: what matters most comes last."""
DOCUMENT = _write(
    f"{_START}{{acceptance}}\n{{repair}}\n{{stop}}\n{_TOOLS}{{top_evidence}}\n{_MEMORY}{_REQUEST}{_SUMMARY}"
)
"""By role, the order of the document's excerpt: acceptance is among the constraints."""
_PLACE = re.compile(r"\{(\w+)\}")


def read_templates(given: Mapping[str, str] | str | Path | None) -> Mapping[str, str]:
    """Return templates by name. ``given``: a mapping, ``"document"``, or a folder with files such as
    ``operator.txt`` and ``operator.local.txt`` (the name ``operator:local``). Raises InputError."""
    if given is None:
        return {}
    if given == "document":
        return DOCUMENT
    if isinstance(given, str | Path):
        found = sorted(Path(given).glob("*.txt"))
        if not found:
            raise InputError(f"The folder {str(given)!r} holds no template. Write one, such as operator.txt.")
        try:
            given = {path.stem.replace(".", ":", 1): path.read_text(encoding="utf-8") for path in found}
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"A template in {str(given)!r} cannot be read: {error}.") from error
    check(given, Mapping, advice='give templates by name, a folder of them, or "document"')
    for name, template in given.items():
        _check(name, template)
    return given


def find_template(role: str, *, tier: str, own: Mapping[str, str]) -> str:
    """Return the template of a role for a tier. Raises UnknownName."""
    for source in (own, TEMPLATES):
        for name in (f"{role}:{tier}", role):
            if name in source:
                return source[name]
    raise UnknownName(f"There is no template for the role {role!r}. Give one of that name.")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Insert values into a template, each verbatim and once: places in values stay as they are."""
    return "\n\n".join(_fill_sections(template, values))


def _fill_sections(template: str, values: Mapping[str, str]) -> Iterator[str]:
    for section in re.split(r"\n\s*\n", template.strip()):
        places = _PLACE.findall(section)
        if places and not any(values.get(name, "").strip() for name in places):
            continue
        # A place alone on its line leaves with it.
        lines = [line for line in section.splitlines() if not _is_empty(line, values)]
        yield _PLACE.sub(lambda place: values.get(place[1], ""), "\n".join(lines))


def _is_empty(line: str, values: Mapping[str, str]) -> bool:
    place = _PLACE.fullmatch(line.strip())
    return place is not None and not values.get(place[1], "").strip()


def _check(name: object, template: object) -> None:
    check(template, str, advice=f"give the template {name!r} as a text")
    places = _PLACE.findall(str(template))
    if unknown := [place for place in places if place not in PLACES]:
        raise InputError(
            f"The template {name!r} has the place {{{unknown[0]}}}, which has no value. There are: "
            f"{', '.join(PLACES)}."
        )
    if missing := [place for place in _NEEDED if place not in places]:
        raise InputError(f"The template {name!r} needs a place {{{missing[0]}}}.")

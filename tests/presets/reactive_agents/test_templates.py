"""Prompt templates: which variant a tier gets, and that values are text."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import InputError
from lading.messages import Tool
from lading.models.card import Tier
from lading.models.profiles import CONTEXT_PROFILES
from lading.presets.reactive_agents.context import ContextInput, build_context, write_rules
from lading.presets.reactive_agents.templates import (
    REACT_SYSTEM,
    REACT_THOUGHT,
    TEMPLATES,
    PromptTemplate,
    template_for,
)

TIERS: tuple[Tier, ...] = get_args(Tier)
VALUES = {"task": "T", "iteration": 1, "max_iterations": 10, "tools": "read"}


@pytest.mark.parametrize("wanted", ["reasoning.react-system", "reasoning.react-thought"])
@pytest.mark.parametrize(
    ("tier", "suffix"), [("local", ":local"), ("mid", ""), ("large", ""), ("frontier", ":frontier")]
)
def test_a_tier_gets_its_variant_else_the_template_for_all(wanted: str, tier: Tier, suffix: str) -> None:
    assert template_for(wanted, tier=tier).id == f"{wanted}{suffix}"


def test_both_have_a_text_for_all_and_two_variants() -> None:
    assert [template.id for template in TEMPLATES] == [
        f"{wanted}{suffix}" for wanted in (REACT_SYSTEM, REACT_THOUGHT) for suffix in ("", ":local", ":frontier")
    ]


def test_of_one_id_the_latest_version_is_used_and_of_equal_ones_the_last() -> None:
    mine = [PromptTemplate("a", "two", 2), PromptTemplate("a", "ten", 10), PromptTemplate("a", "three", 3)]
    assert template_for("a", tier="mid", templates=mine).text == "ten"
    again = PromptTemplate("a", "ten again", 10)
    assert template_for("a", tier="mid", templates=[*mine, again]) is again


def test_a_variant_of_ones_own_is_found_before_a_later_text_for_all() -> None:
    mine = PromptTemplate(f"{REACT_SYSTEM}:mid", "Mine.")
    later = PromptTemplate(REACT_SYSTEM, "For all.", 9)
    templates = (*TEMPLATES, mine, later)
    assert template_for(REACT_SYSTEM, tier="mid", templates=templates) is mine
    assert template_for(REACT_SYSTEM, tier="large", templates=templates) is later
    assert template_for(REACT_SYSTEM, tier="local", templates=templates).id == f"{REACT_SYSTEM}:local"


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("reasoning.react-system:local", "reasoning.react-system:local"),
        ("reasoning.react-system:mid", "reasoning.react-system"),
        ("reasoning.react-thought", "reasoning.react-thought"),
    ],
)
def test_the_document_s_name_of_a_variant_falls_back_to_the_general_one(wanted: str, found: str) -> None:
    assert template_for(wanted).id == found


def test_an_unknown_id_is_refused_and_those_there_are_named() -> None:
    with pytest.raises(InputError, match=r"no template 'reasoning\.react' for the tier mid\. There are: reasoning"):
        template_for("reasoning.react", tier="mid")
    with pytest.raises(InputError, match="There are: a:local"):
        template_for("a", tier="mid", templates=[PromptTemplate("a:local", "x")] * 2)
    with pytest.raises(InputError, match="There are: none"):
        template_for("a", tier="mid", templates=[])


@pytest.mark.parametrize("missing", sorted(VALUES))
@pytest.mark.parametrize("tier", TIERS)
def test_a_value_that_is_missing_is_named(tier: Tier, missing: str) -> None:
    given = {name: value for name, value in VALUES.items() if name != missing}
    with pytest.raises(InputError, match=f"reasoning.react-thought.* needs a value for '{missing}'"):
        template_for(REACT_THOUGHT, tier=tier).filled(given)


@given(task=st.text(max_size=60) | st.sampled_from(["{iteration}", "{", "}}{{", "{0}", "\\1 \\g<0>", "{unknown}"]))
def test_values_are_text_whatever_braces_they_hold(task: str) -> None:
    template = PromptTemplate("t", 'Say {"a": 1}: {task}, {n}.')
    assert template.filled({"task": task, "n": 2}) == f'Say {{"a": 1}}: {task}, 2.'


@pytest.mark.parametrize("tier", TIERS)
def test_the_system_prompt_says_how_to_act_at_every_tier(tier: Tier) -> None:
    told = template_for(REACT_SYSTEM, tier=tier).filled({"rules": write_rules(CONTEXT_PROFILES[tier])}).lower()
    assert "parameter" in told
    assert "invent nothing" in told or "only what a result shows" in told
    assert "artifact://" in told
    assert "call restore with" in told
    assert "when the task is done" in told
    assert "one tool" in told or "one action" in told


def test_the_texts_grow_with_the_tier() -> None:
    for wanted in (REACT_SYSTEM, REACT_THOUGHT):
        local, mid, frontier = (template_for(wanted, tier=tier) for tier in ("local", "mid", "frontier"))
        assert len(local.text) < len(mid.text) < len(frontier.text)


@pytest.mark.parametrize("tier", TIERS)
def test_a_context_has_the_templates_of_its_tier_and_the_rules_once(tier: Tier) -> None:
    profile = CONTEXT_PROFILES[tier]
    built = build_context(
        ContextInput(
            task="Count {cats}.",
            profile=profile,
            iteration=profile.max_iterations - 1,
            tool_schemas=(Tool("read"), Tool("shell")),
            required_tools=("shell",),
            templates=TEMPLATES,
        )
    )
    told = write_rules(profile, ("shell",))
    assert built.static_text.startswith(template_for(REACT_SYSTEM, tier=tier).filled({"rules": told}))
    assert built.text.count(told) == 1
    last = profile.max_iterations
    values = {"task": "Count {cats}.", "iteration": last, "max_iterations": last, "tools": "read, shell"}
    thought = dict(built.sections)["iteration"]
    assert thought.startswith(template_for(REACT_THOUGHT, tier=tier).filled(values))
    assert thought.endswith("Answer now." if tier == "local" else "results so far allow.")
    assert thought in built.dynamic_text


def test_a_system_prompt_without_a_place_for_rules_loses_none() -> None:
    mine = (PromptTemplate(REACT_SYSTEM, "Mine."), PromptTemplate(REACT_THOUGHT, "{tools}"))
    profile = CONTEXT_PROFILES["mid"]
    built = build_context(ContextInput(task="T", profile=profile, tool_schemas="read(path)", templates=mine))
    assert built.sections[0] == ("system", "Mine.")
    assert built.sections[-1] == ("rules", write_rules(profile))
    assert dict(built.sections)["iteration"] == "read(path)"


def test_without_templates_a_context_is_the_document_s() -> None:
    built = build_context(ContextInput(task="T", profile=CONTEXT_PROFILES["mid"]))
    assert [name for name, _ in built.sections] == ["iteration", "task", "rules"]

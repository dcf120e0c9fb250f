"""Old places of public names and modules work, and warn with the new place."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lading
from lading import moved
from lading.presets.aether_frame import Tail
from lading.presets.agentrail import RequestContext
from lading.presets.reactive_agents.progressive import progressive
from lading.session.loop_detection import judge
from tests.examples import quick_first
from tests.test_exports import documented

OLD_NAMES = sorted(moved.NAMES)
OLD_MODULES = [
    *moved.MODULES,
    "lading.compaction.aether_frame.tail",
    "lading.compaction.agentrail.reactive",
    "lading.compaction.agentrail.session_boundary",
    "lading.compaction.agentrail.tool_results",
    "lading.compaction.reactive_agents.progressive",
    "lading.compaction.reactive_agents.synthesis",
]
"""All whose names are in the table, and those inside them that documents named."""
DOCUMENTED_IMPORTS = """
from lading.compaction.aether_frame import Tail, strategy, truncation_events
from lading.compaction.agentrail import ToolResults, configured
from lading.compaction.open_multi_agent import AgentConfig, Custom, Summarize, agent_config, strategy_for
from lading.compaction.reactive_agents import TEMPLATES, MemoryItem, Signals, build_context, steps_of
from lading.compaction.reactive_agents.progressive import progressive
from lading.compaction.reactive_agents.synthesis import synthesis
from lading.loops import judge
from lading.providers import RequestContext, compose_transform_contexts, create_transform_context, transforming
from lading.session import Session
"""


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_old_name_warns_with_its_new_home_and_is_the_same_object(old: str) -> None:
    module, _, name = old.rpartition(".")
    home = moved.NAMES[old]
    with pytest.warns(
        DeprecationWarning, match=rf"^{re.escape(old)} has moved: from {re.escape(home)} import {name}$"
    ):
        found = getattr(importlib.import_module(module), name)
    assert found is getattr(importlib.import_module(home), name)
    assert (home, name) in documented()
    assert name not in getattr(importlib.import_module(module), "__all__", ())


@pytest.mark.parametrize("old", quick_first(OLD_MODULES, 4))
def test_an_old_module_warns_and_has_the_same_objects(old: str) -> None:
    program = f"""
import importlib, warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import {old} as old
new = importlib.import_module({moved.new_module(old)!r})
assert str(told[-1].message) == "{old} has moved: import " + new.__name__, told
assert {{one.category for one in told}} == {{DeprecationWarning}}
assert {{one.filename for one in told}} == {{"<string>"}}, told
names = [name for name in dir(new) if not name.startswith("_")]
assert len(names) > 3
assert all(getattr(old, name) is getattr(new, name) for name in names)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def starred(module: str) -> dict[str, Any]:
    """What ``from module import *`` binds."""
    names: dict[str, Any] = {}
    exec(f"from {module} import *", names)
    return {name: value for name, value in names.items() if not name.startswith("__")}


@pytest.mark.filterwarnings("ignore:lading:DeprecationWarning")
@pytest.mark.parametrize("old", sorted(moved.MODULES))
def test_a_star_import_from_an_old_module_gives_what_the_new_one_gives(old: str) -> None:
    found, given = starred(old), starred(moved.MODULES[old])
    assert len(given) > 3
    assert found.keys() == given.keys()
    assert all(found[name] is value for name, value in given.items())
    assert dir(importlib.import_module(old)) == dir(importlib.import_module(moved.MODULES[old]))


@pytest.mark.filterwarnings("ignore:lading:DeprecationWarning")
def test_imports_of_older_documents_give_what_the_new_homes_have() -> None:
    found: dict[str, Any] = {}
    exec(DOCUMENTED_IMPORTS, found)
    assert found["Tail"] is Tail
    assert found["progressive"] is progressive
    assert found["RequestContext"] is RequestContext
    assert found["judge"] is judge
    assert found["Session"] is lading.Session


def test_an_import_of_an_old_name_warns_once_where_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import lading\nfrom lading import Engine, Event\nlading.loops.judge\n", "utf-8"
    )
    done = subprocess.run([sys.executable, "agent.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert re.findall(r"^.*agent\.py:(\d+): (\w+): (\S+) has moved: (.*)$", done.stderr, re.MULTILINE) == [
        ("2", "DeprecationWarning", "lading.Engine", "from lading.engine import Engine"),
        ("2", "DeprecationWarning", "lading.Event", "from lading.events import Event"),
        ("3", "DeprecationWarning", "lading.loops", "import lading.session.loop_detection"),
    ]


@pytest.mark.filterwarnings("ignore:lading:DeprecationWarning")
@pytest.mark.parametrize(
    "program",
    [
        "import lading.nothing",
        "from lading import nothing",
        "from lading.session import nothing",
        "import lading.loops.nothing",
        "from lading.compaction.agentrail import nothing",
    ],
)
def test_what_never_was_is_an_import_error(program: str) -> None:
    with pytest.raises(ImportError, match="nothing"):
        exec(program, {})

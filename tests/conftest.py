"""What all tests share: Hypothesis profiles, which tests coverage is measured by, and the folder of recorded data
where it exists."""

from __future__ import annotations

import gc
import os
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.waiting import be_patient

ROOT = Path(__file__).resolve().parent.parent

be_patient()
# Each client of an SDK reads the certificates that the machine trusts: a few hundred, and no test speaks TLS.
os.environ["SSL_CERT_FILE"] = str(ROOT / "tests" / "certificate.pem")
# No bound on seconds: a machine may be slow. "quick" is what `make test` plays, "full" what `make test-all` plays:
# both the same examples each time.
settings.register_profile("dev", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("dev"), derandomize=True, max_examples=10)
settings.register_profile("full", settings.get_profile("dev"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("dev"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "dev")


NOT_MEASURED = frozenset(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["coverage"]["run"]["omit"]
)


@cache
def is_of_a_measured_room(test: Path) -> bool:
    """Whether the room that a file of tests mirrors is one that coverage is asked of."""
    room = test.relative_to(ROOT / "tests").parts[0].removeprefix("test_").removesuffix(".py")
    source = Path("src", "lading", room)
    is_room = (ROOT / source).is_dir() or (ROOT / source).with_suffix(".py").is_file()
    return is_room and f"{source.as_posix()}.py" not in NOT_MEASURED


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that ask for recorded data, before ``-m`` chooses."""
    if "shared" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.recorded)


# Hypothesis marks its tests in the same hook.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Measure coverage by the example tests of the measured rooms only: a traced test takes four times as long, and
    properties and costly tests reach no line that these should not."""
    for item in items:
        is_costly = any(map(item.get_closest_marker, ("full", "hypothesis")))
        if is_costly or not is_of_a_measured_room(item.path):
            item.add_marker(pytest.mark.no_cover)


def pytest_collection_finish() -> None:
    """Take what is collected out of the garbage collector's sight: it lives to the end, and a test that collects
    garbage would look through all of it each time."""
    gc.collect()
    gc.freeze()


class FailureNames:
    """Names each failure when it happens: whoever runs the tests need not wait for the end to know of it."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write one line for a test that failed, or whose setup or teardown did."""
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"FAILED {report.nodeid} ({report.when})", red=True)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register ``FailureNames`` where a terminal is written to: not in the worker processes."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(terminal, pytest.TerminalReporter) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailureNames(terminal))


def shared_folder() -> Path | None:
    """The folder of recorded data outside the repository, or None where there is none.

    ``LADING_SHARED`` names it; by default it is ``shared`` beside the checkout. Set but empty: none.
    """
    folder = Path(os.environ.get("LADING_SHARED", str(ROOT.parent / "shared")) or os.devnull)
    return folder if (folder / "data").is_dir() else None


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded data; a test that asks for it is skipped where it is missing."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("no recorded data: set LADING_SHARED to its folder, or put it beside the checkout")
    return folder

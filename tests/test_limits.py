"""The house is within its limits, and the check would notice if it were not."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from scripts import check_limits
from scripts.check_limits import breaches, main
from scripts.seconds import SECONDS

ROOT = Path(__file__).resolve().parent.parent
DOC = '"""A module."""\n'
ROOM = "'Rooms. Knows no door. Start with ``a.py``.'\n"
THIRTEEN = "".join(f"    f{n}: int\n" for n in range(13))
CATCH_ALL = "    try:\n        pass\n    except Exception:\n        pass\n"


def tree(folder: Path, files: dict[str, str]) -> Path:
    """A small checkout with the files given."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.full  # make check asks for the same
def test_the_repository_is_within_its_limits() -> None:
    assert [str(breach) for breach in breaches(ROOT)] == []


GOOD: dict[str, str] = {
    "a command takes as many parameters as it has options": (
        DOC + "@main.command('show')\ndef show(a, b, c, d, e, f, g, h, i):\n    'Show.'\n"
    ),
    "two positional parameters, the rest by name": DOC + "def fit(a, b, *, c, d):\n    'Fit.'\n",
    "a method's own self does not count": (
        DOC + "class Store:\n    'It.'\n    def put(self, a, b):\n        'Put.'\n"
    ),
    "a private function may take a row of values": DOC + "def _fit(a, b, c, d):\n    pass\n",
    "a constructor may take a row of values": (
        DOC + "class Store:\n    'It.'\n    def __init__(self, a, b, c):\n        pass\n"
    ),
    "an extra is imported where it is used": DOC + "def near():\n    'Near.'\n    import numpy\n",
    "errors are named": DOC + "try:\n    pass\nexcept (OSError, ValueError):\n    pass\n",
    "a protocol is no inheritance": (
        DOC + "class Shape(Protocol):\n    'A.'\nclass Row(Struct):\n    'B.'\nclass Fit(Shape):\n    'C.'\n"
    ),
    "exports in order": DOC + "__all__ = ['WIRES', 'Message', 'Text', 'encode']\n",
    "a constant of the class is no field": (
        DOC
        + "class Row(Struct, frozen=True):\n    'It.'\n"
        + "".join(f"    f{n}: ClassVar[int] = 1\n" for n in range(13))
    ),
    "the state of a walk is as wide as it needs": DOC + "class Walk(Struct):\n    'It.'\n" + THIRTEEN,
    "the same, said aloud": DOC + "class Walk(Struct, frozen=False):\n    'It.'\n" + THIRTEEN,
    "the state of a walk as a dataclass": DOC + "@dataclass\nclass Walk:\n    'It.'\n" + THIRTEEN,
    "twelve fields of a value": (
        DOC + "class Row(Struct, frozen=True):\n    'It.'\n" + "".join(f"    f{n}: int\n" for n in range(12))
    ),
}


@pytest.mark.parametrize("what", GOOD)
def test_good_source_passes(tmp_path: Path, what: str) -> None:
    assert breaches(tree(tmp_path, {"src/lading/__init__.py": DOC, "src/lading/room.py": GOOD[what]})) == []


BAD: dict[str, tuple[str, str]] = {
    "long file": (DOC + "x = 1\n" * 400, "401: 401 lines; a file has at most 400"),
    "long function": (DOC + "def f():\n    'F.'\n" + "    x = 1\n" * 59, "2: f has 61 lines; at most 60"),
    "nine parameters": (
        DOC + "def _f(a, b, c, d, e, *, f, g, h, i):\n    pass\n",
        "2: _f has 9 parameters; at most 8",
    ),
    "third positional parameter": (DOC + "def f(a, b, c):\n    'F.'\n", "2: f: make c keyword-only"),
    "third positional parameter of a method": (
        DOC + "class A:\n    'A.'\n    async def f(self, a, b, c, d):\n        'F.'\n",
        "4: f: make c, d keyword-only",
    ),
    "a static method has no self": (
        DOC + "class A:\n    'A.'\n    @staticmethod\n    def f(a, b, c):\n        'F.'\n",
        "5: f: make c keyword-only",
    ),
    "open keywords": (DOC + "def f(**options):\n    'F.'\n", "2: f takes **options"),
    "thirteen fields": (
        DOC + "class A(Struct, frozen=True):\n    'A.'\n" + THIRTEEN,
        "2: A has 13 fields; at most 12",
    ),
    "thirteen fields of a dataclass": (
        DOC + "@dataclass(frozen=True)\nclass A:\n    'A.'\n" + THIRTEEN,
        "3: A has 13 fields; at most 12",
    ),
    "thirteen fields of a named tuple": (
        DOC + "class A(NamedTuple):\n    'A.'\n" + THIRTEEN,
        "2: A has 13 fields; at most 12",
    ),
    "thirteen fields of a typed dict": (
        DOC + "class A(TypedDict, total=False):\n    'A.'\n" + THIRTEEN,
        "2: A has 13 fields; at most 12",
    ),
    "import inside a function": (
        DOC + "def f():\n    'F.'\n    def g():\n        from lading.history.log import Entry\n",
        "5: f imports lading.history.log; import at the top",
    ),
    "plain import inside a function": (
        DOC + "def f():\n    'F.'\n    import os.path\n",
        "4: f imports os.path; import at the top",
    ),
    "bare except": (DOC + "try:\n    pass\nexcept:\n    pass\n", "4: catches everything"),
    "broad except": (
        DOC + "try:\n    pass\nexcept (ValueError, Exception):\n    pass\n",
        "4: catches everything",
    ),
    "a field of one provider's bodies": (
        DOC + "def f(body):\n    'F.'\n    body['tool_choice']\n",
        "4: names 'tool_choice'",
    ),
    "no docstring of the module": ("x = 1\n", "1: the module has no docstring"),
    "no docstring of a class": (DOC + "class A:\n    pass\n", "2: A has no docstring"),
    "no docstring of a function": (DOC + "def f():\n    pass\n", "2: f has no docstring"),
    "no docstring of a method": (
        DOC + "class A:\n    'A.'\n    def f(self):\n        pass\n",
        "4: f has no docstring",
    ),
    "exports out of order": (DOC + "__all__ = ['Text', 'Message']\n", "2: __all__ is not sorted"),
    "an export twice": (DOC + "__all__ = ['Text', 'Text']\n", "2: __all__ is not sorted"),
    "computed exports": (DOC + "__all__ = [*names]\n", "2: __all__ is not a list of literal names"),
    "deep inheritance": (
        DOC + "class A(Struct):\n    'A.'\nclass B(A):\n    'B.'\n",
        "4: B inherits 2 deep; at most 1",
    ),
    "deep generic inheritance": (
        DOC + "class A(Struct):\n    'A.'\nclass B(A[int]):\n    'B.'\n",
        "4: B inherits 2 deep; at most 1",
    ),
    "a word that strangers trip over": (
        DOC + "def f():\n    'Return what the model is told.'\n",
        "3: uses 'told'; write reported, shown, passed",
    ),
    "such a word in a comment": (DOC + "x = 1  # Where it stands.\n", "2: uses 'stands'; write is, is placed"),
    "a riddle": (DOC + "def f():\n    'What a model reads.'\n", "3: opens with 'What'"),
    "not Python": ("def\n", "1: cannot be parsed"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_source_is_named_with_its_line(tmp_path: Path, what: str) -> None:
    text, expected = BAD[what]
    found = [str(breach) for breach in breaches(tree(tmp_path, {"src/lading/room.py": text}))]
    assert len(found) == 1
    assert found[0].startswith(f"src/lading/room.py:{expected}")


def test_classes_of_other_modules_count_as_inheritance(tmp_path: Path) -> None:
    files = {
        "src/lading/shape.py": DOC + "class Shape(Struct):\n    'A.'\n",
        "src/lading/by_name.py": DOC + "from lading.shape import Shape\nclass A(Shape):\n    'A.'\n",
        "src/lading/by_module.py": DOC + "from lading import shape\nclass B(shape.Shape):\n    'A.'\n",
    }
    found = [breach.path for breach in breaches(tree(tmp_path, files))]
    assert found == ["src/lading/by_module.py", "src/lading/by_name.py"]


def test_two_rooms_have_no_classes_of_one_name(tmp_path: Path) -> None:
    one, other = (DOC + f"class {name}:\n    'It.'\n" for name in ("Place", "_Place"))
    found = breaches(
        tree(tmp_path, {"src/lading/__init__.py": DOC, "src/lading/a.py": one, "src/lading/b.py": other})
    )
    assert [breach.path for breach in found] == ["src/lading/a.py", "src/lading/b.py"]
    assert "Place is a class in src/lading/b.py too" in found[0].what


def test_a_room_says_what_it_does_not_know_and_where_to_start(tmp_path: Path) -> None:
    room = "src/lading/room/__init__.py"
    whole = "'Rooms.\\n\\nKnows no door. Start\\nwith ``a.py``.'\n"
    assert breaches(tree(tmp_path, {"src/lading/__init__.py": DOC, room: whole})) == []
    found = breaches(tree(tmp_path, {"src/lading/__init__.py": DOC, room: DOC}))
    assert [str(breach).partition(": ")[2] for breach in found] == [
        "the docstring of the room has no 'knows'",
        "the docstring of the room has no 'start with'",
    ]


def test_quoted_names_are_no_prose(tmp_path: Path) -> None:
    text = DOC + "def f():\n    'Return the field ``told``.'\n"
    assert breaches(tree(tmp_path, {"src/lading/__init__.py": DOC, "src/lading/a.py": text})) == []


def test_errors_may_inherit_three_deep(tmp_path: Path) -> None:
    names = ["Exception", "A", "B", "C", "D"]
    text = DOC + "".join(f"class {n}({base}):\n    'It.'\n" for base, n in pairwise(names))
    found = [breach.what for breach in breaches(tree(tmp_path, {"src/lading/errors.py": text}))]
    assert found == ["D inherits 4 deep; at most 3"]


def test_an_import_cycle_is_found_through_any_form_of_import(tmp_path: Path) -> None:
    files = {
        "src/lading/__init__.py": DOC + "from lading.room.first import x\n",
        "src/lading/room/__init__.py": ROOM,
        "src/lading/room/first.py": DOC + "import lading.second\n",
        "src/lading/second.py": DOC + "from lading.room import third\n",
        "src/lading/room/third.py": DOC + "from .first import x\n",
    }
    [found] = breaches(tree(tmp_path, files))
    assert found.what.startswith("import cycle: ")
    assert all(name in found.what for name in ("lading.room.first", "lading.second", "lading.room.third"))


def test_a_name_from_the_package_is_no_cycle_when_it_is_a_module(tmp_path: Path) -> None:
    files = {
        "src/lading/__init__.py": DOC + "from lading.first import x\n",
        "src/lading/first.py": DOC + "from lading import second\n",
        "src/lading/second.py": DOC,
    }
    assert breaches(tree(tmp_path, files)) == []


@pytest.mark.parametrize("path", ["src/lading/utils.py", "tests/helpers/test_a.py", "bench/common.py"])
def test_names_that_say_nothing_are_refused(tmp_path: Path, path: str) -> None:
    [found] = breaches(tree(tmp_path, {path: DOC}))
    assert "says nothing" in found.what


def test_the_rim_may_do_what_the_core_may_not(tmp_path: Path) -> None:
    text = DOC + "def f():\n    'F.'\n    import os\n" + CATCH_ALL
    assert breaches(tree(tmp_path / "rim", {"src/lading/cli/show.py": text})) == []
    assert len(breaches(tree(tmp_path / "core", {"src/lading/history/log.py": text}))) == 2


def test_who_is_listed_as_knowing_provider_fields_names_some() -> None:
    for path in check_limits.FORMAT_READERS:
        file = ROOT / (path if path.endswith(".py") else f"src/lading/{path}")
        texts = [one.read_text("utf-8") for one in ([file] if file.is_file() else file.rglob("*.py"))]
        assert any(f'"{name}"' in text for text in texts for name in check_limits.PROVIDER_FIELDS), path


def test_only_the_named_guard_may_catch_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "    'F.'\n" + CATCH_ALL
    folder = tree(tmp_path, {"src/lading/engine.py": DOC + f"def guarded():\n{body}def other():\n{body}"})
    monkeypatch.setattr(check_limits, "GUARDS", {"src/lading/engine.py:guarded": "user callables"})
    assert [breach.line for breach in breaches(folder)] == [12]
    assert len(check_limits.GUARDS) == 1


def test_a_listed_file_may_be_long_but_not_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_limits, "LONG_FILES", {"src/lading/room.py": "one table"})
    path = "src/lading/room.py"
    assert breaches(tree(tmp_path, {path: DOC + "x = 1\n" * 599})) == []
    assert "at most 600" in breaches(tree(tmp_path, {path: DOC + "x = 1\n" * 600}))[0].what
    assert "is not long" in breaches(tree(tmp_path, {path: DOC}))[0].what


def test_a_listed_function_may_be_wide_but_not_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_limits, "WIDE_FUNCTIONS", {"src/lading/room.py:wrap": "options of users"})
    path, names = "src/lading/room.py", "abcdefghijklm"
    for width, said in ((12, []), (13, ["wrap has 13 parameters; at most 12"])):
        text = DOC + f"def wrap(*, {', '.join(names[:width])}):\n    'It.'\n"
        assert [breach.what for breach in breaches(tree(tmp_path, {path: text}))] == said
    other = tree(tmp_path, {path: DOC + f"def fit(*, {', '.join(names[:9])}):\n    'It.'\n"})
    assert [breach.what for breach in breaches(other)] == ["fit has 9 parameters; at most 8"]


def test_a_listed_function_may_take_more_by_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_limits, "AS_DOCUMENTED", {"src/lading/room.py:allocate": "as the document has it"})
    text = DOC + "def allocate(a, b, c):\n    'It.'\n\n\ndef divide(a, b, c):\n    'It.'\n"
    found = breaches(tree(tmp_path, {"src/lading/room.py": text}))
    assert [breach.what for breach in found] == ["divide: make c keyword-only"]


def test_the_house_has_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree(tmp_path, {"src/lading/history/log.py": DOC + "x = 1\n" * 9, "src/lading/cli/show.py": DOC})
    monkeypatch.setattr(check_limits, "LOWER_FLOORS_LINES", 10)
    monkeypatch.setattr(check_limits, "SOURCE_LINES", 11)
    assert breaches(folder) == []
    monkeypatch.setattr(check_limits, "LOWER_FLOORS_LINES", 9)
    monkeypatch.setattr(check_limits, "SOURCE_LINES", 10)
    assert [breach.what for breach in breaches(folder)] == [
        "11 lines; at most 10",
        "floors 0 to 6 have 10 lines; at most 9",
    ]


def test_one_guard_at_most() -> None:
    assert len(check_limits.GUARDS) <= 1


def test_the_command_prints_breaches_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    assert main([str(tree(good, {"src/lading/history/log.py": DOC}))]) == 0
    assert capsys.readouterr().out == ""
    assert main([str(tree(bad, {"src/lading/history/log.py": "x = 1\n"}))]) == 1
    assert capsys.readouterr().out == "src/lading/history/log.py:1: the module has no docstring\n"


PATIENT: dict[str, str] = {
    "what must come": "found = until('a row', rows)\nhappened(event, 'the answer')\n",
    "the patience of every test": "process.wait(PATIENCE_S)\nselect([output], [], [], waiting.PATIENCE_S)\n",
    "the same in milliseconds": "page.goto(url, timeout=1000 * PATIENCE_S)\n",
    "as long as it takes": "process.wait()\nthread.join()\nprocess.communicate(timeout=None)\nqueue.get()\n",
    "not at all": "select([output], [], [], 0)\n",
    "a step of the loop": "async def f():\n    await asyncio.sleep(0)\n",
    "what Lading is given": "Summarizer(hang, timeout_s=0.05)\nstore.lease('acme', 's1', wait_s=20.0)\n",
    "no deadline": "settings(max_examples=9, deadline=None)\n",
    "every check of Hypothesis": (
        "settings(suppress_health_check=list(HealthCheck))\n"
        "settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])\n"
    ),
    "words that are joined, values that are looked up": (
        "'-'.join(words)\nmark.join(row * 3)\nos.path.join(a, b)\nvalues.get('a', 1)\nresult('ok')\n"
    ),
    "a date that is given": "datetime(2025, 1, 1)\ndate.fromisoformat(text)\n",
}


@pytest.mark.parametrize("what", PATIENT)
def test_a_test_may_wait_for(tmp_path: Path, what: str) -> None:
    assert breaches(tree(tmp_path, {"tests/room/test_wait.py": DOC + PATIENT[what]})) == []


BOUNDED = {
    "started = time.perf_counter()": "reads a clock (perf_counter)",
    "started = time.process_time_ns()": "reads a clock (process_time_ns)",
    "wrap(client, clock=time.monotonic)": "reads a clock (monotonic)",
    "took = thread_time() - started": "reads a clock (thread_time)",
    "from time import time": "reads a clock (time)",
    "now = time.time()": "reads a clock (time)",
    "wrap(client, clock=time.time)": "reads a clock (time)",
    "now = asyncio.get_running_loop().time()": "reads a clock (time)",
    "now = datetime.now(UTC)": "reads a clock (datetime.now)",
    "now = datetime.date.today()": "reads a clock (date.today)",
    "time.sleep(0.1)": "sleeps; wait for what must come",
    "time.sleep(0)": "sleeps; wait for what must come",
    "sleep(pause_s)": "sleeps; wait for what must come",
    "asyncio.sleep(30)": "sleeps; wait for what must come",
    "process.communicate(timeout=60)": "communicate ends after a time of its own",
    "process.communicate(text, 60)": "communicate ends after a time of its own",
    "process.wait(LIMIT)": "wait ends after a time of its own",
    "event.wait(20)": "wait ends after a time of its own",
    "thread.join(wait_s)": "join ends after a time of its own",
    "thread.join(2 * WAIT_S)": "join ends after a time of its own",
    "future.result(120)": "result ends after a time of its own",
    "queue.get(True, 5)": "get ends after a time of its own",
    "queue.get(timeout=5)": "get ends after a time of its own",
    "lock.acquire(True, 5)": "acquire ends after a time of its own",
    "select([output], [], [], 0.1)": "select ends after a time of its own",
    "subprocess.run(command, timeout=9)": "run ends after a time of its own",
    "asyncio.wait_for(task, 0.2)": "wait_for ends after a time of its own",
    "asyncio.timeout(5)": "timeout ends after a time of its own",
    "threading.Timer(0.05, close).start()": "Timer ends after a time of its own",
    "pytestmark = pytest.mark.timeout(10)": "timeout ends after a time of its own",
    "expect(page).to_be_visible(timeout=500)": "to_be_visible ends after a time of its own",
    "page.wait_for_timeout(500)": "wait_for_timeout ends after a time of its own",
    "settings(deadline=200)": "settings ends after a time of its own",
    "settings(suppress_health_check=[HealthCheck.data_too_large])": "bounds the seconds that Hypothesis may take",
}


@pytest.mark.parametrize("line", BOUNDED)
def test_a_bound_on_seconds_in_a_test_is_found(tmp_path: Path, line: str) -> None:
    found = breaches(tree(tmp_path, {"tests/room/test_wait.py": f"{DOC}{line}\n"}))
    assert [str(breach).partition(": ")[0] for breach in found] == ["tests/room/test_wait.py:2"]
    assert found[0].what.startswith(BOUNDED[line])


def test_outside_tests_seconds_are_no_matter(tmp_path: Path) -> None:
    text = DOC + "\n".join(BOUNDED)
    assert breaches(tree(tmp_path, {"bench/store.py": text, "src/lading/cli/top.py": text})) == []


def test_who_is_listed_as_knowing_seconds_knows_some(tmp_path: Path) -> None:
    known = dict.fromkeys(SECONDS, DOC + "time.sleep(1)\n")
    assert breaches(tree(tmp_path / "known", known)) == []
    [found] = breaches(tree(tmp_path / "unknown", {"tests/waiting.py": DOC}))
    assert str(found) == "tests/waiting.py:1: is listed as knowing seconds but does not; take it from SECONDS"

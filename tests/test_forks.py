"""A child that is forked beside busy threads waits for none that it does not have, and writes what it is told is
written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lading.memory import open_memory
from lading.stores.sqlite import open_sqlite
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")

FORKING = f"""
import os, signal, sys, threading
from time import sleep

def fork(child):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    signal.alarm({int(PATIENCE_S)})
    try:
        child()
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)
"""


def run(code: str, *arguments: object) -> None:
    given = [sys.executable, "-c", FORKING + code, *map(str, arguments)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=2 * PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


BUSY = """
from lading.stores.sqlite import open_sqlite
from tests.stores.samples import entries
folder, closes = sys.argv[1], sys.argv[2] == "True"
store, inside, left = open_sqlite(folder), threading.Event(), []

def append():
    with store._connection.use("BEGIN IMMEDIATE") as sql:
        inside.set()
        sleep(0.3)
        left.append(True)
    store.append("acme", "parent", entries=entries(0, 3))

def child():
    assert left
    if closes:
        store.close()
    with open_sqlite(folder) as own:
        own.append("acme", "child", entries=entries(0, 3))

thread = threading.Thread(target=append)
thread.start()
inside.wait()
ended = fork(child)
thread.join()
store.close()
sys.exit(ended)
"""


@pytest.mark.parametrize("closes", [False, True], ids=["open", "closed"])
def test_a_fork_waits_for_the_thread_that_writes(closes: bool, tmp_path: Path) -> None:
    run(BUSY, tmp_path / "store", closes)
    with open_sqlite(tmp_path / "store") as store:
        assert store.counts("acme", "parent") == store.counts("acme", "child") == (3, 0, 0)


WITHIN = """
from lading.stores.sqlite import open_sqlite
from lading.stores.sqlite_connection import connecting
from tests.stores.samples import entries
folder = sys.argv[1]
with open_sqlite(folder) as store:
    store.append("acme", "parent", entries=entries(0, 3))
    with connecting, store._connection.use("BEGIN IMMEDIATE") as sql:
        sql.execute("PRAGMA cache_size = 10")  # So that most of what follows is in the log already.
        rows = [(f"own-{number:05}-" + 200 * "x",) for number in range(9_000)]
        add = "INSERT INTO session (tenant, name, entries, edits, manifests) VALUES ('acme', ?, 0, 0, 0)"
        sql.executemany(add, rows)
        # As a handler of signals does that forks in this moment.
        ended = fork(store.close)
sys.exit(ended)
"""


def test_a_fork_within_a_transaction_leaves_it_to_the_parent(tmp_path: Path) -> None:
    run(WITHIN, tmp_path / "store")
    with open_sqlite(tmp_path / "store") as store:
        assert len(store.sessions(prefix="own-")) == 9_000
        assert store.counts("acme", "parent") == (3, 0, 0)


OTHER = """
import os, subprocess, sys, lading
from lading.memory import open_memory

kind, folder, name, code, closes = sys.argv[1:]

def begin(name):
    if kind == "memory":
        return open_memory(folder, user=name)
    return lading.Session("gpt-5-mini", store=folder, name=name)

def write(one, text):
    one.remember(text) if kind == "memory" else one.add(text)

if name == "other":
    with begin(name) as other:
        write(other, "other")
"""
AGAIN = """
(opened, opens), (ended, ends) = os.pipe(), os.pipe()
parent = begin("parent")
write(parent, "parent")

def child():
    if closes:
        parent.close()
    own = begin("child")
    write(own, "first")
    os.write(opens, b".")
    os.read(ended, 1)
    write(own, "second")

def end():
    os.read(opened, 1)
    parent.close()
    subprocess.run([sys.executable, "-c", code, kind, folder, "other", "", ""], check=True)
    os.write(ends, b".")

thread = threading.Thread(target=end)
thread.start()
ended_with = fork(child)
thread.join()
sys.exit(ended_with)
"""


@pytest.mark.parametrize("closes", ["", "closed"], ids=["open", "closed"])
@pytest.mark.parametrize("kind", ["memory", "session"])
def test_a_child_that_opens_the_folder_again_keeps_what_it_writes(kind: str, closes: str, tmp_path: Path) -> None:
    """While its parent closes the folder, and another process is the last to have it open."""
    folder = tmp_path / "store"
    run(OTHER + AGAIN, kind, folder, "parent", OTHER, closes)
    if kind == "memory":
        with open_memory(folder, user="child") as memory:
            assert {record.text for record in memory.list()} == {"first", "second"}
    else:
        with open_sqlite(folder) as store:
            assert store.counts("default", "child")[0] == 2


COMPUTING = """
from msgspec import Struct
from lading.lazy import lazy
from lading.structs import convert
inside, ends = threading.Event(), threading.Event()

def wait():
    if threading.current_thread() is not threading.main_thread():
        inside.set()
        ends.wait()

class Value:
    @lazy
    def slow(self):
        wait()
        return 1

class First(Struct):
    name: str
    def __post_init__(self):
        wait()

class Other(Struct):
    name: str

compute = (lambda: Value().slow) if sys.argv[1] == "attribute" else (lambda: convert({"name": "a"}, First))
again = (lambda: Value().slow) if sys.argv[1] == "attribute" else (lambda: convert({"name": "a"}, Other))
thread = threading.Thread(target=compute)
thread.start()
inside.wait()
threading.Timer(0.3, ends.set).start()
ended = fork(again)
thread.join()
sys.exit(ended)
"""


@pytest.mark.parametrize("what", ["attribute", "conversion"])
def test_a_child_computes_what_a_thread_of_its_parent_was_computing(what: str) -> None:
    run(COMPUTING, what)


WRAPPED = """
import httpx2 as httpx
from openai import OpenAI
from lading.clients import wrap
from lading.exchange.conversations import Conversations
folder, question = sys.argv[1] or None, [{"role": "user", "content": "Say hello."}]

def answer(_):
    message = {"role": "assistant", "content": "Hello."}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    made = {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-5"}
    made |= {"choices": [choice], "usage": usage}
    return httpx.Response(200, json=made)

def call():
    client.chat.completions.create(model="gpt-5", messages=question)

def wait(*given):
    if threading.current_thread() is not threading.main_thread():
        inside.set()
        ends.wait()
    return find(*given)

inside, ends, events, find = threading.Event(), threading.Event(), [], Conversations._find
plain = OpenAI(api_key="test", http_client=httpx.Client(transport=httpx.MockTransport(answer)))
client = wrap(plain, store=folder, on_event=events.append)
call()
Conversations._find = wait  # With the lock of the conversation.
thread = threading.Thread(target=call)
thread.start()
inside.wait()

def child():
    call()
    assert not [event for event in events if type(event).__name__ == "PackingFailed"], events

ended = fork(child)
ends.set()
thread.join()
client.close()
sys.exit(ended)
"""


@pytest.mark.parametrize("stores", [False, True], ids=["memory", "folder"])
def test_a_wrapped_client_starts_anew_in_a_child(stores: bool, tmp_path: Path) -> None:
    folder = str(tmp_path / "store") if stores else ""
    run(WRAPPED, folder)
    if stores:
        with open_sqlite(folder) as store:
            # The parent asks the same twice, and the child once more.
            assert sum(len(store.load(*name).entries) for name in store.sessions()) > 2


WORKERS = """
import lading
folder, ends_first = sys.argv[1], sys.argv[2] == "True"
parent = lading.Session("gpt-5-mini", store=folder, name="parent")
parent.add("Hello.")
pipes = [os.pipe() for _ in range(3)]

def work(number):
    # Left open at the end, as by the workers of multiprocessing.
    session = lading.Session("gpt-5-mini", store=folder, name=f"worker-{number}")
    session.add("Hello.")
    os.write(1, b".")

workers = []
for number, (waits, _) in enumerate(pipes):
    if not (pid := os.fork()):
        os.read(waits, 1)
        work(number)
        os._exit(0)
    workers.append(pid)
if ends_first:
    parent.close()
for pid, (_, goes) in zip(workers, pipes):
    os.write(goes, b".")
    os.waitpid(pid, 0)
parent.close()
with lading.Session("gpt-5-mini", store=folder, name="last") as last:
    last.add("Hello.")
"""


@pytest.mark.parametrize("ends_first", [False, True], ids=["open", "closed"])
def test_workers_that_end_one_after_another_lose_nothing(ends_first: bool, tmp_path: Path) -> None:
    given = [sys.executable, "-c", FORKING + WORKERS, str(tmp_path / "store"), str(ends_first)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=2 * PATIENCE_S)
    assert (done.stdout, done.stderr) == ("...", "")
    with open_sqlite(tmp_path / "store") as store:
        assert [name for _, name in store.sessions()] == ["last", "parent", "worker-0", "worker-1", "worker-2"]


CHURN = """
import sqlite3, lading
from lading.memory import open_memory
from lading.stores.sqlite import open_sqlite
folder, stops, failed = sys.argv[1], threading.Event(), []

def add(name, at):
    with lading.Session("gpt-5-mini", store=f"{folder}/store-{at}", name=name) as session:
        session.add("Hello.")

def use(number, count):
    add(f"thread-{number}-{count}", number % 2)
    open_sqlite(f"{folder}/store-{number % 2}").sessions()  # Collected, not closed.
    with open_memory(f"{folder}/memory", user="ada") as memory:
        memory.remember(f"fact {number} {count}")
    open_memory(None, user="ada").remember("x")

def churn(number):
    count = 0
    try:
        while not stops.is_set():
            count += 1
            use(number, count)
    except Exception as error:
        failed.append(error)

def child():
    add(f"child-{forks}", forks % 2)
    with open_memory(f"{folder}/memory", user="ada") as memory:
        memory.remember(f"child {forks}")

for number in range(2):
    use(number, 0)  # Python's lock of a module that is being imported would not let a child go on.
held = open_sqlite(f"{folder}/store-0")
threads = [threading.Thread(target=churn, args=(number,)) for number in range(3)]
for one in threads:
    one.start()
ended = {}
for forks in range(40):
    ended[forks] = fork(child)
stops.set()
for one in threads:
    one.join()
print(*failed, *(f"{at}: {code}" for at, code in ended.items() if code), sep="", end="")
for number in range(2):
    with open_sqlite(f"{folder}/store-{number}") as store:
        assert len(store.sessions(prefix="child-")) == 20, store.sessions()
for path in ("store-0/lading.db", "store-1/lading.db", "memory/memory.db"):
    (found,) = sqlite3.connect(f"{folder}/{path}").execute("PRAGMA integrity_check").fetchone()
    assert found == "ok", (path, found)
"""


def test_threads_that_open_and_close_files_beside_forks_damage_none(tmp_path: Path) -> None:
    run(CHURN, tmp_path)

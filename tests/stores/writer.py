"""A process that appends rounds to a store until it is stopped: ``writer FOLDER ROUNDS [MOST_FILE_BYTES]``.

It goes on where the session stands and prints the number of each round once that is acknowledged. With a
third argument no file may grow above so many bytes, as on a full disk; the error is printed. An append
that another writer forestalled is tried again.
"""

import resource
import sys
from pathlib import Path

from lading import jsonbytes
from lading.errors import StoreError
from lading.stores import SessionStore
from lading.stores.sqlite import open_sqlite
from tests.stores.samples import edit, entry, manifest
from tests.waiting import be_patient


def blob(call: int) -> bytes:
    return f"blob of call {call} ".encode() * (1 if call % 2 else 4_000)


def append_round(store: SessionStore, call: int) -> None:
    """Two entries, one of them large at times, an edit, a blob and a manifest."""
    content = blob(call)
    store.append(
        "acme",
        "s1",
        entries=[entry(2 * call), entry(2 * call + 1, "large " * 8_000 if call % 3 == 0 else "")],
        edits=[edit(call)],
        manifest=manifest(call),
        call=call,
        blobs={jsonbytes.digest(content): content},
    )


def main(folder: str, rounds: int, most_file_bytes: int | None = None) -> None:
    be_patient()
    if most_file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_file_bytes, most_file_bytes))
    with open_sqlite(Path(folder), durability="normal") as store:
        store.append("acme", "s1")
        done = 0
        while done < rounds:
            call = store.load("acme", "s1").calls
            try:
                append_round(store, call)
            except StoreError as error:
                if "another writer was faster" in str(error):
                    continue
                print(f"error {type(error).__name__}: {error}", flush=True)
                return
            done += 1
            print(call, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *(int(number) for number in sys.argv[3:]))

"""A process that adds records and searches for them: ``writer FOLDER NAME ROUNDS``. It prints the id of each record
once that is acknowledged, and what it does not find again."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from lading.memory.records import MemoryRecord, Namespace
from lading.memory.sqlite_store import open_records
from lading.memory.store import Vectors
from tests.waiting import be_patient

OWNER = Namespace("acme", "crowd")


def text_of(name: str, number: int) -> str:
    return f"writer {name} round{number}x{name} " + f"filler{number % 7} " * (number % 50)


def main(folder: str, name: str, rounds: int) -> None:
    be_patient()
    with closing(open_records(Path(folder), durability="off")) as store:
        for number in range(rounds):
            record = MemoryRecord(text=text_of(name, number), namespace=OWNER, key=f"{name}-{number % 40}")
            vectors = Vectors("m", 2, {"0": (1.0, number)})
            [added] = store.add([record], vectors=vectors, at_s=float(number))
            print("added", added.id, flush=True)
            words = [f"round{number}x{name}"]
            found = [hit.id for hit in store.search_words(OWNER, words, at_s=0.0, limit=2)]
            near = store.search_vector(OWNER, (1.0, number), model="m", at_s=0.0, limit=500)
            if found != [added.id] or added.id not in [hit.id for hit in near]:
                print("missed", added.id, flush=True)
    print("done", name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

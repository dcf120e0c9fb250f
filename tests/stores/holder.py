"""A process that takes leases: ``holder FOLDER WAIT_S SESSION...`` (``-`` waits as long as it takes).

It prints ``held`` or the error, holds until a line comes in, lets go and prints ``released``.
"""

import sys
from contextlib import ExitStack

from lading.errors import SessionBusy
from lading.stores.sqlite import open_sqlite
from tests.waiting import be_patient


def main(folder: str, wait: str, *sessions: str) -> None:
    be_patient()
    with open_sqlite(folder, create=False) as store, ExitStack() as leases:
        try:
            for session in sessions:
                wait_s = None if wait == "-" else float(wait)
                leases.enter_context(store.lease("acme", session, wait_s=wait_s))
        except SessionBusy as error:
            print(f"busy {error}", flush=True)
            return
        print("held", flush=True)
        sys.stdin.readline()
        leases.close()
        print("released", flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])

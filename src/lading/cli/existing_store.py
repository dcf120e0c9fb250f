"""The store that a command was given to read."""

from __future__ import annotations

import os
from pathlib import Path

from lading.errors import StoreError
from lading.stores.sqlite import SqliteStore, open_sqlite
from lading.stores.sqlite_file import FILE_NAME

_SHOWN_STORES = 8


def open_existing(folder: str) -> SqliteStore:
    """The store in ``folder``, which must be there.

    Raises StoreError and StoreFormatError as ``open_sqlite`` does. Where only folders in ``folder`` hold
    stores, as after a replay of several strategies, the error names them.
    """
    place = Path(folder)
    # A folder that may not be read is for open_sqlite to tell: os.path.exists does not raise.
    if not os.path.exists(place / FILE_NAME):
        found = sorted(str(path.parent) for path in place.glob(f"*/{FILE_NAME}"))
        if found:
            shown = ", ".join(found[:_SHOWN_STORES])
            more = f" and {len(found) - _SHOWN_STORES} more" if len(found) > _SHOWN_STORES else ""
            raise StoreError(f"There is no store in {folder} itself, but in {shown}{more}. Name one of these.")
    return open_sqlite(folder, create=False)

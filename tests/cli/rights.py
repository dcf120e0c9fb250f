"""Run an action as somebody who may do less than root."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable

from tests.cli.commands import Ended

NOBODY = 65534


def as_nobody(action: Callable[[], Ended]) -> Ended:
    """What the action gives without the rights of root."""
    if os.geteuid() != 0:
        return action()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            os.write(write_end, pickle.dumps(tuple(action())))
        except BaseException:  # noqa: BLE001 - shown by the test, which sees no other output of the child
            os.write(write_end, pickle.dumps((-1, "", traceback.format_exc())))
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        data = answer.read()
    os.waitpid(child, 0)
    return Ended(*pickle.loads(data))

"""Scripts as files: what the strict provider's model replies, and its faults, in JSON."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from lading.errors import InputError
from lading.testing.answers import Fault
from lading.testing.script import FakeModel, Say, Script, Seen


class ScriptFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A script in a file."""

    replies: tuple[Say, ...]
    """Said in turn, one for each request of the task; the last one repeats."""
    aside: Say = Say("OK.")
    """Said to requests that offer none of the tools that replies call: titles, summaries and the like."""
    faults: dict[int, Fault] = {}
    """By the number of the call, from 1; retries and requests aside count."""

    def make_model(self) -> Script:
        """Make the model that says the replies."""
        model = FakeModel(self.replies)
        called = {use.name for say in self.replies for use in say.calls}

        def reply(seen: Seen) -> Say:
            return model(seen) if not called or called & seen.tools else self.aside

        return reply


def read_script(path: Path) -> ScriptFile:
    """Read a script. Raises InputError naming the place of what is wrong, OSError."""
    try:
        script = msgspec.json.decode(path.read_bytes(), type=ScriptFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: {error}. See docs/howto/strict-provider.md for the fields of a script."
        ) from error
    if not script.replies:
        raise InputError(f"{path}: give at least one reply in `replies`.")
    return script

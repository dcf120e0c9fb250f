"""Scripts as files: what the strict provider's model replies, and its faults, in JSON."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from lading.compaction.summary_prompt import SELF_OPENING
from lading.errors import InputError
from lading.structs import convert
from lading.testing.answers import Fault
from lading.testing.script import FakeModel, Say, Script, Seen


class ScriptFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A script in a file."""

    replies: tuple[Say, ...]
    """Said in turn, one for each request of the task; the last one repeats."""
    aside: Say = Say("OK.")
    """Said to requests that offer none of the tools that replies call (titles, summaries and the like), and to
    Lading's questions to the model of the conversation for a summary."""
    faults: dict[int, Fault] = {}
    """By the number of the call, from 1; retries and requests aside count."""

    def make_model(self) -> Script:
        """Make the model that says the replies."""
        model = FakeModel(self.replies)
        called = {use.name for say in self.replies for use in say.calls}

        def reply(seen: Seen) -> Say:
            goes_on = (not called or called & seen.tools) and not _asks_for_summary(seen)
            return model(seen) if goes_on else self.aside

        return reply


def _asks_for_summary(seen: Seen) -> bool:
    """Return whether the last text is Lading's question to the model of the conversation, which has its tools."""
    *_, last = ("", *(passage.text for passage in seen.passages()))
    return last.startswith(SELF_OPENING)


def read_script(path: Path) -> ScriptFile:
    """Read a script. Raises InputError naming the place of what is wrong."""
    try:
        script = convert(msgspec.json.decode(path.read_bytes()), ScriptFile, str_keys=True)
    except FileNotFoundError as error:
        raise InputError(f"There is no script {path}. Check the path.") from error
    except OSError as error:
        raise InputError(f"The script {path} cannot be read: {error.strerror or error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: {error}. See docs/howto/strict-provider.md for the fields of a script."
        ) from error
    if not script.replies:
        raise InputError(f"{path}: give at least one reply in `replies`.")
    return script

"""Sessions, what an agent's author holds: caller input becomes log entries, and a call becomes a ``Pack``.

Knows no HTTP and no SDK. Start with ``session.py``; ``matching.py`` tells new messages from known ones.
"""

import typing

from lading.moved import old_name

if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return old_name(__name__, name)

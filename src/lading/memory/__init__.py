"""Knowledge of an agent beyond its log: working notes, long-term records, and the search that finds them again.

It knows no session, request or provider format: a session asks it for hits and answers its tools from it.
Start with ``records.py`` (values), then ``store.py`` (what an engine must do), then ``agent_memory.py``.
"""

from lading.memory.agent_memory import open_memory

__all__ = ["open_memory"]

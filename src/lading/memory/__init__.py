"""Knowledge of an agent beyond its log: working notes, long-term records, and the search that finds them again.

It knows no session, request or provider format: a session asks it for hits and answers its tools from it.
Start with ``records.py`` (values), then ``store.py`` (what an engine must do), then ``agent_memory.py``. The engine
in SQLite is ``sqlite_store.py``: rows in ``rows.py``, words in ``terms.py``, ``word_index.py`` and
``word_search.py``, vectors in ``vectors.py``, ``vector_rows.py`` and ``held_vectors.py``, writes in ``adding.py``
and ``forgetting.py``. ``folder_index.py`` keeps a folder of notes in a memory.
"""

from lading.memory.agent_memory import open_memory
from lading.memory.folder_index import index_folder

__all__ = ["index_folder", "open_memory"]

"""Reports on sessions: one HTML page with the request of each call and its cost, which needs no network.

Knows no terminal and no network. Start with ``data.py``, the data of a page; ``stored.py`` and ``replayed.py``
convert a stored or a replayed session to it, and ``page.py`` writes the page.
"""

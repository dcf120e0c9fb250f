"""Everything that was said in a session, and what is shown of it: the log, its edits, and the view they give.

Knows no provider, budget or strategy. Start with ``log.py`` (the values), then ``view.py`` and ``history.py``.
"""

"""One step of a task as a request: how the window is divided among its layers, and what each layer shows.

Pure functions over frozen values. Knows no session, store, provider or strategy. Start with ``allocator.py``
(budgets by layer), then ``signals.py`` (what moves them) and ``selection.py`` (candidates within a budget).
"""

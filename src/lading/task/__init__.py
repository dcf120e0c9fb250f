"""One step of a task as a request: its payload, how the window is divided, what is shown, and when it is done.

Knows no session and no provider; ``artifacts.py``, ``citing.py``, ``recalled.py`` and ``candidate_search.py`` alone
read a store. Start with ``task.py`` (a
task and its steps) and ``packing.py``, which makes a payload: ``templates.py`` (its text), ``evidence.py`` (what it
may show), ``allocator.py`` and ``signals.py`` (budgets by layer), ``selection.py`` (candidates within a budget),
``record.py`` (what is kept of it). ``acceptance.py`` checks the answer.
"""

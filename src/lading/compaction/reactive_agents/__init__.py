"""What Reactive Agents says of history, under its own names and with its own numbers.

``steps.py`` reads a history as thoughts, actions and observations; ``scored.py``, ``progressive.py`` and
``synthesis.py`` are strategies over it (``synthesis_*.py`` its parts, ``phases.py`` what it tells the model to do
next), ``context.py`` builds a prompt from it. What differs from the documents, and why, stands in
``docs/reference/presets/reactive-agents.md``.
"""

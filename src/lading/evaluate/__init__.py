"""Evaluation of strategies on recorded sessions: replayed requests, their bills, and what they keep.

Knows no network and no terminal: requests to models are yielded. Start with ``replay.py`` and ``billing.py``."""

"""Audit of stored sessions: rebuild requests byte for byte, resolve pointers, find texts, explain their absence.

No strategy runs here. Start with ``replay.py``, then ``why.py``; ``restore.py`` answers the model's calls.
"""

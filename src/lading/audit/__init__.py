"""Audit of stored sessions: rebuild requests byte for byte, resolve pointers, find texts, explain their absence.

Knows no open session, and runs no strategy. Start with ``replay.py``, then ``why.py``; ``restore.py`` answers the
model's calls.
"""

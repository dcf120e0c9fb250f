"""Sessions, what an agent's author holds: caller input becomes log entries, and a call becomes a ``Pack``.

Knows no HTTP and no SDK. Start with ``session.py``; ``matching.py`` tells new messages from known ones.
"""

"""One call of a client, there and back, without I/O: packed, sent, answered, recorded.

Knows no HTTP library, SDK or asyncio. Start with ``exchange.py``, then ``call.py`` and ``conversations.py``.
"""

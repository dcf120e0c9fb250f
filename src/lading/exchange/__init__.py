"""One call of a client, without I/O: pack the request, send it, pass the answer on, record the reply.

Knows no HTTP library, no SDK and no asyncio. Start with ``exchange.py``, then ``call.py`` and
``conversations.py``.
"""

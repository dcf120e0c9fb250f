"""The request of a call: built from the view, counted, recorded in a manifest, and handed out as a ``Pack``.

Knows no session, client or strategy's reasons. Start with ``builder.py``, then ``manifest.py`` and ``recorder.py``.
"""

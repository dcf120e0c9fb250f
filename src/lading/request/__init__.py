"""The request of a call: built from the view, counted, recorded in a manifest, and handed out as a ``Pack``.

Knows no session and no strategy's reasons; of clients only ``summary_calls.py``, which asks a caller's own client.
Start with ``builder.py``, then ``fitting.py``, ``manifest.py`` and ``recorder.py``.
"""

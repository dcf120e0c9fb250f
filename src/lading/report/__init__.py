"""Reports on sessions: one HTML page with the request of each call and its cost, which needs no network.

``stored`` and ``replayed`` convert a stored or a replayed session to the page's data; ``page`` writes the page.
"""

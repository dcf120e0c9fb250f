"""A report on sessions: one page that shows what the model saw at each call, and what it cost.

``stored`` and ``replayed`` turn a session at rest, or one just replayed, into the page's data; ``page`` writes
the data and everything that shows it into one HTML file that needs no network.
"""

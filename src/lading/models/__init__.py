"""Model cards: facts about models, in dated rows, and the search for the card of a model name.

Knows values alone, no format and no counter. Start with ``card.py``, then ``catalog.py``."""

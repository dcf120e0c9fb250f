"""Model cards: facts about models, in dated rows, and the search for the card of a model name."""

"""Model cards: dated rows and how a model name finds its row."""

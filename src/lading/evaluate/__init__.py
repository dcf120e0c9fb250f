"""Evaluation of strategies on recorded sessions: replayed requests, their bills, and what they keep."""

"""Lading: know what your model is told, and what it costs."""

"""Recorded sessions run through the line: what each request would have been, and what it costs."""

"""Benchmarks: ``make bench`` prints every number that the README quotes."""

"""Documented strategies of other systems, a folder for each, under their own names and with their own numbers.

Like any strategy, a preset knows the view and the pressure. The ``__init__`` of a folder names its reference page.
"""

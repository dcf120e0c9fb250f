"""The strategies of the documents that Lading implements, a folder for each system, under their own names.

Knows what any strategy knows: views and pressure. Start with the ``__init__`` of a folder; it names its document.
"""

"""Reading what happened: requests rebuilt byte for byte, pointers resolved, texts found, absences explained.

Decides nothing and runs no strategy. Start with ``replay.py``, then ``why.py``; ``restore.py`` answers the model.
"""

"""Keep a provider's own summary when the messages around it are removed.

Such a summary is a part of a reply (``Opaque.is_summary``) in place of everything before it, often the only text
that names the task. The provider ignores what precedes it, so it is shown before the record or stub of its span.
"""

from __future__ import annotations

from msgspec.structs import replace

from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, is_summary


def find_summary(view: View, first: int, *, last: int) -> Message | None:
    """Return the newest provider's summary in the entries ``first`` to ``last``: its message, without other parts.
    It supersedes earlier ones."""
    message = next(view.summaries_between(first, last), None)
    return message and message.with_parts((next(filter(is_summary, reversed(message.parts))),))


def keep_summary(draft: Draft, view: View) -> Draft:
    """Return the draft with the newest provider's summary of its span first, unless a message that it keeps has
    it."""
    summary = find_summary(view, draft.first, last=draft.last)
    others = tuple(message for message in draft.replacement if message != summary)
    if summary is None or any(summary.parts[0] in message.parts for message in others):
        return draft
    return replace(draft, replacement=(summary, *others))

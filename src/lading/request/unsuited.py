"""Start the plan of a request, without the fields of its body that the history makes illegal."""

from __future__ import annotations

from lading.events import FieldLeftOut
from lading.history.history import History
from lading.history.plan import Plan
from lading.messages import Template
from lading.models.card import Card
from lading.wire import Wire


def start_plan(
    history: History, template: Template | None, *, wire: Wire, card: Card, call: int
) -> tuple[Plan, Template | None]:
    """Start the plan of a call with these fields, with an event for each illegal one. Return the fields that stay."""
    newest_first = (item.message for item in reversed(history.view.items))
    found = wire.find_unsuited(template, newest_first, card=card) if template else {}
    if template and found:
        template = {key: value for key, value in template.items() if key not in found}
    plan = history.plan(call=call, fields=template)
    plan.repairs += [FieldLeftOut(call, field, why) for field, why in found.items()]
    return plan, template

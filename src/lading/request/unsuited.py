"""Leave out fields of a body that its messages make illegal."""

from __future__ import annotations

from lading.events import FieldLeftOut
from lading.history.view import View
from lading.request.tools import Offer, make_offer
from lading.settings import Settings
from lading.wire import Wire


def suit(
    offer: Offer, view: View, *, wire: Wire, settings: Settings, call: int
) -> tuple[Offer, list[FieldLeftOut]]:
    """Return the offer without the fields that are illegal beside these messages, and an event for each."""
    fields, newest_first = offer.template or {}, (item.message for item in reversed(view.items))
    if not (found := wire.find_unsuited(fields, newest_first, card=settings.card)):
        return offer, []
    kept = {key: value for key, value in fields.items() if key not in found}
    suited = make_offer(offer.tools, kept, meter=settings.meter, transient=offer.transient)
    return suited, [FieldLeftOut(call, field, why) for field, why in found.items()]

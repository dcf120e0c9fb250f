"""Repair again what is shown: for another provider format or model, or for other fields of the body."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lading.addresses import relative
from lading.events import Repaired
from lading.history.log import Draft, Edit
from lading.history.plan import Plan
from lading.history.repair import LEFT_OUT, UNNAMED_CALL, Repairer, has_user
from lading.history.repair_rules import Placement, Repair, RepairResult, RepairStep
from lading.history.view import Item
from lading.messages import Message

REFITTED = "for another model: "
"""Starts the reason of an edit that shows what was shown before in another provider format."""


def refit(
    plan: Plan,
    repairer: Repairer,
    *,
    find_form: Callable[[int], Message],
    is_issued: Callable[[int, Message], bool],
    same_format: bool,
) -> None:
    """Repair all that the plan shows once more. Entries without an edit of a strategy are repaired from their raw
    form (``find_form``); ``is_issued``: whether a form has the reasoning as the provider gave it. ``same_format``:
    they were repaired for this provider format before. ``plan.repairs`` gets the events of repairs that change what
    is sent."""
    names: dict[str, str] = {}
    position, is_begun = 0, False
    while position < len(plan.view):
        entry = plan.view.items[position].entry
        draft, repairs = _draft_refit(
            plan,
            position,
            names,
            repairer=repairer,
            find_form=find_form,
            is_issued=is_issued,
            is_begun=is_begun,
            same_format=same_format,
        )
        if draft is not None:
            plan.apply(draft)
        plan.repairs += [Repaired(one.rule, entry, one.detail) for one in repairs if one.rule != UNNAMED_CALL]
        start, position = position, plan.view.span(entry, entry)[1]
        is_begun = is_begun or has_user(item.message for item in plan.view.items[start:position])
    repairer.show_as(names)


def _draft_refit(
    plan: Plan,
    start: int,
    names: dict[str, str],
    *,
    repairer: Repairer,
    find_form: Callable[[int], Message],
    is_issued: Callable[[int, Message], bool],
    is_begun: bool,
    same_format: bool,
) -> tuple[Draft | None, Sequence[Repair]]:
    """Return the draft for the items of one entry or edit, and its repairs; None where nothing changes.
    ``names``: ids of calls that got others so far. ``is_begun``: a message of the user is before.
    """
    items, first = plan.view.items, plan.view.items[start]
    shown = tuple(item.message for item in items[start : plan.view.span(first.entry, first.entry)[1]])
    raw_at = _find_raw(find_form(first.entry), shown) if first.kind in (None, "repaired") else -1
    before = items[start - 1].message if start else None
    repairs: list[Repair] = []
    found: list[Message] = []
    for at, now in enumerate(shown):
        form = find_form(first.entry) if at == raw_at else now
        # What needed no repair then is as the provider issued it.
        as_issued = (same_format and first.kind is None) or (at == raw_at and is_issued(first.entry, form))
        placement = Placement(before, first.entry, repairer.uses_tools, as_issued)
        repaired = repairer.repair_again(form, [now], placement=placement) or RepairResult((now,))
        repairs += repaired.repairs
        found += [repairer.rename(one, names, repairs=repairs) for one in repaired.messages]
        before = found[-1]
    if not is_begun:
        found = [*repairer.find_opening(found, repairs), *found]
    if tuple(found) == shown:
        # The encoder leaves out reasoning of another format: the message is the same, and shows less.
        return None, repairs if first.kind is None else ()
    return draft_shown(first, tuple(found), repairs=repairs, edits=plan.edits, when=REFITTED), repairs


def _find_raw(message: Message, shown: Sequence[Message]) -> int:
    """Return which of the messages shown for an entry is its own; -1 for none. Beside an assistant's message stand
    the results of its calls that were apart, or missing, and a turn that opens."""
    if len(shown) == 1:
        return 0
    found = (at for at, one in enumerate(shown) if one.role == "assistant" == message.role)
    return next(found, -1)


def fit(plan: Plan, step: RepairStep, *, entries: int) -> None:
    """Apply a repair to what the plan shows of each entry that it was not applied to yet."""
    position, _ = plan.view.span(plan.fitted, plan.fitted)
    while position < len(plan.view):
        first = plan.view.items[position]
        end = plan.view.span(first.entry, first.entry)[1]
        items = plan.view.items[position:end]
        found = [step(item.message, Placement(None, first.entry)) for item in items]
        if repairs := [repair for _, some in found for repair in some]:
            shown = tuple(message for message, _ in found)
            plan.apply(draft_shown(first, shown, repairs=repairs, edits=plan.edits))
            plan.repairs += [Repaired(repair.rule, first.entry, repair.detail) for repair in repairs]
        position = end
    plan.fitted = entries


def draft_shown(
    first: Item, shown: tuple[Message, ...], *, repairs: Sequence[Repair], edits: Sequence[Edit], when: str = ""
) -> Draft:
    """Draft the edit that shows other messages where an entry, or a strategy's edit, is shown; ``first``: the first
    of its items."""
    if first.edit < 0 or first.kind in ("repaired", "restated"):
        return draft_repair(RepairResult((), tuple(repairs)), shown, entry=first.entry, when=when)
    edit = edits[first.edit]
    reason = edit.reason if edit.reason.startswith(when) else when + edit.reason
    return Draft(edit.kind, edit.first, edit.last, shown, reason, edit.pointers, edit.summary)


def draft_repair(repaired: RepairResult, shown: tuple[Message, ...], *, entry: int, when: str = "") -> Draft:
    """Draft the edit of a repair of one entry; its reason is ``when``, and the rules."""
    # Without a rule, the message shows an orphan result that waited for the results around it.
    rules = dict.fromkeys(item.rule for item in repaired.repairs) or ([] if when == REFITTED else ["orphan_result"])
    pointers = (relative(str(entry)),) if LEFT_OUT in rules else ()
    return Draft("repaired", entry, entry, shown, when + ", ".join(rules), pointers)

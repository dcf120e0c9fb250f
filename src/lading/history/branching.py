"""The start of a session's log as that of another session, whose caller goes on from there in another way."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lading.addresses import parse
from lading.history.log import Edit, Entry


def copy_start(
    entries: Sequence[Entry], edits: Sequence[Edit], *, end: int, owner: tuple[str, str]
) -> tuple[list[Entry], list[Edit]]:
    """Return the entries before ``end``, and the edits of these alone, for the session of ``owner`` (tenant, name).
    Left out with an edit that reaches further are later ones of what it shows. What was reported of calls stays
    with the session that made them. Relative addresses in texts stay true."""

    def copy(edit: Edit, index: int) -> Edit:
        pointers = tuple(
            str(replace(parse(pointer), tenant=owner[0], session=owner[1])) for pointer in edit.pointers
        )
        return replace(edit, index=index, call=1, pointers=pointers)

    within: list[Edit] = []
    beyond: set[int] = set()
    for edit in edits:
        if edit.last < end and (edit.kind == "restated" or edit.first not in beyond):
            within.append(edit)
        else:
            beyond.add(edit.first)
    return (
        [replace(entry, usage=None, reply_id="") for entry in entries[:end]],
        [copy(edit, index) for index, edit in enumerate(within)],
    )

"""What ``lading`` offers is what its ``__all__`` says."""

from __future__ import annotations

import types
import typing

import lading


def test_exported_names_are_exactly_the_public_names() -> None:
    exported = set(getattr(lading, "__all__", ()))
    missing = {name for name in exported if not hasattr(lading, name)}
    assert not missing
    public = {
        name
        for name in dir(lading)
        if not name.startswith("_")
        and name != "annotations"
        and not isinstance(getattr(lading, name), types.ModuleType)
    }
    assert public - exported == set()


def test_every_event_that_a_caller_gets_is_offered() -> None:
    events = typing.get_args(lading.Event)
    assert {event.__name__ for event in events} <= set(lading.__all__)
    assert all(getattr(lading, event.__name__) is event for event in events)

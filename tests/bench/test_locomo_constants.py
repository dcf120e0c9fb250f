"""The check of the constants of the memory's search: each is chosen without what it is measured on."""

from __future__ import annotations

from bench.locomo_constants import CONSTANTS, Recalls, changed, check_constants, leave_out


def test_a_value_is_chosen_by_the_other_conversations() -> None:
    by_value = {1.0: {"a": (0.9,), "b": (0.5,), "c": (0.5,)}, 2.0: {"a": (0.1,), "b": (0.6,), "c": (0.7,)}}
    found = leave_out("X", by_value, shipped=1.0)
    assert [(one.conversation, one.chosen, one.by_budget, one.shipped) for one in found] == [
        ("a", 2.0, (0.1,), (0.9,)),
        ("b", 1.0, (0.5,), (0.5,)),
        ("c", 1.0, (0.5,), (0.5,)),
    ]


def test_each_value_is_in_force_while_it_is_measured_and_no_longer() -> None:
    before = [one.shipped for one in CONSTANTS]
    seen: list[list[int]] = []
    reach = next(one for one in CONSTANTS if one.name == "REACH")

    def measure() -> Recalls:
        seen.append([getattr(module, "REACH") for module in reach.modules])  # noqa: B009 - it is not exported
        return {"a": (1.0,), "b": (1.0,)}

    check_constants(measure, advance=lambda: None, constants=[reach])
    assert seen == [[1, 1], [2, 2], [3, 3]]
    for one in CONSTANTS:
        assert one.shipped in one.values
        with changed(one, one.values[0]):
            assert one.shipped == one.values[0]
    assert [one.shipped for one in CONSTANTS] == before

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lading.addresses import RESTORE
from lading.history.log import Edit, EditKind, Entry
from lading.history.view import LARGE_TOKENS, RESTORED_TOKENS, View, append_message, apply_edit, rebuild
from lading.messages import Message, Text, ToolResult, user_text
from tests.histories import answered, called, said
from tests.views import count, entries_of

MESSAGES = st.sampled_from(
    [
        user_text("Do the task."),
        Message("system", (Text("Be brief."),)),
        said("Done."),
        called("a"),
        called("a", "restore"),
        answered("a", "word " * 50),
        answered("a", "large " * LARGE_TOKENS),
        Message("user", (ToolResult("a", (Text("x" * 90),)), Text("and go on"))),
    ]
)
KINDS: list[EditKind] = ["repaired", "reshaped", "clipped", "cleared", "digested", "summarised", "dropped"]


def edit_of(index: int, first: int, last: int, shown: list[Message], kind: EditKind = "dropped") -> Edit:
    return Edit(index, 1, kind, first, last, tuple(shown), tuple(map(count, shown)), 0, "test")


def grown(entries: list[Entry]) -> View:
    view = View(entries)
    for entry in entries:
        append_message(view, entry.message, entry=entry.index, tokens=entry.tokens)
    return view


def find_large(view: View) -> list[int]:
    return [at for at in reversed(range(len(view))) if view.items[at].clearable_tokens >= LARGE_TOKENS]


def assert_alike(one: View, other: View) -> None:
    """Both views answer every question in the same way."""
    assert one.items == other.items
    positions = range(len(one) + 1)
    for ask in (
        View.tokens_before,
        View.clearable_before,
        View.replies_before,
        View.first_clearable,
        View.last_entry,
    ):
        assert [ask(one, position) for position in positions] == [ask(other, position) for position in positions]
    assert one.list_large(0, len(one)) == other.list_large(0, len(one)) == find_large(one)
    assert (one.head, one.tokens, one.messages) == (other.head, other.tokens, other.messages)
    assert (one.rounds, one.newest_request) == (other.rounds, other.newest_request)
    assert list(one.raw_between(0, len(one) + 99)) == list(other.raw_between(0, len(other) + 99))
    for tail in range(-1, one.tokens + 9, 7):
        assert one.find_tail(tail) == other.find_tail(tail)
    most = max((item.entry for item in one.items), default=0) + 2
    for first in range(most):
        for last in range(first, most):
            assert one.span(first, last) == other.span(first, last)
            assert [*one.admitted_between(first, last)] == [*other.admitted_between(first, last)]


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[list[Entry], list[Edit]]]:
    """A log as it grows: after each step, its entries and the edits made so far. Spans may overlap."""
    entries: list[Entry] = []
    edits: list[Edit] = []
    steps = []
    for _ in range(draw(st.integers(1, 14))):
        if not entries or draw(st.booleans()):
            message = draw(MESSAGES)
            entries.append(Entry(len(entries), message, "", count(message)))
        else:
            first = draw(st.integers(0, len(entries) - 1))
            last = draw(st.integers(first, len(entries) - 1))
            shown = draw(st.lists(MESSAGES, max_size=3))
            edits.append(edit_of(len(edits), first, last, shown, draw(st.sampled_from(KINDS))))
        steps.append((list(entries), list(edits)))
    return steps


@given(logs())
def test_growing_equals_rebuilding(steps: list[tuple[list[Entry], list[Edit]]]) -> None:
    view, known_edits = View(steps[-1][0]), 0
    for entries, edits in steps:
        if len(edits) > known_edits:
            before = list(view.items)
            changed = apply_edit(view, edits[-1])
            assert view.items[:changed] == before[:changed]
            known_edits = len(edits)
        else:
            append_message(view, entries[-1].message, entry=entries[-1].index, tokens=entries[-1].tokens)
        assert_alike(view, rebuild(entries, edits))


@given(logs(), st.integers(-5, 400))
def test_running_sums_agree_with_counting_again(
    steps: list[tuple[list[Entry], list[Edit]]], tail_tokens: int
) -> None:
    entries, edits = steps[-1]
    view = rebuild(entries, edits)
    tokens = [item.tokens for item in view.items]
    clearable = [item.clearable_tokens for item in view.items]
    for position in range(len(view) + 1):
        assert view.tokens_before(position) == sum(tokens[:position])
        assert view.clearable_before(position) == sum(clearable[:position])
        holding = (here for here in range(position, len(view)) if clearable[here])
        assert view.first_clearable(position) == next(holding, len(view))
    fitting = (here for here in range(len(view)) if sum(tokens[here:]) <= tail_tokens)
    assert view.find_tail(tail_tokens) == next(fitting, len(view))


@given(logs())
def test_the_head_ends_at_the_first_assistant_entry_of_the_log(
    steps: list[tuple[list[Entry], list[Edit]]],
) -> None:
    entries, edits = steps[-1]
    view = rebuild(entries, edits)
    first = next((entry.index for entry in entries if entry.message.role == "assistant"), len(entries))
    assert view.head == sum(item.entry < first for item in view.items)


def test_the_head_stands_when_the_first_assistant_message_is_cut() -> None:
    history = [user_text("task"), called("a"), answered("a"), said("done"), user_text("more")]
    view = grown(entries_of(history))
    assert view.head == 1
    apply_edit(view, edit_of(0, 1, 2, [user_text("stub")]))
    assert view.head == 1
    assert [message.text for message in view.messages] == ["task", "stub", "done", "more"]


def test_a_tail_of_nothing_starts_at_the_end() -> None:
    view = grown(entries_of([user_text("task"), said("done")]))
    assert [view.find_tail(tail) for tail in (-5, 0, view.items[1].tokens, 10**9)] == [2, 2, 1, 0]


def test_without_an_assistant_message_everything_is_head() -> None:
    view = grown(entries_of([user_text("one"), user_text("two")]))
    assert view.head == len(view) == 2
    assert View().head == 0


def test_unchanged_messages_are_the_same_objects() -> None:
    history = [user_text("task"), called("a"), answered("a"), user_text("more")]
    view = grown(entries_of(history))
    apply_edit(view, edit_of(0, 2, 2, [answered("a", "short")], "clipped"))
    assert [view.messages[position] is history[position] for position in range(4)] == [True, True, False, True]


def test_sums_follow_an_edit_and_what_it_spans_is_gone_from_a_rebuilt_view_too() -> None:
    entries = entries_of(
        [user_text("task"), called("a"), answered("a", "word " * 99), said("ok"), user_text("more")]
    )
    view = grown(entries)
    before = view.tokens_before(5)
    edit = edit_of(0, 1, 3, [user_text("stub"), user_text("rules")])
    assert apply_edit(view, edit) == 1
    assert view.tokens == view.tokens_before(4) == sum(map(count, view.messages)) < before
    assert [view.clearable_before(position) for position in range(5)] == [0] * 5
    assert rebuild(entries, [edit]).items == view.items
    assert len(view) == 4


def test_results_can_be_cleared_once() -> None:
    entries = entries_of([user_text("task"), called("a"), answered("a", "word " * 99), said("ok")])
    assert rebuild(entries, []).first_clearable(0) == 2
    clipped = edit_of(0, 2, 2, [answered("a", "word")], "clipped")
    assert rebuild(entries, [clipped]).items[2].clearable_tokens == clipped.tokens_after
    cleared = edit_of(1, 2, 2, [answered("a", "note")], "cleared")
    assert rebuild(entries, [clipped, cleared]).clearable_before(4) == 0


def test_what_was_restored_is_not_clearable_up_to_its_size() -> None:
    def clearable(name: str, chars: int) -> int:
        return grown(
            entries_of([user_text("task"), called("a", name), answered("a", "x" * chars)])
        ).clearable_before(3)

    assert clearable(RESTORE, 4_000) == 0
    assert clearable("read", 4_000) == count(answered("a", "x" * 4_000))
    assert clearable(RESTORE, 4 * RESTORED_TOKENS) > RESTORED_TOKENS


def test_the_last_entry_before_a_position_counts_what_spans_hide() -> None:
    history = [user_text("task"), called("a"), answered("a"), called("b"), answered("b"), said("ok")]
    view = grown(entries_of(history))
    apply_edit(view, edit_of(0, 1, 4, [user_text("stub")]))
    assert [view.last_entry(position) for position in range(len(view) + 1)] == [-1, 0, 4, 5]
    apply_edit(view, edit_of(1, 1, 5, [user_text("stub")]))
    assert view.last_entry(len(view)) == 5
    assert View().last_entry(0) == -1


def test_how_an_entry_was_first_shown_is_known_whatever_came_later() -> None:
    history = [user_text("task"), called("a"), answered("a", "word " * 99), said("ok")]
    view = grown(entries_of(history))
    apply_edit(view, edit_of(0, 2, 2, [answered("a", "clipped")], "clipped"))
    apply_edit(view, edit_of(1, 2, 2, [answered("a", "note")], "cleared"))
    apply_edit(view, edit_of(2, 1, 3, [user_text("stub")]))
    assert list(view.admitted_between(1, 3)) == [
        (1, (history[1],)),
        (2, (answered("a", "clipped"),)),
        (3, (history[3],)),
    ]


def test_a_view_built_again_has_as_many_rounds_as_one_that_grew() -> None:
    history = [user_text("hi"), called("a"), answered("a"), called("b"), answered("b"), said("done")]
    entries = entries_of(history)
    assert rebuild(entries, []).rounds == grown(entries).rounds == 3


def test_what_was_withdrawn_is_pinned_no_more() -> None:
    entries = entries_of([user_text("task"), said("done"), user_text("Keep this."), said("ok")])
    pinned = edit_of(0, 2, 2, [user_text("Keep this.")], "pinned")
    assert list(rebuild(entries, [pinned]).pinned_between(0, 3)) == [user_text("Keep this.")]
    withdrawn = edit_of(1, 2, 3, [], "restated")
    assert list(rebuild(entries, [pinned, withdrawn]).pinned_between(0, 3)) == []


def test_what_was_pinned_stays_so_where_a_strategy_shows_it_in_an_edit_of_its_own() -> None:
    entries = entries_of([user_text("task"), called("a"), answered("a", "word " * 99), said("ok")])
    pinned = edit_of(0, 2, 2, [answered("a", "word " * 99)], "pinned")
    again = edit_of(1, 1, 2, [called("a"), answered("a", "word " * 99)], "reshaped")
    assert rebuild(entries, [pinned, again]).clearable_before(4) == 0
    assert rebuild(entries, [again]).clearable_before(4) > 0
    view = grown(entries)
    apply_edit(view, pinned)
    apply_edit(view, again)
    assert view.clearable_before(4) == 0

"""The fold that is as deep as a request needs: one that leaves room to spare, else one that fits, else a cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lading.compaction import span_folding
from lading.compaction.cutting import MOST_STUB_TOKENS, SPARE_SHARE, find_cut_points
from lading.compaction.span_folding import count_spare_tokens, deepen
from lading.history.view import View
from lading.messages import Message, user_text
from tests.histories import answered, called
from tests.views import admitted, pressure

REASON = "too_full: of words"


def rounds(number: int, words: int) -> list[Message]:
    """A task, and so many rounds with results of so many words."""
    pairs = ((called(f"c{n}"), answered(f"c{n}", "word " * words)) for n in range(number))
    return [user_text("Do it."), *(message for pair in pairs for message in pair)]


def test_the_first_fold_that_leaves_a_quarter_of_the_room_is_taken() -> None:
    view, now = admitted(rounds(10, 200)).view, pressure(2_000)
    (draft,) = deepen(view, reason=REASON, pressure=now)
    assert draft.kind == "summarised"
    assert draft.replacement[0].text.startswith("[too full summary]\n")
    assert count_spare_tokens(view, [draft], pressure=now) >= SPARE_SHARE * 2_000
    start, end = view.span(draft.first, draft.last)
    assert start == view.head
    # One round less would not have been enough.
    assert end - 2 in find_cut_points(view, now)
    stays = view.tokens_before(view.head) + view.tokens - view.tokens_before(end - 2)
    assert stays + MOST_STUB_TOKENS > (1 - SPARE_SHARE) * 2_000


def test_where_none_leaves_a_quarter_the_first_that_fits_is_taken() -> None:
    view = admitted([*rounds(3, 200), called("x"), answered("x", "word " * 1_200)]).view
    now = pressure(view.tokens - 300)
    (draft,) = deepen(view, reason=REASON, pressure=now)
    assert draft.kind == "summarised"
    assert 0 <= count_spare_tokens(view, [draft], pressure=now) < SPARE_SHARE * now.room_tokens


def test_where_no_state_fits_a_cut_is_made() -> None:
    view = admitted([*rounds(3, 200), called("x"), answered("x", "word " * 400)]).view
    kept = view.tokens - view.tokens_before(len(view) - 2)
    now = pressure(kept + view.tokens_before(view.head) + 60)
    (draft,) = deepen(view, reason=REASON, pressure=now)
    assert draft.kind == "dropped"
    assert count_spare_tokens(view, [draft], pressure=now) >= 0


def test_where_nothing_helps_there_is_nothing() -> None:
    view = admitted([*rounds(3, 200), called("x"), answered("x", "word " * 400)]).view
    assert deepen(view, reason=REASON, pressure=pressure(100)) == []


def test_the_order_of_what_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, int]] = []
    lefts: list[int] = []
    for name in ("_fold_before", "_cut_before"):

        def attempt(_view: View, point: int, left: int, *_: object, name: str = name) -> list[object]:
            tried.append((name, point))
            lefts.append(left)
            return []

        monkeypatch.setattr(span_folding, name, attempt)
    view, now = admitted(rounds(2, 9)).view, pressure(1_000)
    points = find_cut_points(view, now)
    assert points
    assert deepen(view, reason=REASON, pressure=now) == []
    assert tried == [(name, at) for name in ("_fold_before", "_cut_before") for _ in range(2) for at in points]
    spared, full = lefts[: len(points)], lefts[len(points) : 2 * len(points)]
    assert [more - less for less, more in zip(spared, full, strict=True)] == [250] * len(points)
    assert lefts[2 * len(points) :] == [*spared, *full]


@pytest.mark.parametrize("words", [0, 600], ids=["no request", "a request that is carried"])
@pytest.mark.parametrize("room_tokens", [400, 4_000])
def test_a_fold_of_a_long_history_reads_each_message_a_few_times(words: int, room_tokens: int) -> None:
    def count_reads(number: int) -> int:
        """How many items and entries are read to fold so many rounds."""
        reads = 0

        class Counted(list[Any]):
            def __getitem__(self, at: Any) -> Any:
                nonlocal reads
                reads += len(range(*at.indices(len(self)))) if isinstance(at, slice) else 1
                return super().__getitem__(at)

            def __iter__(self) -> Iterator[Any]:
                nonlocal reads
                reads += len(self)
                return super().__iter__()

        said = [user_text("Please " + "word " * words)] if words else []
        view = admitted([*rounds(2, 10), *said, *rounds(number, 10)[1:]]).view
        view._items, view._log = Counted(view._items), Counted(view._log)
        assert deepen(view, reason=REASON, pressure=pressure(room_tokens))
        return reads

    few, many = count_reads(500), count_reads(2_000)
    assert many < 5 * few
    assert few < 30 * 1_000

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lading.tokens.estimate import CLASS_OF_BYTE, ESTIMATE, WEIGHTS, WITHIN_MEDIAN, WITHIN_P95, occurrences
from lading.tokens.exact import O200K
from scripts.measure_estimator import corpus, errors

OTHER_SCRIPTS = [
    "上下文工程决定模型在每次调用时看到什么。我们保存全部历史，只在需要时压缩，并为每个请求写下清单。",
    "会話の履歴はすべて保存され、必要なときだけ短くまとめられます。要求ごとに明細が書かれます。",
    "Журнал хранит всё, что произошло в сессии. Каждый запрос можно собрать заново из манифеста.",
    "모델이 매번 무엇을 보는지 결정합니다. 모든 기록은 남고 필요할 때만 줄어듭니다.",
]


def test_chunks_it_was_not_fitted_to_are_within_the_stated_error() -> None:
    texts = corpus(chunks=30)
    assert len(texts) >= 15
    found = sorted(abs(error) for chunks in texts.values() for error in errors(chunks[::2], WEIGHTS))
    assert found[len(found) // 2] <= WITHIN_MEDIAN
    assert found[int(len(found) * 0.95)] <= WITHIN_P95


def test_other_scripts_are_within_twice_the_stated_error() -> None:
    for text in OTHER_SCRIPTS:
        assert abs(ESTIMATE.count(text) / O200K.count(text) - 1) <= 2 * WITHIN_P95


@settings(max_examples=100)
@given(st.text(st.characters(codec=None)))
def test_any_text_has_a_figure_and_only_the_empty_text_has_none(text: str) -> None:
    assert ESTIMATE.count(text) >= (1 if text else 0)
    assert ESTIMATE.count(text) == ESTIMATE.count(text[:] + "")


def test_long_runs_still_count() -> None:
    assert ESTIMATE.count("") == 0
    assert ESTIMATE.count("\ud83d") >= 1
    assert ESTIMATE.count("\n" * 64_000) >= 1_000
    assert ESTIMATE.count(" " * 64_000) >= 1_000


def test_classes_and_steps_are_counted() -> None:
    assert len(CLASS_OF_BYTE) == 256
    assert occurrences("ab C9\n中".encode(), ["l", "U", "d", "n", "z", "c", "sU", "Ud", "dl"]) == [
        2,
        1,
        1,
        1,
        1,
        2,
        1,
        1,
        0,
    ]


def test_a_figure_is_the_weights_and_nothing_else() -> None:
    assert ESTIMATE.count("a" * 1000) == WEIGHTS["l"]

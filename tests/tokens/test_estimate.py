from __future__ import annotations

import pydoc_data.topics
import random
import re
import sysconfig
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.tokens.estimate import (
    ESTIMATE,
    LEADS,
    LETTERS,
    SHAPES,
    UNITS_PER_TOKEN,
    WITHIN_MEDIAN,
    WITHIN_P95,
    compute_codes,
    load_weights,
)
from lading.tokens.exact import O200K
from scripts.estimator import generated
from scripts.estimator.corpus import chunks
from scripts.estimator.logs import logs
from scripts.estimator.measure import errors
from scripts.estimator.packages import File
from tests.examples import share_of_examples

OTHER_SCRIPTS = [
    "上下文工程决定模型在每次调用时看到什么。我们保存全部历史，只在需要时压缩，并为每个请求写下清单。",
    "会話の履歴はすべて保存され、必要なときだけ短くまとめられます。要求ごとに明細が書かれます。",
    "Журнал хранит всё, что произошло в сессии. Каждый запрос можно собрать заново из манифеста.",
    "모델이 매번 무엇을 보는지 결정합니다. 모든 기록은 남고 필요할 때만 줄어듭니다.",
    "Το ημερολόγιο κρατά όλα όσα συνέβησαν. Κάθε αίτημα μπορεί να ξαναφτιαχτεί από την απόδειξη.",
    "يحتفظ السجل بكل ما حدث في الجلسة. يمكن بناء كل طلب من جديد من الإيصال.",
    "היומן שומר את כל מה שקרה בשיחה. אפשר לבנות כל בקשה מחדש מתוך הקבלה.",
    "लॉग में सत्र की हर बात रहती है। हर अनुरोध को रसीद से फिर बनाया जा सकता है।",
    "บันทึกเก็บทุกสิ่งที่เกิดขึ้นไว้ และสร้างคำขอแต่ละครั้งขึ้นใหม่ได้จากใบเสร็จ",
    "Dziennik przechowuje wszystko, co się wydarzyło. Każde żądanie można odtworzyć z pokwitowania.",
]

_LIBRARY = Path(sysconfig.get_paths()["stdlib"])
_INCLUDES = Path(sysconfig.get_paths()["include"])


def _read(paths: Iterable[Path]) -> list[str]:
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths]


def _encoded(kind: str) -> list[str]:
    files = [File("python", "picture.png", random.Random(7).randbytes(100_000))]
    return [document.text for document in generated.encoded(files) if document.kind == kind]


def _words() -> list[str]:
    return re.findall(r"[a-z]{3,9}", "\n".join(pydoc_data.topics.topics.values()))[:20_000]


OF_THIS_PYTHON: dict[str, Callable[[], list[str]]] = {
    "English": lambda: list(pydoc_data.topics.topics.values()),
    "Python": lambda: _read(sorted(_LIBRARY.glob("*.py"))[:120]),
    "C": lambda: _read(sorted(_INCLUDES.glob("**/*.h"))),
    "rows": lambda: [document.text for document in generated.rows(_words())],
    "logs": lambda: [
        document.text for document in logs({"asyncio": "".join(_read(sorted(_LIBRARY.glob("asyncio/*.py"))))})
    ],
    "base64": lambda: _encoded("base64"),
    "hex": lambda: _encoded("hex"),
}
"""Texts that are on every machine with Python, or made here, and in no package of the corpus."""


@pytest.mark.parametrize("kind", OF_THIS_PYTHON)
def test_each_kind_of_text_of_this_python_is_within_the_stated_error(kind: str) -> None:
    found = errors(chunks(OF_THIS_PYTHON[kind](), count=60, seed=3))
    assert found.median <= WITHIN_MEDIAN
    assert found.p95 <= WITHIN_P95


@pytest.mark.parametrize("text", OTHER_SCRIPTS)
def test_a_sentence_in_another_script_is_within_twice_the_stated_error(text: str) -> None:
    assert abs(ESTIMATE.count(text) / O200K.count(text) - 1) <= 2 * WITHIN_P95


@given(st.text(st.characters(codec=None)))
def test_any_text_has_a_figure_and_only_the_empty_text_has_none(text: str) -> None:
    assert ESTIMATE.count(text) >= (1 if text else 0)
    assert ESTIMATE.count(text) == ESTIMATE.count(text[:] + "")


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_a_longer_text_counts_no_less(text: str, more: str) -> None:
    assert ESTIMATE.count(text) <= ESTIMATE.count(text + more)


def test_long_runs_still_count() -> None:
    assert ESTIMATE.count("") == 0
    assert ESTIMATE.count("\ud83d") >= 1
    assert ESTIMATE.count("\n" * 64_000) >= 1_000
    assert ESTIMATE.count(" " * 64_000) >= 1_000


def _numbers(classes: tuple[bytes, ...]) -> dict[int, int]:
    return {byte: number for number, members in enumerate(classes) for byte in members}


def _second(group: tuple[bytes, ...], lead: int, byte: int) -> int:
    number = next((number for number, leads in enumerate(group, 1) if lead in leads), 0)
    return number * 64 + (byte - 0x80 if 0x80 <= byte < 0xC0 else 0)


@pytest.mark.parametrize("classes", [SHAPES, LETTERS])
def test_every_byte_has_one_class(classes: tuple[bytes, ...]) -> None:
    assert len(classes) == 16
    assert sorted(b"".join(classes)) == list(range(256))


@share_of_examples(0.5)
@given(st.text(min_size=3))
def test_what_is_weighed_are_bytes_and_pairs_of_classes(text: str) -> None:
    data = text.encode()
    wide = bytes(byte for byte in data if byte >= 0x80)
    found = [list(several) for several in compute_codes(data)]
    expected = [list(data)]
    for numbers, apart in product((_numbers(SHAPES), _numbers(LETTERS)), (1, 2)):
        expected += [[numbers[a] * 16 + numbers[b] for a, b in zip(data, data[apart:], strict=False)]]
    if wide:
        for group in LEADS:
            seconds = [_second(group, a, b) for a, b in zip(b"\0" + wide, wide, strict=False)]
            expected += [seconds if any(byte in b"".join(group) for byte in wide) else []]
    assert found == expected


def test_a_figure_is_the_weights_and_nothing_else() -> None:
    text = "Żółw: [1, 22, 333]\n  漢字 and кот 🎉\n" * 100
    found = compute_codes(text.encode())
    units = sum(weights[code] for several, weights in zip(found, load_weights(), strict=True) for code in several)
    assert ESTIMATE.count(text) == -(-units // UNITS_PER_TOKEN)


def test_a_text_of_many_blocks_counts_as_its_parts_do() -> None:
    line = "The log keeps what happened: 17 calls, 3 errors.\n"
    assert ESTIMATE.count(line * 4_000) == pytest.approx(4_000 * ESTIMATE.count(line * 100) / 100, rel=0.01)

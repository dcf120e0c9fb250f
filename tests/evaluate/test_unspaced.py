"""Identifiers in scripts without spaces: what a text names, and which message holds it."""

from __future__ import annotations

import pytest

from lading.evaluate.unspaced import IdentifierFinder, find_script_identifiers
from lading.evaluate.value_recall import MessageTexts, ValueIndex
from tests.evaluate.sessions import said
from tests.growth import assert_linear, ladder


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("read src/a.py and build_7, 99 lines, 1200 rows", ["src/a.py", "build_7", "1200"]),
        ("错误码E4711已发生", ["E4711"]),
        ("第10行日志显示请求处理超时", ["第10行"]),
        ("见src/a.py文件第12345行", ["src/a.py", "12345"]),
        ("订单-2024-001已取消", ["2024-001"]),
        ("报告_7.txt", ["报告_7.txt"]),
        ("エラーE4711が発生しました。10行目を確認", ["E4711"]),
        ("2024年10月15日のログ", ["2024", "年10月", "月15日"]),
        ("ข้อผิดพลาดE4711ในบรรทัด", ["E4711"]),
        ("ລາຍການE4711ຖືກ", ["E4711"]),
        ("오류E4711에서", ["E4711"]),
        ("日志显示请求处理超时", []),
    ],
)
def test_identifiers_of_a_text(text: str, found: list[str]) -> None:
    assert list(find_script_identifiers(text)) == found


@pytest.mark.parametrize(
    ("value", "position"),
    [
        ("E4711", 1),
        ("E471", None),
        ("4711", None),
        ("第10行", 1),
        ("第99行", None),
        ("src/a.py", 2),
        ("rc/a", None),
        ("报告_7.txt", 2),
        ("E99", 0),
        ("Theme.draw", 3),
    ],
)
def test_the_first_message_that_holds_it(value: str, position: int | None) -> None:
    texts = ("查E99", "第10行错误码E4711已发生", "打开src/a.py和报告_7.txt文件", "Theme has draw, E4711")
    messages = [said("user", text) for text in texts]
    finder = IdentifierFinder(ValueIndex(messages, texts=MessageTexts()))
    assert finder.find_first(value) == position


@pytest.mark.parametrize("unit", ["第10行", "a.日", "a.b日志", "1", "1.", "日 "])
def test_long_runs_are_read_in_linear_time(unit: str) -> None:
    assert_linear(lambda text: list(find_script_identifiers(text)), *ladder(unit * 40_000))

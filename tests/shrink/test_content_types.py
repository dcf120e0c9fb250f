from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.shrink import SHRINKERS
from lading.shrink.shrinking import detect_content_type

PYTHON = """import os

class Cart:
    def total(self) -> float:
        return sum(item.price for item in self.items)
"""
TYPESCRIPT = """export function visible(text: string): number {
  const stripped = strip(text);
  return stripped.length;
}
"""
DIFF = """diff --git a/cart.py b/cart.py
--- a/cart.py
+++ b/cart.py
@@ -1,2 +1,2 @@
-total = 1
+total = 2
"""
TRACE = """Running checks
Traceback (most recent call last):
  File "cart.py", line 3, in total
    return 1 / 0
ZeroDivisionError: division by zero
"""
NODE_TRACE = """TypeError: items is not iterable
    at total (/srv/cart.js:10:14)
    at main (/srv/index.js:3:1)
"""
PROSE = """The cart keeps its items in the order in which they were added, and it never drops one silently.
When an item is added twice, its count goes up. Prices are read once, at the moment of the sale.
"""
CASES = {
    "json": [
        '{"name": "ada", "tags": []}',
        '[{"flight": "A1"}, {"flight": "B2"}]',
        "[1, 2, 3]",
        '{"a": 1}\n{"a": 2}\n',
        '  {"a": 1, "b": 2, "c": {"d": "cut off he',
    ],
    "code": [
        PYTHON,
        TYPESCRIPT,
        "".join(f"{number:6}\t{line}\n" for number, line in enumerate(PYTHON.splitlines(), 1)),
        "".join(f"{number}:{line}\n" for number, line in enumerate(TYPESCRIPT.splitlines(), 7)),
    ],
    "diff": [DIFF, f"Here is what changed:\n\n{DIFF}"],
    "trace": [TRACE, NODE_TRACE],
    "html": [
        "<!DOCTYPE html>\n<html><body>hi</body></html>",
        "<div><p>one</p><p>two</p><a href='x'>three</a></div>",
        "  % Total  % Received\n100  300\n<html>\n<p>fetched</p>\n</html>",
    ],
    "log": [
        "2026-01-02 10:00:00 started\n2026-01-02 10:00:01 ready\n2026-01-02 10:00:02 done\n",
        "INFO started\nWARNING disk is filling\nERROR disk is full\n",
        "\x1b[32mINFO\x1b[0m a\n\x1b[32mINFO\x1b[0m b\n\x1b[31mERROR\x1b[0m c\n",
        "a.ts(1,2): error TS1: no\nb.ts(3,4): error TS2: no\nc.ts(5,6): error TS3: no\n",
    ],
    "search": ["src/cart.py:12:total = 1\nsrc/cart.py:40:return total\n"],
    "listing": [
        "total 8\n-rw-r--r-- 1 ann ann 10 Jan 2 cart.py\n-rw-r--r-- 1 ann ann 10 Jan 2 shop.py\n",
        "src/cart.py\nsrc/shop.py\ntests/test_cart.py\n",
        "README.md\nsetup.cfg\npyproject.toml\n",
        ".\n├── src\n│   └── cart.py\n└── tests\n",
    ],
    "table": [
        "name,price,count\napple,1.20,3\npear,0.90,5\nplum,0.40,7\n",
        "name\tprice\napple\t1.20\npear\t0.90\n",
        "| name | price |\n|---|---|\n| apple | 1.20 |\n",
    ],
    "blob": [
        base64.b64encode(bytes(range(256)) * 3).decode(),
        "\x00\x01\x02\x03ELF\x00\x00\x00" * 20,
    ],
    "prose": [PROSE],
    "text": ["ok", "File created: cart.py", "5 passed in 0.1s", "[File: cart.py (200 lines)]", "335.0"],
    "empty": ["", "  \n\t"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in CASES.items() for text in texts])
def test_content_type(name: str, text: str) -> None:
    assert detect_content_type(text) == name


def test_every_type_has_a_case() -> None:
    assert set(CASES) == set(SHRINKERS)


@given(st.text(st.characters(exclude_categories=()), max_size=400))
def test_any_text_has_a_type(text: str) -> None:
    assert detect_content_type(text) in CASES


def test_a_long_text_is_judged_by_its_ends() -> None:
    assert detect_content_type("x " * 2_000_000 + "\n" + TRACE) == "trace"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "var a={b:1-2};" + "".join(f"function f{n}(e){{return e.b({n})}}" for n in range(300)),
            "text",
        ),
        (
            "/*! shop v1 */\n" + "!function(e){e.cart=1}(this);" * 300 + "\n//# sourceMappingURL=shop.js.map\n",
            "text",
        ),
        ("[" + ",".join(f'{{"id":{n},"name":"n{n}"}}' for n in range(900)) + "]", "json"),
        (",".join(map(str, range(3_000))), "text"),
        ("The harbour opens at six. Ships wait there for the tide. " * 200, "prose"),
    ],
    ids=["bundle", "bundle with a licence", "json", "numbers", "prose"],
)
def test_texts_of_one_long_line(text: str, kind: str) -> None:
    assert detect_content_type(text) == kind

from __future__ import annotations

import pytest

from lading.shrink import Target
from lading.shrink.traces import SHRINKER
from lading.tokens.estimate import ESTIMATE

LIBRARY = "".join(
    f'  File "/venv/lib/python3.12/site-packages/web/layer{number}.py", line {number}, in call\n    return next()\n'
    for number in range(40)
)
PYTHON = f"""Running the shop
Traceback (most recent call last):
  File "/srv/shop/run.py", line 10, in main
    serve()
{LIBRARY}  File "/srv/shop/cart.py", line 31, in total
    return price * count
           ~~~~~~^~~~~~~
{LIBRARY}  File "/usr/lib/python3.12/decimal.py", line 3, in mul
    raise TypeError
TypeError: no price for tea
"""
NODE = (
    "Uncaught TypeError: items is not iterable\n    at total (/srv/shop/cart.js:10:14)\n"
    + "".join(f"    at next (/srv/shop/node_modules/web/layer{number}.js:{number}:1)\n" for number in range(60))
    + "    at main (/srv/shop/index.js:3:1)\n    at node:internal/main/run:1:1\n"
)
JAVA = (
    'Exception in thread "main" shop.CartException: empty\n\tat shop.Cart.total(Cart.java:31)\n'
    + "".join(f"\tat org.springframework.web.Layer{number}.call(Layer.java:{number})\n" for number in range(60))
    + "\tat shop.Main.main(Main.java:3)\nCaused by: java.io.IOException: no stock\n\t... 12 more\n"
)
GO = (
    "panic: no price\n\ngoroutine 1 [running]:\nmain.total(0x1)\n\t/srv/shop/cart.go:31 +0x1d\n"
    + "".join(
        f"net/http.layer{number}(0x1)\n\t/usr/local/go/src/net/http/layer.go:{number} +0x2\n"
        for number in range(60)
    )
    + "main.main()\n\t/srv/shop/main.go:3 +0x5\nexit status 2\n"
)
RUST = (
    "thread 'main' panicked at src/cart.rs:31:5:\nno price\nstack backtrace:\n"
    + "".join(
        f"  {number:2}: core::ops::call{number}\n             at /rustc/1a/core/ops.rs:1:1\n"
        for number in range(60)
    )
    + "  60: shop::cart::total\n             at ./src/cart.rs:31:5\n"
    + "  61: std::rt::start\n             at /rustc/1a/rt.rs:1:1\n"
)
PYTEST = (
    "collected 121 items\n"
    + "".join(f"tests/test_cart.py::test_case_{number} PASSED   [ 10%]\n" for number in range(120))
    + """tests/test_cart.py::test_total FAILED   [ 99%]
================================== FAILURES ==================================
________________________________ test_total __________________________________
    def test_total():
>       assert total() == 4
E       assert 2 == 4
tests/test_cart.py:12: AssertionError
========================= 1 failed, 120 passed in 0.42s ======================
"""
)
JEST = (
    "PASS src/tea.test.js\n"
    + "".join(f"  ✓ serves cup {number} ({number} ms)\n" for number in range(120))
    + "FAIL src/cart.test.js\n  ✕ adds up (3 ms)\n  ● cart › adds up\n    Expected: 4\n    Received: 2\n"
    + "Tests:       1 failed, 120 passed, 121 total\n"
)
GO_TEST = (
    "".join(f"=== RUN   TestCup{number}\n--- PASS: TestCup{number} (0.00s)\n" for number in range(90))
    + "=== RUN   TestTotal\n    cart_test.go:12: got: 2, want: 4\n--- FAIL: TestTotal (0.00s)\n"
    + "FAIL\nFAIL\tshop/cart\t0.01s\n"
)
CARGO = (
    "running 121 tests\n"
    + "".join(f"test cup::serves_{number} ... ok\n" for number in range(120))
    + "test cart::total ... FAILED\n\nfailures:\n\n---- cart::total stdout ----\n"
    + "thread 'cart::total' panicked at src/cart.rs:3:5:\n"
    + "assertion `left == right` failed\n  left: 2\n right: 4\n\n"
    + "test result: FAILED. 120 passed; 1 failed; 0 ignored\n"
)
UNITTEST = (
    "".join(f"test_cup_{number} (test_tea.CupTest) ... ok\n" for number in range(120))
    + "test_total (test_cart.CartTest) ... FAIL\n\n======\nFAIL: test_total (test_cart.CartTest)\n------\n"
    + "Traceback (most recent call last):\n"
    + '  File "/srv/shop/test_cart.py", line 12, in test_total\n    self.assertEqual(total(), 4)\n'
    + "AssertionError: 2 != 4\n\nRan 121 tests in 0.004s\n\nFAILED (failures=1)\n"
)


def reduced(text: str, most_tokens: int, *terms: str) -> str:
    shrunk = SHRINKER.reduce(text, Target(most_tokens, terms, "artifact://t/s/log/7"), ESTIMATE.count)
    assert shrunk is not None
    assert shrunk.form == "trace.failures"
    return shrunk.text


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        (PYTHON, ["TypeError: no price for tea", "run.py", "cart.py", "return price * count", "decimal.py"]),
        (NODE, ["TypeError: items is not iterable", "cart.js", "index.js", "node:internal"]),
        (JAVA, ["shop.CartException: empty", "Cart.java:31", "Main.java:3", "Caused by: java.io.IOException"]),
        (GO, ["panic: no price", "main.total(0x1)", "cart.go:31", "main.go:3"]),
        (RUST, ["panicked at src/cart.rs", "60: shop::cart::total", "at ./src/cart.rs:31:5", "rt.rs"]),
    ],
    ids=["python", "node", "java", "go", "rust"],
)
def test_the_exception_the_end_frames_and_own_frames_stay_before_those_of_libraries(
    text: str, stays: list[str]
) -> None:
    shown = reduced(text, 240)
    assert [word for word in stays if word not in shown] == []
    assert "lines left out]" in shown


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        (PYTEST, ["test_total FAILED", "> ", "E       assert 2 == 4", "AssertionError", "1 failed, 120 passed"]),
        (JEST, ["FAIL src/cart.test.js", "✕ adds up", "Expected: 4", "Received: 2", "1 failed, 120 passed"]),
        (GO_TEST, ["cart_test.go:12: got: 2, want: 4", "--- FAIL: TestTotal", "FAIL\tshop/cart"]),
        (CARGO, ["cart::total ... FAILED", "panicked at", "left: 2", "right: 4", "test result: FAILED"]),
        (UNITTEST, ["FAIL: test_total", "AssertionError: 2 != 4", "test_cart.py", "Ran 121 tests", "failures=1"]),
    ],
    ids=["pytest", "jest", "go test", "cargo", "unittest"],
)
def test_failures_and_summaries_stay_and_passes_are_counted(text: str, stays: list[str]) -> None:
    shown = reduced(text, 230)
    assert [word for word in stays if word not in shown] == []
    assert "lines about passed tests left out]" in shown


def test_a_pass_that_is_asked_for_stays() -> None:
    assert "tests/test_cart.py::test_case_77 PASSED" in reduced(PYTEST, 230, "test_case_77")


def test_a_note_of_repeats_never_stays_without_what_repeats() -> None:
    steps = "".join(f"step {number}\nwait {number}\nstep {number}\nwait {number}\n" for number in range(90))
    shown = reduced(steps, 200).split("\n")
    notes = [place for place, line in enumerate(shown) if line == "[2 lines above, 1 more time]"]
    assert notes
    assert all(shown[place - 1].replace("wait", "step") == shown[place - 2] for place in notes)


def test_frames_of_a_recursion_are_counted() -> None:
    frame = '  File "/srv/shop/tree.py", line 3, in walk\n    walk(child)\n'
    shown = reduced(f"Traceback (most recent call last):\n{frame * 500}RecursionError: too deep\n", 100)
    assert shown.split("\n")[1:] == [
        "Traceback (most recent call last):",
        *frame.splitlines(),
        "[2 lines above, 499 more times]",
        "RecursionError: too deep",
    ]

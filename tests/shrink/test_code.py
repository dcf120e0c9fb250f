from __future__ import annotations

import sys
import warnings
from textwrap import dedent

import pytest

from lading.shrink import Shrunk, Target
from lading.shrink.code import SHRINKER
from lading.tokens.estimate import ESTIMATE
from tests.shrink.sources import GO, JAVA, PYTHON, RUST, SHELL, TSX, C


def reduced(text: str, most_tokens: int, *terms: str, whole: str = "") -> Shrunk:
    target = Target(min(most_tokens, ESTIMATE.count(text) - 1), terms, whole)
    shrunk = SHRINKER.reduce(text, target, ESTIMATE.count)
    assert shrunk is not None
    return shrunk


def test_python_shows_signatures_with_line_numbers_and_the_size_of_bodies() -> None:
    shown = reduced(PYTHON, 190, whole="artifact://t/s/log/3").text

    assert shown.startswith("[Source with line numbers; ")
    assert shown.splitlines()[0].endswith(" lines left out. Original: artifact://t/s/log/3]")
    for line in (
        "[3 lines of imports: os, collections.abc, decimal]",
        "10|@final",
        "|class Cart:",
        '|    """What a customer wants.',
        "19|    def total(",
        "|    ) -> Decimal:",
        '|        """The price of all.',
        "34|    def clear(self) -> None:",
        "42|async def load(path: str) -> Cart:",
        "[6 lines left out]",
    ):
        assert line in shown.splitlines(), line
    assert "cart.items.extend" not in shown


def test_bodies_with_words_of_the_request_come_whole() -> None:
    shown = reduced(PYTHON, 250, "zebra").text

    assert '|    parts = text.split("\\d")\n|    cart = Cart()\n' in shown
    assert "sums = [" not in shown


def test_marked_lines_come_before_other_bodies() -> None:
    shown = reduced(PYTHON, 220).text

    assert 'raise ValueError("negative")' in shown
    assert "# TODO: tell the warehouse" in shown
    assert "rounded = before" not in shown


def test_names_alone_where_the_outline_is_too_long() -> None:
    text = "\n".join(
        f"def function_{n}(first: int, second: str = 'x') -> None:\n    return {n}\n" for n in range(60)
    )

    shrunk = reduced(text, 150, "return 44")

    assert shrunk.form == "code.names"
    assert "1|function_0, 4|function_1, 7|function_2" in shrunk.text
    assert " of 60 definitions, all else left out]" in shrunk.text
    assert "|    return 44" in shrunk.text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            TSX,
            [
                "[3 lines of imports: react, ../lib/api, @/types]",
                "5|/** What the list needs. */",
                "6|export interface Props {",
                "11|export const UserList: React.FC<Props> = ({ users, onPick }) => {",
                "18|export default class Store extends Base {",
                "20|  add(user: User): void {",
                "25|  find = async (id: string) => {",
                '32|describe("store", () => {',
                '33|  it("adds", () => {',
            ],
        ),
        (
            GO,
            [
                "[4 lines of imports: errors, fmt]",
                "9|type Cart struct {",
                "14|type Pricer interface {",
                "15|	Price(item Item) (int, error)",
                "19|func (c *Cart) Total(p Pricer) (int, error) {",
            ],
        ),
        (
            RUST,
            [
                "6|pub struct Cart {",
                "11|impl Cart {",
                "13|    pub fn total(&self) -> Result<u64, Error> {",
                "22|mod tests {",
                "23|    fn empty_cart() {",
            ],
        ),
        (
            JAVA,
            [
                "7|public class Cart extends Base {",
                "10|    public Cart(List<Item> items) {",
                "16|    @Override",
                "|    public long total(Map<String, Long> prices) {",
            ],
        ),
        (
            C,
            [
                "4|struct node {",
                "10|static int push(struct list *l,",
                "|                int value)",
                "21|int main(void) {",
            ],
        ),
        (SHELL, ["4|build() {", "13|function clean {"]),
    ],
    ids=["tsx", "go", "rust", "java", "c", "shell"],
)
def test_each_language_shows_its_definitions(text: str, lines: list[str]) -> None:
    shown = reduced(text, ESTIMATE.count(text) * 5 // 6).text.splitlines()

    assert [line for line in lines if line not in shown] == []


@pytest.mark.parametrize("text", [TSX, GO, RUST, JAVA], ids=["tsx", "go", "rust", "java"])
@pytest.mark.parametrize("missing", ["tree_sitter", "grammar"])
def test_without_a_grammar_indentation_tells(text: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most = ESTIMATE.count(text) * 3 // 4
    with_grammar = [line for line in reduced(text, most).text.splitlines() if line[0] in "123"]
    grammars = [f"tree_sitter_{name}" for name in ("typescript", "javascript", "go", "rust", "java")]
    for name in ["tree_sitter"] if missing == "tree_sitter" else grammars:
        monkeypatch.setitem(sys.modules, name, None)

    shown = reduced(text, most).text

    heads = [line for line in with_grammar if line.endswith("{") and "find =" not in line and "it(" not in line]
    assert [line for line in heads if line not in shown and "describe" not in line] == []


@pytest.mark.parametrize("gutter", ["{:6d}\t{}", "{:6d}→{}", "{}|{}", "{}:{}", "{:4d} {}"])
def test_line_numbers_of_viewers_are_kept(gutter: str) -> None:
    lines = PYTHON.splitlines()
    numbered = "\n".join(gutter.format(n, line) for n, line in enumerate(lines, 401))
    text = f"Here is the file:\n{numbered}\n(end of the view)"

    shown = reduced(text, 200).text.splitlines()

    assert "Here is the file:" in shown
    assert "(end of the view)" in shown
    assert "410|@final" in shown
    assert "442|async def load(path: str) -> Cart:" in shown


def test_a_piece_cut_out_of_a_file_is_outlined() -> None:
    piece = "\n".join(f"{n:6d}\t{line}" for n, line in enumerate(PYTHON.splitlines(), 1) if 26 <= n <= 45)

    shown = reduced(piece, 110).text

    assert "34|    def clear(self) -> None:" in shown
    assert "42|async def load(path: str) -> Cart:" in shown


def test_a_piece_from_inside_one_body_keeps_what_is_asked_for() -> None:
    piece = "\n".join(PYTHON.splitlines()[24:30] * 6 + ["        zebra = rounded + 1"] + PYTHON.splitlines()[24:30])

    assert "|        zebra = rounded + 1" in reduced(piece, 60, "zebra").text


def test_jumps_of_a_viewer_stay_visible() -> None:
    text = "def f():\n    a = 1\n    b = 2\n    c = 3\n" * 3
    jumping = "\n".join(f"{n * 10:6d}\t{line}" for n, line in enumerate(text.splitlines(), 1))

    assert "10|def f():\n20|    a = 1" in reduced(jumping, ESTIMATE.count(jumping) - 5).text


def test_cat_n_paddings_are_lossless_to_leave_out() -> None:
    text = "\n".join(f"{n:6d}\t{line}" for n, line in enumerate(PYTHON.splitlines(), 1))

    (shrunk,) = SHRINKER.reshape(text)

    assert shrunk.text.startswith('1\t"""Carts')
    assert ESTIMATE.count(shrunk.text) < ESTIMATE.count(text)
    assert SHRINKER.decode(shrunk.text, shrunk.form) == text


@pytest.mark.parametrize("text", [PYTHON, "   1\tx = 1\n   2\ty = 2\n", "1\tx\n     2\ty\n", ""])
def test_what_would_not_come_back_is_not_reshaped(text: str) -> None:
    assert list(SHRINKER.reshape(text)) == []


@pytest.mark.parametrize("text", ["Ships wait. They leave at noon. Nobody knows why.", "a\nb\nc", "{}"])
def test_what_is_no_code_gives_none(text: str) -> None:
    assert SHRINKER.reduce(text * 20, Target(40), ESTIMATE.count) is None


def test_nothing_fits_gives_none() -> None:
    assert SHRINKER.reduce(PYTHON, Target(5), ESTIMATE.count) is None
    assert SHRINKER.reduce(PYTHON, Target(0), ESTIMATE.count) is None


def test_odd_escapes_and_numbers_warn_of_nothing() -> None:
    text = PYTHON + "\nODD = '\\d' if 1or 2 else 0\n"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "42|async def load" in reduced(text, 250).text


def test_long_lines_are_cropped_around_the_words() -> None:
    text = PYTHON + f"BLOB = '{'a' * 3000} zebra2 {'b' * 3000}'\n"

    shown = reduced(text, 300, "zebra2").text

    assert "zebra2" in shown
    assert " characters left out]" in shown


def test_of_a_huge_file_start_end_and_matching_lines_are_read() -> None:
    body = "\n".join(f"def part_{n}(x):\n    return x + {n}\n" for n in range(9_000))
    text = f"class First:\n    pass\n\n{body}\nclass Last:\n    pass\n"

    shown = reduced(text, 2_000, "4321").text

    assert "|    return x + 4321" in shown
    assert "|First" in shown


def test_braces_tell_where_nothing_is_indented() -> None:
    text = dedent(
        """
        class Cart {
        total(rate) {
        let sum = 0;
        sum = sum * rate;
        return sum;
        }
        clear(all) {
        this.items = [];
        this.total = 0;
        this.changed = true;
        }
        }
        """
    )

    shown = reduced(text, 55).text

    assert "2|class Cart {" in shown
    assert "3|total(rate) {" in shown
    assert "8|clear(all) {" in shown

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import UnknownName
from lading.tokens import COUNTERS, counter, exact
from lading.tokens.exact import CL100K, NEAR_CHARS, O200K, PIECE_CHARS, Vocabulary, _load_encoding
from tests.examples import quick_first, share_of_examples
from tests.growth import assert_linear, ladder


def ids(vocabulary: Vocabulary, text: str) -> list[int]:
    return _load_encoding(vocabulary.name, vocabulary.pattern).encode_ordinary(text)


def test_known_ids_of_o200k() -> None:
    assert ids(O200K, "hello world") == [24912, 2375]
    assert ids(O200K, "你好，世界") == [177519, 979, 28428]
    assert ids(O200K, "\u0000") == [188]
    assert _load_encoding(O200K.name, O200K.pattern).n_vocab == 199_998


def test_known_ids_of_cl100k() -> None:
    assert ids(CL100K, "hello world") == [15339, 1917]
    assert ids(CL100K, "Hello, World!") == [9906, 11, 4435, 0]
    assert ids(CL100K, "tiktoken is great!") == [83, 1609, 5963, 374, 2294, 0]
    assert _load_encoding(CL100K.name, CL100K.pattern).n_vocab == 100_256


@pytest.mark.parametrize("vocabulary", [O200K, CL100K])
def test_every_single_byte_and_every_token_reads_back(vocabulary: Vocabulary) -> None:
    encoding = _load_encoding(vocabulary.name, vocabulary.pattern)
    tokens = [encoding.decode_single_token_bytes(rank) for rank in range(encoding.n_vocab)]
    assert sorted(tokens[:256]) == [bytes([value]) for value in range(256)]
    assert len(set(tokens)) == encoding.n_vocab


@given(st.text(st.characters(codec=None), max_size=200))
def test_any_text_is_counted_and_its_ids_spell_it(text: str) -> None:
    readable = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for vocabulary in (O200K, CL100K):
        found = ids(vocabulary, readable)
        assert _load_encoding(vocabulary.name, vocabulary.pattern).decode(found) == readable
        assert vocabulary.count(text) == len(found)


def test_a_special_token_is_plain_text() -> None:
    assert CL100K.count("<|endoftext|>") == 7
    assert O200K.count("<|endoftext|>") == 7


def test_a_lone_surrogate_counts_as_the_replacement_character() -> None:
    assert O200K.count("a\ud83db") == O200K.count("a\ufffdb")
    assert O200K.count("\ud83d\ude00") == O200K.count("😀")


@pytest.mark.parametrize(
    ("text", "most"),
    [
        (" " * 3_000_000 + "x", 30_000),
        ("x" + " \t" * 700_000, 1_500_000),
        ("\n" * 1_500_000, 200_000),
        ("a" * 300_000, 50_000),
        ("中" * 100_000, 150_000),
    ],
    ids=["spaces", "tabs", "lines", "letters", "han"],
)
def test_very_long_runs_are_counted(text: str, most: int) -> None:
    for vocabulary in (O200K, CL100K):
        assert 0 < vocabulary.count(text) <= most


def test_cutting_a_long_run_of_space_costs_next_to_nothing() -> None:
    text = "def f():\n" + " " * 400_000 + "return 1\n"
    for vocabulary in (O200K, CL100K):
        assert abs(vocabulary.count(text) - len(ids(vocabulary, text))) <= 400_000 // 65_536 + 1


def test_a_long_text_of_words_is_cut_between_words_and_counts_the_same() -> None:
    text = "Some words, 3 of them;\n\tand an end. " * 6_000
    for vocabulary in (O200K, CL100K):
        assert vocabulary.count(text) == len(ids(vocabulary, text))


@pytest.mark.fuzz
@share_of_examples(0.3)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["a", "aB", "1", " ", "\n", "\t ", "中", "é", "!?", "/", "_", "😀", "word ", "3 x ", "'s "]
            ),
            st.integers(1, 40_000),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_long_text_is_counted_in_pieces_to_within_five_tokens_a_cut(runs: list[tuple[str, int]]) -> None:
    text = "".join(piece * times for piece, times in runs)
    for vocabulary in (O200K, CL100K):
        whole = len(ids(vocabulary, text))
        assert abs(vocabulary.count(text) - whole) <= 5 * (len(text) // (PIECE_CHARS - NEAR_CHARS))


@pytest.mark.parametrize("letter", quick_first(["a", " ", "\n", "!", "中", "1"], 2))
def test_a_run_of_one_character_is_counted_in_linear_time(letter: str) -> None:
    def count(text: str) -> int:
        exact.remembered.clear()
        return O200K.count(text)

    assert_linear(count, *ladder(letter * 320_000))


def test_a_long_text_is_counted_once_by_each_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{number} some words " * 200 for number in range(5)]
    monkeypatch.setattr(exact, "remembered", {})
    counts = [(O200K.count(text), CL100K.count(text)) for text in texts]
    assert counts == [(len(ids(O200K, text)), len(ids(CL100K, text))) for text in texts]
    with monkeypatch.context() as none_may_be_counted:
        none_may_be_counted.setattr(exact, "_split", None)
        assert [(O200K.count(text), CL100K.count(text)) for text in texts] == counts
    assert O200K.count(texts[0][:999]) == len(ids(O200K, texts[0][:999]))


def test_few_counts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "remembered", {})
    monkeypatch.setattr(exact, "MOST_REMEMBERED", 3)
    for number in range(10):
        O200K.count(f"{number} some words " * 200)
        assert len(exact.remembered) <= 3


def test_a_long_text_with_lone_surrogates_is_counted() -> None:
    assert O200K.count("a\ud83d " * 500) == O200K.count("a\ufffd " * 500)


def test_the_tables_lie_in_the_package_and_are_small() -> None:
    sizes = {
        name: len(files("lading.tokens").joinpath("tables", f"{name}.xz").read_bytes())
        for name in ("o200k", "cl100k")
    }
    assert sizes["o200k"] < 850_000
    assert sizes["cl100k"] < 400_000


def test_counters_are_found_by_name() -> None:
    assert {name: counter(name).name for name in COUNTERS} == {name: name for name in COUNTERS}
    assert counter("lading.tokens.exact:O200K") is O200K
    with pytest.raises(UnknownName, match="cl100k, estimate, o200k"):
        counter("gpt2")


def test_importing_loads_neither_tiktoken_nor_tables() -> None:
    code = "import sys, lading, lading.tokens, lading.tokens.meter; print('tiktoken' in sys.modules)"
    env = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == "False"

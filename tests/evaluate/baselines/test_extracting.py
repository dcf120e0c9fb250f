from __future__ import annotations

from itertools import pairwise

from tests.evaluate.baselines.cases import case, loop, shown, tokens


def test_a_summary_is_charged_when_it_is_made_and_stands_until_the_next() -> None:
    session = case(loop(150), window_tokens=8_000)
    made = 0
    for before, after in pairwise(shown("extract80", session)):
        grown = before.messages + session.messages[before.upto : after.upto]
        if after.summary_output_tokens:
            made += 1
            whole = sum(map(session.count, grown))
            charged = (after.summary_read_tokens, after.summary_fresh_tokens, after.summary_output_tokens)
            assert charged == (whole, 200, 800)
            assert whole > 0.8 * 8_000 >= tokens(before)
            assert tokens(after) <= 0.2 * 8_000 + 800
        else:
            assert after.messages == grown
            assert after.summary_read_tokens == after.summary_fresh_tokens == 0
    assert made >= 2


def test_the_extract_has_a_line_for_each_message_that_left_newest_first() -> None:
    session = case(loop(150), window_tokens=8_000)
    first = next(showing for showing in shown("extract80", session) if showing.summary_output_tokens)
    extract = first.messages[2]
    lines = extract.text.splitlines()[1:]
    left = first.upto - (len(first.messages) - 3)
    assert extract.role == "user"
    assert session.count(extract) <= 800
    assert lines[0].startswith(f"tool: token T-{(left - 3) // 2:04}")
    assert lines[1].startswith('assistant: read {"path": "src/part_')

"""Each lossless form by name, with a text that yields it: its decoder gives that text back."""

from __future__ import annotations

import pytest

from lading.shrink import SHRINKERS, find_shrinker
from lading.shrink.listings import TREES
from lading.shrink.shrinking import decode
from tests.shrink.samples import sample
from tests.shrink.test_contract import same_content

TREE = "src\n{b}a.py\n{b}b.py\n{b}lib\n{i}{b}c.py\n{i}{e}d.py\n{e}z.py"

FORMS = {
    "code.gutter": "\n".join(f"{n:6d}\tdef work_{n}(first, second):" for n in range(1, 40)),
    "diff.headers": sample("diff", 60),
    "json.columns": '{"a": {"b": 1.50, "c": [1, 2]}, "d": [{"x": 1, "y": "é"}, {"x": 2, "y": ""}]}',
    "json.columns-lines": '{"a": [1, {"b": 2}]}\n{"c": 3}\n[4]',
    "json.minified": '{"a": 1e400, "b": [ ]}',
    "json.minified-lines": '{"a": 1}\n{"a": 2.0}',
    "json.rows": '[{"a": 1, "b": "x y"}, {"a": 2, "b": null}]',
    "json.rows-lines": '{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}',
    "listing.folded": "\n".join(["total 4", *["drwxr-xr-x 2 root root 4096 Jan 1 00:00 same"] * 30]),
    "listing.grouped": sample("listing", 60),
    "log.folded": "2031-04-05 12:00:00 INFO ping\n" * 40,
    "table.all": '"id","name"\n' + "\n".join(f'"{n}","the name"' for n in range(30)) + "\n",
    "table.columns": sample("table", 60),
    "table.padding": "| id | name   |\n|----|--------|\n" + "".join(f"| {n:2} | amber  |\n" for n in range(30)),
    "table.words": '"id","name"\n' + "\n".join(f'{n},"the name"' for n in range(30)) + "\n",
    "trace.folded": "Traceback (most recent call last):\n" + '  File "/srv/a.py", line 3, in f\n    f()\n' * 40,
    **{form: TREE.format(i=bar, b=branch, e=end) for form, (bar, branch, end) in TREES.items()},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_lossless_form_decodes_to_the_text_that_it_was_made_of(form: str) -> None:
    kind, text = form.partition(".")[0], FORMS[form]
    candidates = {candidate.form: candidate for candidate in find_shrinker(kind).reshape(text)}
    assert candidates[form].lossless
    assert candidates[form].text != text
    assert same_content(kind, decode(candidates[form].text, form), text)


@pytest.mark.parametrize("kind", sorted(SHRINKERS))
def test_a_decoder_refuses_a_form_that_it_does_not_make(kind: str) -> None:
    others = [form for form in FORMS if form.partition(".")[0] != kind]
    for form in ("", kind, f"{kind}.", f"{kind}.unknown", *others):
        with pytest.raises(ValueError, match="form"):
            find_shrinker(kind).decode("a: b\nc", form)


@pytest.mark.parametrize("kind", sorted(set(SHRINKERS) - {"empty"}))
def test_no_text_here_yields_a_form_that_is_not_in_the_list(kind: str) -> None:
    texts = [*FORMS.values(), *(sample(kind, rows) for rows in (1, 3, 60))]
    assert {candidate.form for text in texts for candidate in find_shrinker(kind).reshape(text)} <= set(FORMS)


def test_the_forms_with_a_decoder_are_those_of_the_list() -> None:
    assert {form for kind in SHRINKERS for form in find_shrinker(kind).decoders} == set(FORMS)

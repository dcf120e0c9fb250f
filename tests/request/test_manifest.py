from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading import jsonbytes
from lading.budget import Budget
from lading.economics import Rates
from lading.errors import LadingError, StoreFormatError, TamperedError
from lading.history.log import Edit, Entry, log_chain
from lading.messages import user_text
from lading.models.card import Card, Limits, Prices, TokenFacts
from lading.request.manifest import (
    FORMAT,
    Decision,
    Frame,
    LogExtent,
    Manifest,
    Prefix,
    RequestPlace,
    Sent,
    decision,
    seal,
    totals,
    unseal,
)
from tests.examples import share_of_examples

COUNTS = {"system": 12, "tools": 340, "conversation": 5600, "slack": 26_048}
PRICES = Prices(3, 15, read=0.1, write={300: 1.25, 60: 1, 3600: 2.0})
CARD = Card("m-1", "maker", "mid", Limits(32_000, 4_000), TokenFacts("o200k", 1.2), PRICES)
FRAME = Frame(
    wire="openai_chat",
    strategy="basic",
    encoder="lading-encoder-1",
    canonical="lading-canonical-1",
    card=CARD,
    counter="o200k",
    multiplier=1.2,
    budget=Budget(32_000, 0, 0),
    rates=Rates(0.1, 1.25),
    cache_ttl_s=300,
    tools="a" * 64,
    template="b" * 64,
)
DECISION = Decision(3, "c" * 64, "dropped", "the window is full", 9_000, 60, 200, ("artifact://t/s/log/2-9",))
MANIFEST = Manifest(
    format=FORMAT,
    place=RequestPlace("t", "s", 7, 1_700_000_000.5),
    parent="d" * 64,
    seen=LogExtent(31, 4, "e" * 64),
    counts=COUNTS,
    prefix=Prefix(2, 352, "messages.1", "the window is full", 123.5),
    sent=Sent("f" * 64, 23_456),
    tool_detail="types",
    decisions=(DECISION,),
    account=0.125,
    frame=FRAME,
)
DELTA = replace(
    MANIFEST, place=RequestPlace("t", "s", 8), frame=None, decisions=(), account=0.0, tool_detail="full"
)
SEALED, STORED = seal(MANIFEST)


@pytest.mark.parametrize("manifest", [MANIFEST, DELTA])
def test_what_was_sealed_is_what_is_read(manifest: Manifest) -> None:
    sealed, stored = seal(manifest)
    assert unseal(stored) == sealed
    assert replace(sealed, checksum="") == manifest
    assert seal(sealed) == (sealed, stored)


NUMBERS = st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)


@given(NUMBERS, st.none() | NUMBERS, NUMBERS, st.text() | st.just("lone \ud83d half"), st.integers(0, 10**12))
def test_whole_numbers_and_odd_text_survive_as_well(
    account: float, at_s: float | None, price: float, why: str, call: int
) -> None:
    prefix = replace(MANIFEST.prefix, price=price, why=why)
    place = RequestPlace("t", "s", call, at_s)
    sealed, stored = seal(replace(MANIFEST, place=place, account=account, prefix=prefix))
    assert unseal(stored) == sealed


def detected_or_the_same(data: bytes, sealed: Manifest) -> bool:
    try:
        return unseal(data) == sealed
    except LadingError:
        return True


def test_every_changed_byte_is_detected() -> None:
    for position, byte in enumerate(STORED):
        for changed in (byte ^ 1, byte ^ 32, ord("0")):
            mutated = STORED[:position] + bytes([changed]) + STORED[position + 1 :]
            assert detected_or_the_same(mutated, SEALED), (position, mutated)


@share_of_examples(4)
@given(st.integers(0, len(STORED) - 1), st.integers(0, 1), st.binary(max_size=1))
def test_every_change_insertion_or_loss_of_one_byte_is_detected(at: int, drop: int, put: bytes) -> None:
    assert detected_or_the_same(STORED[:at] + put + STORED[at + drop :], SEALED)


def rewritten(**fields: Any) -> bytes:
    return jsonbytes.canonical(jsonbytes.load(STORED) | fields)


@pytest.mark.parametrize(
    "data",
    [
        rewritten(place={"tenant": "t", "session": "s", "call": 8}),
        rewritten(account=0.25),
        rewritten(parent=""),
        rewritten(counts={**COUNTS, "tools": 341}),
        rewritten(checksum=""),
        rewritten(checksum=None),
        rewritten(unknown="field"),
        rewritten(place={"tenant": "t", "session": "s", "call": "seven"}),
        rewritten(tool_detail="everything"),
        STORED.replace(b'"account":0.125', b'"account":NaN'),
        STORED.replace(b'"account":0.125', b'"account":1e999'),
        STORED[:-1],
        b"",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_what_does_not_fit_its_checksum_or_cannot_be_read_is_refused(data: bytes) -> None:
    assert data != STORED
    with pytest.raises(TamperedError):
        unseal(data)


@pytest.mark.parametrize("found", [FORMAT + 1, 0, "1", None])
def test_another_format_is_refused_with_what_to_do(found: object) -> None:
    with pytest.raises(
        StoreFormatError, match=f"format {found!r}.*reads {FORMAT}. Use the version of Lading that wrote it"
    ):
        unseal(jsonbytes.canonical({"format": found, "what_comes_next": [1, 2]}))


def test_the_order_in_which_a_dict_was_filled_does_not_matter() -> None:
    turned = dict(reversed(COUNTS.items()))
    write = dict(reversed(PRICES.write.items()))
    card = replace(CARD, prices=replace(PRICES, write=write))
    assert seal(replace(MANIFEST, counts=turned, frame=replace(FRAME, card=card))) == (SEALED, STORED)


AGAIN = """
import json, sys, msgspec
from lading.request.manifest import Manifest, seal
fields = json.loads(sys.stdin.read())
fields["counts"] = {name: fields["counts"][name] for name in set(fields["counts"])}
sys.stdout.buffer.write(seal(msgspec.convert(fields, Manifest, strict=False))[1])
"""


@pytest.mark.parametrize("seed", ["0", "4242"])
def test_another_process_with_another_hash_seed_writes_the_same_bytes(seed: str) -> None:
    manifest, stored = seal(msgspec.convert(msgspec.to_builtins(MANIFEST), Manifest, strict=False))
    source = Path(jsonbytes.__file__).parents[1]
    written = subprocess.run(
        [sys.executable, "-c", AGAIN],
        input=json.dumps(msgspec.to_builtins(replace(manifest, checksum=""))).encode(),
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(source)},
        capture_output=True,
        check=True,
    )
    assert written.stdout == stored


def test_a_decision_records_its_edit() -> None:
    edit = Edit(3, 7, "dropped", 2, 9, (user_text("stub"),), (60,), 9_000, "full", 200, ("artifact://t/s/log/2-9",))
    made = decision(edit)
    digest = jsonbytes.digest(jsonbytes.dump_value(edit))
    assert made == Decision(3, digest, "dropped", "full", 9_000, 60, 200, edit.pointers)
    assert decision(replace(edit, replacement=(user_text("other"),))).digest != digest


def test_the_log_chain_covers_every_entry_and_their_order() -> None:
    def chain(*digests: str) -> str:
        link = ""
        for digest in digests:
            link = log_chain(link, _entry(digest))
        return link

    chains = [chain("a", "b"), chain("b", "a"), chain("a"), chain("a", "b", "a"), chain()]
    assert len(set(chains)) == len(chains)
    assert log_chain(chain("a"), _entry("b")) == chain("a", "b")


@pytest.mark.parametrize("change", [{"index": 1}, {"tokens": 6}, {"round": 2}, {"turn": 2}, {"at_s": 1.5}])
def test_the_log_chain_covers_what_is_known_of_an_entry(change: dict[str, Any]) -> None:
    assert log_chain("", replace(_entry("a"), **change)) != log_chain("", _entry("a"))


def _entry(digest: str) -> Entry:
    return Entry(0, user_text("hi"), digest, 5, 1, 1)


def test_slack_is_no_part_of_the_request() -> None:
    assert totals(COUNTS) == 12 + 340 + 5600
    assert totals({}) == 0

"""A session as a user plays it, all drawn from a seed, and the faults of its requests.

Unlike ``tests/drawn.py``, which feeds a finished history to an engine, a play goes through ``Session``: replies of
the model, whole bodies, messages in other formats, late and missing results, changes of model, window, tools and
fields, withdrawn and edited messages, forks and reopened stores. Every text has a mark, by which a ledger follows
it.
"""

from __future__ import annotations

from lading.audit.replay import verify
from lading.history.log import NO_COMPACTIONS
from tests.drawn import Verdict
from tests.played_replies import write_user
from tests.played_session import FAULTS, Play
from tests.played_steps import STEPS, reopen

__all__ = ["FAULTS", "play", "run"]

ROUNDS = (2, 4, 6, 10)


def play(seed: int) -> Verdict:
    """Play the session of a seed, and judge each of its requests."""
    return run(Play(seed))


def run(play: Play) -> Verdict:
    """Play a session to its end, and rebuild its requests."""
    try:
        _play_rounds(play)
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed tells
        play.fault("error", f"{type(error).__name__}: {error}"[:300])
    try:
        play.session.close()
        for name in play.names:
            found = verify(play.store, tenant="default", session=name)
            for problem in filter(None, (one.problem for one in found)):
                play.fault("unverified", problem)
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed tells
        play.fault("error", f"{type(error).__name__}: {error}"[:300])
    edits = sum(edit.kind not in NO_COMPACTIONS for edit in play.session.edits)
    return Verdict(play.requests, len(play.repairs), edits, play.refused, tuple(play.faults))


def _play_rounds(play: Play) -> None:
    """Requests and answers, with what users do between them."""
    mint = play.mint
    if mint.likely(0.7):
        play.add([{"role": "system", "content": f"You are an agent. {mint.text()}"}])
    play.add([write_user(mint, play.wire)])
    for _ in range(play.chance.choice(ROUNDS)):
        if mint.likely(0.45):
            step = play.chance.choice(STEPS)
            play.note(step.__name__)
            step(play)
        if pack := play.request():
            play.answer(pack)
            play.go_on()
    play.request()
    if mint.likely(0.5):
        reopen(play)
        play.request()

"""A provider format that only a plug-in knows is packed, replayed and forwarded like our own."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lading import Session, wrap
from lading.addresses import RESTORE
from lading.audit.replay import rebuild_body, verify
from lading.audit.snapshots import build_snapshot, load_trail
from lading.events import Event, PackingFailed, ReplyLost, Restored, Unpacked
from lading.models.catalog import find_card
from lading.stores.memory import MemoryStore
from lading.wire import check
from tests.clients.mocks import over
from tests.wire.ledger_format import WIRE

RUN = "http://here/v2/ledgers/own-model:run"
TOOL = {"label": "look", "about": "Looks.", "shape": {"type": "object"}}
PATH = "tests.wire.ledger_format:WIRE"
ITEMS = [{"type": "message", "by": "user", "text": "Find the key."}]
PLACE = "artifact://default/{}/log/1"


def said(number: int, label: str = "look", **arguments: Any) -> list[dict[str, Any]]:
    """What the model says in one step: words, and a call."""
    call = {"type": "function_call", "call": f"c{number}", "label": label, "args": json.dumps(arguments)}
    return [{"type": "message", "by": "assistant", "text": f"Step {number}."}, call]


def found(number: int) -> dict[str, Any]:
    return {"type": "function_call_output", "call": f"c{number}", "out": f"{number}: nothing in this drawer. " * 60}


def answer(number: int, items: list[dict[str, Any]], body: Any) -> dict[str, Any]:
    spent = {"in": len(json.dumps(body)) // 4, "out": 12, "held": 0}
    return {"ref": f"r{number}", "out": items, "spent": spent}


@pytest.fixture
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The format as an installed package registers it."""
    info = tmp_path / "ledger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ledger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lading.wire]\nledger = {PATH}\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("as_items", [True, False], ids=["items", "common messages"])
def test_a_session_packs_compacts_and_is_rebuilt_in_the_format(as_items: bool) -> None:
    store = MemoryStore()
    session = Session("own-model", store=store, wire=PATH, window=6_000, output_reserve=500)
    items: list[dict[str, Any]] = list(ITEMS)
    session.add({"instructions": "Be brief.", "items": items} if as_items else _common())
    for number in range(12):
        pack = session.pack([TOOL], fields={"tempo": 1})
        body = json.loads(pack.body)
        assert list(body) == ["limits", "tempo", "instructions", "tool_defs", "items"]
        assert body["instructions"] == "Be brief."
        assert check(body, WIRE, card=session.settings.card, strict=True) == []
        assert rebuild_body(store, tenant="default", session="session", call=number + 1) == pack.body
        reply = session.reply(answer(number, said(number), body))
        assert reply.usage is not None
        items += [*said(number), found(number)]
        session.add(
            items if as_items else {"role": "tool", "tool_call_id": f"c{number}", "content": found(number)["out"]}
        )
    assert len(session.known) == 2 + 2 * 12
    assert all(entry.usage for entry in session.entries if entry.message.role == "assistant")
    outcomes = list(verify(store, tenant="default", session="session"))
    assert len(outcomes) == 12
    assert all(outcome.problem == "" for outcome in outcomes)
    assert any(entry.kind != "restated" for entry in load_trail(store, tenant="default", session="session").edits)
    shown = build_snapshot(load_trail(store, tenant="default", session="session"))
    assert [item.path for item in shown.shown][:2] == ["instructions", "items.0"]
    assert session.why("Find the key.").places[0].path == "items.0"
    assert session.why("Be brief.").places[0].path == "instructions"
    session.pack([])
    offered = session.why(str(TOOL["about"])).places[0]
    assert (offered.state, offered.layer, offered.part) == ("removed", "tools", "schema")


def _common() -> list[dict[str, Any]]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ITEMS[0]["text"]}]


class Ledger:
    """A provider of the format: every request is checked, and answered by a step."""

    def __init__(self, restores_at: int = -1) -> None:
        self.requests: list[dict[str, Any]] = []
        self.restores_at, self.numbers = restores_at, count()

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.read())
        assert check(body, WIRE, card=find_card("own-model")[0], strict=True) == []
        assert "model" not in body
        self.requests.append(body)
        number = next(self.numbers)
        items = said(number)
        if number == self.restores_at:
            assert RESTORE in [tool["label"] for tool in body["tool_defs"]]
            items = said(number, RESTORE, address=PLACE.format(self.session))
        value = answer(number, items, body)
        if not request.url.path.endswith(":follow"):
            return httpx2.Response(200, json=value)
        events = [{"item": item} for item in items] + [{"end": {"spent": value["spent"]}}]
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=text.encode())

    session = ""


def asked(client: Any, items: list[Any], *, streamed: bool) -> tuple[list[Any], dict[str, int]]:
    """The items and the usage of one answer."""
    body = {"instructions": "Be brief.", "items": items, "tool_defs": [TOOL], "limits": {"output": 500}}
    made = client._client.post(RUN.replace(":run", ":follow") if streamed else RUN, json=body)
    assert made.status_code == 200
    if not streamed:
        return made.json()["out"], made.json()["spent"]
    events = [json.loads(line.removeprefix("data: ")) for line in made.text.splitlines() if line]
    return [event["item"] for event in events if "item" in event], events[-1]["end"]["spent"]


@pytest.mark.usefixtures("plugged")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_wrapped_client_packs_an_endpoint_of_the_format(streamed: bool) -> None:
    provider, events = Ledger(restores_at=6), list[Event]()
    client: Any = wrap(over(provider), window=6_000, output_reserve=500, on_event=events.append)
    items: list[Any] = list(ITEMS)
    spent = []
    for _ in range(10):
        out, usage = asked(client, items, streamed=streamed)
        assert RESTORE not in [item.get("label") for item in out]
        spent.append(usage["in"])
        items = [*items, *out, found(int(out[-1]["call"][1:]))]
        (session,) = client.lading.sessions
        provider.session = session.name
    assert not [event for event in events if isinstance(event, PackingFailed | ReplyLost | Unpacked)]
    assert [event.is_error for event in events if isinstance(event, Restored)] == [False]
    assert len(provider.requests) == 11
    # The answer that the caller did not see is in the usage of the one that it saw.
    assert spent[6] == sum(len(json.dumps(body)) // 4 for body in provider.requests[6:8])
    assert session.model == "own-model"
    assert session.wire is WIRE
    # One conversation, of which the caller told the whole each time: system and user, ten steps, nine results.
    assert len(session.known) == 2 + 10 + 9
    assert max(len(json.dumps(body)) for body in provider.requests) < len(json.dumps(items))
    outcomes = list(verify(session.store, tenant="default", session=session.name))
    assert [outcome.problem for outcome in outcomes] == [""] * 11


@pytest.mark.usefixtures("plugged")
def test_a_request_that_goes_on_with_what_the_provider_keeps_is_told_in_the_words_of_the_format() -> None:
    events: list[Event] = []
    client: Any = wrap(over(Ledger()), on_event=events.append)
    client._client.post(RUN, json={"items": ITEMS, "ledger": "kept"})
    assert [event.what for event in events if isinstance(event, Unpacked)] == ["the field ledger"]
    assert client.lading.sessions == ()


def test_a_plug_in_that_cannot_be_loaded_stops_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lading.wire]\nbroken = no_such_module:WIRE\n")
    monkeypatch.syspath_prepend(tmp_path)
    events: list[Event] = []
    client: Any = wrap(over(lambda _: httpx2.Response(200, json={"data": []})), on_event=events.append)
    for _ in range(2):
        assert client._client.post("http://here/v1/embeddings", json={"input": "x"}).status_code == 200
    (event,) = events
    assert "no_such_module" in str(event)

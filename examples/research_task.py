"""A task of three steps: find reports, compare the vendors, review. The comparison fails its acceptance once and is
repaired. The model remembers what it decided, and a second session, for the order, is shown it. Without
OPENAI_API_KEY a script is the model. Argument: a store."""

import json
import os
import re
import sys
from contextlib import ExitStack
from typing import Any

from openai import OpenAI

import lading
from lading.memory import open_memory
from lading.task.acceptance import Acceptance
from lading.task.citing import load_manifest
from lading.testing import Say, Seen, StrictProvider, Use

REPORTS = {
    "Acme": "Acme was founded in 1999.\nAcme is 20 % cheaper than Blip.\nIts support is by mail only.",
    "Blip": "Blip was founded in 2011.\nBlip answers support calls within an hour.\nIts price has risen twice.",
}
TASK: dict[str, Any] = {
    "id": "vendors",
    "goal": "Choose between the vendors Acme and Blip, with sources.",
    "constraints": {"budget_usd": 0.20, "risk": "low"},
    "plan": [
        {
            "id": "find",
            "text": "Find a report on each vendor.",
            "checklist": [{"id": "reports", "text": "A report on each vendor", "proof": "evidence"}],
            "tools": ["search"],
        },
        {
            "id": "compare",
            "text": ["Name the top differentiator of each vendor.", "Name the risks."],
            "depends_on": ["find"],
            "checklist": [
                {"id": "sources", "text": "Each differentiator with its source, quoted", "proof": "evidence"},
                {"id": "risks", "text": "Risks of either choice", "proof": "section", "argument": "Risks"},
            ],
        },
        {
            "id": "review",
            "role": "critic",
            "text": "Review the comparison.",
            "depends_on": ["compare"],
            "checklist": [
                {"id": "verdict", "text": "A verdict", "proof": "pattern", "argument": "accepted|rejected"}
            ],
        },
    ],
}
ORDER: dict[str, Any] = {
    "id": "order",
    "goal": "Order from the vendor that was chosen.",
    "constraints": {"risk": "high"},
    "plan": [
        {
            "id": "order",
            "text": "Write the order to the vendor that the research chose.",
            "checklist": [{"id": "to", "text": "The vendor", "proof": "pattern", "argument": "Acme|Blip"}],
        }
    ],
}
PARAMETERS = {"type": "object", "properties": {"vendor": {"type": "string"}}, "required": ["vendor"]}
TOOLS = [lading.Tool("search", "Search for a report on a vendor.", PARAMETERS)]
FOUND = "artifact://tasks/vendors/find/search"
COMPARED = f'- "Acme is 20 % cheaper than Blip" {FOUND}\n- "Blip answers support calls within an hour" {FOUND}@2\n'
ANSWERS = {
    "find": f"Both were found: {FOUND}, {FOUND}@2",
    "compare": f"{COMPARED}",
    "repair": f"{COMPARED}\n# Risks\n\nThe price of Blip has risen twice; Acme has no telephone support.",
    "review": "Both claims are quoted from their sources: accepted.",
}
DECISION = "The research chose the vendor Acme over Blip: its price is 20 % lower (offer AC-2041)."


def model(seen: Seen) -> Say:
    """Replies as the model, by the newest payload: it forgets the risks, and names them when asked to repair."""
    at, payload = max((one.message, one.text) for one in seen.passages() if one.text.startswith("CONTEXT PACK"))
    step = re.findall(r"step (\w+)\.", payload)[0]
    has_called = any(one.role == "tool" and one.message > at for one in seen.passages())
    if step == "find" and not has_called:
        return Say(calls=tuple(Use("search", {"vendor": vendor}) for vendor in REPORTS))
    if step == "review" and not has_called:
        return Say(calls=(Use("remember", {"content": DECISION, "kind": "decision", "key": "vendor"}),))
    if step == "order":
        offer = re.search(r"AC-\d+", payload.partition("\nMEMORY:")[2])
        return Say(
            f"To Acme: we accept your offer {offer[0]}." if offer else "Which vendor was chosen, Acme or Blip?"
        )
    return Say(ANSWERS["repair" if "REPAIR" in payload else step])


def run_step(session: lading.Session, openai: OpenAI, step: str, *, task: dict[str, Any]) -> list[Acceptance]:
    """Runs one step until its answer is accepted or no repair is left; returns the outcomes."""
    session.begin(step, task=task)
    outcomes: list[Acceptance] = []
    while not outcomes or outcomes[-1].repairs_left:
        reply = session.reply(openai.chat.completions.create(**session.pack(TOOLS).request))
        results = session.handle(reply)
        for call in reply.message.calls:
            if call.name == "search":
                vendor = json.loads(call.arguments).get("vendor", "")
                results.append(lading.tool_result(call.id, REPORTS.get(vendor, "There is no report on it.")))
        if results:
            session.add(results)
        else:
            outcomes.append(session.check_acceptance())
    if outcomes[-1].passed:
        session.artifacts.put(f"{task['id']}/{step}/answer.md", reply.message.text)
    return outcomes


def run_task(session: lading.Session, openai: OpenAI, request: str, *, task: dict[str, Any]) -> dict[str, Any]:
    """Runs the steps of a plan and prints each outcome; returns the manifest of the last request."""
    session.add([{"role": "system", "content": "You research vendors and cite your sources."}])
    session.add(request)
    for step in task["plan"]:
        for outcome in run_step(session, openai, step["id"], task=task):
            failed = ", ".join(f"{item.id} failed: {item.why}" for item in outcome.failed)
            print(f"{step['id']}: {failed or 'accepted'}")
        if not outcome.passed:
            break
    return load_manifest(session.store, session.settings.owner)


def main(store: str = "research-store") -> dict[str, Any]:
    """Runs both tasks, each in a session of its own; returns the manifest of the order's request, which names what
    was remembered."""
    with ExitStack() as stack:
        if os.environ.get("OPENAI_API_KEY"):
            openai = stack.enter_context(OpenAI())
        else:
            provider = stack.enter_context(StrictProvider(model))
            openai = stack.enter_context(OpenAI(base_url=f"{provider.url}/v1", api_key="local"))
        memory = stack.enter_context(open_memory(store, user="buyer"))
        manifest: dict[str, Any] = {}
        for name, request, task in (
            ("research", "Which of Acme and Blip should we choose?", TASK),
            ("order", "Order the machines from the vendor that we chose.", ORDER),
        ):
            with lading.Session("gpt-5-mini", store=store, name=name, memory=memory) as session:
                manifest = run_task(session, openai, request, task=task)
        return manifest


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:2]), indent=2))

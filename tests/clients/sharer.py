"""A process that calls for others: ``sharer URL FOLDER [NAME]`` makes a call for each line, which is its messages.

It prints the message of the reply, or ``lost`` and the events where a request was not packed.
"""

import json
import sys
from typing import Any

from openai import OpenAI

from lading.clients import wrap
from lading.events import Event, PackingFailed, ReplyLost
from tests.clients.talks import TOOLS
from tests.waiting import PATIENCE_S, be_patient

WINDOW = 16_000


def main(url: str, folder: str, name: str = "") -> None:
    """Call until there are no more lines."""
    be_patient()
    events: list[Event] = []
    plain = OpenAI(base_url=f"{url}/v1", api_key="test", max_retries=0, timeout=PATIENCE_S)
    wrapped: Any = wrap(plain, store=folder, window=WINDOW, on_event=events.append)
    client = wrapped.lading.session(name) if name else wrapped
    for line in sys.stdin:
        made = client.chat.completions.create(model="gpt-4o", messages=json.loads(line), tools=TOOLS)
        lost = [str(event) for event in events if isinstance(event, PackingFailed | ReplyLost)]
        print(f"lost {lost}" if lost else json.dumps(made.choices[0].message.to_dict()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""An agent at work in a process of its own: ``running FOLDER NAME ROUNDS [STEPWISE]``.

Each round is a request and its reply, which calls a tool and reports usage; the number of each round is printed
once it is stored. With a fourth argument, each round begins when a line comes in.
"""

import sys
import time

import lading
from lading.prefix_cache import PrefixCache
from tests.waiting import be_patient

TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}


def main(folder: str, name: str, rounds: int, *, is_stepwise: bool = False) -> None:
    be_patient()
    cache = PrefixCache(min_prefix_tokens=1024)
    with lading.Session("gpt-4o", store=folder, name=name, window=20_000, output_reserve=500) as session:
        session.add([{"role": "user", "content": "Look around."}])
        for number in range(rounds):
            if is_stepwise:
                sys.stdin.readline()
            pack = session.pack([TOOL], at_s=time.time())
            billed = cache.bill(pack.chain, pack.ends)
            call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            usage = {
                "prompt_tokens": pack.tokens * 11 // 10,
                "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": billed.read_tokens},
            }
            session.reply({"id": f"r{number}", "choices": [{"index": 0, "message": message}], "usage": usage})
            session.add([{"role": "tool", "tool_call_id": f"c{number}", "content": f"{number} " + "word " * 900}])
            print(number + 1, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), is_stepwise=len(sys.argv) > 4)

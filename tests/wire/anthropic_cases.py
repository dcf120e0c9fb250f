"""Bodies of the Messages wire by the rule they keep or break, and by what is special about them."""

from __future__ import annotations

from typing import Any

from lading.models.card import Card
from tests.wire.anthropic_bodies import (
    BEFORE,
    CURRENT,
    ENABLED,
    HOUR,
    LOOP,
    MARK,
    REDACTED,
    SIGNED,
    TOOLS,
    assistant,
    body,
    call,
    cleared,
    found,
    result,
    said,
    search,
    system,
    text,
    user,
    without,
)

LEGAL: dict[str, dict[str, tuple[dict[str, Any], Card]]] = {
    "A1": {"the least there can be": (without(body(user()), "tools"), BEFORE)},
    "A2": {"user first": (body(user(), assistant(), user()), BEFORE)},
    "A3": {"alternating, with a system message": (body(user(), system(), assistant(), user()), CURRENT)},
    "A4": {
        "system last": (body(user(), system()), CURRENT),
        "system after results": (body(*LOOP, system()), CURRENT),
        "system after a server tool": (body(user(), assistant(search("s"), found("s")), system()), CURRENT),
        "system with tool changes": (
            body(
                user(),
                system(text("x"), {"type": "tool_addition"}, {"type": "tool_removal"}),
                assistant(),
                user(),
            ),
            CURRENT,
        ),
    },
    "A5": {
        "parallel calls": (
            body(user(), assistant(call("a"), call("b")), user(result("b"), result("a"))),
            BEFORE,
        ),
        "two loops": (body(*LOOP, assistant(call("b")), user(result("b"))), BEFORE),
    },
    "A6": {
        "result after text and call": (
            body(user(), assistant(text("x"), call("a")), user(result("a"))),
            BEFORE,
        )
    },
    "A7": {"text after the results": (body(user(), assistant(call("a")), user(result("a"), text("x"))), BEFORE)},
    "A8": {"different ids": (body(*LOOP, assistant(call("b")), user(result("b"))), BEFORE)},
    "A9": {
        "same message": (body(user(), assistant(search("s"), found("s"), text("x")), user()), BEFORE),
        "MCP": (
            body(
                user(),
                assistant(
                    {"type": "mcp_tool_use", "id": "m", "name": "x", "server_name": "s", "input": {}},
                    {"type": "mcp_tool_result", "tool_use_id": "m", "content": []},
                ),
                user(),
            ),
            BEFORE,
        ),
        "deferred until the results of the caller's own tools": (
            body(user(), assistant(search("s"), call("a")), user(result("a")), assistant(found("s")), user()),
            BEFORE,
        ),
    },
    "A10": {"all allowed characters": (body(user(), assistant(call("aZ_-9")), user(result("aZ_-9"))), BEFORE)},
    "A11": {
        "empty final assistant message": (body(user(), said("assistant", "")), BEFORE),
        "no final assistant blocks": (body(user(), said("assistant", [])), BEFORE),
        "empty result": (body(user(), assistant(call("a")), user(result("a", ""))), BEFORE),
        "result of blocks": (body(user(), assistant(call("a")), user(result("a", [text("x")]))), BEFORE),
        "result without content": (
            body(user(), assistant(call("a")), user({"type": "tool_result", "tool_use_id": "a"})),
            BEFORE,
        ),
        "system of blocks": (body(user(), system=[text("x")]), BEFORE),
    },
    "A12": {
        "prefill": (body(user(), said("assistant", "{")), BEFORE),
        "space in an earlier message": (body(user(), said("assistant", "x "), user()), BEFORE),
    },
    "A13": {
        "user last": (body(user(), assistant(), user()), CURRENT),
        "prefill where it is taken": (body(user(), assistant()), BEFORE),
        "paused at a server tool": (body(user(), assistant(search("s"))), CURRENT),
    },
    "A14": {
        "thinking first": (
            body(user(), assistant(SIGNED, call("a")), user(result("a")), thinking=ENABLED),
            BEFORE,
        ),
        "redacted first": (
            body(user(), assistant(REDACTED, call("a")), user(result("a")), thinking=ENABLED),
            BEFORE,
        ),
        "none later in the loop": (
            body(
                user(),
                assistant(SIGNED, call("a")),
                user(result("a")),
                assistant(call("b")),
                user(result("b"), text("x")),
                thinking=ENABLED,
            ),
            BEFORE,
        ),
        "none in a closed turn": (body(*LOOP, assistant(), user(), thinking=ENABLED), BEFORE),
        "none under adaptive": (body(*LOOP, thinking={"type": "adaptive"}), CURRENT),
    },
    "A16": {"signature and data": (body(user(), assistant(SIGNED, REDACTED, text("x")), user()), BEFORE)},
    "A19": {
        "in bounds": (body(user(), thinking={"type": "enabled", "budget_tokens": 4095}), BEFORE),
        "interleaved": (
            body(
                user(),
                thinking={"type": "enabled", "budget_tokens": 9000},
                anthropic_beta=["interleaved-thinking-2025-05-14"],
            ),
            BEFORE,
        ),
        "disabled": (body(user(), thinking={"type": "disabled"}), CURRENT),
    },
    "A20": {
        "four": (
            body(
                user(text("x", cache_control=MARK)),
                tools=[{**TOOLS[0], "cache_control": MARK}],
                system=[text("x", cache_control=MARK), text("y", cache_control=MARK)],
            ),
            BEFORE,
        ),
        "the top level's stands on the last block": (
            body(
                user(*(text("x", cache_control=MARK) for _ in range(4))),
                cache_control=MARK,
            ),
            BEFORE,
        ),
    },
    "A21": {
        "an hour, then five minutes": (
            body(
                user(text("x", cache_control=MARK)),
                system=[text("x", cache_control=HOUR)],
                cache_control=MARK,
            ),
            BEFORE,
        ),
    },
    "A22": {"on text": (body(user(text("x", cache_control=MARK))), BEFORE)},
    "A23": {"tools declared": (body(*LOOP), BEFORE)},
    "A25": {"thinking first": (cleared("thinking", "tool_uses"), BEFORE)},
    "A26": {
        "server tools": (body(user(), assistant(REDACTED, search("s"), found("s"), text("x")), user()), BEFORE)
    },
}

EMPTY_SEARCH = result("a", [{"type": "search_result", "content": [text("")]}])
ILLEGAL: dict[str, dict[str, tuple[dict[str, Any], Card]]] = {
    "A1": {
        "no messages": (body(), BEFORE),
        "messages missing": (without(body(user()), "messages"), BEFORE),
        "messages not a list": ({**body(), "messages": "hi"}, BEFORE),
        "messages a number": ({**body(), "messages": 5}, BEFORE),
        "no model": (without(body(user()), "model"), BEFORE),
        "no max_tokens": (without(body(user()), "max_tokens"), BEFORE),
        "max_tokens true": (body(user(), max_tokens=True), BEFORE),
        "max_tokens zero": (body(user(), max_tokens=0), BEFORE),
        "tools not a list": (body(user(), tools={}), BEFORE),
        "a tool that is no object": (body(user(), tools=[None]), BEFORE),
    },
    "A2": {"assistant first": (body(assistant(), user()), BEFORE)},
    "A3": {
        "two user messages": (body(user(), user()), BEFORE),
        "two assistant messages": (body(user(), assistant(), assistant(), user()), BEFORE),
    },
    "A4": {
        "unknown role": (body(user(), said("tool", "x")), BEFORE),
        "role that is no string": (body(user(), {"role": ["user"], "content": "x"}), BEFORE),
        "message that is no object": (body(user(), "hi"), BEFORE),
        "system where the model takes none": (body(user(), system()), BEFORE),
        "two system messages": (body(user(), system(), system()), CURRENT),
        "system after an assistant": (body(user(), assistant(), system()), CURRENT),
        "system between call and result": (
            body(user(), assistant(call("a")), system(), user(result("a"))),
            CURRENT,
        ),
        "system among parallel results": (
            body(user(), assistant(call("a"), call("b")), user(result("a")), system(), user(result("b"))),
            CURRENT,
        ),
        "image in a system message": (body(user(), system({"type": "image"})), CURRENT),
    },
    "A5": {
        "never answered": (body(user(), assistant(call("a")), user(text("x"))), BEFORE),
        "last": (body(user(), assistant(call("a"))), BEFORE),
        "one of two": (
            body(user(), assistant(call("a"), call("b")), user(result("a")), assistant(), user()),
            BEFORE,
        ),
        "call of a user": (body(user(call("a"))), BEFORE),
        "no id to answer": (body(user(), assistant(call("a", id=None)), user()), BEFORE),
    },
    "A6": {
        "history cut inside a pair": (body(user(result("a"))), BEFORE),
        "a turn too late": (body(*LOOP, assistant(), user(result("a"))), BEFORE),
        "result of an assistant": (body(user(), assistant(result("a")), user()), BEFORE),
        "id that cannot be hashed": (body(*LOOP, assistant(), user(result("a", tool_use_id={}))), BEFORE),
    },
    "A7": {
        "text before the result": (body(user(), assistant(call("a")), user(text("x"), result("a"))), BEFORE),
        "text between results": (
            body(user(), assistant(call("a"), call("b")), user(result("a"), text("x"), result("b"))),
            BEFORE,
        ),
        "message before the result's": (
            body(user(), assistant(call("a")), user(), user(result("a"))),
            BEFORE,
        ),
    },
    "A8": {
        "id used again": (body(*LOOP, assistant(call("a")), user(result("a"))), BEFORE),
        "id twice in one message": (body(user(), assistant(call("a"), call("a")), user(result("a"))), BEFORE),
        "two results": (body(user(), assistant(call("a")), user(result("a"), result("a"))), BEFORE),
        "two results in two messages": (
            body(user(), assistant(call("a")), user(result("a")), user(result("a"))),
            BEFORE,
        ),
    },
    "A9": {
        "result without call": (body(user(), assistant(found("s")), user()), BEFORE),
        "result before call": (body(user(), assistant(found("s"), search("s")), user()), BEFORE),
        "a second result": (body(user(), assistant(search("s"), found("s"), found("s")), user()), BEFORE),
        "no result before the user speaks": (body(user(), assistant(text("x"), search("s")), user()), BEFORE),
        "in a later turn": (
            body(user(), assistant(search("s")), user(), assistant(found("s")), user()),
            BEFORE,
        ),
        "deferred, but the user spoke": (
            body(
                user(),
                assistant(search("s"), call("a")),
                user(result("a"), text("x")),
                assistant(found("s")),
                user(),
            ),
            BEFORE,
        ),
        "in a user message": (body(user(), assistant(search("s")), user(found("s"))), BEFORE),
        "id that is no string": (
            body(user(), assistant(search("s"), {**found("s"), "tool_use_id": []})),
            BEFORE,
        ),
    },
    "A10": {
        "id with a colon": (body(user(), assistant(call("a:1")), user(result("a:1"))), BEFORE),
        "id ending in a newline": (body(user(), assistant(call("a\n")), user(result("a\n"))), BEFORE),
        "input as a string": (body(user(), assistant(call("a", input="{}")), user(result("a"))), BEFORE),
        "server tool without id": (body(user(), assistant({**search("s"), "id": None}), user()), BEFORE),
    },
    "A11": {
        "empty text block": (body(user(text(""))), BEFORE),
        "whitespace only": (body(user(text("\n "))), BEFORE),
        "whitespace string": (body(said("user", " ")), BEFORE),
        "empty user message": (body(said("user", "")), BEFORE),
        "no user blocks": (body(said("user", [])), BEFORE),
        "empty assistant message before the end": (body(user(), said("assistant", []), user()), BEFORE),
        "empty text in a result": (body(user(), assistant(call("a")), user(result("a", [text("")]))), BEFORE),
        "empty search result in a result": (body(user(), assistant(call("a")), user(EMPTY_SEARCH)), BEFORE),
        "empty text in system": (body(user(), system=[text("")]), BEFORE),
        "system a number": (body(user(), system=5), BEFORE),
        "no content": (body({"role": "user"}), BEFORE),
        "content an object": (body(said("user", {})), BEFORE),
        "block without type": (body(user({"text": "x"})), BEFORE),
        "block that is no object": (body(user(5)), BEFORE),
        "type that cannot be hashed": (body(user({"type": {}})), BEFORE),
        "text that is no string": (body(user({"type": "text", "text": None})), BEFORE),
        "result with an object": (body(user(), assistant(call("a")), user(result("a", {}))), BEFORE),
    },
    "A12": {
        "string": (body(user(), said("assistant", "x ")), BEFORE),
        "last block": (body(user(), assistant(text("x"), text("y\n"))), BEFORE),
    },
    "A13": {
        "assistant last": (body(user(), assistant()), CURRENT),
        "thinking last": (body(user(), assistant(SIGNED)), BEFORE),
        "thinking before a prefill": (body(user(), assistant(SIGNED, text("x"))), BEFORE),
    },
    "A14": {
        "no thinking": (body(*LOOP, thinking=ENABLED), BEFORE),
        "text first": (
            body(user(), assistant(text("x"), SIGNED, call("a")), user(result("a")), thinking=ENABLED),
            BEFORE,
        ),
        "none where the loop starts": (
            body(*LOOP, assistant(SIGNED, call("b")), user(result("b"), text("x")), thinking=ENABLED),
            BEFORE,
        ),
    },
    "A16": {
        "no signature": (
            body(user(), assistant({"type": "thinking", "thinking": "x"}, text("x")), user()),
            BEFORE,
        ),
        "empty signature": (body(user(), assistant({**SIGNED, "signature": ""}, text("x")), user()), BEFORE),
        "no data": (body(user(), assistant({"type": "redacted_thinking"}, text("x")), user()), BEFORE),
    },
    "A19": {
        "not taken": (body(user(), thinking=ENABLED), CURRENT),
        "too small": (body(user(), thinking={"type": "enabled", "budget_tokens": 1023}), BEFORE),
        "missing": (body(user(), thinking={"type": "enabled"}), BEFORE),
        "all of max_tokens": (body(user(), thinking={"type": "enabled", "budget_tokens": 4096}), BEFORE),
        "not an object": (body(user(), thinking="enabled"), BEFORE),
    },
    "A20": {
        "five": (
            body(
                user(),
                assistant(call("a")),
                user(result("a", [text("x", cache_control=MARK)], cache_control=MARK)),
                tools=[{**TOOLS[0], "cache_control": MARK}],
                system=[text("x", cache_control=MARK), text("y", cache_control=MARK)],
            ),
            BEFORE,
        ),
        "four and the top level": (
            body(user(*(text("x", cache_control=MARK) for _ in range(4)), text("y")), cache_control=MARK),
            BEFORE,
        ),
    },
    "A21": {
        "system after tools": (
            body(
                user(),
                tools=[{**TOOLS[0], "cache_control": MARK}],
                system=[text("x", cache_control=HOUR)],
            ),
            BEFORE,
        ),
        "message after system": (
            body(user(text("x", cache_control=HOUR)), system=[text("x", cache_control=MARK)]),
            BEFORE,
        ),
        "message after message": (
            body(user(text("x", cache_control=MARK)), assistant(), user(text("x", cache_control=HOUR))),
            BEFORE,
        ),
        "result after its own content": (
            body(
                user(),
                assistant(call("a")),
                user(result("a", [text("x", cache_control=MARK)], cache_control=HOUR)),
            ),
            BEFORE,
        ),
        "top level after a block": (
            body(user(text("x", cache_control=MARK), text("y")), cache_control=HOUR),
            BEFORE,
        ),
        "top level against the last block": (
            body(user(text("x", cache_control=HOUR)), cache_control=MARK),
            BEFORE,
        ),
        "mark that is no object": (body(user(text("x", cache_control=True))), BEFORE),
        "top level that is no object": (body(user(), cache_control=True), BEFORE),
    },
    "A22": {
        "on an empty text": (body(user(text("", cache_control=MARK))), BEFORE),
        "on an empty text in system": (body(user(), system=[text("", cache_control=MARK)]), BEFORE),
        "on thinking": (body(user(), assistant({**SIGNED, "cache_control": MARK}, text("x")), user()), BEFORE),
    },
    "A23": {
        "tools missing": (without(body(*LOOP), "tools"), BEFORE),
        "tools empty": (body(*LOOP, tools=[]), BEFORE),
    },
    "A25": {"thinking last": (cleared("tool_uses", "thinking"), BEFORE)},
    "A26": {
        "another wire's part": (body(user({"type": "image_url"})), BEFORE),
        "a picture in the field system": (body(user(), system=[{"type": "image"}]), BEFORE),
        "an upload in a result": (body(*LOOP[:2], user(result("a", [{"type": "container_upload"}]))), BEFORE),
    },
}

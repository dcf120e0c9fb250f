from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lading.history.repair import Repairer
from lading.messages import Image, Message, Opaque, Text, ToolResult
from lading.wire import WIRES, find_wire
from lading.wire.fitting import find_needs
from tests.wire.codec_cards import PLAIN

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "parts.md"
IMAGE_URL = {"type": "image_url", "image_url": {"url": "https://a.b/c.png", "detail": "low"}}


def fitted(message: Message, wire: str = "anthropic") -> tuple[Message, list[str]]:
    """The message as the wire's border shows it, and the rules that were applied."""
    repaired = Repairer(find_needs(find_wire(wire), PLAIN)).repair(message, entry=0)
    (shown,) = repaired.messages
    return shown, [repair.rule for repair in repaired.repairs]


def native(*parts: Any, role: Any = "user", wire: str = "anthropic") -> Message:
    return Message(role, parts, origin=wire)


def test_the_page_lists_what_each_wire_takes() -> None:
    listed = re.findall(r"^\| (\w+) \| (\w+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    told = {(wire, place): set(re.findall(r"`([^`]+)`", kinds)) for wire, place, kinds in listed}
    wires = {name: find_wire(name).parts for name in WIRES}
    known = {(name, place): kinds for name, of in wires.items() if of for place, kinds in of.takes.items()}
    assert {key: kinds for key, kinds in told.items() if kinds} == known


def test_a_message_that_fits_is_the_same_object() -> None:
    message = native(Text("hi"), Image(url="https://a.b/c.png"), Opaque({"type": "search_result"}))
    assert fitted(message)[0] is message


def test_a_part_of_another_wire_loses_that_wires_template() -> None:
    shown, rules = fitted(native(Opaque(IMAGE_URL)))
    assert (shown.parts, rules) == ((Image(url="https://a.b/c.png"),), ["part_translated"])


def test_a_part_in_the_wrong_role_is_left_out() -> None:
    shown, rules = fitted(native(Image(data="AA=="), role="assistant"))
    assert shown.parts == (Text("[image left out. Original: artifact://log/0]"),)
    assert rules == ["part_left_out"]


def test_a_part_that_no_format_reads_is_left_out_of_the_wrong_role() -> None:
    shown, rules = fitted(native(Opaque({"type": "web_search_tool_result", "content": []}), role="user"))
    assert shown.parts == (Text("[web_search_tool_result left out. Original: artifact://log/0]"),)
    assert rules == ["part_left_out"]


def test_reasoning_of_another_format_in_an_answer_of_this_one_is_named_where_it_is_left_out() -> None:
    thought = Opaque({"type": "thinking", "thinking": "hm", "signature": "c2ln"})
    shown, rules = fitted(
        native(Text("hi"), thought, role="assistant", wire="openai_responses"), "openai_responses"
    )
    assert rules == ["part_translated", "reasoning_left_out"]
    [item] = find_wire("openai_responses").write([shown], PLAIN)
    assert item == {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}


def test_what_looks_like_another_wires_part_and_is_none_goes_out_as_it_came() -> None:
    odd = native(Opaque({"type": "thinking", "thinking": [{"type": "text"}]}), role="assistant", wire="openai_chat")
    assert fitted(odd, "openai_chat") == (odd, [])


def test_a_part_of_a_result_is_fitted_too() -> None:
    border = Repairer(find_needs(find_wire("anthropic"), PLAIN))
    asked = find_wire("openai_chat").decode(
        {"messages": [{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}]}
    )
    border.repair(asked.messages[0])
    repaired = border.repair(native(ToolResult("function_call_0", (Opaque(IMAGE_URL),))))
    assert repaired.messages[0].results[0].parts == (Image(url="https://a.b/c.png"),)

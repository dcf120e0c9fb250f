"""A task as the fifth document shows it, for tests."""

from __future__ import annotations

from typing import Any

from lading.task.task import Task, read_task

TASK: Task = read_task(
    {
        "id": "42",
        "goal": "Summarize competitor analysis with sources.",
        "constraints": {"latencyS": 8, "budgetUsd": 0.2},
        "plan": [
            {"id": "step-2", "text": "Find reports.", "checklist": ["A report"], "tools": ["search_web"]},
            {
                "id": "step-3",
                "text": ["Extract top 5 differentiators.", "Provide risks and gaps."],
                "dependsOn": ["step-2"],
                "checklist": [
                    {"id": "sources", "text": "include sources and evidence links", "proof": "evidence"},
                    {"id": "risks", "text": "Name risks", "proof": "section", "argument": "Risks"},
                ],
                "stopConditions": ["five are found"],
                "next": "write the report",
            },
        ],
    }
)
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "search_web",
        "description": "Search the web.\nMore of it.",
        "parameters": {"type": "object", "properties": {"query": {}, "max_results": {}}},
    },
}


def call(number: int, result: str = "Acme: 20 % cheaper") -> list[dict[str, Any]]:
    """A call of the tool and its result, in OpenAI's format."""
    made = {"id": f"c{number}", "type": "function", "function": {"name": "search_web", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def said(text: str) -> dict[str, Any]:
    """An answer."""
    return {"role": "assistant", "content": text}

"""Every method of the newest SDKs that may send a history is packed, or known to send none."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from google import genai
from openai import AsyncOpenAI, OpenAI

PACKED: dict[str, dict[str, set[str]]] = {
    "openai": {
        "chat.completions": {"create", "parse", "stream"},
        "beta.chat.completions": {"create", "parse", "stream"},
        "responses": {"create", "parse", "stream"},
        "beta.responses": {"create"},
    },
    "anthropic": {
        "messages": {"create", "parse", "stream"},
        "beta.messages": {"create", "parse", "stream", "tool_runner"},
    },
    "genai": {"models": {"generate_content", "generate_content_stream"}},
}
"""The methods whose requests are packed, by their resource."""
OTHERS: dict[str, dict[str, set[str]]] = {
    "openai": {
        "chat.completions": {"delete", "list", "retrieve", "update"},
        "beta.chat.completions": {"delete", "list", "retrieve", "update"},
        # ``compact`` is told of as unpacked. ``connect`` opens a socket, which no HTTP client sees.
        "responses": {"cancel", "compact", "connect", "delete", "retrieve"},
        "beta.responses": {"cancel", "compact", "connect", "delete", "retrieve"},
    },
    "anthropic": {
        "messages": {"count_tokens"},
        # The provider keeps a thread; its requests go out as they are, with an event.
        "beta.messages": {"count_tokens", "thread"},
    },
    "genai": {
        "models": {
            "compute_tokens", "count_tokens", "delete", "edit_image", "embed_content", "generate_images",
            "generate_videos", "get", "list", "recontext_image", "segment_image", "update", "upscale_image",
        },
    },
}  # fmt: skip
"""Their other methods: they send no history, or are known not to be packed."""
WITHOUT: dict[str, set[str]] = {
    "openai": {
        "admin", "audio", "batches", "completions", "containers", "content_provenance_checks", "conversations",
        "decisions", "embeddings", "evals", "files", "fine_tuning", "images", "live", "models", "moderations",
        "realtime", "safety", "skills", "uploads", "vector_stores", "videos", "webhooks",
        "beta.agents", "beta.assistants", "beta.chatkit", "beta.realtime", "beta.threads",
    },
    "anthropic": {
        "files", "models", "skills", "user_profiles",
        "beta.agents", "beta.compliance", "beta.deployment_runs", "beta.deployments", "beta.dreams",
        "beta.environments", "beta.files", "beta.memory_stores", "beta.models", "beta.organization",
        "beta.sessions", "beta.skills", "beta.tunnels", "beta.user_profiles", "beta.vaults", "beta.webhooks",
        "organization",
    },
    "genai": set(),
}  # fmt: skip
"""Resources without a method that sends a history of one of our formats."""
CLIENTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "OpenAI": ("openai", lambda: OpenAI(api_key="test")),
    "AsyncOpenAI": ("openai", lambda: AsyncOpenAI(api_key="test")),
    "Anthropic": ("anthropic", lambda: Anthropic(api_key="test")),
    "AsyncAnthropic": ("anthropic", lambda: AsyncAnthropic(api_key="test")),
    "Client": ("genai", lambda: genai.Client(api_key="test")),
    "AsyncClient": ("genai", lambda: genai.Client(api_key="test").aio),
}


def resource(client: Any, name: str) -> Any:
    for part in name.split("."):
        client = getattr(client, part)
    return client


def methods(of: Any) -> set[str]:
    found = {name for name, _ in inspect.getmembers(type(of), callable) if not name.startswith("_")}
    return {name for name in found if not inspect.isclass(getattr(type(of), name))}


def resources(of: Any, prefix: str = "") -> set[str]:
    """The names of the resources of a client, and of its group ``beta``."""
    found = set[str]()
    for name in dir(of):
        kind = type(getattr(of, name, None)) if not name.startswith(("_", "with_")) else type(None)
        if any(base.__name__ in ("SyncAPIResource", "AsyncAPIResource") for base in kind.__mro__):
            found |= resources(getattr(of, name), "beta.") if name == "beta" else {prefix + name}
    return found


@pytest.mark.parametrize("name", CLIENTS)
def test_every_method_is_packed_or_known_not_to_be(name: str) -> None:
    sdk, make = CLIENTS[name]
    client = make()
    for path, packed in PACKED[sdk].items():
        unknown = methods(resource(client, path)) ^ (packed | OTHERS[sdk][path])
        assert not unknown, f"{path}: a method is new, or gone: pack it or list it"


@pytest.mark.parametrize("name", [name for name, (sdk, _) in CLIENTS.items() if sdk != "genai"])
def test_every_resource_is_known(name: str) -> None:
    sdk, make = CLIENTS[name]
    known = {path.removesuffix(".completions") for path in PACKED[sdk]} | WITHOUT[sdk]
    unknown = resources(make()) ^ known
    assert not unknown, "a resource is new, or gone: find out whether its methods send a history"

"""Copies of a google-genai client that send through another HTTP client; its SDK has none.

A client holds an API client, and so does each of its modules (``models``, ``chats``, ``aio``). The API client has the
HTTP clients: the sync one, and httpx or aiohttp for async calls, of which a copy uses httpx.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

_API = "_api_client"
_SYNC, _ASYNC = "_httpx_client", "_async_httpx_client"


def is_genai(client: object) -> bool:
    """Whether an object is a client of google-genai."""
    kinds = type(client).__mro__
    return any(kind.__module__.startswith("google.genai") for kind in kinds) and hasattr(client, _API)


def replace_http(client: Any, make: Callable[[Any], Any], own: Mapping[str, Any]) -> Any:
    """Return a copy of the client whose requests go through what ``make`` returns for each of its HTTP clients, and
    whose class has the attributes ``own``. The copy keeps the original, which closes the connections when it is
    collected."""
    api = copy.copy(getattr(client, _API))
    # Copies share the connections, so the end of one must not close them; async calls use httpx.
    kept = {"__del__": lambda self: None, "_use_aiohttp": lambda self: False}
    api.__class__ = type(type(api).__name__, (type(api),), kept)
    for name in (_SYNC, _ASYNC):
        if inner := getattr(api, name):
            setattr(api, name, make(inner))
    packed = _copy_modules(client, api)
    kind: Any = type(client)
    methods = {"__del__": lambda self: None, "copy": copy_with_headers, "__module__": kind.__module__}
    packed.__class__ = type(kind.__name__, (kind,), {**methods, **own})
    packed._original = client
    return packed


def copy_with_headers(client: Any, *, default_headers: Mapping[str, str]) -> Any:
    """Return a copy of the client that sends these headers too."""
    api = copy.copy(getattr(client, _API))
    options = api._http_options
    headers = {**(options.headers or {}), **default_headers}
    api._http_options = options.model_copy(update={"headers": headers})
    return _copy_modules(client, api)


def find_transport(client: Any) -> Any:
    """Return the transport of a client that ``replace_http`` returned."""
    return getattr(client, _API)._httpx_client._transport


def _copy_modules(holder: Any, api: Any) -> Any:
    """Copy a client or module, and the modules in it, with another API client."""
    copied = copy.copy(holder)
    for name, value in vars(holder).items():
        if name == _API:
            setattr(copied, name, api)
        elif hasattr(value, _API) and not name.startswith("_original"):
            setattr(copied, name, _copy_modules(value, api))
    return copied

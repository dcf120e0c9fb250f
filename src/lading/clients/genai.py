"""Copies of a google-genai client that send through another HTTP client, because its SDK has no ``copy``.

A client holds an API client, and so do its modules (``models``, ``aio``). The API client has the HTTP clients:
httpx for sync calls, and httpx or aiohttp for async ones, of which a copy uses httpx.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

_API = "_api_client"


def is_genai(client: object) -> bool:
    """Whether an object is a client of google-genai."""
    kinds = type(client).__mro__
    return hasattr(client, _API) and any(kind.__module__.startswith("google.genai") for kind in kinds)


def replace_http(client: Any, make: Callable[[Any], Any], *, own: Mapping[str, Any]) -> Any:
    """Return a copy of the client that sends through what ``make`` returns for each of its HTTP clients, and whose
    class has the attributes ``own``. The copy keeps the original, which closes its connections when collected."""
    api = _subclass(copy.copy(getattr(client, _API)), {"__del__": _keep_open, "_use_aiohttp": _use_httpx})
    for name in ("_httpx_client", "_async_httpx_client"):
        if inner := getattr(api, name):
            setattr(api, name, make(inner))
    packed = _copy_modules(client, api)
    packed._made_from = client
    return _subclass(packed, {"__del__": _keep_open, "copy": copy_with_headers, **own})


def copy_with_headers(client: Any, *, default_headers: Mapping[str, str]) -> Any:
    """Return a copy of the client that also sends these headers."""
    api = copy.copy(getattr(client, _API))
    options = api._http_options
    api._http_options = options.model_copy(update={"headers": {**(options.headers or {}), **default_headers}})
    return _copy_modules(client, api)


def find_headers(client: Any) -> Mapping[str, str]:
    """Return the headers that a client sends with each request."""
    return getattr(client, _API)._http_options.headers or {}


def find_transport(client: Any) -> Any:
    """Return the transport of a client that ``replace_http`` returned."""
    return getattr(client, _API)._httpx_client._transport


def _subclass(value: Any, own: Mapping[str, Any]) -> Any:
    """Return the object with these attributes of its class."""
    kind: Any = type(value)
    value.__class__ = type(kind.__name__, (kind,), {"__module__": kind.__module__, **own})
    return value


def _keep_open(_: Any) -> None:
    """Do nothing when a copy is collected: it shares its connections."""


def _use_httpx(_: Any) -> bool:
    return False


def _copy_modules(holder: Any, api: Any) -> Any:
    """Copy a client or module, and the modules in it, with another API client."""
    copied = copy.copy(holder)
    for name, value in vars(holder).items():
        if name == _API:
            setattr(copied, name, api)
        elif hasattr(value, _API) and name != "_made_from":
            setattr(copied, name, _copy_modules(value, api))
    return copied

"""Models named on the command line, and the clients of their providers' SDKs, which retry by themselves."""

from __future__ import annotations

import importlib
import json
import os
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from lading.economics import Rates, rates_for
from lading.errors import InputError, WireError
from lading.evaluate.asking import AskedModel, ModelRequest, Send
from lading.evaluate.prices import Price, find_price
from lading.models.catalog import find_card
from lading.wire import find_wire
from lading.wire.given_replies import reply_from
from lading.wire.replies import Reply

_ERROR_CHARS = 300
_REFUSALS = (401, 403, 404)
"""Statuses that every further request would get too."""

Usd: TypeAlias = tuple[float, float]
"""Prices of a million tokens of input and output, in USD."""


class OptionNames(NamedTuple):
    """The options of a command that errors advise to give."""

    url: str = "--base-url"
    usd: str = "--usd"


_NAMES = OptionNames()


class Provider(Struct, frozen=True):
    """A provider whose SDK sends requests."""

    package: str
    client: str
    wire: str
    variables: tuple[str, ...]
    """Environment variables that may hold the key."""
    no_calls: Any
    """Value of ``tool_choice`` with which the model calls no tool."""


PROVIDERS = {
    "openai": Provider("openai", "OpenAI", "openai_chat", ("OPENAI_API_KEY",), "none"),
    "anthropic": Provider(
        "anthropic", "Anthropic", "anthropic", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), {"type": "none"}
    ),
}


def parse_usd(text: str) -> Usd:
    """Parse prices of input and output. Raises ValueError with the accepted form."""
    try:
        read, written = map(float, text.split("/"))
    except ValueError:
        read = written = -1.0
    if not (0 <= read < 1e6 and 0 <= written < 1e6):
        raise ValueError("give two prices in USD per million tokens, input/output, such as 1.25/10")
    return read, written


def find_model(
    text: str,
    *,
    answer_tokens: int,
    rates: Rates | None,
    usd: Usd | None,
    base_url: str | None = None,
    options: OptionNames = _NAMES,
) -> AskedModel:
    """Find a model by ``provider:model`` or by a name of the catalogue. ``usd``: its prices where none are known.
    Raises InputError for a model that no SDK can be asked for, and for one without a price."""
    provider, _, name = text.partition(":")
    if provider not in PROVIDERS or not name:
        name = text
        card, _ = find_card(name)
        provider = card.provider if card.provider in PROVIDERS else "openai" if base_url else ""
        if not provider:
            bare = name.partition(":")[2] or name
            raise InputError(
                f"The provider of {name!r} has no client here. Name the model openai:{bare}, with {options.url} "
                "for an API that is compatible with OpenAI's."
            )
    card, _ = find_card(name)
    price = find_price(card, rates)
    if price is None and usd is not None:
        own = rates_for(card.prices.read, card.prices.write, ttl_s=card.cache.ttl_s)
        price = Price(rates or own, usd[0] / 1e6, usd[1] / 1e6)
    if price is None:
        raise InputError(
            f"No price in USD is known for {name!r}, so --most-usd could not be kept. Give {options.usd} "
            "INPUT/OUTPUT per million tokens, 0/0 for a model of your own."
        )
    most = min(answer_tokens, card.limits.max_output_tokens)
    return AskedModel(name, PROVIDERS[provider].wire, card, price, most)


def make_sender(
    model: AskedModel, judge: AskedModel | None, *, base_url: str | None, options: OptionNames = _NAMES
) -> Send:
    """Make the function that sends requests: those of the model to ``base_url`` (None: the SDK's), the judge's to
    that of its SDK. Raises InputError where an SDK or a key is missing."""
    clients = [(model, _open_client(model, base_url, options))]
    if judge is not None:
        clients.append((judge, _open_client(judge, None, options)))

    def send(request: ModelRequest) -> Reply | str:
        return next(client for asked, client in clients if asked is request.model).send(request)

    return send


class ModelClient:
    """Sends requests to one provider, by its SDK."""

    def __init__(self, provider: Provider, sdk: Any, client: Any, options: OptionNames) -> None:
        self._provider, self._sdk, self._client, self._options = provider, sdk, client, options

    def send(self, request: ModelRequest) -> Reply | str:
        """Send a request; return its reply, or why there is none. Raises InputError where all would fail."""
        chat = self._provider.wire == "openai_chat"
        create = self._client.chat.completions.create if chat else self._client.messages.create
        try:
            return reply_from(create(**self._write_body(request)), wire=find_wire(request.model.wire))
        except self._sdk.APITimeoutError as error:
            return str(error)
        except self._sdk.APIConnectionError as error:
            url = self._client.base_url.copy_with(userinfo=b"")  # It may hold a password.
            raise InputError(
                f"{url} cannot be reached: {error} Check the network and {self._options.url}."
            ) from error
        except self._sdk.APIStatusError as error:
            self._raise_refusal(error.status_code, request)
            return f"{error.status_code}: {error}"[:_ERROR_CHARS]
        except WireError as error:
            return str(error)

    def _raise_refusal(self, status: int, request: ModelRequest) -> None:
        if status not in _REFUSALS:
            return
        name = self._provider.variables[0]
        advice = f"Check {name}." if status != _REFUSALS[-1] else f"Check the model's name and {self._options.url}."
        raise InputError(f"The provider refused {request.model.name!r} with status {status}. {advice}")

    def _write_body(self, request: ModelRequest) -> dict[str, Any]:
        """Return the body with the limit of the answer, and without characters that no SDK can send."""
        body: dict[str, Any] = json.loads(json.dumps(request.body, ensure_ascii=False).encode("utf-8", "replace"))
        # OpenAI's newer models refuse max_tokens, and other servers of its format do not know the newer name.
        field = "max_completion_tokens" if request.model.card.provider == "openai" else "max_tokens"
        limited = {key: value for key, value in body.items() if key != "max_tokens"}
        choice = {} if request.may_call or not body.get("tools") else {"tool_choice": self._provider.no_calls}
        return limited | {field: request.model.answer_tokens} | choice


def _open_client(model: AskedModel, base_url: str | None, options: OptionNames) -> ModelClient:
    provider = next(item for item in PROVIDERS.values() if item.wire == model.wire)
    try:
        sdk = importlib.import_module(provider.package)
    except ImportError as error:
        raise InputError(
            f"{model.name!r} is asked by the SDK of its provider: pip install {provider.package}"
        ) from error
    if not any(os.environ.get(name) for name in provider.variables):
        raise InputError(
            f"There is no key to ask {model.name!r}. Set the variable {provider.variables[0]}"
            + ("; a server without keys takes any." if base_url else ".")
        )
    return ModelClient(provider, sdk, getattr(sdk, provider.client)(base_url=base_url), options)

"""The strict provider: a local server that implements the formats of OpenAI, Anthropic and Google.

It refuses the requests that they refuse, with their error texts; counts, caches and bills; a script is the model.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from msgspec.structs import replace

from lading.errors import InputError, LadingError, Violation
from lading.jsonbytes import dump, load
from lading.models.card import Card
from lading.models.catalog import find_card
from lading.testing import anthropic, gemini, openai_chat, openai_responses
from lading.testing.answers import Answer, ErrorResponse, Fault, Issue, ProviderFormat, Request
from lading.testing.issued import IssuedReplies
from lading.testing.legality import decode_conversation, find_violations, make_error
from lading.testing.local_server import LocalServer
from lading.testing.prompt_cache import PieceCounter, PromptCache, Scale, find_scale
from lading.testing.script import Script, Seen
from lading.tokens import counter

PATHS = {
    "/v1/chat/completions": openai_chat.FORMAT,
    "/v1/messages": anthropic.FORMAT,
    "/v1/responses": openai_responses.FORMAT,
}
MODELS = ("/v1/models", gemini.MODELS)
RESPONSES = "/v1/responses/"
MODEL = "lading-script"
"""The only model in the list of models. A request may name any model, and the card of that name sets the rules."""
KEYS = ("authorization", "x-api-key", "x-goog-api-key")
SECRETS = (*KEYS, "api-key", "cookie", "proxy-authorization")


class StrictProvider:
    """A provider for tests, used in a ``with`` statement. OpenAI's base URL is ``url + "/v1"``, Anthropic's and
    Google's ``url``."""

    def __init__(
        self,
        script: Script,
        *,
        window_tokens: int | None = None,
        card: Card | None = None,
        scale: Scale | None = None,
        min_prefix_tokens: int = 1024,
        faults: Mapping[int, Fault] | None = None,
        foreign: bool = False,
        port: int = 0,
    ) -> None:
        """``card`` None: that of the model in the request. ``window_tokens`` None: the card's. ``scale``: how
        its token counts differ from o200k; None: by the multiplier of a card whose counter is an estimate. Prefixes
        below ``min_prefix_tokens`` are not cached. ``faults``: by the number of the call, from 1, retries counted.
        ``foreign``: accept calls and signatures it did not issue. ``port`` 0: a free one."""
        self._script = script
        self._window = window_tokens
        self._card = card
        self._scale = scale
        self._faults = dict(faults or {})
        self._counter = PieceCounter(counter("o200k"))
        forms = (*PATHS.values(), gemini.FORMAT)
        self._caches = {form.wire: PromptCache(min_prefix_tokens=min_prefix_tokens) for form in forms}
        self._issued = IssuedReplies()
        self._responses = openai_responses.StoredResponses()
        self._stored: Mapping[str, MessageThreads | openai_responses.StoredResponses] = {
            "anthropic": MessageThreads(),
            "openai_responses": self._responses,
        }
        self._foreign = foreign
        self._port = port
        self._calls = 0
        self._lock = threading.Lock()
        self._server: LocalServer | None = None
        self.requests: list[Request] = []
        """All requests, in the order of arrival."""
        self.answers: list[Answer] = []
        """The answers to ``requests``, in the same order."""

    @property
    def url(self) -> str:
        """The base URL. Raises LadingError outside of the ``with`` statement."""
        if self._server is None:
            raise LadingError("The provider is not running; use it in a with statement.")
        return self._server.url

    @property
    def violations(self) -> list[Violation]:
        """All violations of rules so far; a prompt that is too long is not one."""
        return [violation for answer in self.answers for violation in answer.violations]

    @property
    def issues(self) -> list[Issue]:
        """The replies that were sent, in order."""
        return [answer.issue for answer in self.answers if answer.issue is not None]

    def __enter__(self) -> StrictProvider:
        try:
            self._server = LocalServer(self.answer, port=self._port)
        except OSError as error:
            why = f"Port {self._port} of 127.0.0.1 cannot be used: {error.strerror or error}"
            raise InputError(f"{why}. Give another one, or 0 for a free one.") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        server, self._server = self._server, None
        server.close()
        if server.errors and error is None:
            raise server.errors[0]

    def answer(self, request: Request) -> Answer:
        """Answer one request. Requests are processed one at a time; exceptions of the script propagate."""
        path, _, _ = request.path.partition("?")
        keyed = any(request.headers.get(name, "").removeprefix("Bearer").strip() for name in KEYS)
        with self._lock:
            form, named = _find_form(path) if request.method == "POST" else (None, {})
            self._calls += form is not None
            request = replace(
                request,
                headers={name: value for name, value in request.headers.items() if name not in SECRETS},
                body=_parse_json(request.raw, named),
                call=0 if form is None else self._calls,
            )
            self.requests.append(request)
            answer = self._answer_call(form, request, keyed=keyed) if form else self._answer_other(request, path)
            self.answers.append(answer)
            return answer

    def _answer_other(self, request: Request, path: str) -> Answer:
        """Answer a request that is not a call of the model."""
        form = anthropic.FORMAT if "anthropic-version" in request.headers else openai_chat.FORMAT
        form = gemini.FORMAT if path.startswith(gemini.MODELS) else form
        if request.method == "GET" and path in MODELS:
            return Answer(200, dump(form.write_models(MODEL)))
        if request.method == "GET" and (found := self._responses.replies.get(path.removeprefix(RESPONSES))):
            return Answer(200, dump(found))
        return _refuse(form, ErrorResponse(404, f"Invalid URL ({request.method} {path})"))

    def _answer_call(self, form: ProviderFormat, request: Request, *, keyed: bool) -> Answer:
        """Answer a call of the model."""
        fault = self._faults.get(request.call, Fault())
        if not keyed:
            return _refuse(form, ErrorResponse(401, "You didn't provide an API key."))
        if fault.status:
            return replace(_refuse(form, ErrorResponse(fault.status, "Try again later.")), fault=fault)
        body = request.body
        if not isinstance(body, dict):
            return _refuse(form, ErrorResponse(400, "We could not parse the JSON body of your request."))
        sent, stored = body, self._stored.get(form.wire)
        body = stored.expand(body) if stored else body
        if isinstance(body, ErrorResponse):
            return _refuse(form, body)
        card = self._card or find_card(str(body.get("model", "")))[0]
        found = find_violations(form.wire, body, card=card, issued=None if self._foreign else self._issued)
        conversation = Violation("", "E", "", "") if found else decode_conversation(form.wire, body)
        if isinstance(conversation, Violation):
            found = found or [conversation]
            return replace(_refuse(form, make_error(found[0])), violations=tuple(found))
        pieces = form.split_pieces(body)
        scale = self._scale or find_scale(card.tokens)
        ends = self._counter.count_prefixes(pieces, scale)
        window = self._window or card.limits.window_tokens
        if ends[-1] > window or fault.overflow:
            refused = _refuse(form, form.refuse_long_prompt(ends[-1], min(window, ends[-1] - 1)))
            return replace(refused, prompt_tokens=ends[-1], fault=fault)
        say = self._script(Seen(form.wire, conversation, body))
        echoed = card.conduct.reasoning_echo == "reasoning_content"
        thinking = body.get("thinking") if form.requests_thinking(body) else None
        written = (say.thinking, say.text, *(use.written for use in say.calls))
        issue = Issue(
            request.call,
            body["model"],
            say,
            self._caches[form.wire].bill(pieces, ends),
            sum(self._counter.count_text(text, scale) for text in written),
            thinks=(bool(say.thinking) and form.requests_thinking(body)) or (form.wire == "openai_chat" and echoed),
            reports=fault.usage,
            shows_thinking=not (isinstance(thinking, dict) and thinking.get("display") == "omitted"),
        )
        self._issued.remember(issue, form)
        if stored:
            stored.keep(sent, body, reply=form.write_reply(issue))
        return replace(_make_answer(form, issue, body, fault=fault), prompt_tokens=ends[-1])


def _make_answer(form: ProviderFormat, issue: Issue, body: Mapping[str, Any], *, fault: Fault) -> Answer:
    if body.get("stream") is not True:
        return Answer(200, dump(form.write_reply(issue)), issue=issue, fault=fault)
    events = form.write_events(issue, body)
    if fault.repeat is not None:
        events.insert(fault.repeat, events[fault.repeat])
    return Answer(200, b"".join(events), tuple(events), issue, fault=fault)


def _refuse(form: ProviderFormat, why: ErrorResponse) -> Answer:
    return Answer(why.status, dump(form.write_error(why)))


def _find_form(path: str) -> tuple[ProviderFormat | None, Mapping[str, Any]]:
    """Return the format of an endpoint, and the fields that its path names."""
    named = gemini.read_path(path)
    return (PATHS.get(path), {}) if named is None else (gemini.FORMAT, named)


def _parse_json(raw: bytes, named: Mapping[str, Any]) -> Any:
    """Return the body, with the fields that the path names; None if it is not JSON."""
    try:
        value = load(raw)
    except ValueError:
        return None
    return {**value, **named} if isinstance(value, dict) and named else value


_THREAD_FIELDS = ("system", "tools")
"""Fields of a thread's first request, which requests that continue the thread must not repeat."""


class MessageThreads:
    """The threads of a provider by the id of the last reply; a request that continues one has only new messages."""

    def __init__(self) -> None:
        """Begin without any."""
        self._kept: dict[str, dict[str, Any]] = {}

    def expand(self, body: Mapping[str, Any]) -> dict[str, Any] | ErrorResponse:
        """Return the request with the earlier messages of its thread, or an error if the thread is unknown."""
        rest = {key: value for key, value in body.items() if key != "thread"}
        thread = body.get("thread")
        if not isinstance(thread, dict) or thread.get("type") != "continue":
            return rest
        kept = self._kept.get(thread.get("previous_message_id", ""))
        if kept is None or any(field in body for field in _THREAD_FIELDS):
            return ErrorResponse(400, "the thread was not found, or is begun anew", path="thread")
        return rest | kept | {"messages": [*kept["messages"], *rest["messages"]]}

    def keep(self, body: Mapping[str, Any], whole: Mapping[str, Any], *, reply: Mapping[str, Any]) -> None:
        """Store the request and its reply if the request has a thread."""
        if body.get("thread"):
            answer = {"role": "assistant", "content": reply["content"]}
            kept = {field: whole[field] for field in _THREAD_FIELDS if field in whole}
            self._kept[reply["id"]] = kept | {"messages": [*whole["messages"], answer]}

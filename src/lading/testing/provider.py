"""The strict provider: a local server that implements OpenAI's and Anthropic's formats.

It refuses what they refuse, with their error texts; counts, caches and bills; and uses a script as the model.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from msgspec.structs import replace

from lading.errors import LadingError, Violation
from lading.jsonbytes import dump, load
from lading.models.card import Card
from lading.models.catalog import find_card
from lading.testing import anthropic, openai_chat
from lading.testing.answers import Answer, Fault, Form, Issue, Refusal, Request
from lading.testing.issued import Issued
from lading.testing.judging import refusal, seen, violations
from lading.testing.listening import Listener
from lading.testing.prompt_cache import PLAIN, PromptCache, Ruler, Scale
from lading.testing.script import Script, Seen
from lading.tokens import counter

PATHS = {"/v1/chat/completions": openai_chat.FORM, "/v1/messages": anthropic.FORM}
MODELS = "/v1/models"
MODEL = "lading-script"
"""The one model of the list. A request may name any: the rules are those of the card of that name."""
KEYS = ("authorization", "x-api-key")
SECRETS = (*KEYS, "api-key", "cookie", "proxy-authorization")


class StrictProvider:
    """A provider for tests, used in a ``with`` statement. OpenAI's base URL is ``url + "/v1"``, Anthropic's
    ``url``."""

    def __init__(
        self,
        script: Script,
        *,
        window_tokens: int | None = None,
        card: Card | None = None,
        scale: Scale = PLAIN,
        min_prefix_tokens: int = 1024,
        faults: Mapping[int, Fault] | None = None,
        foreign: bool = False,
    ) -> None:
        """``card`` None: that of the model which a request names. ``window_tokens`` None: the card's. ``scale`` is
        how its count of tokens differs from o200k; prefixes below ``min_prefix_tokens`` are not cached.
        ``faults`` go by the number of the call, from 1, retries counted. ``foreign``: a history may hold calls
        and signatures that were issued elsewhere."""
        self._script = script
        self._window = window_tokens
        self._card = card
        self._faults = dict(faults or {})
        self._ruler = Ruler(counter("o200k"), scale)
        self._caches = {form.wire: PromptCache(min_prefix_tokens=min_prefix_tokens) for form in PATHS.values()}
        self._issued = Issued()
        self._threads = Threads()
        self._foreign = foreign
        self._calls = 0
        self._lock = threading.Lock()
        self._listener: Listener | None = None
        self.requests: list[Request] = []
        """Every request, in the order of arrival."""
        self.answers: list[Answer] = []
        """What came back for each of them."""

    @property
    def url(self) -> str:
        """Its base URL. Raises LadingError outside of the ``with`` statement."""
        if self._listener is None:
            raise LadingError("The provider is not running; use it in a with statement.")
        return self._listener.url

    @property
    def violations(self) -> list[Violation]:
        """Every violation of a rule so far. A prompt that is too long is none."""
        return [violation for answer in self.answers for violation in answer.violations]

    @property
    def issues(self) -> list[Issue]:
        """The replies that were sent, in order."""
        return [answer.issue for answer in self.answers if answer.issue is not None]

    def __enter__(self) -> StrictProvider:
        self._listener = Listener(self.answer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listener is not None
        listener, self._listener = self._listener, None
        listener.close()
        if listener.errors and error is None:
            raise listener.errors[0]

    def answer(self, request: Request) -> Answer:
        """Answer one request. Requests are processed one at a time; exceptions of the script propagate."""
        path, _, _ = request.path.partition("?")
        keyed = any(request.headers.get(name, "").removeprefix("Bearer").strip() for name in KEYS)
        with self._lock:
            form = PATHS.get(path) if request.method == "POST" else None
            self._calls += form is not None
            request = replace(
                request,
                headers={name: value for name, value in request.headers.items() if name not in SECRETS},
                body=_parsed(request.raw),
                call=0 if form is None else self._calls,
            )
            self.requests.append(request)
            answer = self._aside(request, path) if form is None else self._called(form, request, keyed=keyed)
            self.answers.append(answer)
            return answer

    def _aside(self, request: Request, path: str) -> Answer:
        """Everything that is no call of the model."""
        form = anthropic.FORM if "anthropic-version" in request.headers else openai_chat.FORM
        if (request.method, path) == ("GET", MODELS):
            return Answer(200, dump(form.models(MODEL)))
        return _refused(form, Refusal(404, f"Invalid URL ({request.method} {path})"))

    def _called(self, form: Form, request: Request, *, keyed: bool) -> Answer:
        """A call of the model."""
        fault = self._faults.get(request.call, Fault())
        if not keyed:
            return _refused(form, Refusal(401, "You didn't provide an API key."))
        if fault.status:
            return replace(_refused(form, Refusal(fault.status, "Try again later.")), fault=fault)
        body = request.body
        if not isinstance(body, dict):
            return _refused(form, Refusal(400, "We could not parse the JSON body of your request."))
        body = self._threads.whole(sent := body)
        if isinstance(body, Refusal):
            return _refused(form, body)
        card = self._card or find_card(str(body.get("model", "")))[0]
        found = violations(form.wire, body, card=card, issued=None if self._foreign else self._issued)
        conversation = Violation("", "E", "", "") if found else seen(form.wire, body)
        if isinstance(conversation, Violation):
            found = found or [conversation]
            return replace(_refused(form, refusal(found[0])), violations=tuple(found))
        pieces = form.pieces(body)
        ends = self._ruler.ends(pieces)
        window = self._window or card.limits.window_tokens
        if ends[-1] > window:
            return replace(_refused(form, form.too_long(ends[-1], window)), prompt_tokens=ends[-1])
        say = self._script(Seen(form.wire, conversation, body))
        echoed = card.conduct.reasoning_echo == "reasoning_content"
        display = body["thinking"].get("display") if form.thinks(body) else None
        issue = Issue(
            request.call,
            body["model"],
            say,
            self._caches[form.wire].bill(pieces, ends),
            sum(self._ruler.text(text) for text in (say.thinking, say.text, *(use.written for use in say.calls))),
            thinks=(bool(say.thinking) and form.thinks(body)) or (form.wire == "openai_chat" and echoed),
            reports=fault.usage,
            shows_thinking=display != "omitted",
        )
        self._issued.remember(issue, form)
        self._threads.keep(sent, body, reply=form.reply(issue))
        return replace(_issued(form, issue, body, fault=fault), prompt_tokens=ends[-1])


def _issued(form: Form, issue: Issue, body: Mapping[str, Any], *, fault: Fault) -> Answer:
    if body.get("stream") is not True:
        return Answer(200, dump(form.reply(issue)), issue=issue, fault=fault)
    events = form.events(issue, body)
    if fault.repeat is not None:
        events.insert(fault.repeat, events[fault.repeat])
    return Answer(200, b"".join(events), tuple(events), issue, fault=fault)


def _refused(form: Form, why: Refusal) -> Answer:
    return Answer(why.status, dump(form.refusal(why)))


def _parsed(raw: bytes) -> Any:
    try:
        return load(raw)
    except ValueError:
        return None


_KEPT = ("system", "tools")
"""What a thread is begun with; a request that goes on with it does not repeat them."""


class Threads:
    """The threads of a provider, by the id of the reply that each goes on from."""

    def __init__(self) -> None:
        """Keeps nothing yet."""
        self._kept: dict[str, dict[str, Any]] = {}

    def whole(self, body: Mapping[str, Any]) -> dict[str, Any] | Refusal:
        """The request as it is without a thread: with all that was sent before."""
        rest = {key: value for key, value in body.items() if key != "thread"}
        thread = body.get("thread")
        if not isinstance(thread, dict) or thread.get("type") != "continue":
            return rest
        kept = self._kept.get(thread.get("previous_message_id", ""))
        if kept is None or any(field in body for field in _KEPT):
            return Refusal(400, "the thread was not found, or is begun anew", path="thread")
        return rest | kept | {"messages": [*kept["messages"], *rest["messages"]]}

    def keep(self, body: Mapping[str, Any], whole: Mapping[str, Any], *, reply: Mapping[str, Any]) -> None:
        """Keep what was said, where the request asks for that."""
        if body.get("thread"):
            said = {"role": "assistant", "content": reply["content"]}
            kept = {field: whole[field] for field in _KEPT if field in whole}
            self._kept[reply["id"]] = kept | {"messages": [*whole["messages"], said]}

"""Ask models: steps yield requests and are sent answers; a cap in USD holds, and answers are kept as they come.

The caller sends: this module knows neither clients nor files. A step is begun only if the worst case of all its
requests fits under the cap, so that what is compared is asked completely or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Condition
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from lading import jsonbytes
from lading.economics import Usage
from lading.evaluate.prices import Price
from lading.messages import ToolCall
from lading.models.card import Card
from lading.wire import Body
from lading.wire.replies import Reply

Result = TypeVar("Result")

_TOKEN_BYTES = 2
"""A token of a prompt of ours has at least this many bytes."""


class AskedModel(Struct, frozen=True):
    """A model to ask."""

    name: str
    """Its name in requests."""
    wire: str
    """Its provider format."""
    card: Card
    price: Price
    answer_tokens: int
    """Limit of an answer in tokens, reasoning included."""

    @property
    def input_tokens(self) -> int:
        """The largest request, in tokens, that leaves room for an answer and for errors of counting."""
        window = self.card.limits.window_tokens
        return window - self.answer_tokens - int(self.card.tokens.margin * window)

    def most_usd(self, tokens: int) -> float:
        """Return the most that a request of this size and its answer can cost, in USD."""
        rate = max(self.price.rates.write, 1.0)
        return tokens * rate * self.price.base_usd + self.price.output(self.answer_tokens)


class ModelRequest(Struct, frozen=True):
    """One request to a model."""

    model: AskedModel
    body: Body
    """Without the fields that limit the answer or choose tools."""
    most_usd: float
    rest_usd: float
    """The most that this request and the later ones of its step can cost."""
    may_call: bool = False
    """Whether the answer may call tools."""
    number: int = 0
    """Tells apart the same request, asked several times."""

    @property
    def key(self) -> str:
        """Digest by which the answer is found again."""
        facts = [self.model.wire, self.model.answer_tokens, self.may_call, self.number, self.body]
        return jsonbytes.digest(jsonbytes.canonical(facts))


class ModelAnswer(Struct, frozen=True):
    """The answer of a model, as it is kept."""

    key: str
    model: str
    text: str
    calls: tuple[ToolCall, ...]
    input_tokens: int
    output_tokens: int
    usd: float

    @property
    def is_empty(self) -> bool:
        """Whether it has neither text nor calls, as when reasoning used up its tokens."""
        return not (self.text.strip() or self.calls)


AskingSteps: TypeAlias = Generator[ModelRequest, ModelAnswer | None, Result]
"""Yields requests and is sent their answers; None: there is no answer."""
Task: TypeAlias = Callable[[], AskingSteps[Result]]
"""Begins the steps anew."""
Send: TypeAlias = Callable[[ModelRequest], Reply | str]
"""Sends a request; returns the reply, or why there is none. Raises LadingError where no request can be answered."""


class Outstanding(NamedTuple):
    """Work that is left, and the most that it can cost."""

    tasks: int
    usd: float


class Asker:
    """Runs tasks: sends each request that has no kept answer, in several threads, while the cap allows it."""

    def __init__(
        self,
        send: Send,
        *,
        kept: Mapping[str, ModelAnswer],
        keep: Callable[[ModelAnswer], None],
        most_usd: float,
    ) -> None:
        """``keep`` stores a new answer; it is called in one thread at a time. ``most_usd``: the cap."""
        self._send, self._keep, self._most_usd = send, keep, most_usd
        self._known = dict(kept)
        self._changed = Condition()
        self._reserved: list[float] = []
        self._is_stopped = False
        self.is_capped = False
        """Whether a task was not begun because of the cap."""
        self.spent_usd = 0.0
        self.sent = 0
        """Requests that were answered now."""
        self.reused = 0
        """Requests that a kept answer answered."""
        self.empty = 0
        """Answers without text and calls, kept ones included."""
        self.failures: list[str] = []

    def measure(self, tasks: Iterable[Task[Result]]) -> Outstanding:
        """Return how many tasks need a model, and the most that they can cost."""
        left = [usd for task in tasks if (usd := self._price_rest(task()))]
        return Outstanding(len(left), sum(left))

    def run(self, tasks: Sequence[Task[Result]], *, parallel: int, advance: Callable[[int], None]) -> list[Result]:
        """Run all tasks, ``parallel`` at a time; return their results in order. Raises the errors of ``send``."""
        with ThreadPoolExecutor(parallel) as pool:
            try:
                return list(pool.map(partial(self._run_task, advance=advance), tasks))
            finally:
                # After an error or Ctrl-C, tasks that wait end without a request; answers on their way are kept.
                self._stop()

    def _price_rest(self, steps: AskingSteps[Result]) -> float | None:
        try:
            request = next(steps)
            while request.key in self._known:
                request = steps.send(self._known[request.key])
        except StopIteration:
            return None
        return request.rest_usd

    def _run_task(self, task: Task[Result], *, advance: Callable[[int], None]) -> Result:
        steps, reserved, is_ended = task(), None, False
        try:
            request = next(steps)
            while True:
                answer = self._find_known(request)
                if answer is None and reserved is None and self._reserve(request.rest_usd):
                    reserved = request.rest_usd
                if answer is None and reserved is not None:
                    answer = self._ask(request)
                request = steps.send(answer)
        except StopIteration as ended:
            is_ended = True
            result: Result = ended.value
            return result
        finally:
            if not is_ended:
                self._stop()
            if reserved is not None:
                self._release(reserved)
            advance(1)

    def _find_known(self, request: ModelRequest) -> ModelAnswer | None:
        with self._changed:
            answer = self._known.get(request.key)
            if answer is not None:
                self.reused += 1
                self.empty += answer.is_empty
            return answer

    def _ask(self, request: ModelRequest) -> ModelAnswer | None:
        if self._is_stopped:
            return None
        reply = self._send(request)
        with self._changed:
            if isinstance(reply, str):
                self.failures.append(reply)
                return None
            answer = _make_answer(request, reply)
            self.sent += 1
            self.empty += answer.is_empty
            self.spent_usd += answer.usd
            self._known[answer.key] = answer
            self._keep(answer)
            return answer

    def _reserve(self, usd: float) -> bool:
        """Reserve the worst case of a task; wait while the reserves of running tasks may still become free."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or not self._reserved or self._fits(usd))
            if self._is_over or not self._fits(usd):
                self.is_capped |= not self._is_stopped
                self._changed.notify_all()
                return False
            self._reserved.append(usd)
            return True

    @property
    def _is_over(self) -> bool:
        return self._is_stopped or self.is_capped

    def _fits(self, usd: float) -> bool:
        return self.spent_usd + sum(self._reserved) + usd <= self._most_usd

    def _release(self, usd: float) -> None:
        with self._changed:
            self._reserved.remove(usd)
            self._changed.notify_all()

    def _stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()


def _make_answer(request: ModelRequest, reply: Reply) -> ModelAnswer:
    message, usage = reply.message, reply.usage
    counts = (usage.input_tokens, usage.output_tokens) if usage else (0, 0)
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in message.calls)
    return ModelAnswer(request.key, request.model.name, message.text, calls, *counts, price_reply(request, reply))


def price_reply(request: ModelRequest, reply: Reply) -> float:
    """Return the cost of a request and its reply in USD; without reported usage the most that it can be."""
    usage, price = reply.usage, request.model.price
    if usage is None:
        return request.most_usd
    fresh = usage.input_tokens - usage.read_tokens - usage.written_tokens
    billed = Usage(usage.read_tokens, usage.written_tokens, fresh)
    return price.input(billed) + price.output(usage.output_tokens)


def bound_tokens(text: str) -> int:
    """Return at least as many tokens as a prompt of ours has, by any counter."""
    return len(text.encode("utf-8", "surrogatepass")) // _TOKEN_BYTES

"""Ask a model for the summaries of a replay, within a cap in USD; each answer is recorded as it comes."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from lading.effects import SummaryRequest
from lading.errors import LadingError, SummaryFailed
from lading.evaluate.asking import AskedModel, ModelRequest, Send, bound_tokens, price_reply
from lading.evaluate.recorded_summaries import RecordedAnswer
from lading.messages import Conversation, user_text
from lading.wire import encode, find_wire


class SummaryModel:
    """Asks a model for summaries: one at a time, while the cap allows it."""

    def __init__(
        self, model: AskedModel, send: Send, *, keep: Callable[[RecordedAnswer], None], most_usd: float
    ) -> None:
        """``keep`` records an answer."""
        self._model, self._send, self._keep, self._most_usd = model, send, keep, most_usd
        self.sent = 0
        """Requests that were answered."""
        self.spent_usd = 0.0
        self.is_capped = False
        """Whether a request was not sent because of the cap."""
        self.failures: list[str] = []
        self._error: LadingError | None = None

    def __call__(self, asked: SummaryRequest, digest: str) -> RecordedAnswer:
        """Return the model's answer. Raises SummaryFailed if there is none."""
        request = self._make_request(asked)
        self.is_capped |= self.spent_usd + request.most_usd > self._most_usd
        if self.is_capped or self._error:
            raise SummaryFailed("the cap is reached" if self.is_capped else str(self._error))
        try:
            reply = self._send(request)
        except LadingError as error:
            self._error = error
            raise SummaryFailed(str(error)) from error
        if isinstance(reply, str):
            self.failures.append(reply)
            raise SummaryFailed(reply)
        self.sent += 1
        self.spent_usd += price_reply(request, reply)
        if not reply.message.text.strip():
            self.failures.append("the answer has no text")
            raise SummaryFailed("the answer has no text")
        answer = RecordedAnswer(digest, reply.message.text, model=self._model.name)
        if used := reply.usage:
            counts = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
            cached = {"read_tokens": used.read_tokens, "written_tokens": used.written_tokens}
            answer = replace(answer, **counts, **cached)
        self._keep(answer)
        return answer

    def check(self) -> None:
        """Raise the error after which no request can be answered, if there was one."""
        if self._error:
            raise self._error

    def _make_request(self, asked: SummaryRequest) -> ModelRequest:
        model, wire = self._model, find_wire(self._model.wire)
        conversation = Conversation((user_text(asked.prompt),), (), wire.name, {"model": model.name})
        usd = model.most_usd(bound_tokens(asked.prompt))
        return ModelRequest(model, encode(conversation, wire, card=model.card), usd, usd)

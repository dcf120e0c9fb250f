"""A local HTTP server on 127.0.0.1 that writes answers and their faults; a function makes the answers."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lading.jsonbytes import dump
from lading.testing.answers import Answer, Request


class LocalServer(ThreadingHTTPServer):
    """A server on 127.0.0.1. ``close`` ends every connection and waits for every thread."""

    daemon_threads = False
    """False, so that ``server_close`` waits for the threads."""
    request_queue_size = 128
    """Many clients may call at once."""

    def __init__(self, make_answer: Callable[[Request], Answer], *, port: int = 0) -> None:
        """Start to listen. ``port`` 0: on a free one. Raises OSError."""
        super().__init__(("127.0.0.1", port), _RequestHandler)
        self.make_answer = make_answer
        self.closing = threading.Event()
        self.errors: list[BaseException] = []
        """Exceptions of ``make_answer``."""
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), name="strict provider")
        self._thread.start()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        """Stop the server; running streams are cut."""
        self.closing.set()
        self.shutdown()
        self._thread.join()
        for connection in list(self._open):
            _hang_up(connection)
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a new thread, and keep the connection so that ``close`` can end it."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close the connection."""
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Keep an exception of the script and answer with a 500 that forbids a retry; ignore closed connections."""
        error = sys.exc_info()[1]
        if error is None or isinstance(error, ConnectionError):
            return
        self.errors.append(error)
        text = dump({"type": "error", "error": {"type": "api_error", "message": f"The script raised {error!r}"}})
        head = f"HTTP/1.1 500 Internal Server Error\r\ncontent-length: {len(text)}\r\nx-should-retry: false\r\n"
        request.sendall(head.encode() + b"connection: close\r\n\r\n" + text)


class _RequestHandler(BaseHTTPRequestHandler):
    """Handles one request on its own connection."""

    server: LocalServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 30

    def do_GET(self) -> None:
        self._exchange()

    def do_POST(self) -> None:
        self._exchange()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing."""

    def _exchange(self) -> None:
        length = self.headers.get("content-length", "0")
        raw = self.rfile.read(int(length)) if length.isdigit() else b""
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.make_answer(Request(self.command, self.path, headers, raw))
        if answer.fault.hang:
            self.server.closing.wait()
            return
        self.send_response(answer.status)
        self.send_header("connection", "close")
        self.send_header("request-id", "req_lading")
        if answer.fault.status:
            # The SDKs ignore a wait of 0 seconds and use their own; they accept a millisecond.
            self.send_header("retry-after", "0")
            self.send_header("retry-after-ms", "1")
        if answer.events is None:
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer.raw)))
            self.end_headers()
            self.wfile.write(answer.raw)
        else:
            self.send_header("content-type", "text/event-stream; charset=utf-8")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self._stream(answer, answer.events)

    def _stream(self, answer: Answer, events: tuple[bytes, ...]) -> None:
        fault = answer.fault
        chunks = list(events[: fault.cut_after])
        if fault.chunk_bytes:
            whole, size = b"".join(chunks), fault.chunk_bytes
            chunks = [whole[start : start + size] for start in range(0, len(whole), size)]
        for index, chunk in enumerate(chunks):
            if index and fault.delay_s and self.server.closing.wait(fault.delay_s):
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        if fault.cut_after is None:
            self.wfile.write(b"0\r\n\r\n")


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The connection is already closed.
        return

"""A server on loopback, in a thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class QuietHandler(BaseHTTPRequestHandler):
    """Answers requests by a state that all requests share, and logs nothing."""

    protocol_version = "HTTP/1.1"
    state: Any

    def send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        """Send a reply."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *values: object) -> None:
        """Say nothing."""


@contextmanager
def serving(handler: type[QuietHandler], state: Any) -> Iterator[str]:
    """Serve with a handler that has a state; yield the address."""
    bound = type("Handler", (handler,), {"state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), bound) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()

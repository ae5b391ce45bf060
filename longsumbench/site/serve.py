"""`longsumbench site --serve`: a server of static files for this machine alone."""

import errno
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from longsumbench.errors import EnvironmentProblem

HOST = "127.0.0.1"


class _Handler(SimpleHTTPRequestHandler):
    """As SimpleHTTPRequestHandler, except: browsers do not store the files, and no request is logged."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


def open_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a folder; port 0 is any free one.

    Raises:
        EnvironmentProblem: the port is in use, or not allowed.
    """
    try:
        return ThreadingHTTPServer((HOST, port), partial(_Handler, directory=str(folder)))
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        reason = f"cannot open port {port} ({error.strerror})"
        raise EnvironmentProblem(f"{reason}; choose another by --port, or 0 for any free one") from error

"""`longsumbench site --serve`: a server of static files for this machine alone."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from longsumbench.errors import EnvironmentProblem

HOST = "127.0.0.1"


class _Handler(SimpleHTTPRequestHandler):
    """As SimpleHTTPRequestHandler, except: browsers do not store the files, and no request is logged."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


def open_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a folder; port 0 is any free one. Raises EnvironmentProblem if the port cannot be used."""
    try:
        return ThreadingHTTPServer((HOST, port), partial(_Handler, directory=str(folder)))
    except OSError as error:
        reason = f"cannot open port {port} ({error.strerror})"
        raise EnvironmentProblem(f"{reason}; choose another by --port, or 0 for any free one") from error

"""`longsumbench site`."""

import argparse
import threading
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir, results_of
from longsumbench.core import Between, check_value
from longsumbench.formatting import print_text

_HELP = """\
Write the finished runs as static pages: a leaderboard to open, sort, filter and share.

  longsumbench site                             results/site/index.html; opens from the disk
  longsumbench site --serve                     also open it in the browser, at 127.0.0.1
  longsumbench site --serve --watch             follow running sweeps: the open pages reload themselves
  longsumbench site --results-dir results/reference --output public

There is an overview with the best systems, real systems first; a page for each dataset with its table, pictures and
published numbers; a page for each run with its settings, training curve, ledger, environment and how to repeat it; the
papers' claims; the sweeps. The pages load nothing from other hosts: put the folder on any web server (GitHub Pages, a
static Space). They name what is missing, such as a damaged record.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("--output", metavar="FOLDER", help="where to write (default: site in the results)")
    command.add_argument("--serve", action="store_true", help="serve the pages to this machine until Ctrl-C")
    command.add_argument("--port", type=int, default=8000, metavar="N", help="port of --serve; 0: any (default: 8000)")
    command.add_argument("--no-open", action="store_true", help="do not open the browser with --serve")
    command.add_argument("--watch", action="store_true", help="write again when results change, until Ctrl-C")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.site.build import Site
    from longsumbench.site.serve import HOST, open_server

    check_value("--port", options.port, Between(0, 65_535))
    results = results_of(options)
    folder = Path(options.output).expanduser() if options.output else results.root / "site"
    server = open_server(folder, options.port) if options.serve else None
    pages = Site(results, folder, options.watch).follow()
    print_text(next(pages))
    if server is not None:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://{HOST}:{server.server_address[1]}/"
        print_text(f"{address} (Ctrl-C ends)")
        if not options.no_open:
            webbrowser.open(address)
    while options.watch:
        next(pages)
    while server is not None:
        time.sleep(1)


site_command = Command(
    "site", "write the results as static pages", _HELP, _add_arguments, _execute, "the pages that were written stay"
)

"""`longsumbench site`."""

import shlex
from argparse import Namespace
from pathlib import Path

from longsumbench.cli.parser import RESULTS_DIR, Argument, Command, open_results
from longsumbench.formatting import print_text

_HELP = """\
Write the finished runs as static pages: a leaderboard to open, sort, filter and share.

  longsumbench site                             results/site/index.html; opens from the disk
  longsumbench site --results-dir results/reference --output public

There is an overview with the best systems, real systems first; a page for each dataset with its table, pictures and
published numbers; a page for each run with its settings, training curve, ledger, environment and how to repeat it; the
papers' claims; the sweeps. The pages load nothing from other hosts: put the folder on any web server (GitHub Pages, a
static Space), or serve it to this machine by the command that is printed. They name what is missing, such as a damaged
record.
"""


_ARGUMENTS = (
    Argument("--output", "where to write (default: site in the results)", "FOLDER"),
    RESULTS_DIR,
)


def _execute(options: Namespace) -> None:
    from longsumbench.site.build import write_site

    results = open_results(options)
    folder = Path(options.output).expanduser() if options.output else results.root / "site"
    page = write_site(results, folder)
    serve = ["python", "-m", "http.server", "--directory", str(folder), "--bind", "127.0.0.1"]
    print_text(page, shlex.join(serve))


site_command = Command(
    "site",
    "write the results as static pages",
    _HELP,
    _ARGUMENTS,
    _execute,
    "the pages that were written stay",
)

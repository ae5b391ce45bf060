"""`longsumbench paper`."""

from argparse import Namespace

from longsumbench.cli.parser import RESULTS_DIR, Argument, Command, results_of
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_LIST_WORD = "list"
_HELP = """\
Make a table or figure of the papers: the published numbers and ours, and which claims hold.

  longsumbench paper list                       all tables and figures, and what was run here
  longsumbench paper seal-table2                its miniature, in minutes or hours on a laptop
  longsumbench paper seal-table2 scale=paper    the paper's sizes and data; needs a GPU, and the hub or path.NAME=FOLDER
  longsumbench paper seal-table2 scale=paper path.arxiv=FOLDER path.pubmed=FOLDER path.search2wiki=FOLDER
  longsumbench paper seal-table2 hydra/launcher=joblib       in parallel, on all cores (or slurm_gpu, as run -m)
  longsumbench paper seal-table2 --no-run       only the page of the runs that are finished

scales:    paper | small (real texts) | probe (generated reports); `list` shows those of each, the default first
settings:  path.DATASET=FOLDER, the texts of a dataset; those of the table itself, such as bert=FOLDER; and all settings
           of `longsumbench run -m` (seed=1  train.max_steps=100), which then hold for all runs of the table

It plans the runs, runs those that are missing as one sweep, and writes NAME.md, .csv, .json and pictures into
results/papers/, of the scale typed last; index.md there has the claims of all tables. Tables share runs: a run that
another table made is found. The same command continues after an interrupt. Until then, the page shows what is
finished, and names what is missing.
"""


_ARGUMENTS = (
    Argument("paper_table", "seal-table2, pagesum-figure1, …, or list", "NAME", nargs="?"),
    Argument("overrides", "the scale, folders of texts, settings", "KEY=VALUE", nargs="*"),
    Argument("--no-run", "run nothing: show what is finished"),
    RESULTS_DIR,
)


def _execute(options: Namespace) -> None:
    """Make the paper table in the first process; other processes that torchrun started take part in its runs."""
    if options.paper_table is None:
        raise UsageError("name a table or figure: `longsumbench paper list` shows all")
    if options.paper_table == _LIST_WORD:
        if options.overrides:
            raise UsageError(
                f"'{options.overrides[0]}' is an extra argument: longsumbench paper list"
            )
        from longsumbench.papers.make import render_paper_tables

        print_text(render_paper_tables(results_of(options)))
        return
    from longsumbench.papers.paper_tables import find_paper_table
    from longsumbench.progress import phase

    find_paper_table(options.paper_table)  # before the slow imports
    with phase("loading the libraries"):
        from longsumbench.modeling.processes import first_process
        from longsumbench.papers.make import paper
        from longsumbench.runs.pipeline import take_part
    with first_process(take_part) as first:
        if first:
            paper(
                options.paper_table,
                options.overrides,
                run=not options.no_run,
                results_dir=options.results_dir,
                show=lambda report: print_text(report.render(), "", *report.files),
            )


paper_command = Command(
    "paper",
    "make a table or figure of the papers",
    _HELP,
    _ARGUMENTS,
    _execute,
    "the page shows the finished runs, and the same command continues",
)

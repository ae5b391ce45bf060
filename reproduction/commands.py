"""`longsumbench paper` and `longsumbench analyze`."""

from argparse import Namespace

from longsumbench.cli.parser import (
    OVERRIDES,
    RESULTS_DIR,
    Argument,
    Command,
    open_results,
    output_folder,
    print_choices,
)
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_LIST_WORD = "list"
_PAPER_HELP = """\
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


_PAPER_ARGUMENTS = (
    Argument("paper_table", "seal-table2, pagesum-figure1, …, or list", "NAME", nargs="?"),
    Argument("overrides", "the scale, folders of texts, settings", "KEY=VALUE", nargs="*"),
    Argument("--no-run", "run nothing: show what is finished"),
    RESULTS_DIR,
)


def _execute_paper(options: Namespace) -> None:
    """Make the paper table in the first process; other processes that torchrun started take part in its runs."""
    if options.paper_table is None:
        raise UsageError("name a table or figure: `longsumbench paper list` shows all")
    if options.paper_table == _LIST_WORD:
        if options.overrides:
            raise UsageError(
                f"'{options.overrides[0]}' is an extra argument: longsumbench paper list"
            )
        from longsumbench_reproduction.papers.command import render_paper_tables

        print_text(render_paper_tables(open_results(options)))
        return
    from longsumbench.progress import phase
    from longsumbench_reproduction.papers.paper_tables import find_paper_table

    find_paper_table(options.paper_table)  # before the slow imports
    with phase("loading the libraries"):
        from longsumbench.modeling.processes import first_process
        from longsumbench.runs.pipeline import take_part
        from longsumbench_reproduction.papers.command import paper
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
    _PAPER_HELP,
    _PAPER_ARGUMENTS,
    _execute_paper,
    "the page shows the finished runs, and the same command continues",
)


_ANALYSES = {
    "locality": "similarity of two sentences of a text, by their distance",
    "fusion": "distance of the sentences that a summary joins",
    "coherence": "how well the sentences of a summary follow each other, by a BERT",
}

_ANALYZE_HELP = """\
Analyze the texts of a dataset and the summaries of runs (PageSum, Figures 1 and 4, Table 4). Writes CSV, and a picture
of locality and of fusion as PNG and SVG.

  longsumbench analyze locality dataset=pubmed                       similarity of two sentences, by their distance
  longsumbench analyze locality encoder=FOLDER sample=50             with a sentence encoder instead of tf-idf
  longsumbench analyze fusion dataset=elife dataset.path=FOLDER      distance of the sentences that a summary joins
  longsumbench analyze fusion run=85f3139c,36e2dc94                  do the runs' summaries contain both sentences?
  longsumbench analyze coherence model=bert-large-uncased run=85f3139c

settings:  dataset=NAME  dataset.*  sample=200|null  seed=1; for fusion and coherence run=RUN[,RUN...]
locality:  encoder=FOLDER or hub name  pooling=auto|mean|cls|max  distance=50  device=auto|cpu|cuda
fusion:    rouge=1|2|L  overlap=20  rise=10  bins=10  appears=50  score.tokenizer=default|unicode  score.*
coherence: model=FOLDER or hub name (a BERT for next-sentence prediction)  device=auto|cpu|cuda

A run is given by its id, the beginning of its id, or its folder. All runs must have read the same texts. fusion also
writes every pair as JSON lines. What the numbers mean: docs/how-to/analyze.md.
"""


_ANALYZE_ARGUMENTS = (
    Argument("what", ", ".join(_ANALYSES), "ANALYSIS", nargs="?", choices=[*_ANALYSES]),
    OVERRIDES,
    Argument("--output", "where to write (default: analysis/DATASET in the results)", "FOLDER"),
    RESULTS_DIR,
)


def _execute_analyze(options: Namespace) -> None:
    if options.what is None:
        print_choices("longsumbench analyze", _ANALYSES)
        return
    from longsumbench_reproduction.analysis.analyze import analyze

    folder = output_folder(options.output, open_results(options).root / "analysis")
    finding = analyze(options.what, options.overrides, options.results_dir)
    files = finding.write(folder if options.output else folder / finding.dataset)
    print_text(finding.render(), "", *files)


analyze_command = Command(
    "analyze",
    "analyze texts and summaries",
    _ANALYZE_HELP,
    _ANALYZE_ARGUMENTS,
    _execute_analyze,
    "nothing was written; the same command starts again",
)

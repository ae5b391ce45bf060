"""The page docs/papers.md: every table and figure with its command, its cost, and what was run here."""

from collections.abc import Iterable, Mapping

from longsumbench.api import registry
from longsumbench.formatting import format_count, format_duration
from longsumbench.papers.artifacts import PAPER, Artifact, read_artifacts
from longsumbench.papers.cost import ArtifactCost, read_costs
from longsumbench.papers.listing import describe_status
from longsumbench.papers.numbers.printed import read_printed_table
from longsumbench.papers.write import read_written
from longsumbench.report.tables import escape_markdown
from longsumbench.runs.results import Results

_LINKED = "../results/reference/papers"  # from docs/
_OTHER_NUMBERS = {"sizes": "sizes", "dimensions": "settings"}  # kind → what is printed instead of scores
_INTRODUCTION = """\
# The papers' tables and figures

The systems of the suite come from four papers. One command makes each of their {count} tables and figures: it runs what
is missing, and writes the published numbers next to ours.

    longsumbench paper list
    longsumbench paper seal-table2
    longsumbench paper seal-table2 scale=paper

The files are `results/papers/seal-table2.md`, `.csv` and `.html`, and a picture for a figure. They show the published
number, ours, and the difference with its 95 % interval; what differs from the paper (texts, sizes, steps, kind of
ROUGE); and, for every ordering that the paper claims, whether a paired test over examples and seeds finds it
*reproduced*, *reversed* or *undecided*. An ordering is tested on ROUGE, or on the measure that the paper names. Where
the texts have planted facts, it is also tested on the facts.

## Choose a scale

| scale | texts | sizes | takes |
|---|---|---|---|
| `paper` | those of the paper | those of the paper | one GPU for hours to weeks; see each table below |
| `small` | real texts from local files | a few million parameters, 100 steps or more | minutes a run on two cores |
| `probe` | [generated reports](probe.md) with planted facts | some 200,000 parameters | minutes a run on one core |

Without `scale=`, a command uses the scale that its section below names: for most tables `probe`, which needs no files.
`longsumbench paper list` shows the scales of every table. Other settings go to all runs of the table, and the page says
if they break the comparison:

    longsumbench paper seal-table2 seed=1,2 train.max_steps=100

## Point at your texts

A dataset is downloaded, unless you have its files. `path.NAME=FOLDER` names them, with our name of the dataset:

    longsumbench paper pagesum-table2 scale=paper path.arxiv=FOLDER path.pubmed=FOLDER path.gov_report=FOLDER

## Continue, share, distribute

* **The same command continues** after an interrupt. Until then the page shows what is finished and what is missing.
* **Tables share runs.** The runs are ordinary ones in `results/runs`. A run that another table or a sweep made is used.
* **Several jobs at once:** add `hydra/launcher=joblib` for all cores, or a [SLURM launcher](how-to/slurm.md).
* **Only the page:** `longsumbench paper seal-table2 --no-run` runs nothing.

## What a miniature shows

A miniature has the paper's systems, settings and question, but other texts and sizes. So its scores cannot be compared
with the printed ones. What may carry over is the order of the rows: which way of reading finds more. An ordering that a
miniature does not reproduce is no evidence against the paper: small networks that are trained for minutes do not learn
all that large ones learn. An *undecided* ordering means that examples and seeds are too few to tell. Generated reports
ask for facts at known places. Scores on them say little about fluent summaries.

## How hours are estimated

FLOPs of a forward pass are counted on the network of the run, at the paper's sizes, with a text of the dataset's mean
length. A training step costs three forward passes, with gradient checkpointing four. The rate is 40 % of 312 TFLOP/s:
an A100 with 80 GB, in bfloat16. Writing summaries adds a millisecond for each decoder layer and token. Validation,
training a ranker and reading texts are not counted.

Small networks and short texts use less of a GPU's rate, so their runs take longer. PageSum's paper says that an epoch
takes 5 to 25 hours on one A6000, depending on the dataset. The same estimate gives 16 (arXiv), 6, 3 and 1 (Multi-News).
So it is right within a factor of about two for long texts, and up to five times too low for short ones. The other
papers give no hours. `python benchmarks/paper_cost.py` prints this comparison.
"""
_LEGEND = """\
*Printed numbers:* how many `results/published.csv` has of it. *Run here:* the scale of the published page, its runs and
their run time, one thread each, and the outcome of every test of an ordering. *GPU hours:* the estimate at
`scale=paper`, for all runs.
"""
_TOTAL = """\
The runs above took {time} in total, one thread each; runs that several tables share count once.
"""


def papers_page(results: Results) -> str:
    """Return docs/papers.md.

    Args:
        results: the results folder of the published pages and estimated costs.

    Raises:
        DataError: a file of the results folder is damaged.
    """
    artifacts, costs = read_artifacts(), read_costs(results)
    parts = [_INTRODUCTION.format(count=len(artifacts)), "## All of them\n", _LEGEND]
    parts.append(_table(artifacts.values(), results, costs))
    written = [read_written(results, name) for name in artifacts]
    if seconds := sum({run: took for page in written if page for run, took in page.runs.items()}.values()):
        parts.append(_TOTAL.format(time=format_duration(seconds)))
    for citation in dict.fromkeys(artifact.citation for artifact in artifacts.values()):
        parts.append(f"## {citation.rpartition(', ')[2]}\n\n{citation}.\n")
        of_paper = [artifact for artifact in artifacts.values() if artifact.citation == citation]
        parts += [_section(artifact, results, costs.get(artifact.name)) for artifact in of_paper]
    return "\n".join(parts)


def describe_cost(cost: ArtifactCost | None) -> str:
    """Describe runs and hours at paper scale: "12 runs, about 680 h on one A100"."""
    if cost is None:
        return "not estimated"
    if not cost.runs:
        return "no runs of systems"
    counted = cost.runs - cost.uncounted
    parts = [format_count(cost.runs, "run")]
    if counted and cost.hours:
        parts.append(f"{_format_hours(cost.hours)} on one A100")
    elif counted:
        parts.append("minutes")
    if cost.uncounted:
        parts.append(f"without {cost.uncounted} of public checkpoints")
    return ", ".join(parts)


def _table(artifacts: Iterable[Artifact], results: Results, costs: Mapping[str, ArtifactCost]) -> str:
    lines = ["| | shows | printed numbers | run here | GPU hours |", "|---|---|---|---|---|"]
    for artifact in artifacts:
        name, status = artifact.name, describe_status(results, artifact)
        cells = [
            f"[{name}](#{name})",
            escape_markdown(artifact.title),
            _printed(artifact),
            f"[{status}]({_LINKED}/{name}.md)" if status else "not yet",
            _short_hours(costs.get(name)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _section(artifact: Artifact, results: Results, cost: ArtifactCost | None) -> str:
    name, status = artifact.name, describe_status(results, artifact)
    commands, notes = [f"    longsumbench paper {name}"], [f"* Without `scale=`: `scale={artifact.default}`."]
    if PAPER in artifact.scales:
        commands.append(f"    longsumbench paper {name} scale={PAPER}{_needed_paths(artifact)}")
        notes.append(f"* At paper scale: {describe_cost(cost)}.")
    here = f"{status}: see the [page]({_LINKED}/{name}.md)" if status else "not yet"
    notes.append(f"* Run here: {here}.")
    if artifact.not_given:
        notes.append("* What the paper does not give:")
        notes += [f"    * {escape_markdown(sentence)}" for sentence in artifact.not_given]
    title = f"### {name}\n\n{artifact.prints}: {escape_markdown(artifact.title)}."
    return "\n\n".join([title, "\n".join(commands), "\n".join(notes)]) + "\n"


def _printed(artifact: Artifact) -> str:
    """Return how many numbers the paper prints, or which others than scores."""
    return _OTHER_NUMBERS.get(artifact.kind) or str(len(read_printed_table(artifact)) or "none")


def _needed_paths(artifact: Artifact) -> str:
    """Return the words that name the texts of datasets that cannot be downloaded."""
    words = [word for at in artifact.datasets.values() for word in at.get(PAPER, "").split()]
    names = dict.fromkeys(word.partition("=")[2] for word in words if word.startswith("dataset="))
    corpora = [registry.corpora.load(name) for name in names]
    return "".join(
        f" path.{corpus.name}=FOLDER" for corpus in corpora if corpus.hub is None and corpus.built_in is None
    )


def _short_hours(cost: ArtifactCost | None) -> str:
    if cost is None:
        return "–"
    return f"{cost.hours:,.0f}" if cost.hours >= 1 else ("< 1" if cost.runs > cost.uncounted else "–")


def _format_hours(hours: float) -> str:
    if hours < 1:
        return "an hour or less"
    days = f" ({hours / 24:,.0f} days)" if hours >= 48 else ""
    return f"about {hours:,.0f} h{days}"

"""The first command: extracts of real papers and systems that look for planted facts, compared on one screen.

words --plan_comparison--> launches --run_comparison--> the screen of `longsumbench.views.first_screen`
"""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from longsumbench.errors import UsageError
from longsumbench.formatting import escape_lines
from longsumbench.leaderboards.seed_groups import group_by_seed
from longsumbench.leaderboards.significance import ComparableRows, judge_rows, read_all_scores
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.pipeline import run_point
from longsumbench.runs.plan import Point
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results, split_read_by
from longsumbench.sweeps.run import plan_launch
from longsumbench.sweeps.sweep import Launch
from longsumbench.views import first_screen
from longsumbench.views.leaderboard import update_table
from longsumbench.views.tables import wrap_text

_log = logging.getLogger(__name__)
_ON_PAPERS = ("experiment=first-text", "hydra/launcher=joblib")
_ON_REPORTS = ("experiment=first-probe",)  # run with the papers' launcher
_LANGUAGE_MODEL = (
    "dataset=aclsum",
    "scale=paper",
    "baselines=false",
    "model=prompt",
    "model.reading=beginning,select",
    "model.input_length=1024",  # of a paper of 5,000 tokens or more; minutes, with a small model
    "model.decode_length=256",
)
# Small models repeat themselves; for a server this setting does not exist
_IN_THIS_PROCESS = "decode.no_repeat_ngram=4"
# With a language model, which is slow without a GPU, all systems summarize so many papers
_FEW_PAPERS = "decode.limit=20"
_VARIABLE = "LONGSUMBENCH_MODEL"  # names a language model, as model.checkpoint does
_BEST_SHOWN = 2  # systems whose summaries of one paper are shown
PAPERS, REPORTS = "aclsum", "probe"  # the datasets


def plan_comparison(
    words: Sequence[str], command: tuple[str, ...], check_access: bool = True
) -> list[Launch]:
    """Plan the comparison and, if `words` or LONGSUMBENCH_MODEL name one, a language model in two readings.

    Raises:
        UsageError: a word is invalid.
        EnvironmentProblem: the papers or the language model are missing.
    """
    checkpoint = os.environ.get(_VARIABLE)
    if checkpoint and not words:
        words = format_overrides({"model.checkpoint": checkpoint})
        _log.info("%s is set: %s is added", _VARIABLE, words[0])
    for word in words:
        key, _, value = word.partition("=")
        if "," in value and key != "model.reading":
            raise UsageError(f"{word}: here, only model.reading may have several values")
    few = [_FEW_PAPERS] if words else []
    papers = plan_launch([*_ON_PAPERS, *few], True, None, command, check_access)
    reports = plan_launch(_ON_REPORTS, True, None, command, check_access)
    launches = [replace(papers, points=[*papers.points, *reports.points])]
    if words:
        typed_keys = {word.partition("=")[0] for word in words}
        defaults = [word for word in _LANGUAGE_MODEL if word.partition("=")[0] not in typed_keys]
        if "model.engine=api" not in words:
            defaults.append(_IN_THIS_PROCESS)
        words = [*defaults, *few, *words]
        launches.append(plan_launch(words, True, None, command, check_access))
    return launches


# Begin to read here: the command calls it.
def run_comparison(launches: Sequence[Launch], show: Callable[[str], None]) -> None:
    """Run the points of `plan_comparison`, and show the screen; the first time, first the table of what needs no training.

    Raises:
        SuiteError: a system failed; of those that are trained, or are language models, the others are shown before.
    """
    first, *of_language_models = launches
    extracts: list[Point] = []
    trained: list[Point] = []
    for point in first.points:
        kind = trained if "train" in point.config.model.decided_by else extracts
        kind.append(_name_point(point, first.command))
    runs = [run_point(point) for point in extracts]
    results = Results.at(first.points[0].config.results_dir)
    if any(point.carried_out for point in extracts):
        early = first_screen.describe_papers(_judge_dataset(results, runs, PAPERS))
        later = "Without training, so far. Now small systems are trained; that takes minutes."
        if of_language_models:
            later += " Then the language model writes, which may take longer:"
        print(escape_lines(f"{early}\n\n{wrap_text(later)}"), file=sys.stderr)
    started = [replace(first, points=trained), *of_language_models]
    for launch in started:
        launch.start()
        runs += launch.records()
    for name in {run.key.dataset for run in runs}:
        update_table(results, name, redraw=False)
    show(_describe_all(results, runs))
    for launch in started:
        launch.check_failed()


def _name_point(point: Point, command: tuple[str, ...]) -> Point:
    """Return a point with a name for people who do not know its settings."""
    config = point.config
    name = f"{config.model.name} on {config.dataset.name}, seed {config.seed}"
    return replace(point, name=name, command=command, quiet=True)


def _judge_dataset(results: Results, runs: Sequence[RunRecord], dataset: str) -> ComparableRows:
    """Return the runs on a dataset as one block of rows, which also has language models."""
    selected = [run for run in runs if run.key.dataset == dataset]
    scores = read_all_scores(results, selected)
    return judge_rows(group_by_seed(selected, scores), scores)


def _describe_all(results: Results, runs: Sequence[RunRecord]) -> str:
    papers = _judge_dataset(results, runs, PAPERS)
    count = papers.rows[0].first.evaluation.n
    parts = [
        wrap_text(first_screen.OPENING),
        wrap_text(
            f"REAL PAPERS: whose summaries of {count} papers share most words with the abstracts?"
        ),
        first_screen.describe_papers(papers),
        wrap_text(first_screen.describe_verdict(papers)),
        wrap_text(first_screen.describe_reservations(papers)),
        _describe_paper(results, papers),
    ]
    if any(run.key.dataset == REPORTS for run in runs):
        reports = _judge_dataset(results, runs, REPORTS).rows
        heading = wrap_text("PLANTED FACTS: which reach the summary, and from where?")
        parts += [heading, first_screen.describe_fact_rows(reports)]
    parts += ["NEXT", first_screen.describe_next()]
    return "\n\n".join(part for part in parts if part)


def _describe_paper(results: Results, papers: ComparableRows) -> str:
    """Return summaries of one paper side by side: the abstract, the experts' and those of the best systems."""
    prompted = [row for row in papers.rows if row.first.key.model == "prompt"]
    experts = [row for row in papers.rows if row.first.key.model == "highlights"]
    best = [row for row in papers.rows if row.ranked][:_BEST_SHOWN]
    run = papers.rows[0].first
    split = split_read_by(results.run_folder(run), run)
    if split is None:
        return ""
    summaries = {}
    summarizers = {row.key: row for row in [*experts, *best, *prompted[:1]]}
    for key, row in summarizers.items():
        file = results.run_folder(row.first) / "predictions.jsonl"
        summaries[key] = {summary.id: summary.text for summary in read_summaries(file)}
    examples = {example.id: example for example in split}
    summarized = set(examples).intersection(*summaries.values())
    paper = examples[first_screen.choose_paper(summarized)]
    texts = [("ABSTRACT by the authors", " ".join(paper.references[0]))]
    for key, row in summarizers.items():
        heading = first_screen.name_of(row).upper()
        texts.append((heading, " ".join(summaries[key][paper.id].split())))
    title = wrap_text(f"ONE OF THEM: {paper.title}")
    return f"{title}\n\n{first_screen.set_side_by_side(texts)}"

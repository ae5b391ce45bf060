"""The first command: extracts of real papers and systems that look for planted facts, compared on one screen.

words --plan_comparison--> launches --run_comparison--> an `EndScreen`
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from longsumbench.errors import UsageError
from longsumbench.formatting import escape_lines
from longsumbench.leaderboards.significance import build_block, read_all_scores
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.pipeline import run_point
from longsumbench.runs.plan import PlannedRun
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.sweeps.run import plan_launch
from longsumbench.sweeps.sweep import Launch
from longsumbench.views.leaderboard import update_table
from longsumbench.views.outcomes import describe_leader, describe_unlearned
from longsumbench.views.run_summary_screen import EndScreen, describe_best

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
_NEXT = {  # command → what it answers
    "longsumbench recommend MY_TEXTS": "which system for your texts?",
    "longsumbench run model.checkpoint=FILE": "add a language model",
    "longsumbench site": "all summaries, in the browser",
}


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
    extracts: list[PlannedRun] = []
    trained: list[PlannedRun] = []
    for point in first.points:
        kind = trained if "train" in point.config.model.decided_by else extracts
        kind.append(_name_point(point, first.command))
    runs = [run_point(point) for point in extracts]
    results = Results.at(first.points[0].config.results_dir)
    if any(point.carried_out for point in extracts):
        later = "Without training, so far. Now small systems are trained; that takes minutes."
        if of_language_models:
            later += " Then the language model writes, which may take longer."
        print(escape_lines(f"{_describe_all(results, runs, {})}\n{later}"), file=sys.stderr)
    started = [replace(first, points=trained), *of_language_models]
    for launch in started:
        launch.start()
        runs += launch.records()
    for name in {run.key.dataset for run in runs}:
        update_table(results, name, redraw=False)
    show(_describe_all(results, runs, _NEXT))
    for launch in started:
        launch.check_failed()


def _name_point(point: PlannedRun, command: tuple[str, ...]) -> PlannedRun:
    """Return a point with a name for people who do not know its settings."""
    config = point.config
    name = f"{config.model.name} on {config.dataset.name}, seed {config.seed}"
    return replace(point, name=name, command=command, quiet=True)


def _describe_all(results: Results, runs: Sequence[RunRecord], commands: Mapping[str, str]) -> str:
    """Return the screen: the table of the papers, who is ahead, and a line on the reports, if they were summarized."""
    datasets: dict[str, list[RunRecord]] = {}
    for run in runs:
        datasets.setdefault(run.key.dataset, []).append(run)
    papers, *others = [
        build_block(members, read_all_scores(results, members)) for members in datasets.values()
    ]
    evaluation = papers.rows[0].representative.evaluation
    sentences = [describe_leader(papers), *map(describe_best, others)]
    sentences.append(describe_unlearned(papers.rows))
    heading = f"{evaluation.n} papers, summarized and scored in the same way (dataset={next(iter(datasets))})"
    return EndScreen(heading, papers, (), sentences, commands).render()

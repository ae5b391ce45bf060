"""Which system for some texts? Runs systems on a sample, and says in three sentences what their table shows."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.loading.load import load_texts
from longsumbench.errors import DataError, SuiteError, UsageError
from longsumbench.formatting import describe_work, format_duration
from longsumbench.leaderboards.comparability import comparison_key
from longsumbench.leaderboards.seed_groups import ResultRow, ScoresOfRuns
from longsumbench.leaderboards.significance import LeaderboardBlock, build_block, read_all_scores
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import plan_dataset
from longsumbench.runs.record import RunRecord, source_seen
from longsumbench.runs.results import Results
from longsumbench.sweeps.run import plan_launch, updating_tables
from longsumbench.views.footnotes import describe_untrained
from longsumbench.views.outcomes import describe_leader, describe_unlearned
from longsumbench.views.run_summary_screen import EndScreen, find_command

SAMPLE = 100  # examples that are summarized
_WHOLE_PERCENT = 99.5  # percent of a text
_COST_COLUMNS = ("source_seen", "seconds", "summarize_seconds", "price", "run")


def texts_overrides(words: Sequence[str]) -> list[str]:
    """Return settings of a dataset: as typed, or those of one file or folder.

    Raises:
        UsageError: several paths, or a path and `dataset=`.
    """
    paths = [word for word in words if "=" not in word or Path(word).exists()]
    settings = [word for word in words if word not in paths]
    if len(paths) > 1 or (paths and any(word.startswith("dataset=") for word in settings)):
        raise UsageError("name one file or folder, or dataset=NAME with its dataset.* settings")
    if not paths:
        return settings
    path = Path(paths[0]).expanduser()
    name = re.sub(r"[^a-zA-Z0-9_.-]", "-", path.name.partition(".")[0])
    defaults: dict[str, Any] = {"dataset": "jsonl", "dataset.name": f"texts-{name}"[:60]}
    defaults["dataset.path"] = str(path)
    if path.is_file():
        defaults["dataset.split_by_hash"] = True
    for word in settings:
        defaults.pop(word.partition("=")[0], None)
    return [*format_overrides(defaults), *settings]


# Begin to read here: the command calls it.
def recommend(
    words: Sequence[str],
    more: Sequence[Sequence[str]],
    command: tuple[str, ...],
    show: Callable[[str], None],
) -> None:
    """Run baselines, trained scorers and other systems on a sample of some texts, and show what to choose.

    All systems are checked before the first one runs. Those that fail do not affect the others. `more` has the settings
    of each further system, such as a checkpoint; `show` is given the table and the sentences.

    Raises:
        SuiteError: the texts cannot be read or settings are invalid, before anything else is done; or a system failed,
            and the others are shown before.
    """
    texts = texts_overrides(words)
    if not any(word.startswith("decode.limit=") for word in texts):
        texts.append(f"decode.limit={SAMPLE}")
    _check_texts([word for word in texts if word.startswith("dataset")])
    # all systems are planned before the first one runs, so that a typing error costs no time
    launches = [plan_launch(["experiment=recommend", *texts], True, None, command)]
    not_training = [word for word in texts if not word.startswith("train.")]
    for system_words in more:
        words = [*not_training, "scale=paper", "baselines=false", *system_words]
        launches.append(plan_launch(words, False, None, command))
    failed: list[SuiteError] = []
    # a system that fails does not affect the others
    for launch in launches:
        try:
            with updating_tables(launch):
                launch.start()
        except SuiteError as problem:
            failed.append(problem)
    results = Results.at(launches[0].points[0].config.results_dir)
    runs: dict[str, RunRecord] = {}
    for launch in launches:
        runs |= {run.run_id: run for run in launch.finished}
    if runs:
        finished = list(runs.values())
        show(describe_recommendation(results, finished, read_all_scores(results, finished)))
    if failed:
        raise failed[0]


def _check_texts(words: Sequence[str]) -> None:
    """Read the texts before anything else is done: every system would raise the same error."""
    settings = plan_dataset(words)
    dataset = load_texts(settings, user_cache())
    dataset.check_split(settings.split)
    if "train" not in dataset.splits:
        raise DataError(
            f"{settings.name} has no train split to learn from{dataset.split_advice}: add one"
        )


def describe_recommendation(
    results: Results, runs: Sequence[RunRecord], scores: ScoresOfRuns
) -> str:
    """Return the table of runs that are comparable with the first one, and the sentences of `describe_choice`."""
    first = runs[0]
    same = [run for run in runs if comparison_key(run) == comparison_key(first)]
    block = build_block(same, scores)
    heading = (
        f"{first.key.dataset}, {first.key.split} split, {first.evaluation.describe_examples()}"
    )
    sentences = [*describe_choice(block), describe_untrained(block.rows)]
    screen = EndScreen(
        heading,
        block,
        run_ids=(),
        sentences=[*sentences, describe_unlearned(block.rows)],
        commands={find_command(results, "leaderboard", first.key.dataset): "the whole table"},
        columns=("system", "remarks", block.ranked_by, *_COST_COLUMNS),
    )
    return screen.render()


def describe_choice(block: LeaderboardBlock) -> list[str]:
    """Recommend a row of a block; say what part of the texts it never reads, and its cost.

    Candidates are the best row and those that are not shown to be below it. The one with the lowest price is chosen;
    among equal prices, the fastest.
    """
    decided = block.decide()
    alike = block.ranked if decided is None else (decided.best, *decided.undecided)
    candidates = [row for row in alike if row.first.key.model != "random"]
    if not candidates:
        return ["No system can be recommended: none is ranked.", describe_leader(block)]
    choice = min(candidates, key=lambda row: (_price(row.first), _seconds(row.first)))
    reason = " It costs the least of those not shown to be below the best." if alike[1:] else ""
    sentence = f"Choose {choice.label}. {describe_leader(block)}{reason}"
    return [sentence, _describe_reading(choice), _describe_cost(choice)]


def _price(run: RunRecord) -> float:
    return float(run.ledger.counts.get("price", 0.0))


def _seconds(run: RunRecord) -> float:
    return run.fit.seconds + run.costs.timings.summarize


def _describe_reading(row: ResultRow) -> str:
    name, seen = row.label, source_seen(row.first)
    if seen is None:
        return f"How much of a text {name} reads is not known."
    if seen >= _WHOLE_PERCENT:
        return f"{name} reads the texts to their ends."
    return (
        f"{name} never reads {100 - seen:.0f} % of the texts: what is only there is in no summary."
    )


def _describe_cost(row: ResultRow) -> str:
    run = row.first
    training = f"{format_duration(run.fit.seconds)} of training; " if run.trained else ""
    work = describe_work(run.num_outputs, seconds=run.costs.timings.summarize)
    dollars = f", US$ {_price(run):,.2f}" if _price(run) else ""
    return f"{row.label} took: {training}{work}{dollars}."

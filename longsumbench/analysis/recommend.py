"""Which system for some texts? Runs systems on a sample, and says in three sentences what their table shows."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.reading.load import load_texts
from longsumbench.errors import DataError, SuiteError, UsageError
from longsumbench.formatting import format_count, format_duration
from longsumbench.leaderboards.seed_groups import ScoresOfRuns, group_by_seed
from longsumbench.leaderboards.significance import ComparableRows, judge_rows, read_all_scores
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import plan_dataset
from longsumbench.runs.record import RunRecord, source_seen
from longsumbench.runs.results import Results
from longsumbench.sweeps.run import plan_launch, updating_tables
from longsumbench.views.columns import columns_of
from longsumbench.views.leaderboard import row_cells, table_block
from longsumbench.views.notes import describe_unlearned, describe_untrained
from longsumbench.views.tables import terminal_block, wrap_text

SAMPLE = 100  # examples that are summarized
_WHOLE_PERCENT = 99.5  # percent of a text
_COST_COLUMNS = ("source_seen", "seconds", "summarize_seconds", "peak_memory_gb", "price", "run")


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
        show(describe_recommendation(finished, read_all_scores(results, finished)))
    if failed:
        raise failed[0]


def _check_texts(words: Sequence[str]) -> None:
    """Read the texts before anything else is done: every system would raise the same error."""
    settings = plan_dataset(words)
    dataset = load_texts(settings, user_cache())
    dataset.check_split(settings.split)
    if "train" not in dataset.splits:
        raise DataError(
            f"{settings.name} has no train split to learn from{dataset.way_to_splits}: add one"
        )


def describe_recommendation(runs: Sequence[RunRecord], scores: ScoresOfRuns) -> str:
    """Return the table of runs on the same examples as the first one, and the sentences of `describe_choice`."""
    first = runs[0]
    same = [
        run
        for run in runs
        if (run.evaluation.examples, run.evaluation.signature)
        == (first.evaluation.examples, first.evaluation.signature)
    ]
    comparable = judge_rows(group_by_seed(same, scores), scores)
    columns = columns_of(same)
    names = ("system", "remarks", first.evaluation.ranked_by, *_COST_COLUMNS)
    shown_columns = [columns[name] for name in names]
    table = table_block(shown_columns, row_cells(comparable, shown_columns))
    heading = f"{first.key.dataset}, {first.key.split} split, {format_count(first.evaluation.n, 'example')}"
    lines = describe_choice(comparable)
    lines += [describe_untrained(comparable.rows), describe_unlearned(comparable.rows)]
    sentences = [wrap_text(line) for line in lines if line]
    return "\n".join([heading, "", terminal_block(table), "", *sentences])


def describe_choice(comparable: ComparableRows) -> list[str]:
    """Recommend one of some comparable rows, best first; say what part of the texts it never reads, and its cost.

    Candidates are the best row and the rows that may equal it: the interval of their difference contains 0. The one
    with the lowest price is chosen; among equal prices, the fastest. The tests are those of the table.
    """
    rows = comparable.rows
    ranked = [row for row in rows if row.ranked and row.first.key.model != "random"]
    if not ranked:
        return ["No system can be recommended: none is ranked."]
    score = rows[0].first.evaluation.ranked_by
    heading = columns_of([rows[0].first])[score].heading.replace("\n", " ")
    models = [row.first.key.model for row in ranked]
    names: dict[str, str] = {}  # of rows; several rows of a model have their settings
    alike = []
    for row in ranked:
        model = row.first.key.model
        names[row.key] = row.label if models.count(model) > 1 else model
        judged = comparable.tests.differences.get((row.key, score))
        # a row is alike if the interval of its difference from the best contains 0
        if row is ranked[0] or judged is None or not judged.high < 0:
            alike.append(row)
    cheapest = min(alike, key=lambda row: (_price(row.first), _seconds(row.first)))
    name, run = names[cheapest.key], cheapest.first
    other_names = ", ".join(names[row.key] for row in alike if row is not cheapest)
    choice = f"{name}: it is the only one with a place"
    if other_names:
        choice = f"{name}: no difference in {heading} is shown between it and {other_names}, and it costs the least"
    elif ranked[1:]:
        # the next row has a test, for it is not among those alike
        judged = comparable.tests.differences[ranked[1].key, score]
        bounds = f"{-judged.mean:+.1f} (interval {-judged.high:+.1f} to {-judged.low:+.1f})"
        choice = f"{name}: its {heading} is {bounds} from the next, {names[ranked[1].key]}; {judged.outcome}"
    return [f"Choose {choice}.", _describe_reading(name, run), _describe_cost(name, run)]


def _price(run: RunRecord) -> float:
    return float(run.ledger.counts.get("price", 0.0))


def _seconds(run: RunRecord) -> float:
    return run.fit.seconds + run.costs.timings.summarize


def _describe_reading(name: str, run: RunRecord) -> str:
    seen = source_seen(run)
    if seen is None:
        return f"How much of a text {name} reads is not known."
    if seen >= _WHOLE_PERCENT:
        return f"{name} reads the texts to their ends."
    return (
        f"{name} never reads {100 - seen:.0f} % of the texts: what is only there is in no summary."
    )


def _describe_cost(name: str, run: RunRecord) -> str:
    n = max(1, run.num_outputs)
    trained = f"{format_duration(run.fit.seconds)} of training, then " if run.trained else ""
    dollars = f", and US$ {1_000 * _price(run) / n:,.2f} for 1,000 texts" if _price(run) else ""
    return f"{name} takes {trained}{run.costs.timings.summarize / n:.2g} s a text{dollars}."

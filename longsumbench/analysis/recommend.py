"""Which system for some texts? Runs systems on a sample, and says in three sentences what their table shows.

texts --choose_texts--> settings of a dataset with references, or with planted facts --recommend--> runs --> sentences
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.corpora.loading.store import ReadSplit
from longsumbench.errors import DataError, SuiteError, UsageError
from longsumbench.formatting import describe_work, format_count, format_duration
from longsumbench.leaderboards.comparability import comparison_key
from longsumbench.leaderboards.seed_groups import ResultRow, ScoresOfRuns
from longsumbench.leaderboards.significance import (
    LeaderboardBlock,
    Outcome,
    build_block,
    read_all_scores,
)
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import plan_dataset
from longsumbench.runs.record import RunRecord, source_seen
from longsumbench.runs.results import Results
from longsumbench.sweeps.run import plan_launch, updating_tables
from longsumbench.views.footnotes import describe_untrained
from longsumbench.views.outcomes import describe_leader, describe_needed, describe_unlearned
from longsumbench.views.run_summary_screen import EndScreen, find_command

_log = logging.getLogger(__name__)

SAMPLE = 100  # examples that are summarized
FEWEST_TEXTS = 6  # of a choice
_FEWEST_TO_TRAIN = 60  # examples with references
_PLANTED = ("dataset.plant=6", "dataset.strict=false")  # a text that is too short is left out
_PLANTED_LENGTH = 120  # words, of summaries of texts without references
_READINGS = ("beginning", "ends", "select", "stages")  # of a language model, the cheapest first
_LANGUAGE_MODEL = (
    "model=prompt",
    "model.input_length=1500",
    "model.decode_length=512",
    "decode.no_repeat_ngram=4",  # small models repeat themselves
)
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
    for word in settings:
        defaults.pop(word.partition("=")[0], None)
    return [*format_overrides(defaults), *settings]


class ChosenTexts(NamedTuple):
    """The texts that systems are compared on.

    Attributes:
        words: settings of the dataset, the sample, and the length of summaries.
        found: what was read, in a sentence or two.
        trains: True if the training split has enough references.
        planted: True if facts are planted into the texts.
    """

    words: tuple[str, ...]
    found: str
    trains: bool
    planted: bool


def choose_texts(words: Sequence[str], plant: bool = False) -> ChosenTexts:
    """Read some texts. Facts are planted into them if a reference is missing, or if `plant` is set.

    Raises:
        UsageError: a setting is invalid.
        DataError: the texts cannot be read.
    """
    of_dataset = [word for word in words if word.startswith("dataset")]
    problem: DataError | None = None
    try:
        texts, split = _read_split(of_dataset)
        plant = plant or not all(split.reference_words)
    except DataError as error:  # rows without the field of a summary, say
        problem, plant = error, True
    if plant:
        try:
            texts, split = _read_split([*_PLANTED, *of_dataset])
        except DataError as error:
            raise problem or error from error
        words = [*_PLANTED, *words]
    if not any(word.startswith("decode.limit=") for word in words):
        words = [*words, f"decode.limit={SAMPLE}"]
    mean_words = sum(split.source_words) / len(split)
    found = f"Found {describe_work(len(split))} of {mean_words:,.0f} words on average"
    skipped = sum(Counter(texts.facts["skipped"].get(split.name, {})).values())
    if skipped:
        found += f"; {format_count(skipped, 'text')} left out, too short or unusable"
    if plant:
        found += (
            ". Without a summary for each, facts are planted into them: a system is judged by the planted facts that its "
            "summaries keep"
        )
    num_trained = (
        sum(map(bool, texts.splits["train"].reference_words)) if "train" in texts.splits else 0
    )
    trains = not plant and num_trained >= _FEWEST_TO_TRAIN
    if trains:
        found += f"; {format_count(num_trained, 'text')} to train on"
    else:
        length = _PLANTED_LENGTH if plant else round(sum(split.reference_words) / len(split))
        words = [*words, f"model.length={max(1, length)}"]
    return ChosenTexts(tuple(words), f"{found}.", trains, plant)


def _read_split(words: Sequence[str]) -> tuple[Texts, ReadSplit]:
    settings = plan_dataset(words)
    texts = load_texts(settings, user_cache())
    texts.check_split(settings.split)
    return texts, texts.splits[settings.split]


# Begin to read here: the command calls it.
def recommend(
    words: Sequence[str],
    more: Sequence[Sequence[str]],
    command: tuple[str, ...],
    show: Callable[[str], None],
    plant: bool = False,
) -> None:
    """Run extracts, trained scorers and other systems on a sample of some texts, and show what to choose.

    All systems are checked before the first one runs. Those that fail do not affect the others. `more` has the settings
    of each further system, such as a checkpoint; `show` is given the table and the sentences; `plant` as in
    `choose_texts`.

    Raises:
        SuiteError: the texts cannot be read or settings are invalid, before anything else is done; or a system failed,
            and the others are shown before.
    """
    texts = choose_texts(texts_overrides(words), plant)
    _log.info(texts.found)
    # all systems are planned before the first one runs, so that a typing error costs no time
    launches = [plan_launch([*_list_extracts(texts), *texts.words], True, None, command)]
    as_they_are = [word for word in texts.words if not word.startswith("train.")]
    for system_words in more:
        system = [*as_they_are, "scale=paper", "baselines=false", *system_words]
        launches.append(plan_launch(system, False, None, command))
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


def _list_extracts(texts: ChosenTexts) -> list[str]:
    """Return the settings of systems that copy sentences; trained ones only if there is enough to train on."""
    if texts.trains:
        return ["experiment=recommend"]
    oracle = [] if texts.planted else ["oracle"]  # it copies what is near to references
    return [f"model={','.join(['lead', 'random', 'lexrank', *oracle])}", "baselines=false"]


def list_readings(checkpoint: str) -> list[list[str]]:
    """Return the settings of a language model, as it is, for each way of reading that `recommend` compares."""
    model = [*_LANGUAGE_MODEL, *format_overrides({"model.checkpoint": checkpoint})]
    return [[*model, f"model.reading={reading}"] for reading in _READINGS]


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
    evaluation = block.rows[0].first.evaluation
    untested = decided is not None and decided.difference.outcome == Outcome.FEW_EXAMPLES
    if untested or (evaluation.groups or evaluation.n) < FEWEST_TEXTS:
        sentence = f"No choice: too few texts. {describe_leader(block)}"
        return [sentence, describe_needed(block)]
    choice = min(candidates, key=lambda row: (_price(row.first), row.first.seconds))
    reason = " It costs the least of those not shown to be below the best." if alike[1:] else ""
    sentence = f"Choose {choice.label}. {describe_leader(block)}{reason}"
    return [sentence, describe_needed(block), _describe_reading(choice), _describe_cost(choice)]


def _price(run: RunRecord) -> float:
    return float(run.ledger.counts.get("price", 0.0))


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

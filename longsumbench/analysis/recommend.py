"""Which system for some texts? Runs systems on a sample, and says in three sentences what their table shows.

texts --choose_texts--> settings of a dataset with references, or with planted facts --recommend--> runs --> sentences
"""

import json
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from longsumbench.analysis.candidates import find_affordable, fits, list_readings, set_words
from longsumbench.cache.artifacts import user_cache
from longsumbench.core import Example
from longsumbench.corpora.loading.fields import bad_rows_at
from longsumbench.corpora.loading.files import load_row
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.corpora.loading.row_files import read_file
from longsumbench.corpora.loading.store import ReadSplit
from longsumbench.corpora.loading.usual_keys import OWN_FIELDS, rename_keys
from longsumbench.errors import DataError, SuiteError, UsageError
from longsumbench.files import write_atomically
from longsumbench.formatting import describe_work, format_count, format_duration
from longsumbench.leaderboards.comparability import comparison_key
from longsumbench.leaderboards.seed_groups import ResultRow, ScoresOfRuns
from longsumbench.leaderboards.significance import (
    LeaderboardBlock,
    Outcome,
    build_block,
    read_all_scores,
)
from longsumbench.progress import phase
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import plan, plan_dataset
from longsumbench.runs.predictions import num_summarized
from longsumbench.runs.record import RunRecord, source_seen
from longsumbench.runs.results import Results
from longsumbench.sweeps.run import plan_launch
from longsumbench.sweeps.sweep import Launch
from longsumbench.views.columns import fact_halves
from longsumbench.views.footnotes import describe_untrained
from longsumbench.views.leaderboard import update_table
from longsumbench.views.outcomes import describe_leader, describe_needed, describe_unlearned
from longsumbench.views.run_summary_screen import EndScreen, find_command

_log = logging.getLogger(__name__)

SAMPLE = 100  # examples that are summarized
FEWEST_TEXTS = 6  # of a choice
_FEWEST_TO_TRAIN = 60  # examples with references
_PLANTED = ("dataset.plant=6", "dataset.strict=false")  # a text that is too short is left out
_PLANTED_LENGTH = 120  # words, of summaries of texts without references
_WHOLE_PERCENT = 99.5  # percent of a text
_COST_COLUMNS = (
    "length",
    "source_seen",
    "prompt_tokens",
    "seconds",
    "summarize_seconds",
    "price",
)


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


def add_references(words: Sequence[str], references: Path) -> list[str]:
    """Return settings of texts with summaries from elsewhere; both are written into one file in the results folder.

    The summaries are files with the names of the texts, or rows with their ids. Texts without one are left out.

    Raises:
        DataError: a file cannot be read, or no text has a summary.
    """
    settings = plan_dataset([word for word in words if word.startswith("dataset")])
    summaries = {}
    for row in _read_own_rows(references):
        summaries[str(row["id"])] = row.get("summary") or row.get("document")
    rows = _read_own_rows(Path(str(settings.path)))
    with_summary = []
    for row in rows:
        summary = summaries.get(str(row["id"]))
        if summary:
            with_summary.append({**row, "summary": summary})
    if not with_summary:
        raise DataError("no summary has the name or the id of a text", references)
    if len(with_summary) < len(rows):
        _log.info(
            f"{format_count(len(rows) - len(with_summary), 'text')} without a summary left out"
        )
    results = next(
        (word for word in words if word.startswith("results_dir=")), "results_dir=results"
    )
    path = Path(results.partition("=")[2]) / "texts" / f"{settings.name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) for row in with_summary]
    write_atomically(path, "\n".join(lines) + "\n")
    return set_words(words, *format_overrides({"dataset.path": str(path)}))


def _read_own_rows(path: Path) -> list[dict[str, Any]]:
    rows = []
    for file_row in read_file(path):
        with bad_rows_at(file_row.path, file_row.line):
            rows.append(rename_keys(load_row(file_row), OWN_FIELDS))
    return rows


class ChosenTexts(NamedTuple):
    """The texts that systems are compared on.

    Attributes:
        words: settings of the dataset, the sample, and the length of summaries.
        found: what was read, in a sentence or two.
        trains: True if the training split has enough references.
        planted: True if facts are planted into the texts.
        examples: the sample.
    """

    words: tuple[str, ...]
    found: str
    trains: bool
    planted: bool
    examples: Sequence[Example]

    def limit(self, number: int) -> "ChosenTexts":
        """Return fewer of the texts."""
        words = set_words(self.words, f"decode.limit={number}")
        return self._replace(words=tuple(words), examples=self.examples[:number])


def choose_texts(words: Sequence[str], plant: bool = False) -> ChosenTexts:
    """Read some texts. Facts are planted into them if a reference is missing, or if `plant` is set.

    Raises:
        UsageError: a setting is invalid.
        DataError: the texts cannot be read.
    """
    words = set_words(words, *_find_format(words, plant))
    plant = any(word.startswith("dataset.plant=") for word in words)
    texts, split = _read_split([word for word in words if word.startswith("dataset")])
    limits = [word for word in words if word.startswith("decode.limit=")]
    if not limits:
        limits = [f"decode.limit={SAMPLE}"]
        words = [*words, *limits]
    mean_words = sum(split.source_words) / len(split)
    found = f"Found {describe_work(len(split))} of {mean_words:,.0f} words on average"
    skipped = sum(Counter(texts.metadata["skipped"].get(split.name, {})).values())
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
    (point,) = plan(["model=lead", *limits])
    examples = [split[index] for index in range(num_summarized(split, point.config.decode))]
    return ChosenTexts(tuple(words), f"{found}.", trains, plant, examples)


def _find_format(words: Sequence[str], plant: bool) -> list[str]:
    """Return the settings of a dataset that can be read: rows or sessions, with planted facts where summaries lack."""
    of_dataset = [word for word in words if word.startswith("dataset")]
    formats = [of_dataset]
    if "dataset=jsonl" in words:
        formats.append(set_words(of_dataset, "dataset=sessions"))
    problems = []
    for settings in formats:
        for added in [_PLANTED] if plant else [(), _PLANTED]:
            try:
                _, split = _read_split([*added, *settings])
            except DataError as problem:  # rows without the field of a summary, say
                problems.append(problem)
                continue
            if added or all(split.reference_words):
                return [*added, *settings]
    raise problems[0]


def _read_split(words: Sequence[str]) -> tuple[Texts, ReadSplit]:
    settings = plan_dataset(words)
    texts = load_texts(settings, user_cache())
    texts.check_split(settings.split)
    return texts, texts.splits[settings.split]


# Begin to read here: the command calls it.
def recommend(
    words: Sequence[str],
    others: Sequence[Sequence[str]],
    checkpoints: Sequence[str],
    command: tuple[str, ...],
    show: Callable[[str], None],
    *,
    plant: bool = False,
    references: Path | None = None,
    minutes: float,
) -> None:
    """Run extracts, language models and other systems on a sample of some texts, and show what to choose.

    All systems are checked before the first one runs. Those that fail do not affect the others. After an interrupt, those
    that are finished are shown.

    Args:
        words: the texts and settings; with language models, `model.*` is about them.
        others: the settings of each further system.
        checkpoints: language models, each read in several ways.
        command: as typed.
        show: is given the table and the sentences.
        plant: as in `choose_texts`.
        references: a file or folder of summaries.
        minutes: the longest time of the language models; 0: no limit.

    Raises:
        SuiteError: the texts cannot be read or settings are invalid, before anything else is done; or a system failed,
            and the others are shown before.
    """
    if not 0 <= minutes < math.inf:
        raise UsageError(f"--minutes {minutes:g}: give 0 (no limit) or a number above it")
    of_models = [word for word in words if checkpoints and word.startswith("model.")]
    words = texts_overrides([word for word in words if word not in of_models])
    if references:
        words = add_references(words, references)
    texts = choose_texts(words, plant)
    _log.info(texts.found)
    ways: list[list[str]] = []
    for checkpoint in checkpoints:
        ways += list_readings(checkpoint, of_models)
    planned = _plan_affordable(texts, others, ways, minutes, command)
    launches = [launch for launch, _ in planned]
    failed: list[SuiteError] = []
    try:
        for index, launch in enumerate(launches):
            left = sum(seconds for _, seconds in planned[index:])
            if left:
                _log.info(
                    f"System {index + 1} of {len(launches)}, about {format_duration(left)} left"
                )
            # a system that fails does not affect the others
            try:
                launch.start()
                launch.check_failed()
            except SuiteError as problem:
                failed.append(problem)
    finally:  # also after an interrupt
        _show_finished(launches, show)
    if failed:
        raise failed[0]


def _plan_affordable(
    texts: ChosenTexts,
    others: Sequence[Sequence[str]],
    ways: Sequence[Sequence[str]],
    minutes: float,
    command: tuple[str, ...],
) -> list[tuple[Launch, float]]:
    """Return all launches, with the seconds of those of language models; `ways` that do not fit are left out.

    All are planned before the first one runs, so that a typing error costs no time.
    """
    launches = _plan_systems(texts, [*others, *ways], command)
    first = len(launches) - len(ways)
    asked, fitting = [], []
    for way, launch in zip(ways, launches[first:], strict=True):
        if fits(launch, texts.examples):
            asked.append(launch)
            fitting.append(way)
    if not asked:
        return [(launch, 0.0) for launch in launches[:first]]
    affordable = find_affordable(asked, len(texts.examples), minutes, FEWEST_TEXTS)
    limited = texts.limit(affordable.number)
    chosen = [fitting[index] for index in affordable.seconds]
    launches = _plan_systems(limited, [*others, *chosen], command)
    return list(zip(launches, [0.0] * first + [*affordable.seconds.values()], strict=True))


def _plan_systems(
    texts: ChosenTexts, others: Iterable[Sequence[str]], command: tuple[str, ...]
) -> list[Launch]:
    """Return the launches of the extracts and of other systems."""
    launches = [plan_launch([*_list_extracts(texts), *texts.words], True, None, command)]
    as_they_are = [word for word in texts.words if not word.startswith("train.")]
    for words in others:
        # what is typed goes first, also of the length
        system = set_words([*as_they_are, "scale=paper", "baselines=false"], *words)
        launches.append(plan_launch(system, False, None, command))
    return launches


def _show_finished(launches: Iterable[Launch], show: Callable[[str], None]) -> None:
    runs: dict[str, RunRecord] = {}
    for launch in launches:
        runs |= {run.run_id: run for run in launch.finished}
        results = Results.at(launch.points[0].config.results_dir)
    if runs:
        finished = list(runs.values())
        with phase("making the tables"):
            update_table(results, finished[0].key.dataset, redraw=False)
        show(describe_recommendation(results, finished, read_all_scores(results, finished)))


def _list_extracts(texts: ChosenTexts) -> list[str]:
    """Return the settings of systems that copy sentences; trained ones only if there is enough to train on."""
    if texts.trains:
        return ["experiment=recommend"]
    oracle = [] if texts.planted else ["oracle"]  # it copies what is near to references
    return [f"model={','.join(['lead', 'random', 'lexrank', *oracle])}", "baselines=false"]


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
    halves = ["halves"] if any(map(fact_halves, block.rows)) else []
    screen = EndScreen(
        heading,
        block,
        run_ids=(),
        sentences=[*sentences, describe_unlearned(block.rows)],
        commands={find_command(results, "leaderboard", first.key.dataset): "the whole table"},
        columns=("system", block.ranked_by, *halves, *_COST_COLUMNS),
    )
    return screen.render()


def describe_choice(block: LeaderboardBlock) -> list[str]:
    """Recommend a row of a block; say what part of the texts it never reads, and its cost.

    Candidates are the best row and those that are not shown to be below it. The one with the lowest price is chosen;
    among equal prices, the fastest; among equal seconds, the best.
    """
    decided = block.decide()
    alike = block.ranked if decided is None else (decided.best, *decided.undecided)
    candidates = [row for row in alike if row.representative.key.model != "random"]
    if not candidates:
        return ["No system can be recommended: none is ranked.", describe_leader(block)]
    evaluation = block.rows[0].representative.evaluation
    untested = decided is not None and decided.difference.outcome == Outcome.FEW_EXAMPLES
    if untested or (evaluation.groups or evaluation.n) < FEWEST_TEXTS:
        sentence = f"No choice: too few texts. {describe_leader(block)}"
        return [sentence, describe_needed(block)]
    choice = min(candidates, key=_cost)
    reason = " It costs the least of those not shown to be below the best." if alike[1:] else ""
    sentence = f"Choose {choice.label}. {describe_leader(block)}{reason}"
    return [
        sentence,
        describe_needed(block),
        _describe_reading(choice),
        describe_places(choice),
        _describe_cost(choice),
    ]


def _cost(row: ResultRow) -> tuple[float, int]:
    """Return price and whole seconds; parts of a second depend on what else the machine does."""
    run = row.representative
    return _price(run), max(1, round(run.seconds))


def _price(run: RunRecord) -> float:
    return float(run.ledger.counts.get("price", 0.0))


def _describe_reading(row: ResultRow) -> str:
    name, seen = row.label, source_seen(row.representative)
    if seen is None:
        return f"How much of a text {name} reads is not known."
    if seen >= _WHOLE_PERCENT:
        return f"{name} reads the texts to their ends."
    return (
        f"{name} never reads {100 - seen:.0f} % of the texts: what is only there is in no summary."
    )


def describe_places(row: ResultRow) -> str:
    """Say how many of the facts in each half of the texts a row keeps; empty if none are planted."""
    halves = fact_halves(row)
    if halves is None:
        return ""
    first, second = halves
    return f"{row.label} keeps {first:.0f} % of the facts in the first half of a text, {second:.0f} % of those in the second."


def _describe_cost(row: ResultRow) -> str:
    run = row.representative
    training = f"{format_duration(run.fit.seconds)} of training; " if run.trained else ""
    work = describe_work(run.num_outputs, seconds=run.costs.timings.summarize)
    dollars = f", US$ {_price(run):,.2f}" if _price(run) else ""
    return f"{row.label} took: {training}{work}{dollars}."

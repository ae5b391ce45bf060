"""Columns about systems, training, outputs and costs, which every leaderboard has.

A `Column` returns its cell in a row of a table, and its values in the CSV's row of a run; `run_column` makes most of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from longsumbench.formatting import format_duration, percent
from longsumbench.leaderboards.comparability import SURVIVAL
from longsumbench.leaderboards.seed_groups import NEVER_RANKED, NOT_SHOWN, ResultRow
from longsumbench.runs.record import SHORT_ID, RecordedSystem, RunRecord, length_ratio, source_seen
from longsumbench.runs.run_names import name_checkpoint

_OUTPUT_STATS = {  # column of the CSV → name in the record
    "output_words": "words",
    "reference_words": "reference_words",
    "outputs_compared": "compared",
    "outputs_distinct": "distinct",
    "outputs_repetitive": "repetitive",
}

_CsvCells = Callable[[RunRecord], Mapping[str, Any]]
_Condition = Callable[[RunRecord], object]


def always(record: RunRecord) -> object:
    """Return True: the condition of columns that every CSV has."""
    return True


@dataclass(frozen=True)
class Column:
    """A column of a leaderboard.

    Attributes:
        name: as typed after `--columns`.
        heading: line breaks are used on the terminal only; empty for a column that only the CSV has.
        meaning: a line for `--columns help`.
        cell: the text in a row; empty if its runs do not have it.
        csv: names in the CSV → a run's values; None for a column that only tables have.
        needed: the CSV has it if this is true of any run.
        align: "l" or "r".
        group: heading over the column in LaTeX.
    """

    name: str
    heading: str
    meaning: str
    cell: Callable[[ResultRow], str]
    csv: _CsvCells | None = None
    needed: _Condition = always
    align: str = "r"
    group: str = ""


def csv_only(csv: _CsvCells, needed: _Condition = always) -> Column:
    """Return values that only the CSV has."""
    return Column("", "", "", lambda row: "", csv, needed)


def show_count(number: float) -> str:
    """Format a count: "1,234"."""
    return f"{number:,.0f}"


def show_percent(number: float) -> str:
    """Format a share: "12 %"."""
    return f"{number:.0f} %"


def run_column(
    name: str,
    heading: str,
    meaning: str,
    value: Callable[[RunRecord], Any],
    show: Callable[[float], str] = show_count,
    needed: _Condition | None = None,
    align: str = "r",
) -> Column:
    """Return the column of a value of each run. A row shows the mean of its runs, or their different texts.

    The CSV has it under the same name if it is `needed`.
    """

    def cell(row: ResultRow) -> str:
        values = [value(run) for run in row.runs]
        # Texts are listed, numbers are averaged
        if align == "l":
            return ", ".join(text for text in dict.fromkeys(values) if text)
        known = [number for number in values if number is not None]
        return show(sum(known) / len(known)) if known else ""

    def csv(run: RunRecord) -> dict[str, Any]:
        return {name: value(run)}

    if needed is None:
        return Column(name, heading, meaning, cell, align=align)
    return Column(name, heading, meaning, cell, csv, needed, align)


def _remarks_cell(row: ResultRow) -> str:
    texts: dict[str, None] = {}
    for run in row.runs:
        texts |= dict.fromkeys(remarks(run))
    if row.learned.word in (*NEVER_RANKED, NOT_SHOWN):
        texts[row.learned.word] = None
    return "; ".join(texts)


def remarks(record: RunRecord) -> list[str]:
    """Return what is notable about a run and not in its name."""
    averaged = len(record.fit.averaged)
    counts = record.ledger.counts
    unread = counts.get("unread_tokens", 0)
    sent = counts.get("prompt_tokens", 0) + unread
    candidates = {
        "imported": record.imported,
        "not trained here": record.zero_shot,
        "not repeatable": record.fit.ended_by == "max_minutes",
        f"mean of {len(record.evaluation.checkpoints)} checkpoints": record.evaluation.checkpoints,
        f"weights of {averaged} checkpoints averaged": averaged,
        f"read {percent(sent - unread, sent) or 0:.0f} % of what was sent": unread,
    }
    return [remark for remark, holds in candidates.items() if holds]


def _length_cell(row: ResultRow) -> str:
    outputs = row.representative.evaluation.outputs
    if row.words is None or outputs is None:
        return ""
    reference = outputs.reference_words
    return f"{row.words:.0f}" if reference is None else f"{row.words:.0f} / {reference:.0f}"


def _seed_cell(row: ResultRow) -> str:
    return ", ".join(str(run.key.seed) for run in row.runs if run.key.seed is not None)


def _seeds_cell(row: ResultRow) -> str:
    return "" if row.representative.key.seed is None else str(len(row.runs))


def _run_cell(row: ResultRow) -> str:
    return row.key[:SHORT_ID] if len(row.runs) == 1 else f"{len(row.runs)} runs"


def _floor_cell(row: ResultRow) -> str:
    return "" if row.learned.floor is None else f"{row.learned.floor:.1f}"


def _lift_cell(row: ResultRow) -> str:
    return "" if row.learned.lift is None else f"{row.learned.lift:.0f} %"


def fact_halves(row: ResultRow) -> tuple[float, float] | None:
    """Return how many of the facts in each half of the texts a row keeps, in percent; None if none are planted."""
    halves = []
    for tenths in (range(5), range(5, 10)):
        names = [f"{SURVIVAL}_position_{tenth}" for tenth in tenths]
        values = [row.means[name].mean for name in names if name in row.means]
        if not values:
            return None
        halves.append(sum(values) / len(values))
    return halves[0], halves[1]


def _halves_cell(row: ResultRow) -> str:
    halves = fact_halves(row)
    return "" if halves is None else f"{halves[0]:.0f} / {halves[1]:.0f}"


ROW_COLUMNS = (  # of tables only
    Column(
        "system",
        "system",
        "what the row is called: its system, and what differs from other rows of it",
        lambda row: row.label,
        align="l",
    ),
    Column(
        "remarks",
        "remarks",
        "how its summaries were made, and whether it learned",
        _remarks_cell,
        align="l",
    ),
    Column("seeds", "seeds", "number of seeds", _seeds_cell),
    Column("seed", "seed", "the seeds", _seed_cell),
    Column(
        "length",
        "words /\nreference",
        "mean length of the outputs / of the references, in words; lengths: with R-1 precision and recall",
        _length_cell,
    ),
    Column(
        "halves",
        "1st / 2nd\nhalf",
        "share of the facts in the first and in the second half of the texts that are stated right",
        _halves_cell,
    ),
    Column("run", "run", "id of the run, or number of runs", _run_cell, align="l"),
    Column(
        "learned",
        "learned",
        "whether the system learned to summarize",
        lambda row: row.learned.word,
    ),
    Column(
        "floor",
        "floor",
        "score of the outputs without their sources: against other examples, or by chance",
        _floor_cell,
    ),
    Column(
        "lift",
        "lift",
        "gain over the floor: of planted facts, as share of what could be seen; of other texts in R-2, of Random's",
        _lift_cell,
    ),
    run_column(
        "total_seconds",
        "total\ntime",
        "time of all steps",
        lambda run: run.costs.timings.total or None,
        format_duration,
    ),
    run_column(
        "summarize_seconds",
        "summarizing\ntime",
        "time of summarizing the split",
        lambda run: run.costs.timings.summarize or None,
        format_duration,
    ),
    run_column("empty", "empty", "empty outputs", lambda run: run.evaluation.empty_predictions),
)


def run_values(run: RunRecord) -> dict[str, Any]:
    """Return what was run, for the CSV."""
    key = run.key
    return {
        "model": key.model,
        "variant": run.variant,
        "dataset": key.dataset,
        "split": key.split,
        "n": run.evaluation.n,
    }


def _cut_target_share(run: RunRecord) -> float | None:
    return percent(run.fit.targets_cut, run.train_examples) if run.trained else None


def _cut_output_share(run: RunRecord) -> float | None:
    return None if run.imported else percent(run.ledger.outputs_cut, run.num_outputs)


def _fit_value(name: str) -> Callable[[RunRecord], Any]:
    return lambda run: vars(run.fit)[name] if run.trained else None


def _training_values(run: RunRecord) -> dict[str, Any]:
    values = {"parameters": run.parameters}
    for name in ("steps", "examples", "source_tokens", "target_tokens", "seconds"):
        values[f"train_{name}"] = vars(run.fit)[name]
    # How imported outputs were trained is unknown
    return dict.fromkeys(values) if run.imported else values


COST_COLUMNS = (
    run_column(
        "source_seen",
        "source\nread",
        "share of the source that was read",
        source_seen,
        show_percent,
        always,
    ),
    run_column(
        "targets_cut",
        "targets\ncut",
        "share of training targets that were cut",
        _cut_target_share,
        show_percent,
        always,
    ),
    run_column(
        "outputs_cut",
        "outputs\ncut",
        "share of outputs that stopped at the length limit",
        _cut_output_share,
        show_percent,
        always,
    ),
    csv_only(_training_values),
    run_column(
        "parameters", "parameters", "weights of the model", lambda run: run.parameters or None
    ),
    run_column("steps", "steps", "optimizer steps", _fit_value("steps")),
    run_column(
        "train_examples",
        "training\nexamples",
        "examples trained on, with repetitions",
        _fit_value("examples"),
    ),
    run_column(
        "source_tokens",
        "source\ntokens",
        "source tokens trained on",
        _fit_value("source_tokens"),
    ),
    run_column(
        "target_tokens",
        "target\ntokens",
        "target tokens trained on",
        _fit_value("target_tokens"),
    ),
    run_column(
        "seconds",
        "train\ntime",
        "time of training",
        _fit_value("seconds"),
        format_duration,
    ),
    run_column(
        "tokens_per_second",
        "tokens\nper s",
        "output tokens per second",
        lambda run: run.costs.decode_tokens_per_second,
        "{:,.1f}".format,
        always,
    ),
    run_column(
        "peak_memory_gb",
        "memory\n(GB)",
        "peak memory",
        lambda run: run.costs.peak_memory_gb,
        "{:.1f}".format,
        always,
    ),
)


def id_values(run: RunRecord) -> dict[str, Any]:
    """Return what identifies the run, for the CSV."""
    return {"seed": run.key.seed, "signature": run.evaluation.signature, "run_id": run.run_id}


def text_values(run: RunRecord) -> dict[str, Any]:
    """Return which texts were read, for the CSV."""
    path = run.config.dataset.path
    return {
        "path": PurePath(path).name if path else path,
        "fingerprint": run.key.fingerprint,
        "train_split": run.train_examples,
    }


def _output_values(run: RunRecord) -> dict[str, Any]:
    stats = vars(run.evaluation.outputs) if run.evaluation.outputs else {}
    return {column: stats.get(name) for column, name in _OUTPUT_STATS.items()}


def _output_share(part: str, whole: str) -> Callable[[RunRecord], float | None]:

    def share(run: RunRecord) -> float | None:
        stats = run.evaluation.outputs
        return percent(vars(stats)[part], vars(stats)[whole]) if stats else None

    return share


OUTPUT_COLUMNS = (
    csv_only(
        lambda run: {"measured_by": "; ".join(run.evaluation.measured_by.values())},
        lambda run: run.evaluation.measured_by,
    ),
    csv_only(_output_values, lambda run: run.evaluation.outputs),
    run_column(
        "distinct",
        "distinct",
        "share of the compared outputs that differ from each other",
        _output_share("distinct", "compared"),
        show_percent,
    ),
    run_column(
        "repetitive",
        "repeti-\ntive",
        "share of outputs of which half of the sequences of three words occurred earlier in them",
        _output_share("repetitive", "count"),
        show_percent,
    ),
    csv_only(
        lambda run: {"checkpoints": len(run.evaluation.checkpoints) or 1},
        lambda run: run.evaluation.checkpoints,
    ),
    csv_only(
        lambda run: {"imported_from": run.imported and (run.imported.origin or run.imported.file)},
        lambda run: run.imported,
    ),
)


def trained_here(record: RunRecord) -> str:
    """Describe the training in a word: "here", or "no" for a checkpoint as it is; empty for a baseline."""
    if record.trained:
        return "here"
    return "no" if record.zero_shot else ""


def release_order(record: RunRecord) -> str:
    """Say whether the checkpoint was released before or after the dataset; empty if unknown, or in one month."""
    # Some releases have a day, some only a month: months are compared
    month = len("2018-04")
    released = (record.system.released or "")[:month]
    published = (record.texts.published or "")[:month]
    if not released or not published or released == published:
        return ""
    return "before the dataset" if released < published else "after the dataset"


def _prompt(record: RunRecord) -> str | None:
    name, hashed = record.system.prompt, record.system.prompt_hash
    return f"{name}@{hashed[:SHORT_ID]}" if name and hashed else name


def _released(record: RunRecord) -> str:
    dates = (record.system.released, release_order(record))
    return ", ".join(text for text in dates if text)


def has_system_metadata(record: RunRecord) -> bool:
    """Return True if more is known of a run's system than its settings."""
    return record.imported is not None or record.system != RecordedSystem()


def _system_values(run: RunRecord) -> dict[str, Any]:
    system = run.system
    return {
        "trained": trained_here(run),
        "checkpoint": system.checkpoint,
        "revision": system.revision,
        "weights": system.weights,
        "context": system.context,
        "engine": system.engine,
        "prompt": system.prompt,
        "prompt_hash": system.prompt_hash,
        "released": system.released,
        "release_order": release_order(run),
        "length_ratio": length_ratio(run),
    }


SYSTEM_COLUMNS = (
    csv_only(_system_values, has_system_metadata),
    run_column("trained", "trained", "here, or no: a checkpoint as it is", trained_here, align="l"),
    run_column(
        "checkpoint",
        "checkpoint",
        "what was loaded",
        name_checkpoint,
        align="l",
    ),
    run_column(
        "revision",
        "revision",
        "commit of the checkpoint",
        lambda run: (run.system.revision or "")[:SHORT_ID],
        align="l",
    ),
    run_column(
        "weights",
        "weights",
        "format of the checkpoint's files",
        lambda run: run.system.weights,
        align="l",
    ),
    run_column(
        "context",
        "context",
        "most tokens of an input, its prompt included",
        lambda run: run.system.context,
    ),
    run_column(
        "prompt", "prompt", "name of the prompt @ beginning of its hash", _prompt, align="l"
    ),
    run_column(
        "released",
        "released",
        "date of the checkpoint: before or after the dataset",
        _released,
        align="l",
    ),
    run_column(
        "length_ratio",
        "length\nratio",
        "words of the outputs / of the references",
        length_ratio,
        "{:.2f}".format,
    ),
)

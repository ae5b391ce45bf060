"""The columns of a leaderboard: what `--columns` accepts, and how a cell is read from the runs of a row.

A column is a number (a type of ROUGE or a measure), a fact about outputs or costs, or a setting. The truncation ledgers
have a table of their own: source tokens that were read, or dropped by cause; training targets cut; outputs that reached
the length limit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from longsumbench.core import registry
from longsumbench.errors import UsageError, did_you_mean
from longsumbench.formatting import format_duration, format_plain_value, percent, plain_table
from longsumbench.leaderboards.comparability import MEASURE_HEADINGS, ROUGE_HEADINGS, ROUGE_PARTS
from longsumbench.leaderboards.notes import checkpoint_name
from longsumbench.leaderboards.seed_groups import NEVER_RANKED, NOT_SHOWN, Learned, SeedGroup
from longsumbench.metrics.evaluate import agreement_clause
from longsumbench.runs.record import (
    SHORT_ID,
    RunRecord,
    length_ratio,
    measured_mean,
    run_label,
    source_copied,
    source_seen,
)
from longsumbench.views.tables import Block

_LEDGER_HEADING = "What was not read, not learned, not finished"
_LEDGER_NOTE = (
    "Source: the share of tokens (of words, for a system without tokens) that was read, and the share that each "
    "setting dropped. Targets: training references longer than decode_length. Outputs: summaries that hit the length "
    "limit."
)
_NO_VALUE = "–"
_SETTING = "a setting"  # the meaning of its column
PREFIX = "cut_"  # of the CSV columns with the shares by cause
_COLUMN_ALIASES = {
    "novel_bigrams": "novel_ngrams_2",
    "novel_trigrams": "novel_ngrams_3",
    "memory": "peak_memory_gb",
}
_VALUES_SHOWN = 4  # of a setting in a cell
_PERCENT = "{:.0f} %".format
_VERIFIED = {None: "", True: "verified", False: "reported"}


def cut_shares(record: RunRecord) -> dict[str, float]:
    """Return cause → the share of the source that it cut, in percent of tokens, the largest first."""
    source = record.ledger.source
    if source is None:
        return {}
    counts = {cut.cause: cut.tokens if source.tokens else cut.words for cut in source.cuts}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {cause: percent(count, source.tokens or source.words) or 0.0 for cause, count in ordered}


def ledger_columns(records: Sequence[RunRecord]) -> list[str]:
    """Return the names of the CSV columns with the shares that any of the runs cut, by cause."""
    return [
        f"{PREFIX}{cause}"
        for cause in sorted({cause for record in records for cause in cut_shares(record)})
    ]


def ledger_block(records: Sequence[RunRecord]) -> Block:
    """Return a block with a row for each run."""
    columns = (
        "run",
        "split",
        "source\nread (%)",
        "dropped by (%)",
        "training\ntargets cut",
        "outputs\nat the limit",
    )
    rows = [_ledger_row(record) for record in records]
    return Block(
        _LEDGER_HEADING, (), columns, "llrlll", rows, optional=("split",), footnotes=(_LEDGER_NOTE,)
    )


def _ledger_row(record: RunRecord) -> list[str]:
    seen, shares = source_seen(record), cut_shares(record)
    return [
        run_label(record),
        record.key.split,
        _NO_VALUE if seen is None else f"{seen:.1f}",
        ", ".join(f"{cause} {share:.1f}" for cause, share in shares.items()) or _NO_VALUE,
        _format_targets(record),
        _NO_VALUE
        if record.imported
        else format_share(record.ledger.outputs_cut, record.num_outputs),
    ]


def _format_targets(record: RunRecord) -> str:
    targets = record.fit.targets
    if targets is None or not record.trained:
        return _NO_VALUE
    share = percent(targets.tokens - targets.tokens_seen, targets.tokens) or 0.0
    return f"{format_share(record.fit.targets_cut, record.train_examples)}, {share:.1f} % of tokens"


def format_share(part: int, total: int) -> str:
    """Format a count and its share: "12 (3.40 %)"; only the count if `total` is 0."""
    share = percent(part, total)
    return f"{part:,}" if share is None else f"{part:,} ({share:.2f} %)"


@dataclass(frozen=True)
class Column:
    """A column of a leaderboard.

    Attributes:
        name: as typed after `--columns`.
        heading: line breaks are used on the terminal only.
        meaning: a line for `--columns help`.
        cell: the text in a row; empty if its runs do not have it.
        align: "l" or "r".
        group: heading over the column in LaTeX.
    """

    name: str
    heading: str
    meaning: str
    cell: Callable[[SeedGroup], str]
    align: str = "r"
    group: str = ""


def _fact(
    name: str,
    heading: str,
    meaning: str,
    value: Callable[[RunRecord], float | None],
    show: Callable[[float], str] = "{:,.0f}".format,
) -> Column:

    def cell(row: SeedGroup) -> str:
        numbers = [number for run in row.runs if (number := value(run)) is not None]
        return show(sum(numbers) / len(numbers)) if numbers else ""

    return Column(name, heading, meaning, cell)


def _text_fact(
    name: str, heading: str, meaning: str, value: Callable[[RunRecord], str | None]
) -> Column:

    def cell(row: SeedGroup) -> str:
        return ", ".join(dict.fromkeys(text for run in row.runs if (text := value(run))))

    return Column(name, heading, meaning, cell, "l")


def _count_fact(
    name: str, heading: str, meaning: str, show: Callable[[float], str] = "{:,.0f}".format
) -> Column:
    return _fact(
        name,
        heading,
        f"{meaning}, all outputs together",
        lambda run: run.ledger.counts.get(name),
        show,
    )


def _learning(name: str, heading: str, meaning: str, show: Callable[[Learned], str]) -> Column:
    return Column(name, heading, meaning, lambda row: show(row.learned))


def _prompt(record: RunRecord) -> str | None:
    name, hashed = record.system.prompt, record.system.prompt_hash
    return f"{name}@{hashed[:SHORT_ID]}" if name and hashed else name


def trained_here(record: RunRecord) -> str:
    """Describe the training in a word: "here", or "no" for a checkpoint as it is; empty for a baseline."""
    return "here" if record.trained else "no" if record.zero_shot else ""


def release_order(record: RunRecord) -> str:
    """Say whether the checkpoint was released before or after the dataset; empty if unknown, or in one month."""
    months = [
        (when or "")[: len("2018-04")] for when in (record.system.released, record.texts.published)
    ]
    if not all(months) or months[0] == months[1]:
        return ""
    return "before the dataset" if months[0] < months[1] else "after the dataset"


def _released(record: RunRecord) -> str:
    return ", ".join(text for text in (record.system.released, release_order(record)) if text)


def _format_price(dollars: float) -> str:
    return f"{dollars:,.2f}" if dollars >= 1 else f"{dollars:.2g}"


def _share_of_outputs(run: RunRecord, part: str, whole: str) -> float | None:
    facts = run.evaluation.outputs
    return percent(getattr(facts, part), getattr(facts, whole)) if facts else None


def _rouge_part(kind: str, part: str) -> Callable[[RunRecord], float | None]:
    return lambda run: (
        getattr(run.evaluation.scores[kind], part) if kind in run.evaluation.scores else None
    )


def _training_fact(name: str) -> Callable[[RunRecord], float | None]:
    return lambda run: getattr(run.fit, name) if run.trained else None


def _seed(row: SeedGroup) -> str:
    return ", ".join(str(run.key.seed) for run in row.runs if run.key.seed is not None)


def _system_cell(row: SeedGroup) -> str:
    run = row.first
    return (
        f"{run.key.model} (oracle)" if run.oracle and run.key.model != "oracle" else run.key.model
    )


def _settings_cell(row: SeedGroup) -> str:
    noted = dict.fromkeys(remark for run in row.runs for remark in remarks(run))
    if row.learned.word in (*NEVER_RANKED, NOT_SHOWN):
        noted[row.learned.word] = None
    return "; ".join(
        text for text in (", ".join(row.table_settings or row.settings), *noted) if text
    )


def remarks(record: RunRecord) -> list[str]:
    """Return facts about a run that its variant does not show."""
    averaged = len(record.fit.averaged)
    candidates = {
        "imported": record.imported,
        "not trained here": record.zero_shot,
        "not repeatable": record.fit.ended_by == "max_minutes",
        f"mean of {len(record.evaluation.checkpoints)} checkpoints": record.evaluation.checkpoints,
        f"weights of {averaged} checkpoints averaged": averaged,
    }
    return [remark for remark, holds in candidates.items() if holds]


def _run_cell(row: SeedGroup) -> str:
    return row.key[:SHORT_ID] if len(row.runs) == 1 else f"{len(row.runs)} runs"


def _length(row: SeedGroup) -> str:
    lengths = [run.evaluation.outputs for run in row.runs if run.evaluation.outputs]
    if not lengths:
        return ""
    words = f"{sum(facts.words for facts in lengths) / len(lengths):.0f}"
    reference = lengths[0].reference_words
    return words if reference is None else f"{words} / {reference:.0f}"


_FACT_COLUMNS = (
    Column("system", "system", "the model", _system_cell, "l"),
    Column(
        "settings",
        "settings",
        "its name, and settings unlike other rows or defaults",
        _settings_cell,
        "l",
    ),
    Column(
        "seeds",
        "seeds",
        "number of seeds",
        lambda row: "" if row.first.key.seed is None else str(len(row.runs)),
    ),
    Column("seed", "seed", "the seeds", _seed),
    Column(
        "length",
        "words /\nreference",
        "mean length of the outputs / of the references, in words",
        _length,
    ),
    _fact(
        "source_seen", "source\nread", "share of the source that was read", source_seen, _PERCENT
    ),
    _fact(
        "source_copied",
        "copied\nfrom",
        "share of the source that an extract copied",
        source_copied,
        _PERCENT,
    ),
    _fact("seconds", "train\ntime", "time of training", _training_fact("seconds"), format_duration),
    Column("run", "run", "id of the run, or number of runs", _run_cell, "l"),
    _text_fact(
        "verified", "scores", "verified, or as reported", lambda run: _VERIFIED[run.verified]
    ),
    _learning(
        "learned",
        "learned",
        "whether the system learned to summarize",
        lambda learned: learned.word,
    ),
    _learning(
        "floor",
        "floor",
        "score of the outputs without their sources: against other examples, or by chance",
        lambda learned: "" if learned.floor is None else f"{learned.floor:.1f}",
    ),
    _learning(
        "lift",
        "lift",
        "gain over the floor: of planted facts, as share of what could be seen; of other texts in R-2, of Random's",
        lambda learned: "" if learned.lift is None else f"{learned.lift:.0f} %",
    ),
    _fact("steps", "steps", "optimizer steps", _training_fact("steps")),
    _fact(
        "train_examples",
        "training\nexamples",
        "examples trained on, with repetitions",
        _training_fact("examples"),
    ),
    _fact(
        "source_tokens",
        "source\ntokens",
        "source tokens trained on",
        _training_fact("source_tokens"),
    ),
    _fact(
        "target_tokens",
        "target\ntokens",
        "target tokens trained on",
        _training_fact("target_tokens"),
    ),
    _text_fact("trained", "trained", "here, or no: a checkpoint as it is", trained_here),
    _fact("parameters", "parameters", "weights of the model", lambda run: run.parameters or None),
    _fact(
        "context",
        "context",
        "most tokens of an input, its prompt included",
        lambda run: run.system.context,
    ),
    _text_fact(
        "checkpoint",
        "checkpoint",
        "what was loaded",
        lambda run: checkpoint_name(run.system.checkpoint or ""),
    ),
    _text_fact(
        "revision",
        "revision",
        "commit of the checkpoint",
        lambda run: (run.system.revision or "")[:SHORT_ID],
    ),
    _text_fact(
        "weights", "weights", "format of the checkpoint's files", lambda run: run.system.weights
    ),
    _text_fact(
        "released", "released", "date of the checkpoint: before or after the dataset", _released
    ),
    _text_fact("prompt", "prompt", "name of the prompt @ beginning of its hash", _prompt),
    _fact(
        "length_ratio",
        "length\nratio",
        "words of the outputs / of the references",
        length_ratio,
        "{:.2f}".format,
    ),
    _count_fact("requests", "requests", "requests to the model"),
    _count_fact("prompt_tokens", "prompt\ntokens", "tokens sent"),
    _count_fact("output_tokens", "output\ntokens", "tokens received"),
    _count_fact("price", "price\n(US$)", "US dollars", _format_price),
    _count_fact("refused", "refused", "requests that the model refused"),
    _count_fact("failed", "failed", "examples without an answer"),
    _fact(
        "total_seconds",
        "total\ntime",
        "time of all steps",
        lambda run: run.costs.timings.total or None,
        format_duration,
    ),
    _fact(
        "summarize_seconds",
        "summarizing\ntime",
        "time of summarizing the split",
        lambda run: run.costs.timings.summarize or None,
        format_duration,
    ),
    _fact(
        "tokens_per_second",
        "tokens\nper s",
        "output tokens per second",
        lambda run: run.costs.decode_tokens_per_second,
        "{:,.1f}".format,
    ),
    _fact(
        "peak_memory_gb",
        "memory\n(GB)",
        "peak memory",
        lambda run: run.costs.peak_memory_gb,
        "{:.1f}".format,
    ),
    _fact(
        "targets_cut",
        "targets\ncut",
        "share of training targets that were cut",
        lambda run: percent(run.fit.targets_cut, run.train_examples) if run.trained else None,
        _PERCENT,
    ),
    _fact(
        "outputs_cut",
        "outputs\ncut",
        "share of outputs that stopped at the length limit",
        lambda run: None if run.imported else percent(run.ledger.outputs_cut, run.num_outputs),
        _PERCENT,
    ),
    _fact("empty", "empty", "empty outputs", lambda run: run.evaluation.empty_predictions),
    _fact(
        "distinct",
        "distinct",
        "share of the compared outputs that differ from each other",
        lambda run: _share_of_outputs(run, "distinct", "compared"),
        _PERCENT,
    ),
    _fact(
        "repetitive",
        "repeti-\ntive",
        "share of outputs of which half of the sequences of three words occurred earlier in them",
        lambda run: _share_of_outputs(run, "repetitive", "count"),
        _PERCENT,
    ),
    *(
        _fact(
            f"{kind}_{part}",
            f"{heading}\n{name}",
            f"ROUGE {name}",
            _rouge_part(kind, part),
            "{:.1f}".format,
        )
        for kind, heading in ROUGE_HEADINGS.items()
        for part, name in ROUGE_PARTS.items()
        if part != "f"
    ),
)


def _number_column(name: str, part: str = "f") -> Column:
    """Return the column of a type of ROUGE or a measure; `part` of ROUGE is what the rows have as F."""
    heading = {**ROUGE_HEADINGS, **MEASURE_HEADINGS}.get(name, name.replace("_", "_\n"))
    group = f"ROUGE {ROUGE_PARTS[part]}" if name in ROUGE_HEADINGS else ""
    if name.startswith("fact_recall"):
        group = "facts stated right"

    def cell(row: SeedGroup) -> str:
        return f"{row.numbers[name]:.1f}" if name in row.numbers else ""

    return Column(name, heading, group or agreement_clause(name) or "a measure", cell, group=group)


def _setting_column(key: str) -> Column:

    def cell(row: SeedGroup) -> str:
        values = dict.fromkeys(
            format_plain_value(_settings(run)[key]) for run in row.runs if key in _settings(run)
        )
        more = ", …" if len(values) > _VALUES_SHOWN else ""
        return ", ".join(list(values)[:_VALUES_SHOWN]) + more

    return Column(key, key.rpartition(".")[2].replace("_", "_\n"), _SETTING, cell)


def _settings(run: RunRecord) -> dict[str, Any]:
    """Return a run's settings by their full keys; those of training only if it was trained."""
    settings: dict[str, Any] = {}
    for key, value in asdict(run.config).items():
        if not isinstance(value, Mapping):
            settings[key] = value
        elif key != "train" or run.trained:
            settings |= {f"{key}.{name}": item for name, item in value.items()}
    return settings


def _share_column(cause: str) -> Column:
    meaning = f"share of the source that {cause} cut"
    return _fact(
        f"{PREFIX}{cause}",
        f"cut by\n{cause}",
        meaning,
        lambda run: cut_shares(run).get(cause),
        _PERCENT,
    )


def columns_of(records: Iterable[RunRecord], part: str = "f") -> dict[str, Column]:
    """Return all columns that runs have, by name: facts, ROUGE, measures, causes of cuts, settings."""
    records = list(records)
    measures = dict.fromkeys(
        name for run in records for name in (*ROUGE_HEADINGS, *run.evaluation.measures)
    )
    causes = dict.fromkeys(cause for run in records for cause in cut_shares(run))
    keys = dict.fromkeys(key for run in records for key in _settings(run))
    settings = {key: _setting_column(key) for key in sorted(keys)}
    measured = [name for name in measures if any(measured_mean(run, name) for run in records)]
    numbers = {name: _number_column(name, part) for name in measured}
    shares = {f"{PREFIX}{cause}": _share_column(cause) for cause in sorted(causes)}
    facts = {column.name: column for column in _FACT_COLUMNS}
    return {
        **facts,
        **numbers,
        **shares,
        **{key: column for key, column in settings.items() if key not in facts},
    }


def choose_columns(names: Sequence[str], columns: Mapping[str, Column]) -> list[Column]:
    """Return the columns with these names, in this order; the group of a setting may be left out ("learning_rate").

    Raises:
        UsageError: no run has a column of that name; several settings have it.
    """
    selection = []
    for word in dict.fromkeys(names):
        name = _COLUMN_ALIASES.get(word, word)
        matches = (
            [name] if name in columns else [key for key in columns if key.endswith(f".{name}")]
        )
        if len(matches) > 1:
            raise UsageError(f"--columns {word} may be {' or '.join(matches)}: type one of these")
        if not matches:
            names_known = [*columns, *(key.partition(".")[2] for key in columns if "." in key)]
            likely = how_to_compute(word) or did_you_mean(word, names_known)
            raise UsageError(f"no run has a column '{word}'{likely}; --columns help lists all")
        selection.append(columns[matches[0]])
    return list(dict.fromkeys(selection))


def how_to_compute(number: str) -> str:
    """Return how the number of a metric is added to finished runs; empty if no built-in metric has it."""
    number = _COLUMN_ALIASES.get(number, number)
    for name in registry.metrics.built_in:
        metric = registry.metrics.load(name)
        if name != "rouge" and number in (name, *metric.columns, *metric.further, *metric.units):
            return f"; to compute it, repeat their commands with score.metrics=[{name}], which trains nothing again"
    return ""


def list_columns(columns: Mapping[str, Column]) -> str:
    """Return a line for each column, its name and what it is; settings of one group share a line."""
    groups: dict[str, list[str]] = {}
    rows = []
    for name, column in columns.items():
        if column.meaning == _SETTING:
            group, _, setting = name.rpartition(".")
            groups.setdefault(group, []).append(setting)
        else:
            rows.append([name, column.meaning])
    for group, settings in groups.items():
        pattern = f"{group}.SETTING" if group else "SETTING"
        rows.append([pattern, f"settings: {', '.join(settings)}"])
    return plain_table(rows)

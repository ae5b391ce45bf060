"""The columns of a leaderboard: one list for tables, `--columns` and the CSV file.

Begin with `all_columns`. A `Column` knows its cell in a row of a table, and its values in the CSV's row of a run. A column
is a number (a type of ROUGE or a measure), a fact about outputs or costs, or a setting.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from longsumbench.cache.hub import checkpoint_name
from longsumbench.errors import UsageError, did_you_mean
from longsumbench.formatting import format_duration, format_plain_value, percent, plain_table
from longsumbench.leaderboards.comparability import MEASURE_HEADINGS, ROUGE_HEADINGS, ROUGE_PARTS
from longsumbench.leaderboards.seed_groups import NEVER_RANKED, NOT_SHOWN, SeedGroup
from longsumbench.leaderboards.table import how_to_compute
from longsumbench.metrics.evaluate import agreement_clause
from longsumbench.runs.record import (
    SHORT_ID,
    RecordedSystem,
    RunRecord,
    length_ratio,
    measured_mean,
    source_copied,
    source_seen,
)
from longsumbench.views.ledger import cut_shares
from longsumbench.views.tables import with_bounds

_SETTING = "a setting"  # the meaning of its column
_ALIASES = {
    "novel_bigrams": "novel_ngrams_2",
    "novel_trigrams": "novel_ngrams_3",
    "memory": "peak_memory_gb",
}
_VALUES_SHOWN = 4  # of a setting in a cell
_VERIFIED = {None: "", True: "verified", False: "reported"}
_OUTPUT_FACTS = {  # column of the CSV → fact in the record
    "output_words": "words",
    "reference_words": "reference_words",
    "outputs_compared": "compared",
    "outputs_distinct": "distinct",
    "outputs_repetitive": "repetitive",
}

_CsvCells = Callable[[RunRecord], Mapping[str, Any]]
_Condition = Callable[[RunRecord], object]


def _always(record: RunRecord) -> object:
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
    cell: Callable[[SeedGroup], str]
    csv: _CsvCells | None = None
    needed: _Condition = _always
    align: str = "r"
    group: str = ""


def _csv_only(csv: _CsvCells, needed: _Condition = _always) -> Column:
    return Column("", "", "", lambda row: "", csv, needed)


def _show_count(number: float) -> str:
    return f"{number:,.0f}"


def _show_percent(number: float) -> str:
    return f"{number:.0f} %"


def _show_price(dollars: float) -> str:
    return f"{dollars:,.2f}" if dollars >= 1 else f"{dollars:.2g}"


def _fact(
    name: str,
    heading: str,
    meaning: str,
    value: Callable[[RunRecord], Any],
    show: Callable[[float], str] = _show_count,
    needed: _Condition | None = None,
    align: str = "r",
) -> Column:
    """Return the column of a fact about each run. A row shows the mean of its runs, or their different texts.

    The CSV has it under the same name if it is `needed`.
    """

    def cell(row: SeedGroup) -> str:
        values = [value(run) for run in row.runs]
        if align == "l":
            return ", ".join(text for text in dict.fromkeys(values) if text)
        known = [number for number in values if number is not None]
        return show(sum(known) / len(known)) if known else ""

    def csv(run: RunRecord) -> dict[str, Any]:
        return {name: value(run)}

    if needed is None:
        return Column(name, heading, meaning, cell, align=align)
    return Column(name, heading, meaning, cell, csv, needed, align)


def _system_cell(row: SeedGroup) -> str:
    run = row.first
    is_marked = run.oracle and run.key.model != "oracle"
    return f"{run.key.model} (oracle)" if is_marked else run.key.model


def _settings_cell(row: SeedGroup) -> str:
    texts = {", ".join(row.table_settings or row.settings): None}
    for run in row.runs:
        texts |= dict.fromkeys(remarks(run))
    if row.learned.word in (*NEVER_RANKED, NOT_SHOWN):
        texts[row.learned.word] = None
    return "; ".join(text for text in texts if text)


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


def _length_cell(row: SeedGroup) -> str:
    outputs = [run.evaluation.outputs for run in row.runs if run.evaluation.outputs]
    if not outputs:
        return ""
    words = f"{sum(facts.words for facts in outputs) / len(outputs):.0f}"
    reference = outputs[0].reference_words
    return words if reference is None else f"{words} / {reference:.0f}"


def _seed_cell(row: SeedGroup) -> str:
    return ", ".join(str(run.key.seed) for run in row.runs if run.key.seed is not None)


def _seeds_cell(row: SeedGroup) -> str:
    return "" if row.first.key.seed is None else str(len(row.runs))


def _run_cell(row: SeedGroup) -> str:
    return row.key[:SHORT_ID] if len(row.runs) == 1 else f"{len(row.runs)} runs"


def _floor_cell(row: SeedGroup) -> str:
    return "" if row.learned.floor is None else f"{row.learned.floor:.1f}"


def _lift_cell(row: SeedGroup) -> str:
    return "" if row.learned.lift is None else f"{row.learned.lift:.0f} %"


_ROW_COLUMNS = (  # of tables only
    Column("system", "system", "the model", _system_cell, align="l"),
    Column(
        "settings",
        "settings",
        "its name, and settings unlike other rows or defaults",
        _settings_cell,
        align="l",
    ),
    Column("seeds", "seeds", "number of seeds", _seeds_cell),
    Column("seed", "seed", "the seeds", _seed_cell),
    Column(
        "length",
        "words /\nreference",
        "mean length of the outputs / of the references, in words",
        _length_cell,
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
    _fact("empty", "empty", "empty outputs", lambda run: run.evaluation.empty_predictions),
)


def _run_values(run: RunRecord) -> dict[str, Any]:
    key = run.key
    return {
        "model": key.model,
        "variant": run.variant,
        "dataset": key.dataset,
        "split": key.split,
        "n": run.evaluation.n,
    }


def _share_of_cut_targets(run: RunRecord) -> float | None:
    return percent(run.fit.targets_cut, run.train_examples) if run.trained else None


def _share_of_cut_outputs(run: RunRecord) -> float | None:
    return None if run.imported else percent(run.ledger.outputs_cut, run.num_outputs)


def _training_fact(fact: str) -> Callable[[RunRecord], Any]:
    return lambda run: vars(run.fit)[fact] if run.trained else None


def _training_values(run: RunRecord) -> dict[str, Any]:
    values = {"parameters": run.parameters}
    for fact in ("steps", "examples", "source_tokens", "target_tokens", "seconds"):
        values[f"train_{fact}"] = vars(run.fit)[fact]
    # How imported outputs were trained is unknown
    return dict.fromkeys(values) if run.imported else values


_COST_COLUMNS = (
    _fact(
        "source_seen",
        "source\nread",
        "share of the source that was read",
        source_seen,
        _show_percent,
        _always,
    ),
    _fact(
        "targets_cut",
        "targets\ncut",
        "share of training targets that were cut",
        _share_of_cut_targets,
        _show_percent,
        _always,
    ),
    _fact(
        "outputs_cut",
        "outputs\ncut",
        "share of outputs that stopped at the length limit",
        _share_of_cut_outputs,
        _show_percent,
        _always,
    ),
    _csv_only(_training_values),
    _fact("parameters", "parameters", "weights of the model", lambda run: run.parameters or None),
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
    _fact("seconds", "train\ntime", "time of training", _training_fact("seconds"), format_duration),
    _fact(
        "tokens_per_second",
        "tokens\nper s",
        "output tokens per second",
        lambda run: run.costs.decode_tokens_per_second,
        "{:,.1f}".format,
        _always,
    ),
    _fact(
        "peak_memory_gb",
        "memory\n(GB)",
        "peak memory",
        lambda run: run.costs.peak_memory_gb,
        "{:.1f}".format,
        _always,
    ),
)


def _id_values(run: RunRecord) -> dict[str, Any]:
    return {"seed": run.key.seed, "signature": run.evaluation.signature, "run_id": run.run_id}


def _text_values(run: RunRecord) -> dict[str, Any]:
    path = run.config.dataset.path
    return {
        "path": PurePath(path).name if path else path,
        "fingerprint": run.key.fingerprint,
        "train_split": run.train_examples,
    }


def _output_values(run: RunRecord) -> dict[str, Any]:
    facts = vars(run.evaluation.outputs) if run.evaluation.outputs else {}
    return {name: facts.get(fact) for name, fact in _OUTPUT_FACTS.items()}


def _share_of_outputs(part: str, whole: str) -> Callable[[RunRecord], float | None]:

    def share(run: RunRecord) -> float | None:
        facts = run.evaluation.outputs
        return percent(vars(facts)[part], vars(facts)[whole]) if facts else None

    return share


_OUTPUT_COLUMNS = (
    _csv_only(
        lambda run: {"measured_by": "; ".join(run.evaluation.measured_by.values())},
        lambda run: run.evaluation.measured_by,
    ),
    _csv_only(_output_values, lambda run: run.evaluation.outputs),
    _fact(
        "distinct",
        "distinct",
        "share of the compared outputs that differ from each other",
        _share_of_outputs("distinct", "compared"),
        _show_percent,
    ),
    _fact(
        "repetitive",
        "repeti-\ntive",
        "share of outputs of which half of the sequences of three words occurred earlier in them",
        _share_of_outputs("repetitive", "count"),
        _show_percent,
    ),
    _csv_only(
        lambda run: {"checkpoints": len(run.evaluation.checkpoints) or 1},
        lambda run: run.evaluation.checkpoints,
    ),
    _csv_only(
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


def has_system_facts(record: RunRecord) -> bool:
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


_SYSTEM_COLUMNS = (
    _csv_only(_system_values, has_system_facts),
    _fact("trained", "trained", "here, or no: a checkpoint as it is", trained_here, align="l"),
    _fact(
        "checkpoint",
        "checkpoint",
        "what was loaded",
        lambda run: checkpoint_name(run.system.checkpoint or ""),
        align="l",
    ),
    _fact(
        "revision",
        "revision",
        "commit of the checkpoint",
        lambda run: (run.system.revision or "")[:SHORT_ID],
        align="l",
    ),
    _fact(
        "weights",
        "weights",
        "format of the checkpoint's files",
        lambda run: run.system.weights,
        align="l",
    ),
    _fact(
        "context",
        "context",
        "most tokens of an input, its prompt included",
        lambda run: run.system.context,
    ),
    _fact("prompt", "prompt", "name of the prompt @ beginning of its hash", _prompt, align="l"),
    _fact(
        "released",
        "released",
        "date of the checkpoint: before or after the dataset",
        _released,
        align="l",
    ),
    _fact(
        "length_ratio",
        "length\nratio",
        "words of the outputs / of the references",
        length_ratio,
        "{:.2f}".format,
    ),
)
_COUNTS = {  # of a ledger: name → heading, meaning
    "requests": ("requests", "requests to the model"),
    "prompt_tokens": ("prompt\ntokens", "tokens sent"),
    "output_tokens": ("output\ntokens", "tokens received"),
    "price": ("price\n(US$)", "US dollars"),
    "refused": ("refused", "requests that the model refused"),
    "failed": ("failed", "examples without an answer"),
}


def _count_column(name: str) -> Column:
    heading, meaning = _COUNTS.get(name, ("", ""))
    return _fact(
        name,
        heading,
        f"{meaning}, all outputs together",
        lambda run: run.ledger.counts.get(name),
        _show_price if name == "price" else _show_count,
        lambda run: name in run.ledger.counts,
    )


def _measure_column(name: str, part: str) -> Column:
    """Return the column of a type of ROUGE or a measure; `part` of ROUGE is what the rows have as F."""
    heading = {**ROUGE_HEADINGS, **MEASURE_HEADINGS}.get(name, name.replace("_", "_\n"))
    group = f"ROUGE {ROUGE_PARTS[part]}" if name in ROUGE_HEADINGS else ""
    if name.startswith("fact_recall"):
        group = "facts stated right"

    def cell(row: SeedGroup) -> str:
        return f"{row.numbers[name]:.1f}" if name in row.numbers else ""

    def csv(run: RunRecord) -> dict[str, float | None]:
        return with_bounds(name, measured_mean(run, name))

    meaning = group or agreement_clause(name) or "a measure"
    return Column(name, heading, meaning, cell, csv, group=group)


def _rouge_part_column(kind: str, part: str) -> Column:

    def value(run: RunRecord) -> float:
        score = run.evaluation.scores[kind]
        return score.p if part == "p" else score.r

    heading = f"{ROUGE_HEADINGS[kind]}\n{ROUGE_PARTS[part]}"
    meaning = f"ROUGE {ROUGE_PARTS[part]}"
    return _fact(f"{kind}_{part}", heading, meaning, value, "{:.1f}".format, _always)


def _cut_column(cause: str) -> Column:
    return _fact(
        f"cut_{cause}",
        f"cut by\n{cause}",
        f"share of the source that {cause} cut",
        lambda run: cut_shares(run).get(cause),
        _show_percent,
        _always,
    )


def _setting_column(key: str) -> Column:

    def cell(row: SeedGroup) -> str:
        values: dict[str, None] = {}
        for run in row.runs:
            settings = _settings_by_key(run)
            if key in settings:
                values[format_plain_value(settings[key])] = None
        more = ", …" if len(values) > _VALUES_SHOWN else ""
        return ", ".join(list(values)[:_VALUES_SHOWN]) + more

    return Column(key, key.rpartition(".")[2].replace("_", "_\n"), _SETTING, cell)


def _settings_by_key(run: RunRecord) -> dict[str, Any]:
    """Return a run's settings by their full keys; those of training only if it was trained."""
    settings: dict[str, Any] = {}
    for key, value in asdict(run.config).items():
        if not isinstance(value, Mapping):
            settings[key] = value
        elif key != "train" or run.trained:
            settings |= {f"{key}.{name}": item for name, item in value.items()}
    return settings


def all_columns(records: Sequence[RunRecord], part: str = "f") -> list[Column]:
    """Return all columns that runs have, in the order of the CSV; settings, which it lacks, last."""
    measures: dict[str, None] = {}
    causes: set[str] = set()
    counts: dict[str, None] = {}
    keys: set[str] = set()
    for run in records:
        measures |= dict.fromkeys(run.evaluation.measures)
        causes.update(cut_shares(run))
        counts |= dict.fromkeys(run.ledger.counts)
        keys.update(_settings_by_key(run))
    rouge = [_measure_column(kind, part) for kind in ROUGE_HEADINGS]
    rouge_parts = []
    for kind in ROUGE_HEADINGS:
        rouge_parts += [_rouge_part_column(kind, "p"), _rouge_part_column(kind, "r")]
    columns = [
        *_ROW_COLUMNS,
        _csv_only(_run_values),
        *rouge,
        *_COST_COLUMNS,
        _csv_only(_id_values),
        *rouge_parts,
        _csv_only(_text_values),
        *(_measure_column(name, part) for name in measures),
        _fact(
            "source_copied",
            "copied\nfrom",
            "share of the source that an extract copied",
            source_copied,
            _show_percent,
            lambda run: source_copied(run) is not None,
        ),
        *map(_cut_column, sorted(causes)),
        *_OUTPUT_COLUMNS,
        *_SYSTEM_COLUMNS,
        *map(_count_column, {**counts, **_COUNTS}),
        _fact(
            "verified",
            "scores",
            "verified, or as reported",
            lambda run: _VERIFIED[run.verified],
            align="l",
        ),
        _csv_only(
            lambda run: {"verified": "yes" if run.verified else "no"}, lambda run: run.verified
        ),
    ]
    names = {column.name for column in columns}
    return columns + [_setting_column(key) for key in sorted(keys - names)]


def columns_of(records: Iterable[RunRecord], part: str = "f") -> dict[str, Column]:
    """Return the columns of tables of runs, by name."""
    columns = all_columns(list(records), part)
    return {column.name: column for column in columns if column.heading}


def csv_rows(records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return the CSV's row of each run: ROUGE precision (`_p`) and recall (`_r`) are 0–100, shares in percent."""
    cells = []
    for column in all_columns(records):
        if column.csv and any(map(column.needed, records)):
            cells.append(column.csv)
    rows = []
    for run in records:
        row: dict[str, Any] = {}
        for cells_of in cells:
            row |= cells_of(run)
        rows.append(row)
    return rows


def choose_columns(names: Sequence[str], columns: Mapping[str, Column]) -> list[Column]:
    """Return the columns with these names, in this order; the group of a setting may be left out ("learning_rate").

    Raises:
        UsageError: no run has a column of that name; several settings have it.
    """
    selection: dict[Column, None] = {}
    for word in names:
        name = _ALIASES.get(word, word)
        matches = [name]
        if name not in columns:
            matches = [key for key in columns if key.endswith(f".{name}")]
        if len(matches) > 1:
            raise UsageError(f"--columns {word} may be {' or '.join(matches)}: type one of these")
        if not matches:
            short_names = [key.partition(".")[2] for key in columns if "." in key]
            likely = how_to_compute(name) or did_you_mean(word, [*columns, *short_names])
            raise UsageError(f"no run has a column '{word}'{likely}; --columns help lists all")
        selection[columns[matches[0]]] = None
    return list(selection)


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

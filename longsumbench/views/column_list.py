"""The columns of a leaderboard: one list for tables, `--columns` and the CSV file.

Begin with `all_columns`. A column is a number (a type of ROUGE or a measure), a value of each run (`columns`), or a
setting.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from longsumbench.errors import UsageError, did_you_mean
from longsumbench.formatting import format_plain_value, plain_table
from longsumbench.leaderboards.comparability import (
    MEASURE_HEADINGS,
    PLANTED,
    ROUGE_HEADINGS,
    ROUGE_STATISTICS,
    SURVIVAL,
)
from longsumbench.leaderboards.seed_groups import ResultRow
from longsumbench.leaderboards.table import how_to_compute
from longsumbench.metrics.evaluate import agreement_clause
from longsumbench.runs.record import RunRecord, measured_mean, source_copied
from longsumbench.views.columns import (
    COST_COLUMNS,
    OUTPUT_COLUMNS,
    ROW_COLUMNS,
    SYSTEM_COLUMNS,
    Column,
    always,
    csv_only,
    id_values,
    run_column,
    run_values,
    show_count,
    show_percent,
    text_values,
)
from longsumbench.views.ledger import cut_shares
from longsumbench.views.tables import with_bounds

_SETTING = "a setting"  # the meaning of its column
_ALIASES = {
    "novel_bigrams": "novel_ngrams_2",
    "novel_trigrams": "novel_ngrams_3",
    "memory": "peak_memory_gb",
}
# Name of a group → its columns
COLUMN_GROUPS = {
    "lengths": ("length", "rouge1_p", "rouge1_r"),
    "questions": (
        "answers",
        "answers_wrong",
        "answers_guessed",
        "answers_unrelated",
        "answers_source",
    ),
}
_VALUES_SHOWN = 4  # of a setting in a cell
_VERIFIED = {None: "", True: "verified", False: "reported"}
_COUNTS = {  # of a ledger: name → heading, meaning
    "requests": ("requests", "requests to the model"),
    "prompt_tokens": ("prompt\ntokens", "tokens sent"),
    "output_tokens": ("output\ntokens", "tokens received"),
    "price": ("price\n(US$)", "US dollars"),
    "tries": ("tries", "requests that were repeated, as an answer was too long"),
    "refused": ("refused", "requests that the model refused"),
    "failed": ("failed", "examples without an answer"),
}


def _show_price(dollars: float) -> str:
    return f"{dollars:,.2f}" if dollars >= 1 else f"{dollars:.2g}"


def _count_column(name: str) -> Column:
    heading, meaning = _COUNTS.get(name, ("", ""))
    return run_column(
        name,
        heading,
        f"{meaning}, all outputs together",
        lambda run: run.ledger.counts.get(name),
        _show_price if name == "price" else show_count,
        lambda run: name in run.ledger.counts,
    )


def _measure_column(name: str, statistic: str) -> Column:
    """Return the column of a type of ROUGE or a measure; `statistic` of ROUGE is what the rows have as F."""
    short_name = name.replace(f"{SURVIVAL}_", "facts\n").replace("_", "_\n")
    heading = {**ROUGE_HEADINGS, **MEASURE_HEADINGS}.get(name, short_name)
    group = f"ROUGE {ROUGE_STATISTICS[statistic]}" if name in ROUGE_HEADINGS else ""
    if name.startswith((PLANTED, SURVIVAL)):
        group = "facts stated wrong" if name.endswith("_wrong") else "facts stated right"

    def cell(row: ResultRow) -> str:
        return f"{row.means[name]:.1f}" if name in row.means else ""

    def csv(run: RunRecord) -> dict[str, float | None]:
        return with_bounds(name, measured_mean(run, name))

    meaning = group or agreement_clause(name) or "a measure"
    return Column(name, heading, meaning, cell, csv, group=group)


def _rouge_column(kind: str, statistic: str) -> Column:

    def value(run: RunRecord) -> float:
        score = run.evaluation.scores[kind]
        return score.p if statistic == "p" else score.r

    heading = f"{ROUGE_HEADINGS[kind]}\n{ROUGE_STATISTICS[statistic]}"
    meaning = f"ROUGE {ROUGE_STATISTICS[statistic]}"
    return run_column(f"{kind}_{statistic}", heading, meaning, value, "{:.1f}".format, always)


def _cut_column(cause: str) -> Column:
    return run_column(
        f"cut_{cause}",
        f"cut by\n{cause}",
        f"share of the source that {cause} cut",
        lambda run: cut_shares(run).get(cause),
        show_percent,
        always,
    )


def _setting_column(key: str) -> Column:

    def cell(row: ResultRow) -> str:
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


_SOURCE_COPIED = run_column(
    "source_copied",
    "copied\nfrom",
    "share of the source that an extract copied",
    source_copied,
    show_percent,
    lambda run: source_copied(run) is not None,
)
_VERIFIED_COLUMN = run_column(
    "verified",
    "scores",
    "verified, or as reported",
    lambda run: _VERIFIED[run.verified],
    align="l",
)


def all_columns(records: Sequence[RunRecord], statistic: str = "f") -> list[Column]:
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
    rouge = [_measure_column(kind, statistic) for kind in ROUGE_HEADINGS]
    rouge_columns = []
    for kind in ROUGE_HEADINGS:
        rouge_columns += [_rouge_column(kind, "p"), _rouge_column(kind, "r")]
    columns = [
        *ROW_COLUMNS,
        csv_only(run_values),
        *rouge,
        *COST_COLUMNS,
        csv_only(id_values),
        *rouge_columns,
        csv_only(text_values),
        *(_measure_column(name, statistic) for name in measures),
        _SOURCE_COPIED,
        *map(_cut_column, sorted(causes)),
        *OUTPUT_COLUMNS,
        *SYSTEM_COLUMNS,
        *map(_count_column, {**counts, **_COUNTS}),
        _VERIFIED_COLUMN,
        csv_only(
            lambda run: {"verified": "yes" if run.verified else "no"}, lambda run: run.verified
        ),
    ]
    # A setting may have the name of another column, such as the seed; that one is shown
    names = {column.name for column in columns}
    return columns + [_setting_column(key) for key in sorted(keys - names)]


def collect_columns(records: Iterable[RunRecord], statistic: str = "f") -> dict[str, Column]:
    """Return the columns of tables of runs, by name."""
    columns = all_columns(list(records), statistic)
    return {column.name: column for column in columns if column.heading}


def csv_rows(records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return the CSV's row of each run: ROUGE precision (`_p`) and recall (`_r`) are 0–100, shares in percent."""
    cells = []
    for column in all_columns(records):
        # Columns that no run fills are left out of the file
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
    words: list[str] = []
    for name in names:
        words += COLUMN_GROUPS.get(name, (name,))
    for word in words:
        name = _ALIASES.get(word, word)
        # A full name is taken as it is; a short one must be that of one setting
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

"""`longsumbench agreement`: how far metrics agree with what people judged.

folder --read_judged, score_judged--> scores, judgements --measure_agreement--> a row per aspect, level and measure
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf import OmegaConf
from yaml import YAMLError  # type: ignore[import-untyped] # has no annotations

from longsumbench.core import Scoring, build_settings
from longsumbench.errors import UsageError, suite_errors
from longsumbench.files import csv_of
from longsumbench.formatting import format_count, format_interval
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.significance import LEVEL
from longsumbench.metrics.aggregate import BOOTSTRAP_SEED
from longsumbench.metrics.rank_statistics import (
    Numbers,
    draw_counts,
    krippendorff_alpha,
    mean_of,
    percentile_interval,
    pooled_agreement,
    rank_agreement,
    tau_b,
)
from longsumbench.metrics.statistics import approximate_randomization, holm
from longsumbench.outputs.judgements import (
    CONTROLS,
    JudgedOutputs,
    Measures,
    read_judged,
    score_judged,
)
from longsumbench.views.tables import Block, Stressed, Tied, terminal

FEWEST_SYSTEMS = 5  # fewer are refused at the level of systems, and marked within documents
_FEWEST_DOCUMENTS = 5  # with fewer, equal values of τ have an interval without width, and no reading says what is clear
ANNOTATORS = "annotators"  # the row of people's own agreement
_PARTS = {"f": "", "p": " precision", "r": " recall"}
_MARK = "†"
_STATISTICS = ("tau", "tau_both", "spearman", "accuracy", "close", "partial", "alpha")
_BOUNDS = [f"{name}{end}" for name in _STATISTICS for end in ("", "_lo", "_hi")]
_COLUMNS = [
    "aspect",
    "level",
    "measure",
    "kind",
    "documents",
    "systems",
    *_BOUNDS,
    "best",
    "p",
    "p_holm",
    "note",
]
_LEGEND = (
    "τ: Kendall's τ-b within documents; 95 %: its interval over documents. Given length: partial τ. Systems: τ-b of "
    "their means, with its interval over documents and systems. Pairs: share of pairs in people's order. Close: τ-b "
    f"of the half of the pairs that a measure sets least apart. {_MARK} fewer than {FEWEST_SYSTEMS} systems a document."
)


@dataclass(frozen=True)
class Agreement:
    """The result of `longsumbench agreement`.

    Attributes:
        name: of the folder.
        table: one row per aspect, level (within, system, pooled) and measure; docs/how-to/agreement.md has the columns.
        shown: the measures that tables and pictures show.
        notes: what was left out.
    """

    name: str
    table: pd.DataFrame
    shown: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def aspects(self) -> list[str]:
        """What people judged."""
        return list(self.table["aspect"].unique())

    def rows_of(self, aspect: str, level: str = "within") -> pd.DataFrame:
        """Return the rows of an aspect that are shown, by measure."""
        table = self.table[
            (self.table["aspect"] == aspect) & (self.table["level"] == level)
        ].set_index("measure")
        return table.loc[[name for name in (*self.shown, ANNOTATORS) if name in table.index]]

    def csv(self) -> str:
        """Return the table as CSV."""
        return csv_of(self.table, float_format="%.4f")

    def render(self) -> str:
        """Return a table for each aspect and its reading, for the terminal."""
        head, readings = (
            Block("", lines, (), "", [])
            for lines in ((*self.notes, _LEGEND), tuple(map(self.reading, self.aspects)))
        )
        return terminal(
            f"Agreement with people: {self.name}", [head, *map(self._block, self.aspects), readings]
        )

    def reading(self, aspect: str) -> str:
        """Say in a sentence which metric follows an aspect, and whether this is more than length."""
        rows = self.rows_of(aspect)
        best = rows[rows["best"]]
        if best.empty:
            return f"{aspect}: τ is undefined for every metric."
        name, tau = measure_heading(str(best.index[0])), best["tau"].iloc[0]
        if (documents := int(best["documents"].iloc[0])) < _FEWEST_DOCUMENTS:
            return f"{aspect}: too few documents ({documents}) to say which metric follows it."
        if _is_clear(best.iloc[0], "tau"):
            also = "also" if _is_clear(best.iloc[0], "partial") else "but not clearly"
            text = f"{name} {'follows it' if tau > 0 else 'goes against it'} (τ {tau:.2f}), {also} given length"
        else:
            text = f"{name}, of the largest τ, is not shown to follow it: the interval includes 0"
        if ANNOTATORS in rows.index:
            text += f"; annotators reach {float(rows['tau'][ANNOTATORS]):.2f}"
        for control, row in rows[
            (rows["kind"] == "control") & (rows["tau"].abs() > abs(tau))
        ].iterrows():
            text += (
                f"; {measure_heading(str(control))} alone: {row['tau']:.2f}"
                if _is_clear(row, "tau")
                else ""
            )
        return f"{aspect}: {text}."

    def _block(self, aspect: str) -> Block:
        rows, of_systems = self.rows_of(aspect), self.rows_of(aspect, "system")
        documents, systems = (int(rows[name].max()) for name in ("documents", "systems"))
        alphas = rows["alpha"][rows.index == ANNOTATORS]
        ceiling = (
            ", ".join(f"Krippendorff's α {alpha:.2f}" for alpha in alphas)
            or "one annotator: no ceiling"
        )
        counts = f"τ of {format_count(documents, 'document')}, {format_count(systems, 'system')}"
        cells = []
        for (name, row), (_, means) in zip(rows.iterrows(), of_systems.iterrows(), strict=True):
            tau = _number(row["tau"]) + (_MARK if systems < FEWEST_SYSTEMS else "")
            if any(_is_clear(best, "tau") for _, best in rows[rows["best"]].iterrows()):
                tau = Stressed(tau) if row["best"] else Tied(tau) if row["p_holm"] >= LEVEL else tau
            texts = [
                measure_heading(str(name)),
                tau,
                _interval(row, "tau"),
                _number(row["partial"]),
            ]
            texts += [_number(means["tau"]), _interval(means, "tau_both")]
            cells.append([*texts, _number(row["accuracy"]), _number(row["close"])])
        columns = ("", "τ", "95 %", "given\nlength", "systems", "95 % ", "pairs", "close")
        notes = tuple(dict.fromkeys(note for note in (*rows["note"], *of_systems["note"]) if note))
        block = Block(
            f"{aspect}: {counts}; {ceiling}",
            (),
            columns,
            "lrlrrlrr",
            cells,
            optional=("close", "pairs"),
            footnotes=notes,
        )
        return block.without_empty_columns()


def measure_heading(name: str) -> str:
    """Return the heading of a measure: "R-1 recall", "copied bigrams"."""
    kind, _, part = name.partition("_")
    return ROUGE_HEADINGS[kind] + _PARTS[part] if kind in ROUGE_HEADINGS else name.replace("_", " ")


def _is_clear(row: "pd.Series[Any]", statistic: str) -> bool:
    """Return True if there are enough documents, and the interval is on the side of τ."""
    if row["documents"] < _FEWEST_DOCUMENTS:
        return False
    return bool(row[f"{statistic}_lo"] > 0 if row["tau"] > 0 else row[f"{statistic}_hi"] < 0)


def _number(value: float) -> str:
    return f"{value:z.2f}" if np.isfinite(value) else ""


def _interval(row: "pd.Series[Any]", statistic: str) -> str:
    low, high = row[f"{statistic}_lo"], row[f"{statistic}_hi"]
    return format_interval(low, high, ".2f") if np.isfinite(low) else ""


@suite_errors()
def agreement(
    folder: str | Path,
    words: Sequence[str] = (),
    *,
    where: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    **settings: Any,
) -> Agreement:
    """Measure how far metrics agree with what people judged, as `longsumbench agreement` does; nothing is written.

        print(agreement("koh2022", where=["corpus=arXiv"], metrics=["extractive"]).render())

    Args:
        folder: with documents.jsonl, outputs.jsonl and judgements.jsonl.
        words: settings as typed ("score.metrics=[extractive]").
        where: "FIELD=VALUE" of documents.jsonl: only these documents.
        leave_out: names of systems.
        settings: those of `score.*` as arguments (metrics=["extractive"]).

    Raises:
        UsageError: a setting, a system or a field is unknown.
        DataError: a file is missing or damaged, or names unknown documents or systems.
    """
    try:
        typed: Any = OmegaConf.to_container(OmegaConf.from_dotlist(list(words)))
    except YAMLError as error:
        raise UsageError(
            f"cannot read the settings {' '.join(words)}: write score.NAME=VALUE"
        ) from error
    if unknown := [
        name for name, value in typed.items() if name != "score" or not isinstance(value, dict)
    ]:
        raise UsageError(f"agreement has no setting '{unknown[0]}'; write score.NAME=VALUE")
    scoring = build_settings(Scoring, {**typed.get("score", {}), **settings}, "score.")
    path = Path(folder).expanduser()
    judged = read_judged(path, where, leave_out)
    measures = score_judged(judged, scoring)
    table = measure_agreement(judged, measures, scoring.resamples)
    return Agreement(
        path.resolve().name, table, tuple(measures.shown), (*judged.notes, *measures.notes)
    )


def measure_agreement(
    judged: JudgedOutputs, measures: Measures, resamples: int, fewest_systems: int = FEWEST_SYSTEMS
) -> pd.DataFrame:
    """Return one row per aspect, level and measure.

    Args:
        judged: what people judged.
        measures: the scores of the outputs.
        resamples: of each bootstrap.
        fewest_systems: with fewer, the level of systems is refused.
    """
    tables = [
        _measure_aspect(judgements, measures, resamples, fewest_systems).assign(aspect=aspect)
        for aspect, judgements in zip(judged.aspects, judged.judgements, strict=True)
    ]
    return pd.concat(tables, ignore_index=True).reindex(columns=_COLUMNS)


def _measure_aspect(
    judgements: Numbers, measures: Measures, resamples: int, fewest_systems: int
) -> pd.DataFrame:
    """Return the rows of an aspect with the judgements [annotators, documents, systems], and tests."""
    people, length = np.round(mean_of(judgements), 12), measures.scores["words"]
    seeds = enumerate(people.shape, start=BOOTSTRAP_SEED)
    counts, system_counts = (draw_counts(resamples, size, seed) for seed, size in seeds)
    num_systems, num_documents = (int(np.isfinite(people).any(axis=axis).sum()) for axis in (0, 1))
    constant = np.isnan(tau_b(people, people)).all()
    refusal = (
        f"No τ of systems: {num_systems} are fewer than {fewest_systems}."
        if num_systems < fewest_systems
        else ""
    )
    compared = {name: [(scores, people)] for name, scores in measures.scores.items()}
    if np.isfinite(judgements).sum(axis=0).max() > 1:
        other_means = (
            np.round(mean_of(np.delete(judgements, place, axis=0)), 12)
            for place in range(len(judgements))
        )
        compared[ANNOTATORS] = list(zip(judgements, other_means, strict=True))
    rows = []
    for name, pairs in compared.items():
        levels = _average_levels(pairs, length, counts, None if refusal else system_counts)
        if name == ANNOTATORS:
            levels["within"]["alpha"] = krippendorff_alpha(judgements, counts)
        documents = int(np.isfinite([tau_b(*pair) for pair in pairs]).any(axis=0).sum())
        kind = "control" if name in CONTROLS else "ceiling" if name == ANNOTATORS else "metric"
        for level, statistics in levels.items():
            row = {
                "measure": name,
                "kind": kind,
                "level": level,
                "documents": documents,
                "systems": num_systems,
            }
            row["note"] = refusal if level == "system" else ""
            for statistic, draws in statistics.items():
                size = documents if level == "within" else num_documents
                low, high = percentile_interval(draws, None if statistic == "tau_both" else size)
                row |= {statistic: draws[0], f"{statistic}_lo": low, f"{statistic}_hi": high}
            if statistics and np.isnan(statistics["tau"][0]):
                row["note"] = (
                    f"τ is undefined: the {'judgements' if constant else f'scores of {name}'} are constant."
                )
            rows.append(row)
    return _tested(
        pd.DataFrame(rows), {name: tau_b(measures.scores[name], people) for name in measures.shown}
    )


def _average_levels(
    pairs: Sequence[tuple[Numbers, Numbers]],
    length: Numbers,
    counts: Numbers,
    system_counts: Numbers | None,
) -> dict[str, dict[str, Numbers]]:
    """Return level → statistic → [draws], the mean over pairs of scores; `system` is empty without their counts."""
    each = []
    for scores, people in pairs:
        within, pooled = (
            rank_agreement(scores, people, length, counts),
            pooled_agreement(scores, people),
        )
        of_systems = (
            {}
            if system_counts is None
            else rank_agreement(scores, people, length, counts, system_counts)
        )
        each.append({"within": within, "system": of_systems, "pooled": pooled})
    return {
        level: {
            name: mean_of(np.stack([levels[level][name] for levels in each])) for name in statistics
        }
        for level, statistics in each[0].items()
    }


def _tested(table: pd.DataFrame, taus: Mapping[str, Numbers]) -> pd.DataFrame:
    """Test the τ within documents of each shown measure against that of the metric of largest |τ|.

    This metric must apply to half as many documents as any other.
    """
    table = table.assign(best=False, p=np.nan, p_holm=np.nan)
    tested = table["measure"].isin(taus.keys()) & table["tau"].notna()
    places = {
        str(table["measure"][row]): row
        for row in table.index[(table["level"] == "within") & tested]
    }
    counts = {
        name: int(table["documents"][row]) for name, row in places.items() if name not in CONTROLS
    }
    metrics = [name for name, count in counts.items() if count >= max(counts.values()) / 2]
    if metrics:
        best = max(metrics, key=lambda name: abs(float(table["tau"][places[name]])))
        table.loc[places.pop(best), "best"] = True
        gaps = np.stack([taus[name] - taus[best] for name in places], axis=1)
        p_values = approximate_randomization(np.nan_to_num(gaps))
        table.loc[list(places.values()), "p"], table.loc[list(places.values()), "p_holm"] = (
            p_values,
            holm(p_values),
        )
    return table

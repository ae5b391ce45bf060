"""`longsumbench agreement`: how far metrics agree with what people judged.

folder --read_judged, score_judged--> scores, judgements --measure_agreement--> a row per aspect, level and measure
--agreement_figure--> a panel per aspect, with metrics as points
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf import OmegaConf
from yaml import YAMLError  # type: ignore[import-untyped] # has no annotations

from longsumbench.arguments import public_function
from longsumbench.core import Scoring, build_settings
from longsumbench.errors import UsageError
from longsumbench.files import format_csv
from longsumbench.formatting import format_count, format_examples, format_interval
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.significance import LEVEL
from longsumbench.metrics.aggregate import Estimate
from longsumbench.metrics.rank_statistics import (
    average_first_axis,
    draw_counts,
    krippendorff_alpha,
    percentile_interval,
    pooled_agreement,
    rank_agreement,
    tau_b,
)
from longsumbench.metrics.statistics import (
    BOOTSTRAP_SEED,
    Groups,
    Numbers,
    approximate_randomization,
    holm,
    number_groups,
    sum_groups,
)
from longsumbench.outputs.judgements import (
    CONTROLS,
    JudgedOutputs,
    Measures,
    read_judged,
    score_judged,
)
from longsumbench.views.figures import render_picture, write_pictures
from longsumbench.views.intervals import IntervalFigure, IntervalPanel, IntervalRow
from longsumbench.views.tables import Block, Stressed, Tied, terminal

# Fewer are refused at the level of systems, and marked within documents
_FEWEST_SYSTEMS = 5
# With fewer, equal values of τ have an interval without width, and no reading says what is clear
_FEWEST_DOCUMENTS = 5
ANNOTATORS = "annotators"  # the row of people's own agreement
_STATISTIC_NAMES = {"f": "", "p": " precision", "r": " recall"}
_MARK = "†"
_STATISTICS = ("tau", "tau_both", "spearman", "accuracy", "close", "partial", "alpha")
_COLUMNS = ["aspect", "level", "measure", "kind", "documents", "groups", "systems"]
for _statistic in _STATISTICS:
    _COLUMNS += [_statistic, f"{_statistic}_lo", f"{_statistic}_hi"]
_COLUMNS += ["best", "p", "p_holm", "note"]
_LEGEND = (
    "τ: Kendall's τ-b within documents; 95 %: its interval over documents; those of one text are drawn together. Given "
    "length: partial τ. Systems: τ-b of their means, with its interval over documents and systems. Pairs: share of pairs "
    "in people's order. Close: τ-b of the half of the pairs that a measure sets least apart. "
    f"{_MARK} fewer than {_FEWEST_SYSTEMS} systems a document."
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

    def select_rows(self, aspect: str, level: str = "within") -> pd.DataFrame:
        """Return the rows of an aspect that are shown, by measure."""
        table = self.table[self.table["aspect"] == aspect]
        table = table[table["level"] == level].set_index("measure")
        return table.loc[[name for name in (*self.shown, ANNOTATORS) if name in table.index]]

    def csv(self) -> str:
        """Return the table as CSV."""
        return format_csv(self.table, float_format="%.4f")

    def render(self) -> str:
        """Return a table for each aspect and its reading, for the terminal."""
        head = Block("", (*self.notes, _LEGEND), (), "", [])
        readings = Block("", tuple(map(self.interpretation, self.aspects)), (), "", [])
        blocks = [head, *map(self._block, self.aspects), readings]
        return terminal(f"Agreement with people: {self.name}", blocks)

    def interpretation(self, aspect: str) -> str:
        """Say in a sentence which metric follows an aspect, and whether this is more than length."""
        rows = self.select_rows(aspect)
        best = rows[rows["best"]]
        if best.empty:
            return f"{aspect}: τ is undefined for every metric."
        name, row = measure_heading(str(best.index[0])), best.iloc[0]
        tau, documents = row["tau"], int(row["groups"])
        if documents < _FEWEST_DOCUMENTS:
            return f"{aspect}: too few documents ({documents}) to say which metric follows it."
        if _is_clear(row, "tau"):
            verb = "follows it" if tau > 0 else "goes against it"
            also = "also" if _is_clear(row, "partial") else "but not clearly"
            text = f"{name} {verb} (τ {tau:.2f}), {also} given length"
        else:
            text = f"{name}, of the largest τ, is not shown to follow it: the interval includes 0"
        if ANNOTATORS in rows.index:
            text += f"; annotators reach {float(rows['tau'][ANNOTATORS]):.2f}"
        for control, row in rows[rows["kind"] == "control"].iterrows():
            if abs(row["tau"]) > abs(tau) and _is_clear(row, "tau"):
                text += f"; {measure_heading(str(control))} alone: {row['tau']:.2f}"
        return f"{aspect}: {text}."

    def _block(self, aspect: str) -> Block:
        rows, of_systems = self.select_rows(aspect), self.select_rows(aspect, "system")
        documents, systems = int(rows["documents"].max()), int(rows["systems"].max())
        ceiling = "one annotator: no ceiling"
        if ANNOTATORS in rows.index:
            ceiling = f"Krippendorff's α {rows['alpha'][ANNOTATORS]:.2f}"
        of_documents = format_examples(documents, int(rows["groups"].max()), "document")
        counts = f"τ of {of_documents}, {format_count(systems, 'system')}"
        is_clear = any(_is_clear(best, "tau") for _, best in rows[rows["best"]].iterrows())
        cells = []
        for (name, row), (_, means) in zip(rows.iterrows(), of_systems.iterrows(), strict=True):
            tau = _number(row["tau"]) + (_MARK if systems < _FEWEST_SYSTEMS else "")
            # no metric is marked if it is not clear that the best one follows people
            if is_clear and row["best"]:
                tau = Stressed(tau)
            elif is_clear and row["p_holm"] >= LEVEL:
                tau = Tied(tau)
            cells.append(
                [
                    measure_heading(str(name)),
                    tau,
                    _interval(row, "tau"),
                    _number(row["partial"]),
                    _number(means["tau"]),
                    _interval(means, "tau_both"),
                    _number(row["accuracy"]),
                    _number(row["close"]),
                ]
            )
        block = Block(
            heading=f"{aspect}: {counts}; {ceiling}",
            notes=(),
            columns=("", "τ", "95 %", "given\nlength", "systems", "95 % ", "pairs", "close"),
            align="lrlrrlrr",
            rows=cells,
            optional=("close", "pairs"),
            footnotes=tuple(filter(None, dict.fromkeys([*rows["note"], *of_systems["note"]]))),
        )
        return block.without_empty_columns()


def measure_heading(name: str) -> str:
    """Return the heading of a measure: "R-1 recall", "copied bigrams"."""
    kind, _, statistic = name.partition("_")
    return (
        ROUGE_HEADINGS[kind] + _STATISTIC_NAMES[statistic]
        if kind in ROUGE_HEADINGS
        else name.replace("_", " ")
    )


def _is_clear(row: "pd.Series[Any]", statistic: str) -> bool:
    """Return True if there are enough documents with texts of their own, and the interval is on the side of τ."""
    if row["groups"] < _FEWEST_DOCUMENTS:
        return False
    return bool(row[f"{statistic}_lo"] > 0 if row["tau"] > 0 else row[f"{statistic}_hi"] < 0)


def _number(value: float) -> str:
    return f"{value:z.2f}" if np.isfinite(value) else ""


def _interval(row: "pd.Series[Any]", statistic: str) -> str:
    low, high = row[f"{statistic}_lo"], row[f"{statistic}_hi"]
    return format_interval(low, high, ".2f") if np.isfinite(row[statistic]) else ""


# Begin to read here: the command calls it.
@public_function
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
    for name, value in typed.items():
        if name != "score" or not isinstance(value, dict):
            raise UsageError(f"agreement has no setting '{name}'; write score.NAME=VALUE")
    scoring = build_settings(Scoring, {**typed.get("score", {}), **settings}, "score.")
    path = Path(folder).expanduser()
    judged = read_judged(path, where, leave_out)
    measures = score_judged(judged, scoring)
    table = measure_agreement(judged, measures, scoring.resamples)
    return Agreement(
        path.resolve().name, table, tuple(measures.shown), (*judged.notes, *measures.notes)
    )


def measure_agreement(judged: JudgedOutputs, measures: Measures, resamples: int) -> pd.DataFrame:
    """Return one row per aspect, level and measure.

    Args:
        judged: what people judged.
        measures: the scores of the outputs.
        resamples: of each bootstrap.
    """
    groups = number_groups([example.source_group() for example in judged.examples.values()])
    tables = []
    for aspect, judgements in zip(judged.aspects, judged.judgements, strict=True):
        table = _measure_aspect(judgements, measures, groups, resamples)
        tables.append(table.assign(aspect=aspect))
    return pd.concat(tables, ignore_index=True).reindex(columns=_COLUMNS)


def _measure_aspect(
    judgements: Numbers, measures: Measures, groups: Groups, resamples: int
) -> pd.DataFrame:
    """Return the rows of an aspect with the judgements [annotators, documents, systems], and tests.

    `groups` are the numbers of the documents' texts.
    """
    # sums in another order differ in the last digit: equal means have to be ties
    people, length = np.round(average_first_axis(judgements), 12), measures.scores["words"]
    counts = draw_counts(resamples, people.shape[0], BOOTSTRAP_SEED, groups)
    num_judged = len(np.unique(groups[np.isfinite(people).any(axis=1)]))
    num_systems = int(np.isfinite(people).any(axis=0).sum())
    system_counts: Numbers | None = draw_counts(resamples, people.shape[1], BOOTSTRAP_SEED + 1)
    refusal = ""
    if num_systems < _FEWEST_SYSTEMS:
        system_counts = None
        refusal = f"No τ of systems: {num_systems} are fewer than {_FEWEST_SYSTEMS}."
    compared = {name: [(scores, people)] for name, scores in measures.scores.items()}
    kinds = dict.fromkeys(compared, "metric") | dict.fromkeys(CONTROLS, "control")
    if np.isfinite(judgements).sum(axis=0).max() > 1:
        # each annotator is compared with the mean of the others
        kinds[ANNOTATORS], compared[ANNOTATORS] = "ceiling", []
        for index, scores in enumerate(judgements):
            others = average_first_axis(np.delete(judgements, index, axis=0))
            compared[ANNOTATORS].append((scores, np.round(others, 12)))
    rows = []
    for name, pairs in compared.items():
        levels = _average_levels(pairs, length, counts, system_counts)
        if name == ANNOTATORS:
            levels["within"]["alpha"] = krippendorff_alpha(judgements, counts)
        defined_groups = groups[np.isfinite([tau_b(*pair) for pair in pairs]).any(axis=0)]
        num_groups = len(np.unique(defined_groups))
        for level, statistics in levels.items():
            row: dict[str, Any] = {"measure": name, "kind": kinds[name], "level": level}
            row |= {"documents": len(defined_groups), "groups": num_groups, "systems": num_systems}
            row["note"] = refusal if level == "system" else ""
            for statistic, draws in statistics.items():
                size = num_groups if level == "within" else num_judged
                low, high = percentile_interval(draws, None if statistic == "tau_both" else size)
                row |= {statistic: draws[0], f"{statistic}_lo": low, f"{statistic}_hi": high}
            if statistics and np.isnan(statistics["tau"][0]):
                constant = np.isnan(tau_b(people, people)).all()
                what = "judgements" if constant else f"scores of {name}"
                row["note"] = f"τ is undefined: the {what} are constant."
            rows.append(row)
    taus = {name: tau_b(measures.scores[name], people) for name in measures.shown}
    return _test_against_best(pd.DataFrame(rows), taus, groups)


def _average_levels(
    pairs: Sequence[tuple[Numbers, Numbers]],
    length: Numbers,
    counts: Numbers,
    system_counts: Numbers | None,
) -> dict[str, dict[str, Numbers]]:
    """Return level → statistic → [draws], the mean over pairs of scores; `system` is empty without their counts."""
    each: dict[str, list[dict[str, Numbers]]] = {"within": [], "system": [], "pooled": []}
    for scores, people in pairs:
        each["within"].append(rank_agreement(scores, people, length, counts))
        if system_counts is not None:
            each["system"].append(rank_agreement(scores, people, length, counts, system_counts))
        each["pooled"].append(pooled_agreement(scores, people))
    means: dict[str, dict[str, Numbers]] = {}
    for level, of_pairs in each.items():
        names = of_pairs[0] if of_pairs else ()
        means[level] = {
            name: average_first_axis(np.stack([statistics[name] for statistics in of_pairs]))
            for name in names
        }
    return means


def _test_against_best(
    table: pd.DataFrame, taus: Mapping[str, Numbers], groups: Groups
) -> pd.DataFrame:
    """Test the τ within documents of each shown measure against that of the metric of largest |τ|.

    This metric must apply to half as many documents as any other.
    """
    table = table.assign(best=False, p=np.nan, p_holm=np.nan)
    tested = table["measure"].isin(taus.keys()) & table["tau"].notna()
    rows = table[(table["level"] == "within") & tested]
    metrics = rows[~rows["measure"].isin(CONTROLS)]
    metrics = metrics[metrics["documents"] >= metrics["documents"].max() / 2]
    if len(metrics):
        best = metrics["tau"].abs().idxmax()
        others = rows.drop(best)
        gaps = [taus[name] - taus[rows["measure"][best]] for name in others["measure"]]
        sums = sum_groups(np.nan_to_num(np.stack(gaps, axis=1)), groups)
        p_values = approximate_randomization(sums)
        table.loc[best, "best"] = True
        table.loc[others.index, "p"] = p_values
        table.loc[others.index, "p_holm"] = holm(p_values)
    return table


def write_agreement(result: Agreement, folder: Path) -> list[Path]:
    """Write `agreement.csv`, `.png` and `.svg`; return their paths."""
    figure = agreement_figure(result)
    pictures = render_picture(figure.size, figure.draw)
    files = {f"agreement.{kind}": image for kind, image in pictures.items()}
    return write_pictures(folder, {"agreement.csv": result.csv(), **files})


def agreement_figure(result: Agreement) -> IntervalFigure:
    """Return τ within documents of each metric, with its 95 % interval, and levels of the annotators and the controls."""
    panels = []
    for aspect in result.aspects:
        rows, levels = [], {}
        for measure, number in result.select_rows(aspect).iterrows():
            heading = measure_heading(str(measure))
            if number["kind"] == "metric":
                estimate = Estimate(number["tau"], number["tau_lo"], number["tau_hi"])
                rows.append(IntervalRow(heading, estimate))
            elif measure in (ANNOTATORS, *CONTROLS) and number["tau"] == number["tau"]:
                levels[heading] = number["tau"]
        panels.append(IntervalPanel(aspect, rows, levels))
    return IntervalFigure(f"{result.name}: agreement with people, τ within documents", panels, "τ")

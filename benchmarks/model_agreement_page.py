"""Tables and sentences about metrics that need a model, from the committed figures of `benchmarks/model_agreement.py`.

python benchmarks/model_agreement_page.py --write     puts the tables into docs/concepts/metrics-with-models.md
python benchmarks/model_agreement_page.py --check     compares tables and sentences with the page
"""

import argparse
from collections.abc import Iterator
from typing import Any

import pandas as pd
from model_agreement import AGREEMENTS, BIASES, LONGER, SCORED, SWAPPED
from planted_faults import PUBLISHED_OF_MODELS
from probe_claims import Table
from readings import show_or_write

from longsumbench.formatting import format_interval
from longsumbench.views.outcomes import join_names

PAGE = "docs/concepts/metrics-with-models.md"
JUDGED = {  # set and aspect → what people judged
    ("koh2022/GovReport", "relevance"): "Relevance in reports",
    ("koh2022/arXiv", "relevance"): "Relevance in papers",
    ("koh2022/GovReport", "factual_consistency"): "Facts in reports",
    ("koh2022/arXiv", "factual_consistency"): "Facts in papers",
    ("longsciverify/arxiv", "factuality"): "Facts in papers of arXiv (LongSciVerify)",
    ("longsciverify/pubmed", "factuality"): "Facts in papers of PubMed (LongSciVerify)",
    ("kirstein_qmsum", "number of errors (of 8)"): "Errors in meetings",
    ("squality/bart; bart-dpr", "coverage"): "Coverage in stories (two models)",
    ("squality/bart; bart-dpr", "correctness"): "Correctness in stories (two models)",
    ("summeval_op", "relevance"): "Relevance in reviews",
    ("summeval_op", "faithfulness"): "Faithfulness in reviews",
}
MEASURES = {  # of a model → heading; of the CSV without one → heading
    "bertscore_f": "BERTScore",
    "cosine_reference": "cosine with the reference",
    "cosine_source": "cosine with the source",
    "judge_recall": "judged recall",
    "judge_precision": "judged precision",
    "judge_fluency": "judged fluency",
    "support": "support",
}
WITHOUT_MODEL = {"rouge1_f": "R-1", "rouge2_f": "R-2", "rougeL_f": "R-L"}
WORDS, PEOPLE = "words", "annotators"
SEEN = 0.6  # AUC


def heading_of(measure: str) -> str | None:
    """Return what the page calls a measure ("support, Qwen"); None if it is not shown."""
    model, _, name = measure.rpartition(": ")
    if not model:
        return WITHOUT_MODEL.get(name)
    return f"{MEASURES[name]}, {model}" if name in MEASURES else None


def is_clear(row: Any, statistic: str, sign: int) -> bool:
    """Return whether an interval is on one side of 0: 1 above, −1 below."""
    low, high = row[f"{statistic}_lo"], row[f"{statistic}_hi"]
    return bool(low > 0 if sign > 0 else high < 0)


def right_sign(aspect: str) -> int:
    """Return the sign of τ if a measure follows people; errors are counted."""
    return -1 if "error" in aspect else 1


def agreement_table(rows: pd.DataFrame) -> Table:
    """Return τ of each measure, a column for each set and aspect that is shown."""
    lines = []
    for measure in rows["measure"].drop_duplicates():
        heading = {WORDS: "words", PEOPLE: "people"}.get(measure) or heading_of(measure)
        if heading is None:
            continue
        cells = [heading]
        for judged, aspect in JUDGED:
            found = select(rows, judged, aspect)
            cells.append("")
            if measure in found.index and pd.notna(found.loc[measure, "tau"]):
                row = found.loc[measure]
                shown = f"{row['tau']:z.2f}".replace("-", "−")
                clear = is_clear(row, "tau", 1) or is_clear(row, "tau", -1)
                cells[-1] = f"**{shown}**" if clear else shown
        lines.append(tuple(cells))
    return Table(PAGE, ("τ with people", *JUDGED.values()), lines)


def select(rows: pd.DataFrame, judged: str, aspect: str) -> pd.DataFrame:
    """Return the rows of a set and an aspect by measure."""
    return rows[(rows["set"] == judged) & (rows["aspect"] == aspect)].set_index("measure")


def describe_agreement(rows: pd.DataFrame, judged: str, aspect: str) -> str:
    """Say which measures agree with people on an aspect, in which order, and which of them beyond length."""
    sign = right_sign(aspect)
    follows: dict[str, float] = {}
    beyond: list[str] = []
    against: list[str] = []
    for measure, row in select(rows, judged, aspect).iterrows():
        heading = heading_of(str(measure))
        if heading is None:
            continue
        if is_clear(row, "tau", sign) and is_clear(row, "partial", sign):
            follows[heading] = sign * row["tau"]
            if row["beyond_words_lo"] > 0:
                beyond.append(heading)
        elif is_clear(row, "tau", -sign):
            against.append(heading)
    ranked = sorted(follows, key=lambda name: -follows[name])
    text = f"{JUDGED[judged, aspect]}: "
    if ranked:
        text += f"these agree with people, also given length, the closest first: {join_names(ranked, '; ')}"
        closer = [name for name in ranked if name in beyond]
        more = join_names(closer, "; ") if closer else "none"
        text += f". Shown to agree more than the number of words: {more}"
    else:
        text += "none is shown to agree with people"
    if against:
        text += f". Reversed: {join_names(against, '; ')}"
    return f"{text}."


def faults_table(rows: pd.DataFrame) -> Table:
    """Return the AUC of the metrics that read the source, a line for each fault and corpus."""
    metrics = [*rows["metric"].drop_duplicates()]
    lines = []
    for (fault, corpus), found in rows.groupby(["fault", "corpus"]):
        areas = found.set_index("metric")["auc"].reindex(metrics)
        values = [f"**{area:.2f}**" if is_seen(area) else f"{area:.2f}" for area in areas]
        lines.append((str(fault), f"`{corpus}`", str(found["n"].max()), *values))
    headings = [str(heading_of(metric)) for metric in metrics]
    return Table(PAGE, ("fault", "corpus", "n", *headings), lines)


def is_seen(area: float) -> bool:
    """Return whether an AUC, as it is shown, is that of a metric that sees a fault."""
    return round(area, 2) >= SEEN


def describe_faults(rows: pd.DataFrame) -> Iterator[str]:
    """Say of each kind of fault which metrics see it in all corpora."""
    for fault, found in rows.groupby("fault"):
        smallest = found.groupby("metric", sort=False)["auc"].min()
        seen = [str(heading_of(str(metric))) for metric, area in smallest.items() if is_seen(area)]
        by = join_names(seen, "; ") if seen else f"none (at most {found['auc'].max():.2f})"
        corpora = join_names([*found["corpus"].drop_duplicates()])
        yield f"A planted {fault} is seen in each corpus ({corpora}) by: {by}."


def describe_biases(rows: pd.DataFrame) -> Iterator[str]:
    """Say of each language model whether its verdicts tell texts apart, and what moves them."""
    for model in dict.fromkeys(name.partition(": ")[0] for name in rows["measure"]):
        of_model = rows[rows["measure"].str.startswith(f"{model}: ")]
        margins = of_model[of_model["measure"].str.endswith("judge_margin")]
        if margins.empty:
            continue
        blind = [str(row["set"]) for _, row in margins.iterrows() if not row["lo"] > 0]
        told = len(margins) - len(blind)
        yield (
            f"{model} says that a reference states its own sentences more probably than those of another document in"
            f" {told} of {len(margins)} sets{f'; not shown in {join_names(blind)}' if blind else ''}."
        )
        seconds = of_model[of_model["measure"].str.endswith(": seconds")]["value"]
        if len(seconds):
            yield f"{model} takes {seconds.min():.0f} to {seconds.max():.0f} s a summary, by the set."
        for kind, what in (
            (LONGER, "a harmless sentence is added to the summary"),
            (SWAPPED, 'the question says "no or yes"'),
        ):
            changes = of_model[of_model["kind"] == f"change, {kind}"]
            moved = []
            for _, row in changes.iterrows():
                name = str(row["measure"]).partition(": ")[2]
                if name in MEASURES and (row["lo"] > 0 or row["hi"] < 0):
                    interval = format_interval(row["lo"], row["hi"], "+.3f")
                    moved.append(f"{MEASURES[name]} {row['value']:+.3f} ({interval})")
            if len(changes):
                moved_names = join_names(moved, "; ") or "nothing is shown to change"
                yield f"{model}, if {what}: {moved_names}."


def describe_pairs(rows: pd.DataFrame) -> Iterator[str]:
    """Say of each two language models in how many sets a verdict of both is shown to order summaries alike."""
    between = rows[rows["kind"].str.startswith("tau with ") & (rows["kind"] != "tau with words")]
    first = between["measure"].str.partition(": ")[0]
    for (model, kind), of_pair in between.groupby([first, "kind"], sort=False):
        counts = []
        for measure, of_measure in of_pair.groupby("measure", sort=False):
            num_alike = int((of_measure["lo"] > 0).sum())
            heading = MEASURES[str(measure).partition(": ")[2]]
            counts.append(f"{heading} in {num_alike} of {len(of_measure)} sets")
        second = str(kind).removeprefix("tau with ")
        yield f"{model} and {second} are shown to order summaries alike by {join_names(counts)}."


def biases_table(rows: pd.DataFrame) -> Table:
    """Return τ of each measure with the number of words, a column a set."""
    rows = rows[rows["kind"] == "tau with words"]
    sets = [*rows["set"].drop_duplicates()]
    lines = []
    for measure, found in rows.groupby("measure", sort=False):
        if heading := heading_of(str(measure)):
            of_sets = found.set_index("set")
            cells = []
            for name in sets:
                cells.append("")
                if name in of_sets.index and pd.notna(of_sets.loc[name, "value"]):
                    row = of_sets.loc[name]
                    shown = f"{row['value']:z.2f}".replace("-", "−")
                    cells[-1] = f"**{shown}**" if row["lo"] > 0 or row["hi"] < 0 else shown
            lines.append((heading, *cells))
    return Table(PAGE, ("τ with the number of words", *sets), lines)


def main() -> None:
    """Print tables and sentences, put them into the page, or compare them with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    agreements, biases = pd.read_csv(AGREEMENTS), pd.read_csv(BIASES)
    faults = pd.read_csv(PUBLISHED_OF_MODELS)
    once = biases[~biases["set"].isin(SCORED)]  # outputs that are in two sets count once
    sentences = [describe_agreement(agreements, *judged) for judged in JUDGED]
    sentences += [*describe_biases(once), *describe_pairs(once), *describe_faults(faults)]
    tables = [agreement_table(agreements), biases_table(biases), faults_table(faults)]
    show_or_write(PAGE, tables, sentences, parser.parse_args())


if __name__ == "__main__":
    main()

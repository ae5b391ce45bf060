"""Which metrics see faults that are planted in reference summaries of real corpora.

python benchmarks/planted_faults.py ../shared/data [--corpora elife] [--examples 150]

Each fault is a single one in a reference: a number, a name or a date replaced by one of another reference, a negation
added or removed, or a sentence replaced by one of another reference. `auc` is the probability that a reference without
fault scores higher than one with a fault, `paired` that it scores higher than the same reference with a fault; ties
count half. Metrics do not see other references; ROUGE is that against the source. Writes all corpora into
results/reference/agreement/planted_faults.csv (no texts), in half a minute of one core.
"""

import argparse
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pandas as pd
from scipy.stats import rankdata
from tabulate import tabulate

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import DatasetSettings, Example, Metric, Scoring, registry
from longsumbench.corpora.loading.load import load_texts
from longsumbench.files import write_atomically
from longsumbench.metrics.evaluate import DEFAULT_METRICS
from longsumbench.metrics.names_and_numbers import names_in
from longsumbench.progress import track

PUBLISHED = Path(__file__).parents[1] / "results" / "reference" / "agreement" / "planted_faults.csv"
CORPORA = ("elife", "qmsum", "wiki_sections")
EXAMPLES, NUM_OTHERS = 150, 20
FEWEST = 10  # references with a fault of a kind; fewer are left out
METRICS = (*DEFAULT_METRICS, "extractive", "novel_ngrams", "length_ratio")
SHOWN = (
    *(
        "entity_precision",
        "number_precision",
        "copied_bigrams",
        "copied_longest",
        "extractive_coverage",
    ),
    *("extractive_density", "novel_ngrams_1", "length_summary"),
)
FROM_SOURCE = ("rouge1_p", "rouge1_r", "rouge2_p", "rouge2_r", "rougeL_p", "rougeL_r")
FALLS = {"novel_ngrams_1"}  # a faithful summary has less of it

NUMBER = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*(?![\w-])")
YEAR = re.compile(r"(?<![\w.,])(?:1[5-9]|20)\d\d(?![\w.,]\d)")
MONTHS = "January February March April May June July August September October November December"
MONTH = re.compile(rf"(?<=[\w,] )(?:{MONTHS.replace(' ', '|')})\b")
NOT = re.compile(r"\b(?:not|n't) ")
VERB = re.compile(
    r"\b(?:is|are|was|were|can|could|will|would|should|has|have|had|did|does|do) (?!not\b)"
)

Texts = Sequence[str]  # the sentences of a reference


def swap(
    text: str, spans: Sequence[tuple[int, int]], others: Iterable[str], draw: random.Random
) -> str | None:
    """Replace a random span by one of the other texts that is not in the text; None if there is none."""
    choices = sorted({other for other in others if other not in text})
    if not spans or not choices:
        return None
    start, end = draw.choice(spans)
    return text[:start] + draw.choice(choices) + text[end:]


def spans_of(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """Return the places of a pattern."""
    return [match.span() for match in pattern.finditer(text)]


def swap_number(text: str, others: str, draw: random.Random) -> str | None:
    """Replace a number, which is no year."""
    years = spans_of(YEAR, text)
    return swap(
        text,
        [span for span in spans_of(NUMBER, text) if span not in years],
        NUMBER.findall(others),
        draw,
    )


def swap_name(text: str, others: str, draw: random.Random) -> str | None:
    """Replace a name."""
    patterns = [re.compile(rf"\b{re.escape(name)}\b") for name in dict.fromkeys(names_in(text, ""))]
    return swap(
        text,
        [span for name in patterns for span in spans_of(name, text)],
        names_in(others, ""),
        draw,
    )


def swap_date(text: str, others: str, draw: random.Random) -> str | None:
    """Replace a year or a month by another."""
    if years := spans_of(YEAR, text):
        return swap(text, years, YEAR.findall(others), draw)
    return swap(text, spans_of(MONTH, text), MONTHS.split(), draw)


def negate(text: str, others: str, draw: random.Random) -> str | None:
    """Remove a "not", or add one after a verb."""
    if negations := spans_of(NOT, text):
        start, end = draw.choice(negations)
        return text[:start] + text[end:]
    if verbs := spans_of(VERB, text):
        _, end = draw.choice(verbs)
        return f"{text[:end]}not {text[end:]}"
    return None


def swap_sentence(text: str, others: str, draw: random.Random) -> str | None:
    """Replace a sentence of several."""
    sentences = text.split("\n")
    if len(sentences) < 2:
        return None
    sentences[draw.randrange(len(sentences))] = draw.choice(others.split("\n"))
    return "\n".join(sentences)


Fault = Callable[[str, str, random.Random], str | None]
FAULTS: Mapping[str, Fault] = {
    "number": swap_number,
    "name": swap_name,
    "date": swap_date,
    "negation": negate,
    "sentence": swap_sentence,
}


def area(clean: Sequence[float], faulty: Sequence[float]) -> float:
    """Return the probability that a clean text scores higher than a faulty one; ties count half."""
    ranks = rankdata([*clean, *faulty])[: len(clean)]
    return float((ranks.sum() - len(clean) * (len(clean) + 1) / 2) / (len(clean) * len(faulty)))


def scores_of(text: str, example: Example, metrics: Sequence[Metric]) -> dict[str, float]:
    """Score a text by the metrics, of which ROUGE is computed against the source."""
    source = replace(example, references=(tuple(example.sentences()),))
    scores: dict[str, float] = {}
    for metric in metrics:
        scores |= metric.score(text, source if metric.name == "rouge" else example)
    return {
        name: -scores[name] if name in FALLS else scores[name] for name in (*SHOWN, *FROM_SOURCE)
    }


def table_of(corpus: str, data: Path, num_examples: int) -> pd.DataFrame:
    """Return a row per fault and metric; faults come from the references of the next examples with other sources."""
    texts = load_texts(DatasetSettings(corpus, str(data / corpus)), user_cache())
    examples = list(islice(texts.splits["test"], num_examples))
    metrics = [registry.metrics.load(name)(Scoring()) for name in ("rouge", *METRICS)]
    references = ["\n".join(example.references[0]) for example in examples]
    rows = []
    for place, (text, example) in enumerate(
        zip(track(references, corpus, len(examples)), examples, strict=True)
    ):
        followers = [
            *range(place + 1, len(examples)),
            *range(place),
        ]  # several questions have the same source
        strangers = (
            references[row] for row in followers if examples[row].documents != example.documents
        )
        others = "\n".join(islice(strangers, NUM_OTHERS))
        clean = scores_of(text, example, metrics)
        for kind, fault in FAULTS.items():
            draw = random.Random(f"{kind} {example.id}")  # noqa: S311 - no secret
            if (faulty := fault(text, others, draw)) not in (None, text):
                rows += [
                    {"fault": kind, "metric": name, "clean": clean[name], "faulty": score}
                    for name, score in scores_of(str(faulty), example, metrics).items()
                ]
    pairs = pd.DataFrame(rows).dropna()
    groups = pairs.groupby(["fault", "metric"], sort=False)
    areas = pd.Series(
        {name: area(group["clean"].tolist(), group["faulty"].tolist()) for name, group in groups}
    )
    areas = areas.rename_axis(["fault", "metric"])
    higher = (pairs["clean"] > pairs["faulty"]) + (pairs["clean"] == pairs["faulty"]) / 2
    paired = higher.groupby([pairs["fault"], pairs["metric"]], sort=False).mean()
    table = pd.DataFrame({"n": groups.size(), "auc": areas, "paired": paired}).reset_index()
    table.insert(0, "corpus", corpus)
    return table[table["n"] >= FEWEST]


def main() -> None:
    """Print the table of each corpus; write it, if all are measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--corpora", nargs="*", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--examples", type=int, default=EXAMPLES)
    options = parser.parse_args()
    tables = []
    for corpus in options.corpora:
        tables.append(table := table_of(corpus, options.data, options.examples))
        for statistic in ("auc", "paired"):
            shown = table.pivot_table(index="metric", columns="fault", values=statistic, sort=False)
            headers = [f"{corpus}, {statistic}", *map(str, shown.columns)]
            print(
                tabulate(shown.reset_index().to_numpy().tolist(), headers=headers, floatfmt=".2f"),
                end="\n\n",
            )
    if options.corpora == list(CORPORA) and options.examples == EXAMPLES:
        write_atomically(
            PUBLISHED,
            pd.concat(tables).to_csv(index=False, lineterminator="\n", float_format="%.4f"),
        )
        print(PUBLISHED)


if __name__ == "__main__":
    main()

"""Which metrics see faults that are planted in reference summaries of real corpora.

python benchmarks/planted_faults.py ../shared/data [--corpora elife] [--examples 150]
python benchmarks/planted_faults.py ../shared/data --encoder NAME=FOLDER --language-model NAME=FILE.gguf

Each fault is a single one in a reference: a number, a name or a date replaced by one of another reference, a negation
added or removed, or a sentence replaced by one of another reference. `auc` is the probability that a reference without
fault scores higher than one with a fault, `paired` that it scores higher than the same reference with a fault; ties
count half. Metrics do not see other references; ROUGE is that against the source. Writes all corpora into
results/reference/agreement/planted_faults.csv (no texts), in half a minute of one core. Of models, the cosine with the
source and `support` are measured in the first EXAMPLES_OF_MODELS references, and written to planted_faults_of_models.csv.
"""

import argparse
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from model_agreement import Cosines, Scorer, language_model_metrics
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
PUBLISHED_OF_MODELS = PUBLISHED.with_name("planted_faults_of_models.csv")
EXAMPLES, NUM_OTHERS = 150, 20
EXAMPLES_OF_MODELS = 40  # the first of them; a language model reads a passage for each sentence
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


class Planted(NamedTuple):
    """A reference without a fault, and with one of each kind that could be planted."""

    example: Example
    clean: str
    faulty: Mapping[str, str]


def plant(corpus: str, data: Path, num_examples: int) -> list[Planted]:
    """Plant faults, which come from the references of the next examples with other sources."""
    texts = load_texts(DatasetSettings(corpus, str(data / corpus)), user_cache())
    examples = list(islice(texts.splits["test"], num_examples))
    references = ["\n".join(example.references[0]) for example in examples]
    planted = []
    for place, (text, example) in enumerate(zip(references, examples, strict=True)):
        followers = [*range(place + 1, len(examples)), *range(place)]
        # several questions have the same source
        strangers = (
            references[row] for row in followers if examples[row].documents != example.documents
        )
        others = "\n".join(islice(strangers, NUM_OTHERS))
        faulty = {}
        for kind, fault in FAULTS.items():
            draw = random.Random(f"{kind} {example.id}")  # noqa: S311 - no secret
            if (changed := fault(text, others, draw)) not in (None, text):
                faulty[kind] = str(changed)
        planted.append(Planted(example, text, faulty))
    return planted


def scores_without_model(text: str, example: Example) -> dict[str, float]:
    """Score a text by the metrics that need no model, of which ROUGE is computed against the source."""
    source = replace(example, references=(tuple(example.sentences()),))
    scores: dict[str, float] = {}
    for name in ("rouge", *METRICS):
        scores |= loaded_metric(name).score(text, source if name == "rouge" else example)
    return {
        name: -scores[name] if name in FALLS else scores[name] for name in (*SHOWN, *FROM_SOURCE)
    }


@cache
def loaded_metric(name: str) -> Metric:
    """Return a metric with its usual settings."""
    metric: Metric = registry.metrics.load(name)(Scoring())
    return metric


def table_of(corpus: str, planted: Sequence[Planted], score: Scorer) -> pd.DataFrame:
    """Return a row per fault and metric."""
    rows = []
    for example, text, faulty in track(planted, corpus, len(planted)):
        clean = score(text, example)
        for kind, changed in faulty.items():
            scores = score(changed, example)
            rows += [
                {"fault": kind, "metric": name, "clean": clean[name], "faulty": scores[name]}
                for name in scores
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


def table_of_models(corpus: str, planted: Sequence[Planted], options: Any) -> pd.DataFrame:
    """Return the rows of the metrics that compare a text with its source by a model."""
    tables = []
    if options.encoder:
        name, _, folder = options.encoder.partition("=")
        cosines = Cosines(folder)

        def similarity(text: str, example: Example) -> dict[str, float]:
            return {f"{name}: cosine_source": cosines.score(text, example)["cosine_source"]}

        tables.append(table_of(corpus, planted, similarity))
    if options.language_model:
        name, _, file = options.language_model.partition("=")
        _, support = language_model_metrics(file)
        texts = [
            (text, each.example) for each in planted for text in (each.clean, *each.faulty.values())
        ]
        support.prepare(texts)

        def supported(text: str, example: Example) -> dict[str, float]:
            return {f"{name}: support": support.score(text, example)["support"]}

        tables.append(table_of(corpus, planted, supported))
    return pd.concat(tables)


def main() -> None:
    """Print the table of each corpus; write it, if all are measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--corpora", nargs="*", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--examples", type=int, default=EXAMPLES)
    parser.add_argument("--encoder", metavar="NAME=FOLDER")
    parser.add_argument("--language-model", metavar="NAME=FILE")
    options = parser.parse_args()
    of_models = bool(options.encoder or options.language_model)
    tables = []
    for corpus in options.corpora:
        if of_models:
            planted = plant(corpus, options.data, EXAMPLES)[:EXAMPLES_OF_MODELS]
            table = table_of_models(corpus, planted, options)
        else:
            planted = plant(corpus, options.data, options.examples)
            table = table_of(corpus, planted, scores_without_model)
        tables.append(table)
        for statistic in ("auc", "paired"):
            shown = table.pivot_table(index="metric", columns="fault", values=statistic, sort=False)
            headers = [f"{corpus}, {statistic}", *map(str, shown.columns)]
            print(
                tabulate(shown.reset_index().to_numpy().tolist(), headers=headers, floatfmt=".2f"),
                end="\n\n",
            )
    if options.corpora != list(CORPORA) or options.examples != EXAMPLES:
        return
    path, measured = PUBLISHED, pd.concat(tables)
    if of_models:
        path = PUBLISHED_OF_MODELS
        published = pd.read_csv(path) if path.exists() else measured[:0]
        of_others = published[~published["metric"].isin(measured["metric"])]
        measured = pd.concat([of_others, measured])
    write_atomically(path, measured.to_csv(index=False, lineterminator="\n", float_format="%.4f"))
    print(path)


if __name__ == "__main__":
    main()

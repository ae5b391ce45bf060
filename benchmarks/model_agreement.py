"""Measures how far an encoder and small language models agree with people on released judgements, without texts.

    python benchmarks/model_agreement.py ../shared/data/judged --encoder NAME=FOLDER
    python benchmarks/model_agreement.py ../shared/data/judged --language-model NAME=FILE.gguf
    python benchmarks/model_agreement.py ../shared/data/judged --tables

The first two add scores to results/reference/agreement/models/NAME.csv; run them again to continue. The last one computes
model_agreement.csv and model_biases.csv beside that folder; with --check it compares them. `benchmarks/agreement.py`
describes the judgements.

What was fixed before the first run:

* Texts: all sets of `benchmarks/agreement.py`, but only the first question about each story, so 20 of 100.
* Encoder: BERTScore with the fifth of six layers, the library's choice for DistilBERT, which has six, too; the cosine of
  the sums of the sentence vectors of summary and reference (of several, the best one); and the mean over a summary's
  sentences of the largest cosine with a sentence of the source.
* Language models: `judge` and `support` by probabilities, in bfloat16.
* Measures: τ within documents with its interval over texts, and given length. It is *clear* if the interval does not
  contain 0. Nothing is corrected for the number of rows. How far τ is above that of the number of words was added after
  the encoder's scores, and before those of language models.
* Biases: τ within documents of a measure with the number of words; and in the first two documents of each set, the change
  of a measure if a harmless sentence is added to the summary, and if the question has "no or yes".
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from agreement import PUBLISHED, SETS, judged_folder

from longsumbench.core import Example, Metric, Scoring, registry
from longsumbench.files import write_atomically
from longsumbench.metrics.judge_model import prompts
from longsumbench.metrics.rank_statistics import (
    average_first_axis,
    draw_counts,
    percentile_interval,
    rank_agreement,
)
from longsumbench.modeling.embeddings import SentenceEncoder
from longsumbench.outputs.agreement import measure_agreement
from longsumbench.outputs.judgements import JudgedOutputs, Measures, read_judged, score_judged
from longsumbench.progress import track
from longsumbench.sentences import split_summary

SCORES = PUBLISHED.with_name("models")
AGREEMENTS, BIASES = (
    PUBLISHED.with_name(name) for name in ("model_agreement.csv", "model_biases.csv")
)
# Two sets have the same outputs, of which the second one leaves some out
SCORED = {"squality/bart; bart-dpr": "squality/3 systems"}
KEYS = ["variant", "set", "id", "system"]
PLAIN, LONGER, SWAPPED = "plain", "longer", "swapped"
BIAS_DOCUMENTS, CHUNK = 2, 5
LAYER, RESAMPLES = 5, 1_000
HARMLESS = "More about this can be read in the full text."
RANKED = ["rouge1_f", "rouge2_f", "rougeL_f", "words"]

Scorer = Callable[[str, Example], Mapping[str, float]]


def read_set(name: str, judged: Path) -> JudgedOutputs:
    """Read a set of judgements, with one document of each source."""
    _, where, leave_out = SETS[name]
    with tempfile.TemporaryDirectory() as copies:
        outputs = read_judged(judged_folder(name, judged, Path(copies)), where, leave_out)
    first = {example.source_group(): key for key, example in reversed([*outputs.examples.items()])}
    is_first = [key in first.values() for key in outputs.examples]
    examples = {key: outputs.examples[key] for key in outputs.examples if key in first.values()}
    texts = outputs.outputs[outputs.outputs.index.get_level_values("id").isin(examples)]
    return outputs._replace(
        examples=examples, outputs=texts, judgements=outputs.judgements[:, :, is_first]
    )


class Cosines:
    """Cosines of a sentence encoder."""

    def __init__(self, folder: str) -> None:
        self.encoder = SentenceEncoder(folder, "--encoder", "cpu")

    def score(self, text: str, example: Example) -> dict[str, float]:
        """Return how similar a summary is to the reference, and its sentences to the source."""
        vectors = self.encoder(split_summary(text))
        total = vectors.sum(axis=0)
        scores = {}
        cosines = []
        for reference in example.references:
            of_reference = self.encoder(reference).sum(axis=0)
            length = np.linalg.norm(total) * np.linalg.norm(of_reference)
            cosines.append(total @ of_reference / length)
        scores["cosine_reference"] = max(cosines)
        if source := [sentence for sentence in example.sentences() if sentence.strip()]:
            scores["cosine_source"] = (vectors @ self.encoder(source).T).max(axis=1).mean()
        return scores


def encoder_metrics(folder: str) -> list[Any]:
    """Return what an encoder measures."""
    scoring = Scoring(bertscore_model=folder, bertscore_layer=LAYER, device="cpu")
    return [registry.metrics.load("bertscore")(scoring), Cosines(folder)]


def language_model_metrics(file: str) -> list[Any]:
    """Return what a language model measures."""
    scoring = Scoring(
        device="cpu",
        judge_models=[file],
        judge_form="probabilities",
        judge_settings={"dtype": "bfloat16"},
        support_model=file,
        support_by="language_model",
    )
    return [registry.metrics.load(name)(scoring) for name in ("judge", "support")]


def chunks_of(judged: JudgedOutputs, variant: str) -> Iterator[list[str]]:
    """Yield the documents that are scored together; a judge compares each with another one of them."""
    names = list(judged.examples)
    if variant != PLAIN:
        names = names[:BIAS_DOCUMENTS]
    for part in np.array_split(np.array(names, dtype=object), max(1, len(names) // CHUNK)):
        yield part.tolist()


def score_chunk(
    judged: JudgedOutputs, names: Sequence[str], metrics: Sequence[Any], ending: str
) -> list[dict[str, Any]]:
    """Return a row for each output of some documents."""
    pairs = [pair for pair in judged.outputs.index if pair[0] in names]
    items = [(judged.outputs[pair] + ending, judged.examples[pair[0]]) for pair in pairs]
    begun = time.monotonic()
    for metric in metrics:
        if isinstance(metric, Metric):
            metric.prepare(items)
    rows: list[dict[str, Any]] = []
    for (key, system), (text, example) in zip(pairs, items, strict=True):
        row = {"id": key, "system": system}
        for metric in metrics:
            if not getattr(metric, "needs_source", False) or example.documents:
                row |= metric.score(text, example)
        rows.append(row)
    seconds = (time.monotonic() - begun) / max(1, len(rows))
    return [{**row, "seconds": seconds} for row in rows]


def measure(path: Path, judged: Path, variant: str, metrics: Sequence[Any]) -> None:
    """Add the scores that are not in a file to it."""
    ending = f" {HARMLESS}" if variant == LONGER else ""
    for name in [name for name in SETS if name not in SCORED]:
        outputs = read_set(name, judged)
        chunks = [*chunks_of(outputs, variant)]
        for names in track(chunks, f"{name}, {variant}", len(chunks), "parts"):
            table = read_scores(path).query("variant == @variant and set == @name")
            if table["id"].isin(names).any():
                continue
            rows = score_chunk(outputs, names, metrics, ending)
            new = pd.DataFrame(rows).assign(variant=variant, set=name)
            table = pd.concat([read_scores(path), new], ignore_index=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, to_csv(table[[*KEYS, *table.columns.drop(KEYS)]]))


def read_scores(path: Path) -> pd.DataFrame:
    """Read what was scored so far."""
    return pd.read_csv(path, dtype={"id": str}) if path.exists() else pd.DataFrame(columns=KEYS)


def to_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV."""
    return table.to_csv(index=False, lineterminator="\n", float_format="%.4f")


class Scored(NamedTuple):
    """A set, with what is compared with people, and all scores of the models: "MODEL: measure" → [documents, systems]."""

    judged: JudgedOutputs
    measures: Measures
    of_models: Mapping[str, Any]

    @property
    def counts(self) -> Any:
        """How often each document is drawn, [draws, documents]."""
        return draw_counts(RESAMPLES, len(self.judged.examples), 0)


def load_set(name: str, judged: Path, tables: Mapping[str, pd.DataFrame]) -> Scored:
    """Return a set with all scores."""
    outputs = read_set(name, judged)
    pairs = pd.MultiIndex.from_product([outputs.examples, outputs.systems])
    shape = len(outputs.examples), len(outputs.systems)
    of_models = {}
    for model, table in tables.items():
        rows = table[(table["variant"] == PLAIN) & (table["set"] == SCORED.get(name, name))]
        if set(outputs.examples) - set(rows["id"]):
            continue  # not finished, so not comparable
        rows = rows.set_index(["id", "system"]).drop(columns=KEYS[:2]).reindex(pairs)
        for measure_name, values in rows.dropna(axis="columns", how="all").items():
            of_models[f"{model}: {measure_name}"] = values.to_numpy(np.float64).reshape(shape)
    scores = score_judged(outputs, Scoring()).scores
    ranked = {key: scores[key] for key in RANKED}
    ranked |= {key: values for key, values in of_models.items() if is_verdict(key)}
    return Scored(outputs, Measures(ranked, [*ranked], ()), of_models)


def is_verdict(measure_name: str) -> bool:
    """Return whether a measure orders the summaries of a document."""
    return not measure_name.endswith(("seconds", "judge_missing", "judge_margin"))


def agreement_of(name: str, scored: Scored) -> pd.DataFrame:
    """Return the agreement of all measures with people in a set, and how far it is above that of the number of words."""
    table = measure_agreement(scored.judged, scored.measures, RESAMPLES)
    columns = ["aspect", "level", "measure", "documents", "systems"]
    for statistic in ("tau", "partial"):
        columns += [statistic, f"{statistic}_lo", f"{statistic}_hi"]
    table = table.loc[table["level"] == "within", columns].set_index(["aspect", "measure"])
    words = scored.measures.scores["words"]
    for aspect, judgements in zip(scored.judged.aspects, scored.judged.judgements, strict=True):
        people = np.round(average_first_axis(judgements), 12)
        of_words = rank_agreement(words, people, words, scored.counts)["tau"]
        for measure_name, values in scored.measures.scores.items():
            tau = rank_agreement(values, people, words, scored.counts)["tau"]
            # errors are counted, so a measure is right if it goes against them
            more = (of_words - tau) if "error" in aspect else (tau - of_words)
            limits = percentile_interval(more, len(people))
            for ending, value in zip(("", "_lo", "_hi"), (more[0], *limits), strict=True):
                table.loc[(aspect, measure_name), f"beyond_words{ending}"] = value
    return table.reset_index().assign(set=name)


def biases_of(name: str, scored: Scored) -> Iterator[dict[str, Any]]:
    """Yield what is known of each measure in a set without people."""
    counts, words = scored.counts, scored.measures.scores["words"]
    for measure_name, values in scored.of_models.items():
        of_documents = average_first_axis(values.T)
        is_scored = np.isfinite(of_documents)
        means = counts @ np.nan_to_num(of_documents) / (counts @ is_scored)
        yield interval_row(name, measure_name, "mean", means, int(is_scored.sum()))
        if is_verdict(measure_name):
            tau = rank_agreement(values, words, words, counts)["tau"]
            yield interval_row(name, measure_name, "tau with words", tau, len(values))
    for first, second in combinations(filter(is_verdict, scored.of_models), 2):
        if first.partition(": ")[2] == second.partition(": ")[2]:
            both = scored.of_models[first], scored.of_models[second]
            tau = rank_agreement(*both, words, counts)["tau"]
            model = second.partition(":")[0]
            yield interval_row(name, first, f"tau with {model}", tau, len(both[0]))


def interval_row(name: str, measure_name: str, kind: str, draws: Any, size: int) -> dict[str, Any]:
    """Return a row of a figure with its interval over documents."""
    low, high = percentile_interval(draws, size)
    row = {"set": name, "measure": measure_name, "kind": kind}
    return row | {"value": draws[0], "lo": low, "hi": high, "documents": size}


def changes_of(model: str, table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield how a model's measures change with each variant, over the documents of all sets."""
    of_variants = {variant: rows.set_index(KEYS[1:]) for variant, rows in table.groupby("variant")}
    for variant in (LONGER, SWAPPED):
        if variant not in of_variants:
            continue
        measures = of_variants[variant].columns.drop("variant")
        changes = of_variants[variant][measures] - of_variants[PLAIN][measures]
        of_documents = changes.groupby(["set", "id"]).mean()
        for measure_name, values in of_documents.items():
            scored = values.dropna()
            if is_verdict(str(measure_name)) and len(scored):
                counts = draw_counts(RESAMPLES, len(scored), 0)
                draws = counts @ scored.to_numpy() / len(scored)
                yield interval_row(
                    "all", f"{model}: {measure_name}", f"change, {variant}", draws, len(scored)
                )


def main() -> None:
    """Score the outputs, or make the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("judged", type=Path)
    parser.add_argument("--encoder", metavar="NAME=FOLDER")
    parser.add_argument("--language-model", metavar="NAME=FILE")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--check", action="store_true", help="fail if the files have other numbers")
    options = parser.parse_args()
    if options.encoder:
        name, _, folder = options.encoder.partition("=")
        measure(SCORES / f"{name}.csv", options.judged, PLAIN, encoder_metrics(folder))
    if options.language_model:
        name, _, file = options.language_model.partition("=")
        for variant in (PLAIN, LONGER, SWAPPED):
            if variant == SWAPPED:
                prompts()["says"] = prompts()["says"].replace("yes or no", "no or yes")
            metrics = language_model_metrics(file)
            measure(SCORES / f"{name}.csv", options.judged, variant, metrics)
    if options.tables or options.check:
        make_tables(options.judged, options.check)


def make_tables(judged: Path, check: bool) -> None:
    """Write the tables, or compare them with what is written."""
    tables = {path.stem: read_scores(path) for path in sorted(SCORES.glob("*.csv"))}
    sets = {name: load_set(name, judged, tables) for name in SETS}
    agreements = pd.concat([agreement_of(name, scored) for name, scored in sets.items()])
    rows = [row for name, scored in sets.items() for row in biases_of(name, scored)]
    rows += [row for model, table in tables.items() for row in changes_of(model, table)]
    for path, table in ((AGREEMENTS, agreements), (BIASES, pd.DataFrame(rows))):
        if check:
            computed = pd.read_csv(StringIO(to_csv(table)))
            pd.testing.assert_frame_equal(computed, pd.read_csv(path), atol=2e-4)
        else:
            write_atomically(path, to_csv(table))
            print(path)


if __name__ == "__main__":
    main()

"""Runs a language model with every way of reading, and extracts of the same length, on six datasets.

    python benchmarks/readings.py WEIGHTS [--encoder FOLDER] [--examples 60] [--sets aclsum qmsum] [--device cuda]
    python benchmarks/readings.py WEIGHTS --plant 8 --sets aclsum qmsum --readings beginning ends select
    python benchmarks/readings.py --write       puts the tables into docs/readings.md; --check compares

WEIGHTS is a GGUF file, a folder or a name on the hub; for a server, give WEIGHTS the model's name and
`--model engine=api base_url=… tokenizer=…`. Run it again to continue it: finished runs are kept in `--work`, and
their scores go to results/reference. ENCODER is a folder with a sentence encoder; without it, its rows are left out.
DATA has `qmsum`, `squality`, `arxiv_sample` and `pubmed_sample`. The texts of runs stay in `--work`. With `--plant`,
the documents have that many planted facts, and the model is asked to keep them.
"""

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from probe_claims import ROOT, Table, put_tables
from real_systems import PUBLISHED, publish

from longsumbench.leaderboards.seed_groups import (
    PairDifference,
    ResultRow,
    ScoresOfRuns,
    compare_groups,
)
from longsumbench.leaderboards.significance import LeaderboardBlock, Outcome, correct_differences
from longsumbench.leaderboards.table import read_table
from longsumbench.runs.record import source_seen
from longsumbench.runs.results import Results

PAGE = "docs/readings.md"
BUDGET = 1_500  # longest prompt, tokens
LARGE_BUDGET = 7_900
SEEDS = (1, 2, 3, 4, 5)  # of Random
HEADINGS = (
    "R-1",
    "R-2",
    "R-Lsum",
    "words / reference",
    "read",
    "tokens sent",
    "requests",
    "memory",
)


@dataclass(frozen=True)
class TextSet:
    """Texts that the model reads: a dataset, and the words of its summaries (the mean of its references)."""

    reader: str
    words: int
    path: str | None = None
    queries: bool = False


SETS = {
    "aclsum": TextSet("aclsum", 120),
    "aclsum_aspects": TextSet("aclsum_aspects", 23, queries=True),
    "qmsum": TextSet("qmsum", 70, "qmsum", queries=True),
    "squality": TextSet("squality", 240, "squality", queries=True),
    "arxiv_sample": TextSet("jsonl", 170, "arxiv_sample"),
    "pubmed_sample": TextSet("jsonl", 200, "pubmed_sample"),
}
READINGS: dict[str, dict[str, Any]] = {  # name → its settings
    "beginning": {},
    "ending": {},
    "ends": {},
    "select": {},
    "segments": {"model.segment_length": 48},
    "pages": {},
    "stages": {},
    "refine": {},
    # The whole text, unless it is longer than this.
    "beginning of 7,900": {"model.reading": "beginning", "model.input_length": LARGE_BUDGET},
}
SURVIVAL_HEADINGS = ("facts right", "wrong", "random–ceiling", *HEADINGS[3:])


def dataset_name(name: str, options: argparse.Namespace) -> str:
    """Return the name of a set in the results."""
    return f"planted_{name}" if options.plant else f"readings_{name}"


def extracts_of(texts: TextSet, encoder: str | None) -> Iterator[dict[str, Any]]:
    """Yield the settings of extracts as long as the model is asked to write, and of the oracle."""
    extracts: list[dict[str, Any]] = [{"model": "lead"}, {"model": "lexrank"}]
    extracts += [{"model": "random", "seed": seed} for seed in SEEDS]
    rankers = ["tfidf", "bm25"] if texts.queries else []
    extracts += [{"model": "ranker", "model.rank": rank} for rank in rankers]
    if encoder:
        encoders = ["embedding", "embedding_lexrank"] if texts.queries else ["embedding_lexrank"]
        for rank in encoders:
            of_encoder = {"model.rank": rank, "model.rank_checkpoint": encoder}
            extracts.append({"model": "ranker", **of_encoder})
    for point in extracts:
        yield {**point, "model.length": texts.words}
    yield {"model": "oracle"}


def prompted_model(texts: TextSet, options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the language model."""
    model = {
        "model": "prompt",
        "model.checkpoint": options.weights,
        "model.length": texts.words,
        "model.decode_length": longest_answer(texts),
        "decode.no_repeat_ngram": 4,
        "decode.batch_size": options.batch_size,
        "decode.evidence": "none",
        "device": options.device,
    }
    for setting in options.model:
        key, _, value = setting.partition("=")
        model[f"model.{key}"] = value
    return model


def longest_answer(texts: TextSet) -> int:
    """Return how long a summary may be, in tokens."""
    return 40 + 2 * texts.words


def points_of(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the settings of each run on a set: extracts first, which take seconds."""
    texts = SETS[name]
    yield from extracts_of(texts, options.encoder)
    model = prompted_model(texts, options)
    if options.plant:
        model["model.prompt"] = "facts"
    for reading in options.readings:
        settings = READINGS[reading]
        yield {**model, "model.reading": reading, "model.input_length": BUDGET, **settings}


def make_runs(options: argparse.Namespace) -> None:
    """Make the runs that are missing."""
    for name in options.sets:
        words = words_of(SETS[name], dataset_name(name, options), options)
        if options.plant:
            words.append(f"dataset.plant={options.plant}")
        run_points(words, points_of(name, options))


def words_of(texts: TextSet, name: str, options: argparse.Namespace) -> list[str]:
    """Return the settings that all runs on some texts share; `name` is that of the dataset in the results."""
    words = [f"dataset={texts.reader}", f"dataset.name={name}"]
    if texts.path:
        words.append(f"dataset.path={options.data / texts.path}")
    return [
        *words,
        f"decode.limit={options.examples}",
        f"results_dir={options.work}",
        "baselines=false",
    ]


def run_points(words: Sequence[str], points: Iterable[dict[str, Any]]) -> None:
    """Make the runs that are missing, each in its own process, so that its peak memory is its own."""
    for point in points:
        settings = [f"{key}={value}" for key, value in point.items()]
        command = [sys.executable, "-m", "longsumbench", "run", *words, *settings]
        subprocess.run(command, check=True)


def label_of(row: ResultRow) -> str:
    """Return the reading of a row, or what copies sentences."""
    model = row.representative.config.model
    if row.representative.key.model != "prompt":
        rank = model.get("rank", "none")
        return row.representative.key.model + (
            f" by {rank}" if row.representative.key.model == "ranker" else ""
        )
    large = f" of {LARGE_BUDGET:,}" if model["input_length"] == LARGE_BUDGET else ""
    return f"`{model['reading']}`{large}"


def table_of(name: str, block: LeaderboardBlock) -> Table:
    """Return the rows of a set, best first."""
    lines = []
    best = block.rows[0].key
    for row in block.rows:
        run = row.representative
        label = label_of(row)
        marked = row.key == best or row.key in block.best_set
        cells = [f"**{label}**" if marked else label]
        cells += survival_cells(row) if is_planted(row) else rouge_cells(row)
        outputs, seen = run.evaluation.outputs, source_seen(run)
        cells.append(f"{outputs.words:.0f} / {outputs.reference_words:.0f}" if outputs else "")
        cells.append("" if seen is None else f"{seen:.0f} %")
        cells += costs_of(row)
        lines.append(tuple(cells))
    headings = SURVIVAL_HEADINGS if is_planted(block.rows[0]) else HEADINGS
    return Table(PAGE, (name, *headings), lines)


def copies_sentence(results: Results) -> str:
    """Return on how many sets of texts an extract is above the best reading."""
    numbers = Counter[bool]()
    for name in SETS:
        rows = read_table(results, f"readings_{name}")
        block = rows.comparable[0]
        extracts = {label_of(row) for row in block.rows if row.representative.key.model != "prompt"}
        lists = compare_with_best(block, rows.scores, extracts - {"random"})[1]
        numbers[lists["above"] != "none"] += 1
    return f"copied sentences are above its best way of reading on {numbers[True]} of {len(SETS)} sets of texts"


def is_planted(row: ResultRow) -> bool:
    """Return True if the texts have planted facts."""
    return row.representative.config.dataset.plant is not None


def with_interval(row: ResultRow, score: str) -> str:
    """Return a score with its interval."""
    mean, low, high = row.means[score]
    return f"{mean:.1f} ({low:.1f}–{high:.1f})"


def rouge_cells(row: ResultRow) -> list[str]:
    """Return R-1, R-2 and R-Lsum of a row."""
    means = [f"{row.means[kind].mean:.1f}" for kind in ("rouge1", "rouge2")]
    return [*means, with_interval(row, "rougeLsum")]


def survival_cells(row: ResultRow) -> list[str]:
    """Return the facts that a row's summaries state right and wrong, and what its length allows, in percent."""
    bounds = [f"{row.means[f'fact_survival_{bound}'].mean:.0f}" for bound in ("random", "ceiling")]
    wrong = f"{row.means['fact_survival_wrong'].mean:.1f}"
    return [with_interval(row, "fact_survival"), wrong, "–".join(bounds)]


def costs_of(row: ResultRow) -> list[str]:
    """Return tokens sent and requests of an example, which extracts do not have, and the peak memory."""
    run, counts = row.representative, row.representative.ledger.counts
    memory = f"{run.costs.peak_memory_gb:.1f} GB"
    if "requests" not in counts:
        return ["", "", memory]
    number = run.evaluation.n
    return [
        f"{counts['prompt_tokens'] / number:,.0f}",
        f"{counts['requests'] / number:.1f}",
        memory,
    ]


def sentence_of(name: str, block: LeaderboardBlock, scores: ScoresOfRuns) -> str:
    """Return which reading has the highest R-Lsum, or keeps most planted facts, and which rows a test tells from it."""
    best, lists = compare_with_best(block, scores)
    score = best.representative.evaluation.ranked_by
    about = f"{name}, {best.representative.evaluation.n} examples:"
    mean = best.means[score].mean
    if is_planted(best) and not mean:
        return f"{about} none of the readings keeps a planted fact."
    has_most = f"has the highest R-Lsum, {mean:.1f}"
    if is_planted(best):
        has_most = f"keeps most planted facts, {mean:.1f} %"
    return (
        f"{about} of the readings, {label_of(best)} {has_most}."
        f" Significantly below it: {lists['below']}. Above it: {lists['above']}."
        f" Not distinguished: {lists['alike']}. Not tested: {lists['untested']}."
    )


def compare_with_best(
    block: LeaderboardBlock, scores: ScoresOfRuns, shown: Collection[str] | None = None
) -> tuple[ResultRow, dict[str, str]]:
    """Return the best reading, and the lists of `sort_by_test` of all other rows but the oracle.

    The best one is chosen by the same scores, so the tests of every reading against every row are corrected together
    (Holm).
    """
    rows = [row for row in block.rows if not row.representative.oracle]
    best, *readings = [row for row in rows if row.representative.key.model == "prompt"]
    score = best.representative.evaluation.ranked_by
    rivals = [row for row in rows if row.key != best.key]
    pairs = [(label_of(row), compare_groups(row, best, score, scores)) for row in rivals]
    others = []
    for index, reading in enumerate(readings):
        for row in [row for row in rivals if row not in readings[: index + 1]]:
            others.append(compare_groups(row, reading, score, scores))
    return best, sort_by_test(pairs, shown, others)


def sort_by_test(
    pairs: Sequence[tuple[str, PairDifference | None]],
    shown: Collection[str] | None = None,
    others: Sequence[PairDifference | None] = (),
) -> dict[str, str]:
    """Sort the labels of differences by what a test says: below, above, alike or untested → labels, or "none".

    With `shown`, all are tested together, and only these labels are returned; `others` are tested together with them.
    """
    labels: dict[str, list[str]] = {"below": [], "above": [], "alike": [], "untested": []}
    every = [*[pair for _, pair in pairs], *others]
    tested = {place: pair for place, pair in enumerate(every) if pair is not None}
    judged = correct_differences(tested)
    for place, (label, _) in enumerate(pairs):
        difference, kind = judged.get(place), "untested"
        if difference is not None and difference.outcome == Outcome.AHEAD:
            kind = "above" if difference.mean > 0 else "below"
        elif difference is not None and difference.outcome == Outcome.NOT_SHOWN:
            kind = "alike"
        if shown is None or label in shown:
            labels[kind].append(label)
    return {kind: ", ".join(names) or "none" for kind, names in labels.items()}


def add_common_options(parser: argparse.ArgumentParser, work: str, examples: int) -> None:
    """Add the options of programs that run a language model on several datasets."""
    parser.add_argument("weights", nargs="?", help="GGUF file, folder, hub name or a server's name")
    parser.add_argument("--model", nargs="*", default=[], help="further settings: dtype=bfloat16")
    parser.add_argument("--encoder", help="folder of a sentence encoder")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--examples", type=int, default=examples)
    parser.add_argument("--batch-size", type=int, default=8, help="prompts at once")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--work", type=Path, default=Path(work))
    parser.add_argument("--results-dir", type=Path, default=PUBLISHED)
    parser.add_argument("--publish", action="store_true", help="only pack what --work has")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")


def publish_work(options: argparse.Namespace, datasets: Sequence[str]) -> None:
    """Pack the runs of some datasets that the work folder has, next to those that are packed already."""
    folders = [options.work / "runs" / name for name in datasets]
    records = chain(*(folder.glob("*/*/record.json") for folder in folders))
    runs = (record.parent for record in records)
    publish(runs, datasets, Results(options.results_dir), keep=True)


def show_or_write(
    page_name: str,
    tables: Sequence[Table],
    sentences: Sequence[str],
    options: argparse.Namespace,
    problems: Sequence[str] = (),
) -> None:
    """Print tables and sentences; or put the tables into their page, and name what it lacks after other problems."""
    if options.write:
        put_tables(tables)
    if options.write or options.check:
        page = (ROOT / page_name).read_text(encoding="utf-8")
        lines = page.splitlines()
        words = " ".join(page.split())
        missing = [line for table in tables for line in table.lines() if line not in lines]
        missing += [sentence for sentence in sentences if sentence not in words]
        lacking = [f"{page_name} lacks: {line}" for line in missing]
        sys.exit("\n".join([*problems, *lacking]) or None)
    for table in tables:
        print(*table.lines(), "", sep="\n")
    print(*sentences, sep="\n")


def main() -> None:
    """Make the runs; or print the tables and sentences, put them into the page, or compare them with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_options(parser, "results/readings", 60)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--readings", nargs="*", choices=READINGS, default=list(READINGS))
    parser.add_argument("--plant", type=int, help="facts planted in each document")
    options = parser.parse_args()
    results = Results(options.results_dir)
    if options.weights:
        make_runs(options)
    if options.weights or options.publish:
        publish_work(options, [dataset_name(name, options) for name in options.sets])
    tables, sentences = [], []
    kinds = ("readings", "planted")
    names = [f"{kind}_{name}" for name in options.sets for kind in kinds]
    for name in names:
        if not results.bundle(name).is_file():
            continue
        rows = read_table(results, name)
        title = name.removeprefix("readings_").replace("_", " ")
        if rows.comparable:
            tables.append(table_of(title, rows.comparable[0]))
            sentences.append(sentence_of(title, rows.comparable[0], rows.scores))
    if options.write or options.check:
        sentences.append(copies_sentence(results))
    show_or_write(PAGE, tables, sentences, options)


if __name__ == "__main__":
    main()

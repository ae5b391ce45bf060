"""Scores a 7B model's outputs with its whole cache and with compressed ones, at their own length and at equal length.

    python benchmarks/compressed_caches.py [--data ../shared/data] [--results-dir results/reference]
    python benchmarks/compressed_caches.py --write       puts the tables into docs/compressed-caches.md; --check compares them

DATA has `longbench_kv` with a folder for each of SETS: references.jsonl.gz {id, references} and SYSTEM.jsonl.gz
{id, summary}; and `qmsum`, whose meetings group the questions. The sources of two sets are not there, so there are no
baselines, and nothing is measured that needs a source. It packs settings, records, scores and outputs, but no reference.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from unittest.mock import patch

from probe_claims import Table
from readings import show_or_write, with_interval
from real_systems import KEPT, PUBLISHED, SHARED, publish, read_rows, write_rows

import longsumbench
from longsumbench.core import count_words
from longsumbench.formatting import format_interval
from longsumbench.leaderboards.seed_groups import (
    PairDifference,
    ResultRow,
    ScoresOfRuns,
    compare_groups,
)
from longsumbench.leaderboards.significance import (
    CorrectedDifference,
    LeaderboardBlock,
    Outcome,
    correct_differences,
)
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics import evaluate
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.results import Results
from longsumbench.views.outcomes import describe_differences, describe_pair

DATA = "longbench_kv"
PAGE = "docs/compressed-caches.md"
SETS = {"qmsum": "QMSum", "gov_report": "GovReport", "multi_news": "Multi-News"}
SIZES = (2048, 1024, 512, 256)  # entries a head that are kept on average
WHOLE, METHODS = "whole-cache", {"AdaKV-early-2024": "adakv", "SnapKV-early-2024": "snapkv"}
ORIGIN = "github.com/FFY0/AdaKV @ b591a61, early code of 2024, MIT"
NO_SOURCE = "The source is not part of the release."
SCORE, OUTPUTS = "rougeLsum", "predictions.jsonl"

Pair = tuple[str, str]  # a set, and a row or a size


class Lengths(NamedTuple):
    """The rows of a set by system and size: at their own length, and cut to the same number of words.

    Attributes:
        limit: this number of words.
    """

    name: str
    uncut: LeaderboardBlock
    cut: LeaderboardBlock
    limit: int
    scores: ScoresOfRuns

    def block(self, equal: bool) -> LeaderboardBlock:
        """Return the rows at equal length, or at their own."""
        return self.cut if equal else self.uncut

    def describe(self, equal: bool) -> str:
        """Name one of the lengths."""
        return f"first {self.limit} words" if equal else "own length"


def dataset_name(name: str) -> str:
    """Return the name of a set in the results."""
    return f"caches_{name}"


def systems() -> Iterator[tuple[str, str, str]]:
    """Yield file, model and variant of each row."""
    yield "whole", WHOLE, ""
    for model, file in METHODS.items():
        for size in SIZES:
            yield f"{file}-{size}", model, f"{size} entries"


def equal_length(outputs: Mapping[str, list[dict[str, Any]]]) -> int:
    """Return the mean words of the row with the shortest outputs, rounded down to 10."""
    means = []
    for rows in outputs.values():
        means.append(sum(count_words([row["summary"]]) for row in rows) / len(rows))
    return int(min(means) // 10 * 10)


def meetings_of(rows: list[dict[str, Any]], data: Path) -> Iterator[str]:
    """Yield the meeting of each question of QMSum, found by question and answer."""
    meetings = {}
    for meeting in read_rows(data / "qmsum" / "validation.jsonl.gz"):
        for query in meeting["general_query_list"] + meeting["specific_query_list"]:
            question = query["query"].strip(), query["answer"].strip()
            meetings[question] = meeting["meeting_id"]
    for row in rows:
        yield meetings[row["query"].strip(), row["references"][0].strip()]


def make_runs(name: str, data: Path) -> None:
    """Import the outputs of a set into `results` of the current folder, at both lengths.

    The questions of QMSum are grouped by meeting.
    """
    rows = list(read_rows(data / DATA / name / "references.jsonl.gz"))
    groups = meetings_of(rows, data) if name == "qmsum" else (row["id"] for row in rows)
    texts = []
    for row, group in zip(rows, groups, strict=True):
        example = {"id": row["id"], "references": row["references"]}
        texts.append({**example, "document": NO_SOURCE, "text": group})
    folder = Path(name)
    folder.mkdir()
    write_rows(folder / "test.jsonl", texts)
    outputs = {}
    for file, _, _ in systems():
        outputs[file] = list(read_rows(data / DATA / name / f"{file}.jsonl.gz"))
    settings: dict[str, Any] = {"dataset.name": dataset_name(name)}
    for limit in (None, equal_length(outputs)):
        for file, model, variant in systems():
            path = Path(f"{file}.jsonl")
            summaries = outputs[file]
            write_rows(path, ({"id": row["id"], "prediction": row["summary"]} for row in summaries))
            longsumbench.import_outputs(
                path,
                model=model,
                variant=variant,
                origin=ORIGIN,
                dataset={"name": "jsonl", "path": name, "columns": {"group": "text"}},
                baselines=False,
                **{**settings, "score.max_words": limit},
            )


def read_lengths(results: Results, name: str) -> Lengths:
    """Return the rows of a set."""
    table = read_table(results, dataset_name(name))
    blocks = {}
    for block in table.comparable:
        blocks[block.rows[0].representative.config.score.max_words] = block
    uncut = blocks.pop(None)
    [(limit, cut)] = blocks.items()
    assert limit is not None
    return Lengths(SETS[name], uncut, cut, limit, table.scores)


def row_of(block: LeaderboardBlock, model: str, variant: str) -> ResultRow:
    """Return a row of a block."""
    for row in block.rows:
        if (row.representative.key.model, row.representative.variant) == (model, variant):
            return row
    raise KeyError(model, variant)


def label_of(model: str, variant: str) -> str:
    """Return the name of a row on the page."""
    return f"{model} of {variant}" if variant else "whole cache"


def from_whole(sets: Sequence[Lengths], equal: bool) -> dict[Pair, PairDifference]:
    """Return (set, row) → its difference from the whole cache at one of the lengths."""
    pairs = {}
    for texts in sets:
        block = texts.block(equal)
        whole = row_of(block, WHOLE, "")
        for _, model, variant in systems():
            if model != WHOLE:
                row = row_of(block, model, variant)
                pairs[texts.name, label_of(model, variant)] = difference_of(row, whole, texts)
    return pairs


def between_methods(sets: Sequence[Lengths], equal: bool) -> dict[Pair, PairDifference]:
    """Return (set, size) → the difference of the two methods at one of the lengths."""
    pairs = {}
    for texts in sets:
        for size in SIZES:
            variant = f"{size} entries"
            first, second = (row_of(texts.block(equal), model, variant) for model in METHODS)
            pairs[texts.name, variant] = difference_of(first, second, texts)
    return pairs


def difference_of(first: ResultRow, second: ResultRow, texts: Lengths) -> PairDifference:
    """Return the first minus the second, of the score that ranks."""
    pair = compare_groups(first, second, SCORE, texts.scores)
    assert pair is not None
    return pair


def table_of(
    texts: Lengths, equal: bool, differences: Mapping[Pair, CorrectedDifference], results: Results
) -> Table:
    """Return the rows of a set at one of the lengths."""
    lines = []
    for _, model, variant in systems():
        row, label = row_of(texts.block(equal), model, variant), label_of(model, variant)
        cells = [with_interval(row, kind) for kind in ("rouge1", "rouge2", SCORE)]
        difference = differences.get((texts.name, label))
        loss = ""
        if difference is not None:
            interval = format_interval(difference.low, difference.high, "+.2f")
            loss = f"{difference.mean:+.2f} ({interval})"
        outputs = read_summaries(results.run_folder(row.representative) / OUTPUTS)
        lengths = [count_words([summary.text]) for summary in outputs]
        if equal:
            lengths = [min(length, texts.limit) for length in lengths]
        lines.append((label, *cells, loss, f"{fmean(lengths):.0f}"))
    headings = ("R-1", "R-2", "R-Lsum", "minus the whole cache", "words")
    return Table(PAGE, (f"{texts.name}, {texts.describe(equal)}", *headings), lines)


def sentences_of(sets: Sequence[Lengths]) -> Iterator[str]:
    """Yield what the tests say: of the whole cache and each row, and of the two methods at each size."""
    examples = []
    for texts in sets:
        evaluation = texts.uncut.rows[0].representative.evaluation
        examples.append(f"{texts.name} {evaluation.describe_examples()} and N = {texts.limit}")
    yield f"The sets have: {'; '.join(examples)}."
    for equal in (False, True):
        differences = correct_differences(from_whole(sets, equal))
        methods = correct_differences(between_methods(sets, equal))
        means = []
        for texts in sets:
            where = f"{texts.name}, {texts.describe(equal)}"
            of_set = {row: each for (name, row), each in differences.items() if name == texts.name}
            means.append(f"{texts.name} {fmean(each.mean for each in of_set.values()):+.2f}")
            whole = {row: each.reversed() for row, each in of_set.items()}
            yield f"{where}: {describe_differences('the whole cache', whole, SCORE)}."
            for size in SIZES:
                variant = f"{size} entries"
                first, second = (label_of(model, variant) for model in METHODS)
                pair = describe_pair(first, second, methods[texts.name, variant], SCORE)
                yield f"{where}: {pair}."
        significant = [each for each in differences.values() if each.outcome == Outcome.AHEAD]
        below = sum(each.mean < 0 for each in significant)
        ahead = sum(each.outcome == Outcome.AHEAD for each in methods.values())
        yield (
            f"At {'equal' if equal else 'their own'} length, {below} of {len(differences)} compressed rows are shown to be"
            f" below the whole cache and {len(significant) - below} above it. The mean differences of R-Lsum are"
            f" {', '.join(means)}. AdaKV and SnapKV are shown to differ in {ahead} of {len(methods)} comparisons."
        )


def sentence_on_families(sets: Sequence[Lengths]) -> str:
    """Return how many differences are shown if those of both lengths are corrected together."""
    counts = []
    for compare in (from_whole, between_methods):
        pairs: dict[tuple[bool, Pair], PairDifference] = {}
        for equal in (False, True):
            for key, pair in compare(sets, equal).items():
                pairs[equal, key] = pair
        differences = correct_differences(pairs)
        for equal in (False, True):
            of_length = [each for (at, _), each in differences.items() if at == equal]
            counts.append(sum(each.outcome == Outcome.AHEAD for each in of_length))
    return (
        f"If the tests of both lengths are one family, {counts[0]} rows differ from the whole cache at their own length"
        f" and {counts[1]} at equal length, and AdaKV and SnapKV differ in {counts[2]} and {counts[3]} comparisons."
    )


def main() -> None:
    """Make the runs, pack them and make the tables; or put the tables into the page, or compare them with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=SHARED)
    parser.add_argument("--results-dir", type=Path, default=PUBLISHED)
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--check", action="store_true", help="name what the page lacks; exit code 1"
    )
    action.add_argument("--write", action="store_true", help="put the tables into the page")
    options = parser.parse_args()
    results = Results(options.results_dir.resolve())
    if not options.check and not options.write:
        data = options.data.resolve()
        # the metrics of every run compare with the source
        no_metrics = patch.object(evaluate, "DEFAULT_METRICS", ())
        with tempfile.TemporaryDirectory() as folder, chdir(folder), no_metrics:
            for name in SETS:
                make_runs(name, data)
            runs = Path("results/runs").glob("*/*/*")
            publish(runs, [dataset_name(name) for name in SETS], results, files=(*KEPT, OUTPUTS))
    sets = [read_lengths(results, name) for name in SETS]
    tables = []
    for texts in sets:
        for equal in (False, True):
            tables.append(
                table_of(texts, equal, correct_differences(from_whole(sets, equal)), results)
            )
    sentences = [*sentences_of(sets), sentence_on_families(sets)]
    show_or_write(PAGE, tables, sentences, options)


if __name__ == "__main__":
    main()

"""Scores the outputs of six real systems on the 103 novels of InfiniteBench's En.Sum: F1 follows their length.

    python benchmarks/infinitebench_table.py [--data ../shared/data] [--results-dir results/reference]
    python benchmarks/infinitebench_table.py --check       what docs/findings.md says about them

DATA has `infinitebench_sum`: references.jsonl.gz {id, references} and SYSTEM.jsonl.gz {id, summary}. There are no
sources, so there are no baselines, and nothing is measured that needs a source. As `benchmarks/real_systems.py` does, it
packs settings, records and scores, no text, and makes the table. Then it prints each system's figures next to those of
rouge_score, which were computed when the outputs were collected.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from probe_claims import FINDINGS, Table, differences, put_tables
from real_systems import PUBLISHED, SHARED, publish, read_rows, write_rows
from real_systems_claims import marked

import longsumbench
from longsumbench.formatting import plain_table
from longsumbench.leaderboards.seed_groups import ScoresOfRuns, aligned_scores
from longsumbench.leaderboards.significance import LeaderboardBlock, read_all_scores
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics import evaluate
from longsumbench.metrics.aggregate import MEAN_RESAMPLES, Estimate
from longsumbench.metrics.rank_statistics import percentile_interval, spearman
from longsumbench.metrics.statistics import resampled_means
from longsumbench.runs.results import Results
from longsumbench.views.column_list import collect_columns
from longsumbench.views.leaderboard import row_cells

NAME = "infinitebench_sum"
INFINITEBENCH = "github.com/OpenBMB/InfiniteBench @ 88b3daa, MIT"
MAP_REDUCE = "github.com/thunlp/LLMxMapReduce @ b9feebe, Apache-2.0"
NO_NOVEL = "The novel is not part of the release."
WHOLE, PARTS = "reads the whole novel", "reads it in parts (map-reduce)"
SYSTEMS = {  # file → name, what it reads, origin
    "gpt4": ("GPT-4", WHOLE, INFINITEBENCH),
    "claude2": ("Claude-2", WHOLE, INFINITEBENCH),
    "kimi": ("Kimi", WHOLE, INFINITEBENCH),
    "Meta-Llama-3-70B-Instruct-mapreduce": ("Llama-3-70B", PARTS, MAP_REDUCE),
    "Qwen2-72B-Instruct-mapreduce": ("Qwen2-72B", PARTS, MAP_REDUCE),
    "MiniCPM3-4B-mapreduce": ("MiniCPM3-4B", PARTS, MAP_REDUCE),
}
COLUMNS = {
    "system": "system",
    "rouge1": "R-1",
    "rouge1_p": "precision",
    "rouge1_r": "recall",
    "rouge2": "R-2",
    "rougeLsum": "R-Lsum",
    "length": "words / reference",
}
# Words, and R-1, precision, recall, R-2 and R-Lsum of rouge_score, stemmed
FIRST_FIGURES = {
    "Qwen2-72B": (707, 41.4, 47.3, 41.3, 9.4, 39.5),
    "Llama-3-70B": (547, 39.0, 51.0, 35.2, 9.1, 37.1),
    "MiniCPM3-4B": (344, 32.1, 53.6, 24.4, 6.8, 30.8),
    "Kimi": (195, 22.6, 59.6, 15.0, 5.0, 21.3),
    "GPT-4": (218, 18.8, 51.4, 13.8, 3.3, 17.7),
    "Claude-2": (161, 18.5, 53.1, 12.0, 3.7, 17.5),
}


def make_runs(data: Path) -> None:
    """Import the outputs into `results` of the current folder."""
    # All have the same text in place of the novel, so groups are named
    rows = (
        {**row, "document": NO_NOVEL, "novel": row["id"]}
        for row in read_rows(data / "references.jsonl.gz")
    )
    texts = Path(NAME)
    texts.mkdir()
    write_rows(texts / "test.jsonl", rows)
    settings: dict[str, Any] = {"dataset.name": NAME}
    for file, (model, variant, origin) in SYSTEMS.items():
        outputs = Path(f"{file}.jsonl")
        summaries = read_rows(data / f"{file}.jsonl.gz")
        write_rows(outputs, ({"id": row["id"], "prediction": row["summary"]} for row in summaries))
        longsumbench.import_outputs(
            outputs,
            model=model,
            variant=variant,
            origin=origin,
            dataset={"name": "jsonl", "path": NAME, "columns": {"group": "novel"}},
            baselines=False,
            **settings,
        )


def block_of(results: Results) -> LeaderboardBlock:
    """Return the rows of the table, all comparable."""
    (block,) = read_table(results, NAME).comparable
    return block


def table_of(block: LeaderboardBlock) -> Table:
    """Return the table of the findings."""
    columns = collect_columns(block.records())
    lines = row_cells(block, [columns[name] for name in COLUMNS])
    rows = [tuple(map(marked, line)) for line in lines]
    return Table(FINDINGS, ("", *COLUMNS.values()), rows)


def order_by_length(block: LeaderboardBlock, scores: ScoresOfRuns) -> Estimate:
    """Return Spearman's rank correlation of the rows' mean words and mean scores, with its interval over examples.

    The scores are drawn; the words are the means of all examples.
    """
    words = np.array([row.words for row in block.rows])
    aligned = aligned_scores([row.representative for row in block.rows], "rougeLsum", scores)
    assert aligned is not None
    means = resampled_means(aligned.values, MEAN_RESAMPLES, aligned.groups)
    correlations = spearman(words, np.vstack([aligned.values.mean(axis=0), means]))
    return Estimate(float(correlations[0]), *percentile_interval(correlations, None))


def sentences(block: LeaderboardBlock, scores_of_runs: ScoresOfRuns) -> Iterator[str]:
    """Yield the words with numbers."""
    order = order_by_length(block, scores_of_runs)
    yield f"{order.mean:.2f} ({order.low:.2f} to {order.high:.2f})"
    scores = {row.representative.key.model: row.means["rougeLsum"].mean for row in block.rows}
    yield f"`MiniCPM3-4B` {scores['MiniCPM3-4B']:.1f} and `GPT-4` {scores['GPT-4']:.1f}"
    parts = {
        row.representative.key.model: row.representative.evaluation.scores["rouge1"]
        for row in block.rows
    }
    recalls = sorted(part.r for part in parts.values())
    precisions = sorted(part.p for part in parts.values())
    yield f"R-1 recall goes from {recalls[0]:.1f} to {recalls[-1]:.1f}, precision only from"
    yield f"precision only from {precisions[0]:.1f} to {precisions[-1]:.1f}"
    kimi = parts["Kimi"]
    yield f"`Kimi` has a precision of {kimi.p:.1f} and a recall of {kimi.r:.1f}"


def compare_first_figures(block: LeaderboardBlock) -> str:
    """Return our figures of each system, and below them those of rouge_score."""
    lines = [["system", "", "words", "R-1", "precision", "recall", "R-2", "R-Lsum"]]
    for row in block.rows:
        model, scores = row.representative.key.model, row.representative.evaluation.scores
        first = scores["rouge1"]
        figures = [first.f, first.p, first.r, scores["rouge2"].f, scores["rougeLsum"].f]
        lines.append([model, "here", f"{row.words:.0f}", *(f"{figure:.1f}" for figure in figures)])
        lines.append(["", "rouge_score", *map(str, FIRST_FIGURES[model])])
    return plain_table(lines)


def main() -> None:
    """Make the runs, pack them and make the table; or compare the findings with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=SHARED)
    parser.add_argument("--results-dir", type=Path, default=PUBLISHED)
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--check", action="store_true", help="name the stated numbers that differ; exit code 1"
    )
    action.add_argument("--write", action="store_true", help="put the table into the findings")
    options = parser.parse_args()
    results = Results(options.results_dir.resolve())
    if not options.check and not options.write:
        data = (options.data / NAME).resolve()
        # the metrics of every run compare with the source
        no_metrics = patch.object(evaluate, "DEFAULT_METRICS", ())
        with tempfile.TemporaryDirectory() as folder, chdir(folder), no_metrics:
            make_runs(data)
            publish(Path("results/runs").glob("*/*/*"), [NAME], results)
    block = block_of(results)
    scores = read_all_scores(results, block.records())
    table, words = table_of(block), [(FINDINGS, text) for text in sentences(block, scores)]
    if options.write:
        put_tables([table])
    if options.check or options.write:
        sys.exit("\n".join(differences([table], words)) or None)
    print(compare_first_figures(block), *sentences(block, scores), sep="\n\n")


if __name__ == "__main__":
    main()

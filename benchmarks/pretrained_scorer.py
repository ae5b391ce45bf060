"""Does EA's scorer select better if it starts from a pretrained encoder? On ACLSum, with five seeds.

    python benchmarks/pretrained_scorer.py ENCODER [--seeds 1 2 3 4 5]
    python benchmarks/pretrained_scorer.py --write      puts the table into models/seal/README.md; --check compares them

ENCODER is the folder of an encoder of transformers, such as all-MiniLM-L6-v2, or its name on the hub. A run takes about
15 minutes on one core. Run it again to continue it: finished runs are kept in `--work`, and their scores go to
results/reference. Extracts have 120 words. The texts of runs stay in `--work`.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from extractive_claims import PRETRAINED as DATASET
from probe_claims import Table
from readings import show_or_write, sort_by_test
from real_systems import PUBLISHED, publish

from longsumbench.leaderboards.seed_groups import ResultRow, ScoresOfRuns, compare_groups
from longsumbench.leaderboards.significance import LeaderboardBlock, Outcome, correct_differences
from longsumbench.leaderboards.table import read_table
from longsumbench.runs.results import Results

PAGE = "models/seal/README.md"
WORDS = 120  # of an extract; the mean abstract has 128
MEASURES = ("rouge1", "rouge2", "rougeLsum")
SEEDS = (1, 2, 3, 4, 5)
HEADING = (
    "what chooses the sentences",
    "R-1",
    "R-2",
    "R-Lsum",
    "pretrained scorer ahead by, R-Lsum",
)
SCORER = {"model": "ea", "scale": "extractive", "decode.extract_length": WORDS}
SHORT = {  # what a pretrained encoder can do on one core
    "train.max_steps": 120,
    "train.warmup_steps": 12,
    "train.batch_size": 4,
    "train.scored_share": 0.1,
    "train.eval_steps": 60,
    "train.eval_examples": 10,
}
PRETRAINED_RATE = 2e-4  # of those tried on the validation split with one seed: 5e-5, 2e-4, 3e-4


def points_of(encoder: str, seeds: list[int]) -> Iterator[dict[str, Any]]:
    """Yield the settings of each run: what takes seconds first."""
    fixed: list[dict[str, Any]] = [{"model": "lead"}, {"model": "lexrank"}]
    fixed.append({"model": "ranker", "model.rank": "tfidf"})
    for rank in ("embedding", "embedding_lexrank"):
        fixed.append({"model": "ranker", "model.rank": rank, "model.rank_checkpoint": encoder})
    fixed += [{"model": "random", "seed": seed} for seed in seeds]
    for point in fixed:
        yield {**point, "model.length": WORDS}
    yield {"model": "oracle"}
    for seed in seeds:
        yield {**SCORER, "seed": seed, "train.max_steps": 400}
        yield {**SCORER, "seed": seed, **SHORT}
    for seed in seeds:
        yield {
            **SCORER,
            "seed": seed,
            **SHORT,
            "train.learning_rate": PRETRAINED_RATE,
            "model.init": encoder,
            "model.d_model": "null",
            "model.encoder_layers": "null",
        }


def make_runs(options: argparse.Namespace) -> None:
    """Make the runs that are missing, each in its own process."""
    words = ["dataset=aclsum", f"dataset.name={DATASET}", "baselines=false"]
    words += [f"results_dir={options.work}", f"device={options.device}"]
    for point in points_of(options.encoder, options.seeds):
        settings = [f"{key}={value}" for key, value in point.items()]
        command = [sys.executable, "-m", "longsumbench", "run", *words, *settings]
        subprocess.run(command, check=True)


def label_of(row: ResultRow) -> str:
    """Return what a row's extracts were chosen by."""
    run = row.representative
    if run.key.model != "ea":
        rank = run.config.model.get("rank", "none")
        return run.key.model + (f" by {rank}" if run.key.model == "ranker" else "")
    train = run.config.train
    start = "nothing" if run.config.model["init"] == "random" else "a pretrained encoder"
    seeds = f", {len(row.runs)} seeds"
    return f"EA's scorer from {start}, {train.max_steps} steps of {train.batch_size}{seeds}"


def is_pretrained(row: ResultRow) -> bool:
    """Return True for the scorer that starts from a pretrained encoder."""
    return str(row.representative.config.model.get("init", "random")) != "random"


def table_of(block: LeaderboardBlock, scores: ScoresOfRuns) -> Table:
    """Return the rows, best first, with the differences of the pretrained scorer from them.

    These are tested together (Holm); ≈ marks one that is not shown to differ from 0.
    """
    (scorer,) = [row for row in block.rows if is_pretrained(row)]
    pairs = {}
    for row in block.rows:
        pair = compare_groups(scorer, row, "rougeLsum", scores)
        if row.key != scorer.key and not row.representative.oracle and pair is not None:
            pairs[row.key] = pair
    judged = correct_differences(pairs)
    lines = []
    for row in block.rows:
        cells = [label_of(row)]
        for measure in MEASURES:
            mean, low, high = row.means[measure]
            cells.append(f"{mean:.1f} ({low:.1f}–{high:.1f})")
        gap, difference = judged.get(row.key), ""
        if gap is not None:
            mark = "" if gap.outcome == Outcome.AHEAD else " ≈"
            difference = f"{gap.mean:+.1f}{mark} ({gap.low:+.1f} to {gap.high:+.1f})"
        lines.append((*cells, difference))
    return Table(PAGE, HEADING, lines)


def sentence_of(block: LeaderboardBlock, scores: ScoresOfRuns) -> str:
    """Return which rows a test tells from the pretrained scorer; all rows but the oracle are tested together (Holm)."""
    (scorer,) = [row for row in block.rows if is_pretrained(row)]
    pairs = []
    for row in block.rows:
        if row.key != scorer.key and not row.representative.oracle:
            pairs.append((label_of(row), compare_groups(row, scorer, "rougeLsum", scores)))
    lists = sort_by_test(pairs)
    return (
        f"{scorer.representative.evaluation.n} papers: significantly below {label_of(scorer)}, in R-Lsum: {lists['below']}."
        f" Above it: {lists['above']}. Not distinguished: {lists['alike']}. Not tested: {lists['untested']}."
    )


def main() -> None:
    """Make the runs; or print the table, put it into the card, or compare it with the card."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("encoder", nargs="?", help="folder of an encoder, or its name on the hub")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--work", type=Path, default=Path("results/pretrained"))
    parser.add_argument("--results-dir", type=Path, default=PUBLISHED)
    parser.add_argument("--publish", action="store_true", help="pack what --work has")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    results = Results(options.results_dir)
    if options.encoder:
        make_runs(options)
    if options.publish:
        records = (options.work / "runs" / DATASET).glob("*/*/record.json")
        publish((record.parent for record in records), [DATASET], results)
    if not results.bundle(DATASET).is_file():
        sys.exit(f"{results.bundle(DATASET)} is missing: make the runs, then add --publish")
    rows = read_table(results, DATASET)
    block = rows.comparable[0]
    sentence = sentence_of(block, rows.scores)
    show_or_write(PAGE, [table_of(block, rows.scores)], [sentence], options)


if __name__ == "__main__":
    main()

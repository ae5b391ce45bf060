"""Fine-tunes a language model, trains the papers' systems from nothing with as many steps, and scores extracts.

    python benchmarks/fine_tuned.py WEIGHTS [--encoder FOLDER] [--sets aclsum] [--readings beginning select] [--steps 50]
    python benchmarks/fine_tuned.py WEIGHTS --sets aclsum --device cuda --model dtype=bfloat16 --steps 100 --seeds 1 2 3
        --input-length 2000 --examples 100 --batch-size 50 --work WORK --results-dir RESULTS       on a GPU
    python benchmarks/fine_tuned.py --publish --work WORK       packs the runs of a folder, such as one from a GPU
    python benchmarks/fine_tuned.py --write       puts the tables into docs/fine-tuning.md; --check compares them

WEIGHTS is a GGUF file, a folder or a name on the hub. Run it again to continue it: finished runs are kept in `--work`, and
their scores go to results/reference. A row is the model as it is, or trained (LoRA) with a reading; a system from random
weights; extracts of the same length; the oracle. All trainings have the same steps and examples a step. `bart` is an
encoder-decoder of BART-base's size, `scorer` is EA's scorer, trained alone, whose best sentences are copied. ENCODER is a
folder with a sentence encoder; without it, its row is left out. DATA has `sumpubmed`.
"""

import argparse
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

import readings
from probe_claims import Table
from readings import TextSet, rouge_cells, sort_by_test
from same_size import write_checkpoints

from longsumbench.core import FitReport
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import comparison_key
from longsumbench.leaderboards.seed_groups import (
    PairDifference,
    ResultRow,
    ScoresOfRuns,
    compare_groups,
)
from longsumbench.leaderboards.significance import LeaderboardBlock, build_block
from longsumbench.leaderboards.table import Table as Leaderboard, read_table
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

PAGE = "docs/fine-tuning.md"
SETS = {
    "aclsum": TextSet("aclsum", 120),
    "sumpubmed": TextSet("sumpubmed", 220, "sumpubmed"),
}
# Reading → its settings in training; they must have one answer.
READINGS: dict[str, dict[str, Any]] = {
    "beginning": {},
    "ending": {},
    "ends": {},
    "select": {},
    "pages": {"model.confidence": "learned"},
}
FROM_NOTHING: dict[str, dict[str, Any]] = {  # system → its settings
    "scorer": {"model": "ea", "train.only": "scorer", "decode.mode": "extract"},
    "seal": {"model": "seal"},
    "ea": {"model": "ea"},
    "pagesum": {"model": "pagesum", "model.init": "random"},
    "bart": {"model": "seq2seq", "model.init": "random", "model.input_length": "null"},
}
DIMENSIONS = ("d_model", "d_ff", "num_heads", "encoder_layers", "decoder_layers")
HEADINGS = (
    "R-1",
    "R-2",
    "R-Lsum",
    "words / reference",
    "seeds",
    "steps",
    "examples",
    "tokens trained",
    "training loss",
    "validation loss",
    "training, s",
    "writing, s",
    "weights trained",
    "memory",
    "device",
)


def dataset_name(name: str) -> str:
    """Return the name of a set in the results."""
    return f"tuned_{name}"


def points_of(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the settings of each run on a set: extracts, the model trained, as it is, and systems from nothing."""
    texts = SETS[name]
    yield from readings.extracts_of(texts, options.encoder)
    model = readings.prompted_model(texts, options)
    model["model.input_length"] = options.input_length
    for seed in options.seeds:
        training = {
            "seed": seed,
            "train.max_steps": options.steps,
            "train.batch_size": options.train_batch,
            "train.accumulation": 1,
            "train.warmup_steps": max(1, options.steps // 5),
            "train.eval_steps": max(1, options.steps // 2),
            "train.eval_examples": options.validated,
        }
        for reading in options.readings:
            settings = {"model.reading": reading, **READINGS[reading]}
            yield {**model, **settings, "model.lora_rank": options.rank, **training}
        if seed == options.seeds[0]:
            for reading in options.readings:
                yield {**model, "model.reading": reading}
        for system in options.systems:
            point = {**FROM_NOTHING[system], **training, "device": options.device}
            if system == "bart":
                point["model.checkpoint"] = options.bart[name]
            if system != "scorer":
                point["model.decode_length"] = readings.longest_answer(texts)
            yield point


def write_bart(words: Sequence[str], options: argparse.Namespace) -> str:
    """Write an encoder-decoder of BART-base's size for some texts; return its folder."""
    sizes = [f"model.{name}=null" for name in DIMENSIONS]
    overrides = [*words, "model.size=base", *sizes]
    [folder] = write_checkpoints(options.work / "checkpoints", overrides, ["bart"])
    return str(folder)


def make_runs(options: argparse.Namespace) -> None:
    """Make the runs that are missing."""
    options.bart = {}
    for name in options.sets:
        words = [
            *readings.words_of(SETS[name], dataset_name(name), options),
            f"scale={options.scale}",
        ]
        if "bart" in options.systems:
            options.bart[name] = write_bart(words, options)
        readings.run_points(words, points_of(name, options))


def is_tuned(row: ResultRow) -> bool:
    """Return True if a row is a language model that was trained here."""
    return row.representative.key.model == "prompt" and row.representative.trained


def label_of(row: ResultRow) -> str:
    """Return what a row is: a reading, trained or not; a system; or what copies sentences."""
    run = row.representative
    model, settings = run.key.model, run.config.model
    if model == "prompt":
        how = "as it is"
        if run.trained:
            how = "all weights" if settings["tune_all"] else "LoRA"
        return f"`{settings['reading']}`, {how}"
    if run.config.decode.mode == "extract":
        return f"scorer of `{model}`, extract"
    if settings.get("init") == "random" or model in ("seal", "ea"):
        name = "BART-base's size" if model == "seq2seq" else f"`{model}`"
        return f"{name} from nothing"
    return readings.label_of(row)


def rows_of(table: Leaderboard) -> LeaderboardBlock:
    """Return the runs on the same examples in one table: the trained model and the model as it is together."""
    first = table.comparable[0].records()[0]
    members = [run for run in table.records() if comparison_key(run) == comparison_key(first)]
    return build_block(members, table.scores)


def table_of(name: str, block: LeaderboardBlock) -> Table:
    """Return the rows of a set with what they cost, best first; those of the set of best rows are bold."""
    lines = []
    for row in block.rows:
        label = label_of(row)
        if row.key in block.best_set:
            label = f"**{label}**"
        if not row.learned.comparable:
            label += f" ({row.learned.word})"
        outputs = row.representative.evaluation.outputs
        words = f"{row.words:.0f} / {outputs.reference_words:.0f}" if row.words and outputs else ""
        lines.append((label, *rouge_cells(row), words, *costs_of(row)))
    return Table(PAGE, (name, *HEADINGS), lines)


def costs_of(row: ResultRow) -> list[str]:
    """Return what training and writing took, means over seeds; cells of the training are empty without one."""
    run = row.representative
    memory = max(run.costs.peak_memory_gb or 0.0 for run in row.runs)
    writing = fmean(run.costs.timings.summarize for run in row.runs)
    training, weights = [""] * 7, ""
    if run.trained:
        fits = [run.fit for run in row.runs]
        tokens = fmean(fit.source_tokens + fit.target_tokens for fit in fits)
        seconds = fmean(fit.seconds for fit in fits)
        budget = [f"{len(fits)}", f"{run.fit.steps:,}", f"{run.fit.examples:,}", f"{tokens:,.0f}"]
        training = [*budget, *loss_cells(fits), f"{seconds:,.0f}"]
        weights = f"{run.fit.parameters / 1e6:.1f} M"
    device = run.environment.gpu or format_count(run.environment.cores or 0, "core")
    return [*training, f"{writing:,.0f}", weights, f"{memory:.1f} GB", device]


def loss_cells(fits: Sequence[FitReport]) -> list[str]:
    """Return the first and last training loss, and all validation losses, in nats per target token: means over seeds."""
    ends = [fmean(fit.first_loss or 0.0 for fit in fits)]
    ends.append(fmean(fit.last_loss or 0.0 for fit in fits))
    validations = zip(*(fit.validation_losses for fit in fits), strict=True)
    losses = [fmean(loss for _, loss in of_seeds) for of_seeds in validations]
    return [", ".join(f"{loss:.2f}" for loss in values) for values in (ends, losses)]


def budget_of(run: RunRecord) -> tuple[int, int]:
    """Return the most steps of a training, and the examples of a step."""
    recipe = run.config.train
    return recipe.max_steps, recipe.batch_size * recipe.accumulation


def sentence_of(name: str, block: LeaderboardBlock, scores: ScoresOfRuns) -> str:
    """Return what the tests say of fine-tuning: against the model as it is, and against all other rows.

    Rows are tested only if they are shown to have learned. The tests of each of the two questions are corrected together
    (Holm). A single seed has no verdict.
    """
    rows = [row for row in block.rows if not row.representative.oracle]
    trained = [row for row in rows if row.representative.trained]
    tuned = [row for row in rows if is_tuned(row)]
    about = f"{name}, {format_count(rows[0].representative.evaluation.n, 'example')}"
    budgets = {budget_of(run) for row in trained for run in row.runs}
    if not tuned:
        return f"{about}: no language model was trained."
    if len(budgets) > 1:
        return (
            f"{about}: the trainings have {len(budgets)} different budgets, so nothing is compared."
        )
    [(steps, size)] = budgets
    about = f"{about}, {steps:,} steps of {format_count(size, 'example')}: {loss_words(trained)}."
    score = rows[0].representative.evaluation.ranked_by
    tests: list[tuple[str, PairDifference | None]] = []
    for row in tuned:
        as_it_is = untrained_twin(row, rows)
        if as_it_is is not None:
            pair = compare_groups(row, as_it_is, score, scores) if row.learned.comparable else None
            tests.append((label_of(row), pair))
    lists = sort_by_test(tests)
    effect = (
        f" Training raises R-Lsum significantly for: {lists['above']}. It lowers it for: {lists['below']}."
        f" Not distinguished: {lists['alike']}. Not tested: {lists['untested']}."
    )
    best = next((row for row in tuned if row.learned.comparable), None)
    if best is None:
        return f"{about}{effect} No trained language model is shown to have learned."
    tests = []
    for row in rows:
        if row.key != best.key:
            pair = compare_groups(row, best, score, scores) if row.learned.comparable else None
            tests.append((label_of(row), pair))
    lists = sort_by_test(tests)
    return (
        f"{about}{effect} Against {label_of(best)}, R-Lsum {best.means[score].mean:.1f}: significantly below it:"
        f" {lists['below']}. Above it: {lists['above']}. Not distinguished: {lists['alike']}."
        f" Not tested: {lists['untested']}."
    )


def untrained_twin(row: ResultRow, rows: Sequence[ResultRow]) -> ResultRow | None:
    """Return the row of the same reading without training."""
    reading = row.representative.config.model["reading"]
    for candidate in rows:
        run = candidate.representative
        is_untrained = run.key.model == "prompt" and not run.trained
        if is_untrained and run.config.model["reading"] == reading:
            return candidate
    return None


def loss_words(rows: Sequence[ResultRow]) -> str:
    """Return in how many trainings the loss fell between validations, on the same examples; name the others."""
    number, not_fallen = 0, []
    for row in rows:
        for run in row.runs:
            losses = [loss for _, loss in run.fit.validation_losses]
            number += 1
            if not losses or losses[-1] >= losses[0]:
                not_fallen.append(f"{label_of(row)} seed {run.key.seed}")
    exceptions = f" (not of {', '.join(not_fallen)})" if not_fallen else ""
    fallen = number - len(not_fallen)
    return f"the validation loss fell in {fallen} of {format_count(number, 'training')}{exceptions}"


def main() -> None:
    """Make the runs; or print the tables and sentences, put them into the page, or compare them with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    readings.add_common_options(parser, "results/tuned", 40)
    few = ["beginning", "select", "pages"]
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--readings", nargs="*", choices=READINGS, default=few)
    parser.add_argument("--systems", nargs="*", choices=FROM_NOTHING, default=list(FROM_NOTHING))
    parser.add_argument("--scale", default="tiny", help="sizes of systems from nothing, not bart's")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--train-batch", type=int, default=4, help="examples of a step")
    parser.add_argument("--validated", type=int, default=20, help="examples of a validation")
    parser.add_argument("--rank", type=int, default=16, help="of the LoRA adapter")
    parser.add_argument("--input-length", type=int, default=1_500, help="longest prompt, tokens")
    options = parser.parse_args()
    results = Results(options.results_dir)
    if options.weights:
        make_runs(options)
    if options.weights or options.publish:
        readings.publish_work(options, [dataset_name(name) for name in options.sets])
    tables, sentences = [], []
    for name in options.sets:
        if not results.bundle(dataset_name(name)).is_file():
            continue
        table = read_table(results, dataset_name(name))
        block = rows_of(table)
        tables.append(table_of(name, block))
        sentences.append(sentence_of(name, block, table.scores))
    readings.show_or_write(PAGE, tables, sentences, options)


if __name__ == "__main__":
    main()

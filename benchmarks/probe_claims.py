"""What the sweeps over `probe` show, in a few lines, from the scores of their runs.

    longsumbench run -m dataset=probe model=trunc,ca,ea,seal model.extractive_length=128,256 seed=1,2,3
    longsumbench run -m dataset=probe model=pagesum model.decoding=page,global train.max_steps=6000 seed=1,2,3
    longsumbench run -m dataset=probe dataset.document_length=256 model=etads 'model.focus_layers=null,[]'
        'model.saliency_layers=null,[]' train.max_steps=6000 train.eval_steps=500 seed=1,2,3
    longsumbench run -m dataset=probe model=hierarchical_transformer,flat_transformer train.max_steps=6000 seed=1,2,3
    longsumbench run -m dataset=probe model=hierarchical_transformer model.global_layers=0 train.max_steps=6000
        seed=1,2,3
    python benchmarks/probe_claims.py [--results-dir results/reference]

Recall of single facts, and for PageSum, ETADS and the Hierarchical Transformer of others, too, in percent: the mean
over examples and seeds, with a 95 % interval for which both examples and seeds are drawn again (percentile bootstrap;
three seeds allow no more than a rough one), and the seeds' own range. For ETADS also how many steps each run took until
its loss on the validation reports, looked at every 500 steps, was LEARNED at most: what knows the single facts and
guesses the others is about there.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from longsumbench.metrics.metric import BOOTSTRAP_SEED, read_scores
from longsumbench.records import Results, RunRecord

SINGLE, DECILE = "fact_recall_single", "fact_recall_single_position_{}"
WINDOW, LENGTH, RESAMPLES = 256, 1_024, 10_000
RECIPE = {"batch_words": 2_048, "unlock": 0.6}  # of scale=probe
LONGER = ("pagesum", "etads", "hierarchical_transformer", "flat_transformer")  # trained, of the others:
STEPS, STEPS_OF_OTHERS = 6_000, 3_000
PLACES = (SINGLE, "fact_recall_silent_same", "fact_recall_silent_other")
KINDS = (SINGLE, "fact_recall_relayed", "fact_recall_silent")
DISTANCES = (*KINDS, *(f"fact_recall_{kind}_distance_{far}" for kind in ("relayed", "silent") for far in (0, 1, 4, 7)))
ETADS = {
    "focus_layers=[],saliency_layers=[]": "basic model",
    "saliency_layers=[]": "with focus",
    "focus_layers=[]": "with saliency",
    "": "both",
}
TOLD = {  # model, variant → its name, and of what recall is told
    ("pagesum", ""): ("pagesum, page-wise decoding", PLACES),
    ("pagesum", "decoding=global"): ("pagesum, global decoding", PLACES),
    **{("etads", variant): (f"etads, {name}", KINDS) for variant, name in ETADS.items()},
    ("hierarchical_transformer", ""): ("hierarchical transformer", DISTANCES),
    ("hierarchical_transformer", "global_layers=0"): ("hierarchical transformer, without global layers", DISTANCES),
    ("flat_transformer", ""): ("flat transformer", DISTANCES),
}
LEARNED = 0.12  # nats per target token


def main() -> None:
    """Print the claims, each with what it rests on."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results-dir", default="results/reference", help="where the runs are")
    results = Results(Path(parser.parse_args().results_dir))
    points: dict[tuple[str, str], list[pd.DataFrame]] = {}
    runs: dict[str, list[RunRecord]] = {}
    for record in results.records("probe"):
        path = results.root / "runs" / record.dataset / record.model / record.run_id / "scores.csv"
        wanted = {**RECIPE, "max_steps": STEPS if record.model in LONGER else STEPS_OF_OTHERS}
        recipe = record.config["train"]
        if record.scale == "probe" and recipe == {**recipe, **wanted} and path.is_file():
            points.setdefault((record.model, record.variant), []).append(read_scores(path))
            runs.setdefault(record.variant, []).extend([record] * (record.model == "etads"))
    if not points:
        sys.exit("no sweep's scores are here: run one first")
    if ("trunc", "") in points:
        tell_windows(points)
    for (model, variant), (name, measures) in TOLD.items():
        for measure in measures if (model, variant) in points else ():
            values = [one[measure] for one in points[model, variant]]
            print(f"{name}, {measure.removeprefix('fact_recall_')}: {told(values)}")
        if model == "etads" and (model, variant) in points:
            in_order = sorted(runs[variant], key=lambda record: record.seed or 0)
            print(f"{name}, steps to {LEARNED} nats: {', '.join(map(steps_needed, in_order))}")


def steps_needed(record: RunRecord) -> str:
    """Say after how many steps a run had learned, and its seed."""
    learned = [step for step, loss in record.fit.get("validation_losses", ()) if loss <= LEARNED]
    return f"{learned[0] if learned else 'more than all'} (seed {record.seed})"


def tell_windows(points: Mapping[tuple[str, str], Sequence[pd.DataFrame]]) -> None:
    """Print what systems find that see, or select, a part of the text."""
    trunc = points["trunc", ""]
    past = [DECILE.format(decile) for decile in range(10) if decile * LENGTH // 10 >= WINDOW]
    print(f"trunc, past its window ({len(past)} of 10 deciles): {told([one[past].mean(axis=1) for one in trunc])}")
    print(f"chance: {100 * trunc[0]['fact_recall_chance'].mean():.1f}")
    for length, variant in ((256, ""), (128, "extractive_length=128")):
        for model in ("ca", "ea", "seal"):
            if (model, variant) in points:
                print(f"{model} at extractive_length={length}: {told([one[SINGLE] for one in points[model, variant]])}")


def told(seeds: Sequence[pd.Series]) -> str:
    """Say the mean over seeds and examples, its interval, and the range of the seeds' means."""
    table = 100 * pd.concat(list(seeds), axis=1, join="inner").dropna().to_numpy()  # [examples, seeds]
    draw = np.random.default_rng(BOOTSTRAP_SEED)
    means = []
    for _ in range(RESAMPLES):
        examples, drawn = (draw.integers(0, size, size) for size in table.shape)
        means.append(table[examples][:, drawn].mean())
    low, high = np.quantile(means, [0.025, 0.975])
    of_seeds = table.mean(0)
    ends = f"{len(of_seeds)} seeds: {of_seeds.min():.1f} to {of_seeds.max():.1f}"
    return f"{table.mean():.1f} ({low:.1f} to {high:.1f}; {ends})"


if __name__ == "__main__":
    main()

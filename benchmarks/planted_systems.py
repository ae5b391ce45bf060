"""Does the gate catch systems that learned nothing, and pass those that did, whatever else is in the table?

python benchmarks/planted_systems.py                                           on generated reports, in a minute
python benchmarks/planted_systems.py wiki_sections=FOLDER sumpubmed=FOLDER     also on these corpora
python benchmarks/planted_systems.py --train                                   also trained systems: ten minutes more

Each system is judged alone with Random, and among all others, of which one has most of each reference. The reports are
read twice: as own texts, whose facts nothing knows, and as `probe`, where facts are counted. It exits with 1 if a
planted system passes, if a good one does not rank, or if the other rows change a word.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

import longsumbench
from longsumbench.core import Example
from longsumbench.leaderboards.learned import RANDOM, gate_rows
from longsumbench.leaderboards.seed_groups import (
    DEPENDS,
    LEARNED,
    NOT_LEARNED,
    NOT_RANKED,
    NOT_SHOWN,
)
from longsumbench.leaderboards.table import read_table
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

SPLITS = {"train": 2_000, "validation": 100, "test": 200}  # examples of a real corpus
REPORTS = {"name": "probe", "document_length": 128}
GOOD = ("most", "lead-copy", "random-copy", "few")  # and "all steps" on reports
STEPS = {"reports": 1_500}  # enough to learn; on real corpora 300, which is not
FEW = 12
_OF_REPORTS: dict[str, Any] = {
    "scale": "probe",
    "model": {"name": "pagesum", "locality": "spatial"},
    "train.batch_words": 1_024,
    "train.eval_steps": 250,
}
_OF_CORPORA: dict[str, Any] = {"scale": "tiny", "model": "seal", "train.eval_steps": 50}


def write_texts(dataset: Mapping[str, Any], folder: Path, shuffled: bool) -> None:
    """Write a dataset as JSON lines; with `shuffled`, training and validation have the sources of other examples."""
    folder.mkdir()
    loaded = longsumbench.load_dataset(**dataset)
    for name, most in SPLITS.items():
        split = loaded.splits[name]
        examples = [
            split[place]
            for place in range(min(len(split), 9_000 if dataset["name"] == "probe" else most))
        ]
        sources = [example.documents for example in examples]
        if shuffled and name != "test":
            sources = [
                sources[place] for place in np.random.default_rng(1).permutation(len(sources))
            ]
        lines = [
            {
                **example.to_dict(),
                "documents": Example(example.id, None, None, source, example.references).to_dict()[
                    "documents"
                ],
            }
            for example, source in zip(examples, sources, strict=True)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def planted_outputs(dataset: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the outputs of the systems that are no runs; those that should pass are in `GOOD`."""
    splits = longsumbench.load_dataset(**dataset).splits
    test = [splits["test"][place] for place in range(min(len(splits["test"]), SPLITS["test"]))]
    draw = random.Random(1)  # noqa: S311 - not for secrets
    references = [" ".join(example.references[0]) for example in test]
    order = draw.sample(range(len(test)), len(test))
    form = dict(zip(order, [references[place] for place in order[1:] + order[:1]], strict=True))
    vocabulary = " ".join(references).split()
    length = len(vocabulary) // len(references)
    sources = [" ".join(example.sentences()).split() for example in test]
    yield "constant", [" ".join(splits["train"][0].references[0])] * len(test)
    yield "form", [form[place] for place in range(len(test))]
    yield (
        "shuffled-words",
        [" ".join(draw.sample(words, min(length, len(words)))) for words in sources],
    )
    replaced = []
    for text in references:
        words = [word if draw.random() < 0.1 else draw.choice(vocabulary) for word in text.split()]
        replaced.append(" ".join(words))
    yield "replaced-90", replaced
    yield (
        "right-10",
        [references[place] if place % 10 == 0 else form[place] for place in range(len(test))],
    )
    titles = [
        example.title or " ".join(words[:3]) for example, words in zip(test, sources, strict=True)
    ]
    yield "title", titles
    incomplete = []
    for example in test:
        sentences = example.references[0]
        most_sentences = [sentence for place, sentence in enumerate(sentences) if place % 3]
        incomplete.append(" ".join(most_sentences) or sentences[0])
    yield "most", incomplete


def read_outputs(results: str, run: RunRecord) -> list[str]:
    """Return the outputs of a run in the order of its examples."""
    lines = (
        (Results(Path(results)).run_folder(run) / "predictions.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    return [" ".join(json.loads(line)["prediction"].split()) for line in lines]


def import_outputs(
    name: str, outputs: Sequence[str], root: Path, common: Mapping[str, Any]
) -> RunRecord:
    """Import a text for each example."""
    path = root / "outputs.txt"
    path.write_text("".join(f"{' '.join(text.split())}\n" for text in outputs))
    return longsumbench.import_outputs(path, model=name, **common, baselines=False)


def run_systems(name: str, dataset: Mapping[str, Any], root: Path, train: bool) -> list[list[str]]:
    """Run and import the systems of a dataset; return a line for each."""
    has_facts = name == "probe"
    if not has_facts:
        write_texts(dataset, root / name, shuffled=False)
        dataset = {"name": "jsonl", "path": str(root / name)}
    results = str(root / f"results-{name}")
    common: dict[str, Any] = {
        "dataset": {**dataset, "limit": SPLITS["test"]},
        "results_dir": results,
    }
    outputs = dict(planted_outputs(dataset))
    longsumbench.run(model=RANDOM, **common)
    for label, model, seed in (("lead-copy", "lead", 1), ("random-copy", RANDOM, 2)):
        outputs[label] = read_outputs(results, longsumbench.run(model=model, seed=seed, **common))
    run_places = {
        label: (results, import_outputs(label, texts, root, common).run_id)
        for label, texts in outputs.items()
    }
    few = {**common, "dataset": {**dataset, "limit": FEW}, "results_dir": f"{results}-few"}
    longsumbench.run(model=RANDOM, **few)
    good = import_outputs("few", outputs["most"][:FEW], root, few)
    run_places["few"] = few["results_dir"], good.run_id
    for shuffled in (False, True) if train and not has_facts else ():
        run_places |= train_systems(name, dataset, root, shuffled, results)
    return [describe(name, label, *where) for label, where in run_places.items()]


def train_systems(
    name: str, dataset: Mapping[str, Any], root: Path, shuffled: bool, results: str
) -> dict[str, tuple[str, str]]:
    """Train with all steps and with a tenth, or on shuffled sources; return label → results folder and run."""
    settings, steps = (_OF_REPORTS if name == "reports" else _OF_CORPORA), STEPS.get(name, 300)
    budgets = {"all steps": steps, "a tenth of the steps": steps // 10}
    if shuffled:
        budgets, results = {"trained with shuffled sources": steps}, f"{results}-shuffled"
        write_texts(dataset, root / f"{name}-shuffled", shuffled)
        dataset = {**dataset, "path": str(root / f"{name}-shuffled")}
    common: dict[str, Any] = {
        "dataset": {**dataset, "limit": SPLITS["test"]},
        "results_dir": results,
    }
    runs = {}
    longsumbench.run(model=RANDOM, **common)
    for label, most in budgets.items():
        change = {"train.max_steps": most, "train.eval_steps": max(1, most // 6)}
        runs[label] = results, longsumbench.run(**{**settings, **common, **change}).run_id
    return runs


def describe(name: str, label: str, results: str, run: str) -> list[str]:
    """Return a line of the table: texts, system, score, floor, lift, and the word of the gate, alone and among all."""
    (dataset,) = Results(Path(results)).datasets()
    table = read_table(Results(Path(results)), dataset)
    (block,) = [block for block in table.comparable if any(row.key == run for row in block.rows)]
    row = next(row for row in block.rows if row.key == run)
    alone = gate_rows(
        [row, *(other for other in block.rows if other.representative.key.model == RANDOM)],
        table.scores,
    )[run]
    numbers = [
        row.means[row.representative.evaluation.ranked_by].mean,
        row.learned.floor,
        row.learned.lift,
    ]
    cells = ["" if number is None else f"{number:.1f}" for number in numbers]
    return [name, label, *cells, alone.word, row.learned.word, row.learned.reason]


def find_wrong(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the systems whose word is wrong, or changes with the other rows."""
    wrong = []
    for texts, label, *_, alone, among, _reason in lines:
        is_good = label in GOOD or (label, texts) == ("all steps", "reports")
        if (
            label.endswith("-copy") and texts == "probe"
        ):  # few sentences of a report state a fact in the checked form
            is_good = False
        words = (LEARNED, DEPENDS, NOT_SHOWN) if is_good else (NOT_LEARNED, NOT_RANKED, NOT_SHOWN)
        if alone != among or alone not in words:
            wrong.append(f"{label} on {texts}")
    return wrong


def main(datasets: Sequence[str], train: bool) -> None:
    """Print the table; exit with 1 if a word is wrong."""
    read = {"reports": REPORTS, "probe": REPORTS} | {
        name: {"name": name, "path": path}
        for name, _, path in (text.partition("=") for text in datasets)
    }
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name, dataset in read.items():
            lines += run_systems(name, dataset, Path(folder), train)
    headings = ["texts", "system", "score", "floor", "lift, %", "alone", "among all", "why"]
    print(tabulate(lines, headings, disable_numparse=True))
    wrong = find_wrong(lines)
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "datasets", nargs="*", metavar="NAME=FOLDER", help="real corpora of the suite"
    )
    parser.add_argument("--train", action="store_true", help="also train systems")
    arguments = parser.parse_args()
    main(arguments.datasets, arguments.train)

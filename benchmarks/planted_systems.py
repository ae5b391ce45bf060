"""Does the gate catch systems that learned nothing? Four planted ones, on generated reports and on real corpora.

python benchmarks/planted_systems.py                                 on reports, in ten minutes of one core
python benchmarks/planted_systems.py wiki_sections=FOLDER sumpubmed=FOLDER     also on these corpora

Planted are: a constant (one training reference for all examples), the form (the reference of another example), training
with shuffled sources, and training that stops at a tenth of its steps. Beside them: a system that learns the reports,
Lead, and the reference with every third sentence left out. It exits with 1 if a planted system passes.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

import longsumbench
from longsumbench.core import Example
from longsumbench.leaderboards.seed_groups import NOT_LEARNED, NOT_RANKED, STILL_LEARNING
from longsumbench.leaderboards.table import read_table
from longsumbench.runs.results import Results

SPLITS = {"train": 2_000, "validation": 100, "test": 200}  # examples of a real corpus
PLANTED = ("constant", "form", "shuffled", "tenth")
REPORTS = {"name": "probe", "document_length": 128}
STEPS = {"probe": 1_500}  # enough to learn; on real corpora 300, which is not
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
        examples = [split[place] for place in range(min(len(split), 9_000 if dataset["name"] == "probe" else most))]
        sources = [example.documents for example in examples]
        if shuffled and name != "test":
            sources = [sources[place] for place in np.random.default_rng(1).permutation(len(sources))]
        lines = [
            {
                **example.to_dict(),
                "documents": Example(example.id, None, None, source, example.references).to_dict()["documents"],
            }
            for example, source in zip(examples, sources, strict=True)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def outputs_of(texts: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the outputs of the systems that are no runs."""
    splits = longsumbench.load_dataset("jsonl", path=str(texts)).splits
    test = [splits["test"][place] for place in range(len(splits["test"]))]
    references = [list(example.references[0]) for example in test]
    yield "constant", [" ".join(splits["train"][0].references[0])] * len(test)
    yield "form", [" ".join(sentences) for sentences in references[7:] + references[:7]]
    yield (
        "most of the reference",
        [" ".join(s for place, s in enumerate(one) if place % 3) or one[0] for one in references],
    )


def run_systems(name: str, dataset: Mapping[str, object], root: Path) -> list[list[str]]:
    """Run and import the systems of a dataset; return a line for each."""
    settings, steps = (_OF_REPORTS if name == "probe" else _OF_CORPORA), STEPS.get(name, 300)
    known = {}
    for shuffled in (False, True):
        texts = root / f"{name}{'-shuffled' if shuffled else ''}"
        write_texts(dataset, texts, shuffled)
        results = str(root / f"results-{texts.name}")
        common: dict[str, Any] = {"dataset": {"name": "jsonl", "path": str(texts)}, "results_dir": results}
        budgets = {"shuffled": steps} if shuffled else {"all steps": steps, "tenth": steps // 10}
        for label, most in budgets.items():
            change = {"train.max_steps": most, "train.eval_steps": max(1, most // 6)}
            record = longsumbench.run(**{**settings, **common, **change})
            known[label] = results, record.run_id
        if not shuffled:
            for label, outputs in outputs_of(texts):
                path = root / "outputs.txt"
                path.write_text("".join(f"{' '.join(text.split())}\n" for text in outputs))
                record = longsumbench.import_outputs(path, model=label.replace(" ", "-"), **common, baselines=False)
                known[label] = results, record.run_id
    return [describe(name, label, *where) for label, where in known.items()]


def describe(name: str, label: str, results: str, run: str) -> list[str]:
    """Return a line of the table: dataset, system, ROUGE-Lsum, floor, lift, and the word of the gate."""
    table = read_table(Results(Path(results)), "jsonl")
    row = next(row for block in table.comparable for row in block.rows if row.key == run)
    numbers = [row.numbers["rougeLsum"].mean, row.learned.floor, row.learned.lift]
    return [name, label, *(f"{number:.1f}" for number in numbers), row.learned.word, row.learned.reason]


def main(datasets: Sequence[str]) -> None:
    """Print the table; exit with 1 if a planted system passes, or the reference does not."""
    read = {"probe": REPORTS} | {
        name: {"name": name, "path": path} for name, _, path in (text.partition("=") for text in datasets)
    }
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name, dataset in read.items():
            lines += run_systems(name, dataset, Path(folder))
    print(tabulate(lines, ["texts", "system", "R-Lsum", "floor", "lift, %", "learned", "why"], disable_numparse=True))
    caught = {tuple(line[:2]): line[5] in (NOT_LEARNED, NOT_RANKED, STILL_LEARNING) for line in lines}
    wrong = [
        " on ".join(key[::-1])
        for key, found in caught.items()
        if found != (key[1] in PLANTED) and key[1] != "all steps"
    ]
    wrong += ["all steps on probe"] if caught["probe", "all steps"] else []
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", metavar="NAME=FOLDER", help="real corpora of the suite")
    main(parser.parse_args().datasets)

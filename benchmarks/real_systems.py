"""Imports released outputs of real systems, and runs baselines on the same examples, in four minutes.

    python benchmarks/real_systems.py ../shared/data [--results-dir results/reference]
    python benchmarks/real_systems.py ../shared/data --check       are the scores those of the release and of rouge_score?
    python benchmarks/real_systems_claims.py --check       what docs/findings.md says about them

DATA has `qmsum` and `squality` as the datasets read them, `qmsum_outputs`, `judged/kirstein_qmsum` and
`judged/squality_human`. Each set becomes a dataset, with a bundle and tables:

    qmsum            281 questions of the test split, 16 systems
    qmsum_meetings   the 35 test meetings with their first general question, five systems; so are the training texts
    squality_human   100 questions about 20 test stories, two systems and people, whose answers are one of the four
                     references: three are left

All is made in a temporary folder next to a link to DATA, so records have no path of a machine. Of a run the bundle has
the settings, the record and the scores, no text.
"""

import argparse
import gzip
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
from rouge_score.rouge_scorer import RougeScorer

import longsumbench
from longsumbench.metrics.aggregate import read_scores
from longsumbench.runs.results import Results, pack_runs
from longsumbench.views.leaderboard import TableView, update_table

PUBLISHED = Path(__file__).parents[1] / "results" / "reference"
SHARED = Path("../shared/data")  # the link to DATA, as records name it
BASELINES: dict[str, dict[str, str]] = {  # name → its settings
    "lead": {},
    "random": {},
    "lexrank": {},
    "ranker": {"model.rank": "bm25"},  # goes by the query
    "oracle": {},
}
WITHOUT_SENTENCES = ("rouge1", "rouge2", "rougeL")
EVERY = 20  # outputs of a system of which one is scored by rouge_score
LARGEST_DIFFERENCE = {"baseline-claude-haiku-4-5": 1.36}  # of R-Lsum, in points; of others 0.25
KEPT = ("config.yaml", "record.json", "scores.csv")
SETS = {  # dataset → the dataset that reads its texts, the folder of the outputs, their origin, file → system: settings
    "qmsum": (
        "qmsum",
        "qmsum_outputs/import",
        "github.com/ErtasAI/qmsum-locate-then-summarize @ 973968ec, Apache-2.0",
        {
            "row-socratic-segenc": "Socratic-SegEnc: released outputs",
            "segenc-port-full": "Socratic-SegEnc: run by the repository",
            "segenc-c8cont-e4": "SegEnc: 2000 located words",
            "loc-w375-l12-b2000": "LFM2.5-1.2B-LoRA: 2000 located words",
            "m3-fusion-lfm2.5-1.2b": "LFM2.5-1.2B-LoRA: 3000 located words",
            "zeroshot-lfm25-spans": "LFM2.5-1.2B: zero-shot on 2000 located words",
            "zeroshot-lfm25-trunc": "LFM2.5-1.2B: zero-shot on the first 4500 words",
            "baseline-gpt-5.6-luna": "GPT-5.6-Luna: zero-shot on the whole meeting",
            "baseline-gpt-5.6-sol": "GPT-5.6-Sol: zero-shot on the whole meeting",
            "baseline-claude-opus-5": "Claude-Opus-5: zero-shot on the whole meeting",
            "baseline-claude-sonnet-5": "Claude-Sonnet-5: zero-shot on the whole meeting",
            "baseline-claude-haiku-4-5": "Claude-Haiku-4.5: zero-shot on the whole meeting",
            "row-distilbart": "BART-QMSum: the first 700 words",
            "row-bart-large-cnn": "BART-large-CNN-QMSum: the first 700 words",
            "row-pegasus": "PEGASUS-QMSum: the first 700 words",
            "row-led-base": "LED-QMSum: the first 3000 words",
        },
    ),
    "qmsum_meetings": (
        "qmsum",
        "judged/kirstein_qmsum/import",
        "Kirstein et al. 2024, github.com/FKIRSTE/emnlp2024-Meeting-Sum-Metrics @ 22bec9db, Apache-2.0",
        {name: name for name in ("LED", "DialogLED", "PEGASUS-X", "Zephyr-7B-alpha", "GPT-3.5")},
    ),
    "squality_human": (
        "squality",
        "judged/squality_human/import",
        "Wang et al. 2022, github.com/nyu-mll/SQuALITY @ dc08d4f5, CC BY 4.0",
        {name: name for name in ("bart", "bart-dpr", "human")},
    ),
}


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of JSON lines."""
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as lines
    ):
        yield from map(json.loads, lines)


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_meetings(folder: Path) -> None:
    """Write the meetings of QMSum with their first general question alone."""
    for split in ("train", "validation", "test"):
        rows = read_rows(SHARED / "qmsum" / f"{split}.jsonl.gz")
        first = (
            row | {"general_query_list": row["general_query_list"][:1], "specific_query_list": []}
            for row in rows
        )
        write_rows(folder / f"{split}.jsonl", first)


def write_stories(folder: Path) -> None:
    """Write the judged stories without the references that are outputs, and these outputs as human.jsonl."""
    judged = SHARED / "judged" / "squality_human"
    references = {
        row["id"]: row["references_without_human"] for row in read_rows(judged / "documents.jsonl")
    }
    shutil.copy(SHARED / "squality" / "train.jsonl.gz", folder)
    stories = []
    for row in read_rows(SHARED / "squality" / "test.jsonl.gz"):
        for question in row["questions"]:
            texts = references.get(
                f"{row['metadata']['passage_id']}-{question['question_number']}", ()
            )
            question["responses"] = [{"response_text": text} for text in texts]
        stories += [row] if row["questions"][0]["responses"] else []
    write_rows(folder / "test.jsonl", stories)
    outputs = [row for row in read_rows(judged / "outputs.jsonl") if row["system"] == "human"]
    write_rows(
        folder / "human.jsonl", ({"id": row["id"], "prediction": row["output"]} for row in outputs)
    )


def make_runs(name: str) -> None:
    """Make the runs of a set in `results` of the current folder."""
    reader, outputs, origin, systems = SETS[name]
    path = SHARED / name
    if write_texts := {"qmsum_meetings": write_meetings, "squality_human": write_stories}.get(name):
        path = Path(name)
        path.mkdir()
        write_texts(path)
    dataset: Any = {"name": reader, "path": str(path)}
    settings: dict[str, Any] = {"dataset.name": name, "baselines": False}
    for model, choice in BASELINES.items():
        longsumbench.run(model=model, dataset=dataset, **settings, **choice)
    for file, system in systems.items():
        model, _, variant = system.partition(": ")
        folder = path if file == "human" else SHARED / outputs
        source = (
            f"Salesforce's file in {origin.partition(',')[0]}, BSD-3-Clause"
            if "released" in variant
            else origin
        )
        labels: dict[str, Any] = {
            "model": model,
            "variant": variant,
            "origin": source,
            "intersect": True,
        }
        longsumbench.import_outputs(folder / f"{file}.jsonl", dataset=dataset, **labels, **settings)


def publish(
    runs: Iterable[Path],
    names: Sequence[str],
    results: Results,
    keep: bool = False,
    files: Sequence[str] = KEPT,
) -> None:
    """Pack these files of the runs of some datasets, and make the tables; `keep` what is packed already."""
    for name in names:
        if not keep:
            results.bundle(name).unlink(missing_ok=True)
    for run in runs:
        copy = results.root.joinpath("runs", *run.parts[-3:])
        copy.mkdir(parents=True)
        for file in files:
            shutil.copy(run / file, copy)
        config = copy / "config.yaml"
        settings = re.sub("(?m)^results_dir: .*", "results_dir: results", config.read_text())
        config.write_text(settings)
    print(*pack_runs(results), sep="\n")
    shutil.rmtree(results.root / "runs")
    for name in names:
        print(TableView(update_table(results, name)).render())


def check_scores(results: Results, outputs: Path) -> None:
    """Check the committed scores of the 16 systems on QMSum, example by example and in their means.

    R-1, R-2 and R-L do not depend on how sentences are split. R-Lsum does, so it is only close to that of the release.
    One in twenty outputs of each system is scored again by rouge_score.
    """
    published = {row["file"]: row["published"] for row in read_rows(outputs / "systems.jsonl")}
    documents = read_rows(outputs / "documents.jsonl")
    references = {row["id"]: row["references"] for row in documents}
    library = RougeScorer([*WITHOUT_SENTENCES], use_stemmer=True)
    columns = [f"{kind}_f" for kind in WITHOUT_SENTENCES]
    runs = [record for record in results.records("qmsum") if record.imported]
    files = [record.imported.file.removesuffix(".jsonl") for record in runs if record.imported]
    assert sorted(files) == sorted(published), files
    for start, (file, record) in enumerate(zip(files, runs, strict=True)):
        scores = read_scores(results.run_folder(record) / "scores.csv")
        means = scores.mean()
        stated = [published[file][kind] for kind in WITHOUT_SENTENCES]
        assert np.allclose(means[columns], stated, rtol=0, atol=1e-12), file
        difference = abs(100 * (means["rougeLsum_f"] - published[file]["rougeLsum"]))
        assert difference < LARGEST_DIFFERENCE.get(file, 0.25), file
        for kind, score in record.evaluation.scores.items():
            own_means = 100 * means[[f"{kind}_{statistic}" for statistic in "prf"]]
            assert np.allclose(own_means, [score.p, score.r, score.f], rtol=0, atol=1e-9), file
        for row in list(read_rows(outputs / "import" / f"{file}.jsonl"))[start::EVERY]:
            expected = library.score_multi(references[row["id"]], row["prediction"])
            f1 = [expected[kind].fmeasure for kind in WITHOUT_SENTENCES]
            assert np.allclose(scores.loc[row["id"], columns], f1, rtol=0, atol=1e-12), row["id"]


def main() -> None:
    """Make the runs, pack them and make the tables; or check the scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--results-dir", type=Path, default=PUBLISHED)
    parser.add_argument("--check", action="store_true", help="compare the scores with others")
    options = parser.parse_args()
    results = Results(options.results_dir.resolve())
    if options.check:
        check_scores(results, options.data / "qmsum_outputs")
        return
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        work.mkdir()
        (Path(folder) / "shared").mkdir()
        (work / SHARED).symlink_to(options.data.resolve())
        with chdir(work):
            for name in SETS:
                make_runs(name)
        publish((work / "results" / "runs").glob("*/*/*"), list(SETS), results)


if __name__ == "__main__":
    main()

"""Writes how far metrics agree with people on released judgements, without texts.

python benchmarks/agreement.py ../shared/data/judged [--sets summeval_op longsciverify/arxiv] [--pictures FOLDER]

The folder has kirstein_qmsum, koh2022, longsciverify, squality_human and summeval_op, each as `longsumbench agreement`
reads it; the meetings of kirstein_qmsum are in ../qmsum_outputs. Prints the tables. Writes all sets into
results/reference/agreement/agreement.csv, in half a minute of one core. --check compares the sets with that file
instead.
"""

import argparse
import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from longsumbench.files import write_atomically
from longsumbench.outputs.agreement import Agreement, agreement, write_agreement

PUBLISHED = Path(__file__).parents[1] / "results" / "reference" / "agreement" / "agreement.csv"
METRICS = ["extractive", "novel_ngrams"]
ERRORS = "number of errors (of 8)"  # of kirstein_qmsum: those labelled for all systems
PARTIAL_LABELS = ("error: total omission", "error: partial omission / lacking depth")


class JudgedSet(NamedTuple):
    """A folder, a field of its documents with a value, and the systems left out."""

    folder: str
    where: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()


SETS = {
    "kirstein_qmsum": JudgedSet("kirstein_qmsum", (), ("Zephyr-7B-alpha", "GPT-3.5")),
    "koh2022/GovReport": JudgedSet("koh2022", ("corpus=GovReport",)),
    "koh2022/arXiv": JudgedSet("koh2022", ("corpus=arXiv",)),
    "longsciverify/arxiv": JudgedSet("longsciverify", ("corpus=arxiv",)),
    "longsciverify/pubmed": JudgedSet("longsciverify", ("corpus=pubmed",)),
    "squality/3 systems": JudgedSet("squality_human"),
    "squality/bart; bart-dpr": JudgedSet("squality_human", (), ("human",)),
    "summeval_op": JudgedSet("summeval_op", (), ("human-summaries",)),
}


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def judged_folder(name: str, judged: Path, copies: Path) -> Path:
    """Return the folder of a set; two are copied, with references that no judged person wrote, or with meetings."""
    folder = judged / SETS[name].folder
    if folder.name not in ("kirstein_qmsum", "squality_human"):
        return folder
    tables = {
        kind: read_rows(folder / f"{kind}.jsonl") for kind in ("documents", "outputs", "judgements")
    }
    if folder.name == "kirstein_qmsum":
        meetings = {
            row["meeting_id"]: row
            for row in read_rows(judged.parent / "qmsum_outputs" / "meetings.jsonl")
        }
        tables["judgements"] += error_counts(tables["judgements"])
        for row in tables["documents"]:
            turns = meetings[row["meeting_id"]]["meeting_transcripts"]
            row["document"] = " ".join(turn["content"] for turn in turns)
    else:
        shutil.copy(folder / "stories.jsonl", copies)
        for row in tables["documents"]:
            row["references"] = row["references_without_human"]
    for kind, rows in tables.items():
        (copies / f"{kind}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
    return copies


def error_counts(judgements: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a judgement of the number of errors for each output."""
    sums: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for row in judgements:
        if row["aspect"] not in PARTIAL_LABELS:
            sums[row["id"], row["system"], row["annotator"]] += row["score"]
    for (document, system, annotator), number in sums.items():
        yield {
            "id": document,
            "system": system,
            "annotator": annotator,
            "aspect": ERRORS,
            "score": number,
        }


def agreement_of_set(name: str, judged: Path, copies: Path) -> Agreement:
    """Measure the agreement of a set."""
    options = SETS[name]._asdict() | {"folder": judged_folder(name, judged, copies)}
    return replace(agreement(**options, metrics=METRICS), name=name)


def table_of_sets(results: Iterable[Agreement]) -> str:
    """Return the tables of several sets as one CSV."""
    tables = [result.table.assign(set=result.name) for result in results]
    table = pd.concat(tables)[["set", *tables[0].columns.drop("set")]].dropna(
        axis="columns", how="all"
    )
    return table.to_csv(index=False, lineterminator="\n", float_format="%.4f")


def main() -> None:
    """Print the tables; write them, if all sets are measured, and the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("judged", type=Path)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--pictures", type=Path)
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 if the file has other numbers"
    )
    options = parser.parse_args()
    results = []
    for name in options.sets:
        with tempfile.TemporaryDirectory() as copies:
            results.append(result := agreement_of_set(name, options.judged, Path(copies)))
        print(result.render(), end="\n\n")
        if options.pictures:
            write_agreement(result, options.pictures / name)
    if options.check:
        computed = pd.read_csv(StringIO(table_of_sets(results)))
        published = pd.read_csv(PUBLISHED).query("set in @options.sets").reset_index(drop=True)
        computed = computed.reindex(columns=published.columns)
        pd.testing.assert_frame_equal(computed, published, atol=2e-4, check_dtype=False)
    elif options.sets == list(SETS):
        write_atomically(PUBLISHED, table_of_sets(results))
        print(PUBLISHED)


if __name__ == "__main__":
    main()

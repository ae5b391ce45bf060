"""The files of a checkpoint stage that describe its training."""

import json
from dataclasses import asdict
from pathlib import Path

import datasets

from longsumbench.core import Cut, FitReport, Truncation
from longsumbench.files import read_json, write_atomically

_REPORT = "fit.json"  # written last


def kept_folder(checkpoint: Path, number: int) -> Path:
    """Return the folder of the n-th best weights of a checkpoint stage; the best are in the stage's folder."""
    return checkpoint if number == 1 else checkpoint / "kept" / str(number)


def is_trained(folder: Path) -> bool:
    """Return True if a folder has the weights of a finished training."""
    return (folder / _REPORT).is_file()


def write_report(folder: Path, report: FitReport, rows: datasets.Dataset, special: int) -> None:
    """Write a report with the ledger of the training targets, which have `special` special tokens each."""
    lengths = rows["target_tokens"]
    cut_lengths = [len(labels) - special for labels in rows["labels"]]
    tokens_cut = sum(lengths) - sum(cut_lengths)
    cuts = (Cut("decode_length", tokens_cut, sum(rows["target_words_cut"])),) if tokens_cut else ()
    ledger = Truncation(sum(lengths), sum(rows["target_words"]), cuts)
    num_cut = sum(length > cut_length for length, cut_length in zip(lengths, cut_lengths, strict=True))
    content = {**asdict(report), "targets": asdict(ledger), "targets_cut": num_cut}
    write_atomically(folder / _REPORT, json.dumps(content))


def read_report(folder: Path) -> FitReport:
    """Read the report of a checkpoint stage."""
    return read_json(folder / _REPORT, FitReport)

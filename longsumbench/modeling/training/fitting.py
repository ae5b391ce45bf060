"""The stage "checkpoint": a network is trained, and saved with its report. Begin with `Fitting.build`."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import datasets
from transformers import set_seed

from longsumbench import core
from longsumbench.cache.artifacts import reading_artifact
from longsumbench.core.versions import DECODING_VERSION
from longsumbench.errors import DataError
from longsumbench.files import read_json, write_atomically
from longsumbench.modeling import processes
from longsumbench.modeling.collate import check_rows
from longsumbench.modeling.training.state import load_weights, read_weights, weights_folder
from longsumbench.modeling.training.trainer import Collate, Objective, parameters, train

# Of a stage "checkpoint", written last.
_REPORT = "fit.json"


@dataclass(frozen=True)
class Fitting:
    """What a system trains, on what, and how it saves it.

    Attributes:
        recipe: how to train, and for how long.
        rows, validation: as the trainer takes them; None: there is no validation split.
        num_special: special tokens of a target.
        start: returns the network that training starts from; the seed is set before.
        collator, objective: what the trainer takes; they are asked for after `start`.
        save: writes the system with this network into a folder.
    """

    recipe: core.TrainConfig
    rows: datasets.Dataset
    validation: datasets.Dataset | None
    num_special: int
    start: Callable[[], Any]
    collator: Callable[[], Collate]
    objective: Callable[[], Objective | None]
    save: Callable[[Path], None]

    def build(self, folder: Path) -> None:
        """Build the stage; an interrupted training continues from its newest complete checkpoint.

        Processes that train together all call this; the first one saves.
        """
        processes.announce_build(folder)
        trainer_folder, recipe, rows = folder / "trainer", self.recipe, self.rows
        if not processes.from_first_process((folder / _REPORT).is_file()):
            with processes.first_process_first():
                set_seed(recipe.seed)
                model = self.start()
            report = core.FitReport(parameters=parameters(model), ended_by="max_steps")
            if recipe.max_steps > 0:
                validation = self.validation
                check_rows(*([rows] if validation is None else [rows, validation]))
                collator, objective = self.collator(), self.objective()
                report = train(
                    model, rows, validation, collator, recipe, trainer_folder, objective=objective
                )
            if processes.process_index():
                return
            self.save(folder)
            for number, (step, _) in enumerate(report.kept[1:], start=2):
                load_weights(model, read_weights(weights_folder(trainer_folder, step)))
                checkpoint_folder(folder, number).mkdir(parents=True, exist_ok=True)
                self.save(checkpoint_folder(folder, number))
            report = _with_targets(report, rows, self.num_special)
            write_atomically(folder / _REPORT, json.dumps(asdict(report)))
        shutil.rmtree(trainer_folder, ignore_errors=True)


def num_validated(context: core.FitContext) -> int:
    """Return how many examples of the validation split the training watches; 0 without one.

    Raises:
        DataError: the recipe keeps or averages the best checkpoints, and there is no validation split.
    """
    recipe, validation = context.recipe, context.validation
    number, name = recipe.keep_best, "train.keep_best"
    if number == 1:
        number, name = recipe.average_weights, "train.average_weights"
    if number > 1 and recipe.max_steps and not validation:
        problem = (
            "chooses checkpoints by their validation loss, and the dataset has no validation split"
        )
        raise DataError(f"{name}={number} {problem}; add one, or choose {name}=1")
    if validation is None:
        return 0
    return min(len(validation), recipe.eval_examples or len(validation))


def training_inputs(config: core.SystemConfig, context: core.FitContext) -> dict[str, Any]:
    """Return the JSON values that decide what a training learns, apart from how texts are read."""
    assert context.train is not None
    not_trained = core.names_deciding(config, "summaries")
    validation = context.validation
    watched = None if validation is None else [validation.fingerprint, num_validated(context)]
    return {
        "config": {
            key: value for key, value in config.identity().items() if key not in not_trained
        },
        "recipe": core.outcome_settings(context.recipe),
        "train": context.train.fingerprint,
        "validation": watched,
        "version": config.version,
        "decoding": DECODING_VERSION,
    }


def read_report(checkpoint: Path) -> core.FitReport:
    """Return the report of a training, from the folder of its checkpoint."""
    with reading_artifact(checkpoint):
        return read_json(checkpoint / _REPORT, core.FitReport)


def checkpoint_folder(checkpoint: Path, number: int) -> Path:
    """Return the folder of the n-th best weights of a checkpoint stage; the best are in the stage's folder."""
    return checkpoint if number == 1 else checkpoint / "kept" / str(number)


def _with_targets(report: core.FitReport, rows: datasets.Dataset, special: int) -> core.FitReport:
    """Return a report with the ledger of the training targets, which have `special` special tokens each."""
    lengths = rows["target_tokens"]
    cut_lengths = [len(labels) - special for labels in rows["labels"]]
    tokens_cut = sum(lengths) - sum(cut_lengths)
    cuts = (
        (core.Cut("decode_length", tokens_cut, sum(rows["target_words_cut"])),)
        if tokens_cut
        else ()
    )
    ledger = core.Truncation(sum(lengths), sum(rows["target_words"]), cuts)
    num_cut = sum(
        length > cut_length for length, cut_length in zip(lengths, cut_lengths, strict=True)
    )
    return replace(report, targets=ledger, targets_cut=num_cut)

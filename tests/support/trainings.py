"""Short trainings of a tiny system."""

from pathlib import Path
from typing import Any

import torch

from longsumbench.api.config import Recipe
from longsumbench.api.system import FitContext, FitReport
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.cache.checksums import CHECKSUMS
from longsumbench.models.seal.system import Trunc
from support.toys import TINY, ToySplit, tiny_recipe

TRAIN, VALIDATION = ToySplit.of("train", 40), ToySplit.of("validation", 9, start=900)


def fit(stages: ArtifactCache, recipe: Recipe, train: ToySplit = TRAIN, **settings: Any) -> tuple[Trunc, FitReport]:
    system = Trunc(Trunc.Config(**{**TINY, "dropout": 0.1, **settings}))
    return system, system.fit(FitContext(train, VALIDATION, recipe, stages))


def weights(system: Trunc) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in system.model.state_dict().items()}


def training_batch(system: Trunc, example: Any) -> dict[str, torch.Tensor]:
    from longsumbench.modeling.collate import UnitCollator

    return UnitCollator(system.tokenizer.pad_token_id)([system.reader.row(example)])


UP_AND_DOWN = {"max_steps": 14, "eval_steps": 2, "learning_rate": 0.3, "schedule": "constant", "warmup_steps": 8}


def restless(**changes: Any) -> Recipe:
    """Return a recipe whose validation loss falls and rises again."""
    return tiny_recipe(**{**UP_AND_DOWN, **changes})


def files(folder: Path) -> dict[str, bytes]:
    """Return the content of all files below a folder, but for how long training took and for when they were written."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(found.items()) if name not in ("fit.json", CHECKSUMS)}

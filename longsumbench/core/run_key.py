"""What makes a run the run that it is."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class RunKey:
    """What decides the outcome of a run.

    Attributes:
        model: name of the system.
        dataset: name of the dataset.
        split: the split that is summarized.
        seed: None if the outcome does not depend on it.
        fingerprint: the hash of the dataset's texts.
        versions: step → version of its code, which rises when the outcome of the step changes. Empty if unknown.
    """

    model: str
    dataset: str
    split: str
    seed: int | None
    fingerprint: str
    versions: Mapping[str, int]

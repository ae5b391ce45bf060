"""Metrics of the library `evaluate`, by name: `score.metrics=["evaluate/bleu@v0.4.6"]`.

Loading such a metric runs its code, from the hub or from a folder. So each must be named by the user.
"""

import json
from functools import cached_property
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from longsumbench.core import Example, Metric
from longsumbench.errors import DataError, EnvironmentProblem
from longsumbench.metrics.bertscore import stripped_references


class LibraryMetric(Metric):
    """A metric of `evaluate`, computed for each example; of several references, the mean if it takes one at a time.

    The value is the entry of the result with the metric's name, else its first number, in its own unit. It does not
    apply to an empty prediction, or to an example without references.

    Attributes:
        path: the name on the hub, or a folder or a script.
        revision: of the hub; None: that of the installed library.
    """

    needs_source = False
    path: ClassVar[str]
    revision: ClassVar[str | None]

    def check(self) -> None:
        """Load the metric and score a sentence by itself."""
        self._value("A sentence.", ["A sentence."])

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; the column → the metric's value, or NaN."""
        references = stripped_references(example)
        value = np.nan
        if references and prediction.strip():
            value = self._value(prediction, references)
        return {self.columns[0]: value}

    def signature(self, n: int) -> str:
        """Name the metric, the hash of its code, its revision, the library's version and the settings."""
        import evaluate

        parts = {
            f"{self.name.partition('/')[0]}/{PurePath(self.path).name}": self.version,
            "code": self._loaded._hash[:8],
            "revision": self.revision or "default",
            "evaluate": evaluate.__version__,
            "settings": json.dumps(self._settings, sort_keys=True),
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items())

    @property
    def _settings(self) -> dict[str, Any]:
        return dict(self.scoring.evaluate_settings.get(PurePath(self.path).stem, {}))

    @cached_property
    def _loaded(self) -> Any:
        import evaluate  # imports datasets, which takes seconds

        try:
            return evaluate.load(self.path, revision=self.revision, keep_in_memory=True)
        except Exception as error:  # the code of a metric can raise anything
            advice = "check the name and the network, or name a folder with its script"
            raise EnvironmentProblem(
                f"score.metrics: cannot load {self.name} ({error}): {advice}"
            ) from error

    @cached_property
    def _takes_several(self) -> bool:
        features = self._loaded.features
        choices = features if isinstance(features, list) else [features]
        kinds = {type(choice["references"]).__name__ for choice in choices}
        return not kinds.isdisjoint(("Sequence", "List", "list"))

    def _value(self, prediction: str, references: list[str]) -> float:
        # several references of a metric that takes one are averaged
        choices = [references] if self._takes_several else references
        return float(np.mean([self._compute(prediction, choice) for choice in choices]))

    def _compute(self, prediction: str, references: str | list[str]) -> float:
        try:
            result = self._loaded.compute(
                predictions=[prediction], references=[references], **self._settings
            )
            numbers = {key: np.ravel(value) for key, value in result.items() if np.size(value) == 1}
            return float(numbers.get(PurePath(self.path).stem, next(iter(numbers.values())))[0])
        except Exception as error:  # as above
            settings = f" with score.evaluate_settings={self._settings}" if self._settings else ""
            raise DataError(
                f"{self.name} cannot score a summary{settings}: {type(error).__name__}: {error}"
            ) from error


def library_metric(word: str) -> type[LibraryMetric]:
    """Return the metric that is named "NAME", "NAME@REVISION" or by a path; it is loaded when it is used."""
    path, _, revision = word.partition("@")
    column = f"evaluate_{PurePath(path).stem}"
    units = MappingProxyType({column: "as the metric has it"})
    facts = {"name": f"evaluate/{word}", "columns": (column,), "units": units}
    return type(column, (LibraryMetric,), facts | {"path": path, "revision": revision or None})

"""What makes a run the run that it is: `RunKey.of` its settings, before any text is read."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from longsumbench.core import registry
from longsumbench.core.config import RunConfig, settings_without_effect
from longsumbench.core.ranker import learned_ranker, ranker_version
from longsumbench.core.settings import Settings, settings_deciding
from longsumbench.core.system_config import SystemConfig, deciding_parts
from longsumbench.core.versions import DECODING_VERSION, LOADING_VERSION, SCORING_VERSION
from longsumbench.files import digest

_HASH = 16  # hexadecimal digits
_WRITTEN_BY_SUITE = {"train", "decode"}


@dataclass(frozen=True)
class RunKey:
    """What decides the outcome of a run. Two runs with the same key are the same run.

    Runs whose keys differ only in `seeds` are a system with several seeds.

    Attributes:
        model: name of the system.
        dataset: name of the dataset.
        split: the split that is summarized.
        seeds: of the run, its training and its decoding; empty if the outcome does not depend on them.
        system: a hash of the settings that decide how summaries are made, without the seeds.
        scoring: a hash of the settings that decide which summaries are scored, and how.
        texts: a hash of the settings that decide the texts, without their folder. It decides no run id.
        versions: step → version of its code. Empty if unknown.
        fingerprint: the hash of the dataset's texts; empty before they are read.
        outputs: a hash of imported outputs; empty for others.
        layout: the hash of the texts with their line breaks and blanks; empty if sentences give these, or for a system
            that does not read them.
    """

    model: str
    dataset: str
    split: str
    seeds: tuple[int, ...]
    system: str
    scoring: str
    texts: str
    versions: Mapping[str, int]
    fingerprint: str = ""
    outputs: str = ""
    layout: str = ""

    @classmethod
    def of(cls, config: RunConfig, content: Mapping[str, Any] | None = None) -> Self:
        """Return the key of a run.

        Args:
            config: its settings.
            content: what identifies the model; by default `SystemConfig.identity`, which reads its checkpoint.

        Raises:
            EnvironmentProblem: the checkpoint is not on this machine.
        """
        model, dataset = config.model, config.dataset
        parts = deciding_parts(model, config.train, config.decode)
        unused_settings = settings_without_effect(config)
        identity = model.identity() if content is None else content
        system = {f"model.{name}": value for name, value in identity.items()}
        for section in parts - {"seed"}:
            for name, value in _deciding_summaries(getattr(config, section)).items():
                system[f"{section}.{name}"] = value
        for name in system.keys() & unused_settings:
            del system[name]
        words = settings_deciding(config.score, "words")
        if words and (model.capabilities.counts_overlap or learned_ranker(model.rank)):
            system["words_of_overlap"] = words
        scoring = [config.decode.limit, _deciding_summaries(config.score)]
        texts = {**_deciding_summaries(dataset), "path": None}
        seeds = (config.seed, config.train.seed, config.decode.seed)
        metrics = registry.corpora.load(str(dataset.reader)).metrics_for(dataset)
        return cls(
            model=model.name,
            dataset=dataset.name,
            split=dataset.split,
            seeds=seeds if "seed" in parts else (),
            system=digest(system)[:_HASH],
            scoring=digest(scoring)[:_HASH],
            texts=digest(texts)[:_HASH],
            versions=current_versions(model, metrics),
        )

    @property
    def seed(self) -> int | None:
        """The seed of the run; None if its outcome does not depend on it."""
        return self.seeds[0] if self.seeds else None

    @property
    def run_id(self) -> str:
        """Twelve hexadecimal digits."""
        values = asdict(self)
        del values["texts"]
        if not self.layout:
            del values["layout"]
        return digest(values)[:12]


def _deciding_summaries(settings: Settings) -> dict[str, Any]:
    """Return the settings that decide how an example is read, summarized or scored; without those at their default."""
    return settings_deciding(
        settings, "run", "units", "words", "labels", "use", "budget", "speed", "summaries", "texts"
    )


def current_versions(model: SystemConfig, metrics: Collection[str]) -> dict[str, int]:
    """Return the versions of the code that decide the outcome of a run; `metrics` are those of the dataset."""
    versions = {
        "reading": LOADING_VERSION,
        "scoring": SCORING_VERSION,
        "system": model.version,
    }
    if _WRITTEN_BY_SUITE & model.decided_by:
        versions["decoding"] = DECODING_VERSION
    ranker = ranker_version(model.rank)
    if ranker is not None:
        versions["ranker"] = ranker
    for name in metrics:
        versions[f"metric {name}"] = registry.metrics.load(name).version
    return versions

"""Which finished run is the run of a planned point: equal settings and versions, any folder of results or texts."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from longsumbench.api import SECTIONS, DatasetSettings, RunConfig, registry
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.files import digest
from longsumbench.runs.known_systems import make_system
from longsumbench.runs.plan import Planned
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.run_id import config_identity, current_versions


class FinishedRuns:
    """The finished runs of a results folder, by what decides their outcome."""

    def __init__(self, results: Results, ran: frozenset[str] = frozenset()) -> None:
        self._results, self._ran = results, ran
        self._records: dict[tuple[str, str], list[RunRecord]] = {}
        self._read: set[str] = set()
        self._identities: dict[tuple[str, str | None], str | None] = {}

    def find(self, point: Planned) -> RunRecord | None:
        """Return the record of a point, of several runs the one that finished last; None if there is none."""
        return max(self._with_settings(point), key=lambda record: (record.finished, record.run_id), default=None)

    def find_outdated(self, point: Planned) -> list[RunRecord]:
        """Return the runs of a point that older code made: their versions are unknown, or not the current ones."""
        return self._with_settings(point, outdated=True)

    def _with_settings(self, point: Planned, outdated: bool = False) -> list[RunRecord]:
        """Return the runs with the settings of a point, either of the current versions or of others."""
        config = point.config
        identity, metrics = _outcome_identity(config), set(config.score.metrics)
        matching = [
            record
            for record in self._of(config.dataset.name, config.model.name)
            if metrics <= set(record.measured_by)
            and (record.run_id in self._ran or _may_be_texts_of(record, config.dataset))
            and self._identity(record, config) == identity
        ]
        versions = _versions_of(config) if matching else {}
        return [record for record in matching if (record.versions != versions) == outdated]

    def _of(self, dataset: str, model: str) -> Sequence[RunRecord]:
        if dataset not in self._read:
            self._read.add(dataset)
            for record in self._results.records(dataset):
                if not record.imported:
                    self._records.setdefault((dataset, record.model), []).append(record)
        return self._records.get((dataset, model), ())

    def _identity(self, record: RunRecord, config: RunConfig) -> str | None:
        key = (record.run_id, config.dataset.path)
        if key not in self._identities:
            self._identities[key] = _identity_at(record, config)
        return self._identities[key]


def _may_be_texts_of(record: RunRecord, settings: DatasetSettings) -> bool:
    """Return True if a run read the texts of a point: from the same files, or from any if the point names none."""
    corpus, path = registry.corpora.load(str(settings.reader)), record.config["dataset"].get("path")
    needs_files = settings.filler is None and corpus.built_in is None and corpus.hub is None
    return path == settings.path or (settings.path is None and needs_files)


def _versions_of(config: RunConfig) -> dict[str, int]:
    system = make_system(config.model)
    return current_versions(system, registry.corpora.load(str(config.dataset.reader)).metrics)


def _identity_at(record: RunRecord, config: RunConfig) -> str | None:
    """Return the identity of a finished run with the folders of a point; None if its settings are of another version.

    A run is the same wherever its results are.
    """
    rest = {**record.config, "results_dir": config.results_dir}
    rest["dataset"] = {**rest["dataset"], "path": config.dataset.path}
    schemas = {"model": type(config.model), **SECTIONS}
    try:  # values in a record were checked when it was written
        sections = {name: schema(**rest.pop(name)) for name, schema in schemas.items()}
        return _outcome_identity(RunConfig(**rest, **sections))
    except (TypeError, KeyError, UsageError):
        return None


def _outcome_identity(config: RunConfig) -> str:
    """Return a hash of the settings of a run, without its requested metrics."""
    config = replace(config, score=replace(config.score, metrics=[]))
    try:
        return config_identity(config, make_system(config.model))
    except EnvironmentProblem:  # a checkpoint that is not on this machine
        return digest(asdict(config))

"""The words typed after `longsumbench paper NAME`: the scale, folders of texts, settings of the page, overrides."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from longsumbench.api import SECTIONS, DatasetSettings, RunConfig, names_deciding, registry
from longsumbench.api.settings import SAME_RUN
from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.reading.hub import check_copy_or_network
from longsumbench.errors import EnvironmentProblem, SuiteError, UsageError, did_you_mean
from longsumbench.papers.artifacts import PAPER, Artifact
from longsumbench.runs.typed_overrides import GROUPS, TOP_LEVEL_SETTINGS, override_key

_CHOSEN = ("model", "model/recipe", "dataset", "experiment")  # groups that an artifact chooses
_PATH = "path."  # path.arxiv=FOLDER sets dataset.path where dataset=arxiv


class TypedWords(NamedTuple):
    """The typed words of `longsumbench paper NAME`, sorted by what they change.

    Attributes:
        scale: the scale.
        paths: our name of a dataset → its folder or file.
        options: settings of the kind of artifact.
        overrides: added to every point.
        launcher: words about Hydra's launcher.
        page: the words that change the page: all but the scale and the launcher.
    """

    scale: str
    paths: Mapping[str, str]
    options: Mapping[str, str | int | float | None]
    overrides: tuple[str, ...]
    launcher: tuple[str, ...]
    page: tuple[str, ...]


def sort_words(artifact: Artifact, words: Sequence[str]) -> TypedWords:
    """Sort the typed words of an artifact.

    Raises:
        UsageError: a word is invalid, or the artifact lacks the scale.
    """
    scales = [word.partition("=")[2] for word in words if override_key(word) == "scale"]
    scale = scales[-1] if scales else artifact.default
    options = artifact.options_at(scale)
    paths: dict[str, str] = {}
    overrides, launcher, page = [], [], []
    for word in words:
        _check_word(artifact, word)
        key, _, value = word.lstrip("+").replace("='", "=").rstrip("'").partition("=")
        if key.startswith(("hydra/", "hydra.")):
            launcher.append(word)
        elif key != "scale":
            page.append(word)
            if key.startswith(_PATH):
                paths[key.removeprefix(_PATH)] = value
            elif key in options:
                options[key] = _typed_option(key, value, options[key])
            else:
                overrides.append(word)
    if scale not in artifact.scales:
        raise UsageError(f"{artifact.name} has no scale={scale}: choose one of {', '.join(artifact.scales)}")
    _check_paths(artifact, scale, paths, overrides)
    return TypedWords(scale, paths, options, tuple(overrides), tuple(launcher), tuple(page))


def _check_word(artifact: Artifact, word: str) -> None:
    """Check that a word sets something that an artifact has."""
    key, sign, value = word.lstrip("+").partition("=")
    own = [*artifact.options, "scale", f"{_PATH}DATASET"]
    settings = [*GROUPS, *TOP_LEVEL_SETTINGS]
    if key in _CHOSEN:
        raise UsageError(f"'{word}': {artifact.name} has its own systems and datasets; type other settings")
    if not sign:
        raise UsageError(f"'{word}' is not an override: write key=value (see longsumbench paper --help)")
    if key == "results_dir":
        raise UsageError(f"'{word}': write --results-dir {value}")
    if "." not in key and not key.startswith("hydra/") and key not in (*own, *settings):
        has = f"{artifact.name} has {', '.join(own)}, and the settings of longsumbench run"
        raise UsageError(f"unknown setting '{key}'{did_you_mean(key, [*own, *settings])}: {has}")


def _check_paths(artifact: Artifact, scale: str, paths: Mapping[str, str], overrides: Sequence[str]) -> None:
    """Check that folders of texts are of datasets that are read at a scale."""
    known = {dataset_name(at[scale]) for at in artifact.datasets.values() if scale in at}
    has = ", ".join(f"{_PATH}{name}=" for name in sorted(known))
    if unknown := sorted(paths.keys() - known):
        near = did_you_mean(unknown[0], known)
        raise UsageError(f"{artifact.name} at scale={scale} does not read '{unknown[0]}'{near}; it has: {has}")
    if len(known) > 1 and (typed := next((word for word in overrides if word.startswith("dataset.path=")), None)):
        raise UsageError(f"'{typed}' is for several datasets: write one of {has}")


def texts_problem(settings: DatasetSettings) -> SuiteError | None:
    """Return why the texts of a dataset cannot be read, and which word to type; None if nothing is known against it."""
    corpus, name = registry.corpora.load(str(settings.reader)), settings.name
    advice = f"add {_PATH}{name}=FOLDER"
    if settings.path is not None:
        if not Path(settings.path).expanduser().exists():
            return UsageError(f"{_PATH}{name}={settings.path}: no such file or folder")
    elif corpus.built_in is None and corpus.hub is None:
        return UsageError(f"dataset '{name}' is read from files: {advice}")
    elif corpus.built_in is None:
        try:
            check_copy_or_network(corpus, user_cache())
        except EnvironmentProblem:
            reason = "is not on this machine, and the Hugging Face hub cannot be reached"
            return EnvironmentProblem(f"dataset '{name}' {reason}: {advice}")
    return None


def _typed_option(key: str, value: str, default: str | int | float | None) -> str | int | float | None:
    """Return the value of an option, of the type of its default."""
    if value == "null":
        return None
    if default is None or isinstance(default, str):
        return value
    try:
        return type(default)(value)
    except ValueError as error:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise UsageError(f"'{key}={value}' is not {kind}") from error


def describe_changes(artifact: Artifact, typed: TypedWords) -> tuple[str, ...]:
    """Return a sentence about the typed overrides that make the result another one than the artifact's."""
    scale = artifact.scales[typed.scale]
    own = {override_key(word): word for word in shlex.split(scale)}
    nothing = set(names_deciding(RunConfig, *SAME_RUN))
    nothing |= {
        f"{section}.{name}" for section, schema in SECTIONS.items() for name in names_deciding(schema, *SAME_RUN)
    }
    words = [word.lstrip("+") for word in typed.overrides if override_key(word) not in nothing]
    if not words:
        return ()
    before = {word: own.get(override_key(word)) for word in words}
    named = ", ".join(f"{word} (instead of {usual})" if usual else word for word, usual in before.items())
    other = "the paper's numbers" if typed.scale == PAPER else "this artifact at its own settings"
    return (f"Typed: {named}. This page is not comparable with {other}.",)


def last_of_each(words: Iterable[str]) -> list[str]:
    """Return overrides with one word for each setting, the last one."""
    last: dict[str, str] = {}
    for word in words:
        last.pop(override_key(word), None)
        last[override_key(word)] = word
    return list(last.values())


def dataset_name(line: str) -> str:
    """Return NAME of `dataset=NAME` in a line of overrides; empty without one."""
    chosen = dict(word.partition("=")[::2] for word in shlex.split(line))
    return chosen.get("dataset.name", chosen.get("dataset", ""))

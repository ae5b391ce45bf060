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
from longsumbench.runs.typed_overrides import override_key

PATH = "path."  # path.arxiv=FOLDER sets dataset.path where dataset=arxiv


class TypedWords(NamedTuple):
    """The typed words of `longsumbench paper NAME`, sorted by what they change.

    Attributes:
        scale: the scale.
        paths: our name of a dataset → its folder or file.
        options: settings of the kind of artifact.
        overrides: added to every point.
        launcher: words about Hydra's launcher.
    """

    scale: str
    paths: Mapping[str, str]
    options: Mapping[str, str | int | float | None]
    overrides: tuple[str, ...]
    launcher: tuple[str, ...]


def sort_words(artifact: Artifact, words: Sequence[str]) -> TypedWords:
    """Sort the typed words of an artifact.

    Raises:
        UsageError: a word is invalid, or the artifact lacks the scale.
    """
    scale = next((word.partition("=")[2] for word in reversed(words) if word.startswith("scale=")), artifact.default)
    options = artifact.options_at(scale)
    paths: dict[str, str] = {}
    overrides, launcher = [], []
    for word in words:
        key, sign, value = word.lstrip("+").partition("=")
        if not sign:
            raise UsageError(f"'{word}' is not an override: write key=value (see longsumbench paper --help)")
        if key == "results_dir":
            raise UsageError(f"'{word}': write --results-dir {value}")
        if key == "scale":
            continue
        if key.startswith(PATH):
            paths[key.removeprefix(PATH)] = value
        elif key in options:
            options[key] = _typed_option(key, value, options[key])
        elif key.startswith(("hydra/", "hydra.")):
            launcher.append(word)
        else:
            overrides.append(word)
    if scale not in artifact.scales:
        raise UsageError(f"{artifact.name} has no scale={scale}: choose one of {', '.join(artifact.scales)}")
    known = {dataset_name(at[scale]) for at in artifact.datasets.values() if scale in at}
    if unknown := sorted(paths.keys() - known):
        near, has = did_you_mean(unknown[0], known), ", ".join(f"{PATH}{name}=" for name in sorted(known))
        raise UsageError(f"{artifact.name} at scale={scale} does not read '{unknown[0]}'{near}; it has: {has}")
    if len(known) > 1 and (typed := next((word for word in overrides if word.startswith("dataset.path=")), None)):
        raise UsageError(f"'{typed}' is for several datasets: write {' or '.join(f'{PATH}{name}=' for name in known)}")
    return TypedWords(scale, paths, options, tuple(overrides), tuple(launcher))


def texts_problem(settings: DatasetSettings) -> SuiteError | None:
    """Return why the texts of a dataset cannot be read, and which word to type; None if nothing is known against it."""
    corpus, name = registry.corpora.load(str(settings.reader)), settings.name
    advice = f"add {PATH}{name}=FOLDER"
    if settings.path is not None:
        if not Path(settings.path).expanduser().exists():
            return UsageError(f"{PATH}{name}={settings.path}: no such file or folder")
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

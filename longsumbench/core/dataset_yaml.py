"""The user's own datasets: YAML files in `dataset/` of the user's configuration folder.

    # Articles of the SciSumm workshop
    name: scisumm
    reader: jsonl
    path: /data/scisumm

`dataset=scisumm` chooses the file `scisumm.yaml`, whose `name` is the same. It holds settings of `DatasetSettings`;
with the line `# @package _global_`, they are under `dataset`, and the file may also set others, as the suite's do.
"""

from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped] # not annotated

from longsumbench.conf import user_config_folder
from longsumbench.core.config import DatasetSettings, build_settings
from longsumbench.errors import UsageError
from longsumbench.files import read_text


def dataset_files() -> dict[str, Path]:
    """Return the names and files of the user's own datasets."""
    return {path.stem: path for path in sorted((user_config_folder() / "dataset").glob("*.yaml")) if path.is_file()}


def read_dataset_file(path: Path) -> DatasetSettings:
    """Read and check the settings in a file.

    Raises:
        UsageError: the file cannot be read, or a setting is invalid; the message names the file.
    """
    try:
        text = read_text(path)
        content: Any = OmegaConf.to_container(OmegaConf.create(text), resolve=True)
        if "@package _global_" in text and isinstance(content, dict):
            content = content.get("dataset")
        if not isinstance(content, dict) or "name" not in content:
            raise UsageError("a dataset needs a name and mostly a path, as in 'name: mine' and 'path: /data/mine'")
        settings = {str(key): value for key, value in content.items() if key != "defaults"}
        dataset: DatasetSettings = build_settings(DatasetSettings, settings, "dataset.")
        if dataset.name != path.stem:
            raise UsageError(f"'name: {dataset.name}' is not the name of the file, '{path.stem}': make them equal")
    except (ValueError, YAMLError, OmegaConfBaseException, UsageError) as error:
        problem = " ".join(str(error).split())
        raise UsageError(f"{path}: {problem}; correct the file or remove it") from error
    return dataset

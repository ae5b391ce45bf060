"""Evidence on disk: what a system looked at while it wrote one summary, two files an example.

    evidence/<n>.safetensors    the arrays by their names; n: the example's place in its split, from 0
    evidence/<n>.json           {"id", "axes": array → names of its dimensions, "texts": axis → text of each index}

The second file is written last: evidence that has one is whole.
"""

import json
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from longsumbench.api.system import AXES, REFERENCE_AXIS, Evidence, Summary
from longsumbench.errors import DataError
from longsumbench.files import BadFile, read_json, write_atomically

_SHAPE = {"id": str, "axes": {str: [str]}, "texts": {str: [str]}}  # of <n>.json (see `shapes`)


def num_wanted(asked: str, examples: int) -> range:
    """Return of which examples evidence is kept: the first ones.

    Args:
        asked: "all", a number or "none" (`decode.evidence`).
        examples: how many there are.
    """
    most = {"all": examples, "none": 0}
    return range(most[asked] if asked in most else min(int(asked), examples))


def write_evidence(folder: Path, number: int, summary: Summary) -> None:
    """Write the evidence of one example; what there was of it is replaced.

    Args:
        folder: made if need be.
        number: the example's place in its split, from 0.
        summary: with evidence, which is checked before anything is written.

    Raises:
        ValueError: the system gave none, or it does not say what it is (see `check_evidence_arrays`).
    """
    evidence = summary.evidence
    if evidence is None:
        raise ValueError(f"the system keeps evidence, and gave none for example '{summary.id}'")
    check_evidence_arrays(evidence)
    described = folder / f"{number}.json"
    content = {"id": summary.id, "axes": dict(evidence.axes), "texts": dict(evidence.texts)}
    arrays = {name: np.asarray(array, order="C") for name, array in evidence.arrays.items()}  # it writes memory as is
    described.unlink(missing_ok=True)
    write_atomically(folder / f"{number}.safetensors", save(arrays))
    write_atomically(described, json.dumps(content, ensure_ascii=False) + "\n")


def read_evidence(folder: Path, number: int) -> tuple[str, Evidence]:
    """Read the evidence of one example.

    Returns:
        The example's id, and its evidence.

    Raises:
        DataError: there is none, or its files are damaged.
    """
    path, arrays = folder / f"{number}.json", folder / f"{number}.safetensors"
    if not path.is_file():
        raise DataError(f"there is no evidence of example {number}; ask for more by decode.evidence", folder)
    try:
        content = read_json(path, _SHAPE)
        if not arrays.is_file():
            raise BadFile(f"{arrays.name} is missing or no file")
        evidence = Evidence(
            dict(sorted(load_file(arrays).items())),
            {name: tuple(axes) for name, axes in content["axes"].items()},
            {axis: tuple(texts) for axis, texts in content["texts"].items()},
        )
        check_evidence_arrays(evidence)
        return content["id"], evidence
    except (FileNotFoundError, ValueError, SafetensorError) as error:
        raise DataError(f"not the evidence of an example ({error}); remove it and run again", path) from error


def kept_places(folder: Path, of_references: bool = False) -> set[int]:
    """Return the places, in their split, of the examples whose evidence is whole.

    Args:
        folder: where it is.
        of_references: count those only whose evidence says what is looked at for the reference, too.
    """
    paths = [path for path in folder.glob("*.json") if path.stem.isdecimal()]
    return {int(path.stem) for path in paths if not of_references or REFERENCE_AXIS in _read_axes(path)}


def _read_axes(path: Path) -> set[str]:
    """Return the axes of an example's arrays; none where the file is damaged."""
    try:
        return {axis for axes in read_json(path, _SHAPE)["axes"].values() for axis in axes}
    except (FileNotFoundError, BadFile):
        return set()


def check_evidence_arrays(evidence: Evidence) -> None:
    """Check that evidence says what it is: every dimension by its name, every unit by its text.

    Raises:
        ValueError: an array's dimensions are not named, or not by the names that there are; an axis has more or fewer
            texts than indices; the units have none.
    """
    if set(evidence.arrays) != set(evidence.axes):
        raise ValueError(f"arrays {sorted(evidence.arrays)} and axes of {sorted(evidence.axes)}")
    if unknown := {axis for axes in evidence.axes.values() for axis in axes} - set(AXES):
        raise ValueError(f"axes can be {', '.join(AXES)}, not {', '.join(sorted(unknown))}")
    if "unit" not in evidence.texts:
        raise ValueError("the units have no texts")
    for name, axes in evidence.axes.items():
        shape = np.shape(evidence.arrays[name])
        if len(shape) != len(axes):
            raise ValueError(f"array '{name}' has {len(shape)} dimensions and {len(axes)} axes: {', '.join(axes)}")
        for axis, size in zip(axes, shape, strict=True):
            if axis in evidence.texts and len(evidence.texts[axis]) != size:
                raise ValueError(f"array '{name}' has {size} of '{axis}', and {len(evidence.texts[axis])} texts")

"""Evidence on disk: what a system looked at while it wrote a summary. Each example has two files.

    evidence/<n>.safetensors    the arrays by name; n: index of the example in its split, from 0
    evidence/<n>.json           {"id", "axes": array → names of its dimensions, "texts": axis → text of each index}

The JSON file is written last. If it exists, the evidence is complete.

`inputs.jsonl` has the texts of the first examples as the system read them (`decode.keep_inputs`): {"id", "input"}. An
input is null if the system does not tell what it read.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from longsumbench.core import AXES, REFERENCE_AXIS, Evidence, Summary
from longsumbench.errors import DataError
from longsumbench.files import BadFile, parse_json, read_json, write_atomically

EVIDENCE_FOLDER = "evidence"


class _Description(TypedDict):
    """The content of <n>.json."""

    id: str
    axes: dict[str, tuple[str, ...]]
    texts: dict[str, tuple[str, ...]]


def num_wanted(amount: str, examples: int) -> range:
    """Return the indices of the examples whose evidence is kept: "all", "none" or the first ones (a number)."""
    limits = {"all": examples, "none": 0}
    return range(limits[amount] if amount in limits else min(int(amount), examples))


def write_evidence(folder: Path, number: int, summary: Summary) -> None:
    """Write the evidence of one example, and replace older files.

    Raises:
        ValueError: the evidence is missing or invalid (see `check_evidence_arrays`).
    """
    evidence = summary.evidence
    if evidence is None:
        raise ValueError(f"the system keeps evidence, but returned none for example '{summary.id}'")
    check_evidence_arrays(evidence)
    description = folder / f"{number}.json"
    content = {"id": summary.id, "axes": dict(evidence.axes), "texts": dict(evidence.texts)}
    arrays = {
        name: np.asarray(array, order="C") for name, array in evidence.arrays.items()
    }  # save ignores strides
    description.unlink(missing_ok=True)
    write_atomically(folder / f"{number}.safetensors", save(arrays))
    write_atomically(description, json.dumps(content, ensure_ascii=False) + "\n")


def read_evidence(folder: Path, number: int) -> tuple[str, Evidence]:
    """Return the id and the evidence of one example.

    Raises:
        DataError: the evidence is missing or damaged.
    """
    path, arrays = folder / f"{number}.json", folder / f"{number}.safetensors"
    if not path.is_file():
        raise DataError(
            f"no evidence of example {number}; a higher decode.evidence adds it", folder
        )
    try:
        content = read_json(path, _Description)
        if not arrays.is_file():
            raise BadFile(f"{arrays.name} is missing or not a file")
        evidence = Evidence(
            dict(sorted(load_file(arrays).items())), content["axes"], content["texts"]
        )
        check_evidence_arrays(evidence)
        return content["id"], evidence
    except (FileNotFoundError, ValueError, SafetensorError) as error:
        raise DataError(
            f"not the evidence of an example ({error}); remove it and run again", path
        ) from error


def stored_indices(folder: Path, of_references: bool = False) -> set[int]:
    """Return the indices of the examples with complete evidence; with `of_references`, also of the reference."""
    paths = [path for path in folder.glob("*.json") if path.stem.isdecimal()]
    return {
        int(path.stem) for path in paths if not of_references or REFERENCE_AXIS in _read_axes(path)
    }


def _read_axes(path: Path) -> set[str]:
    try:
        return {axis for axes in read_json(path, _Description)["axes"].values() for axis in axes}
    except (FileNotFoundError, BadFile):
        return set()


def check_evidence_arrays(evidence: Evidence) -> None:
    """Check that every dimension of the evidence has a name and every unit a text.

    Raises:
        ValueError: a dimension has no name or an unknown one; the texts of an axis do not match its size; the units
            have no texts.
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
            raise ValueError(
                f"array '{name}' has {len(shape)} dimensions and {len(axes)} axes: {', '.join(axes)}"
            )
        for axis, size in zip(axes, shape, strict=True):
            if axis in evidence.texts and len(evidence.texts[axis]) != size:
                raise ValueError(
                    f"array '{name}' has {size} of '{axis}', and {len(evidence.texts[axis])} texts"
                )


class _InputLine(TypedDict):
    """A line of inputs.jsonl."""

    id: str
    input: str | None


def read_stored_inputs(path: Path) -> dict[str, str | None]:
    """Return id → the text as the system read it; incomplete lines are skipped."""
    inputs = {}
    for line in (
        path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else ()
    ):
        try:
            entry = parse_json(line, _InputLine)
        except BadFile:
            continue
        inputs[entry["id"]] = entry["input"]
    return inputs


def sort_inputs(path: Path, parts: Sequence[Path], ids: Sequence[str]) -> None:
    """Add the files of other processes to the first one, and sort it by `ids`, each id once; do nothing if there is none."""
    inputs: dict[str, str | None] = {}
    for file in (path, *parts):
        inputs |= read_stored_inputs(file)
    if inputs:
        lines = [input_line(name, inputs[name]) for name in ids if name in inputs]
        write_atomically(path, "".join(lines))


def input_line(name: str, text: str | None) -> str:
    """Return the line of an example in `inputs.jsonl`."""
    return json.dumps({"id": name, "input": text}, ensure_ascii=False) + "\n"

"""Evidence on disk: read back as it was written, whole or not at all."""

from pathlib import Path

import numpy as np
import pytest
from support.watching import like

from longsumbench.core import AXES, REFERENCE_AXIS, Evidence, Summary
from longsumbench.errors import DataError
from longsumbench.runs.evidence import read_evidence, stored_indices, write_evidence


def small(**changes: object) -> Evidence:
    """Return evidence of two units and one segment."""
    values = {
        "arrays": {"score": np.array([[0.25, 0.5]], dtype=np.float32)},
        "axes": {"score": ("segment", "unit")},
        "texts": {"unit": ("One.", "Two.")},
    }
    return Evidence(**{**values, **changes})  # type: ignore[arg-type]


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Arrays of every kind, shape and order in memory, axes, texts and the id come back equal."""
    values = np.arange(6).reshape(2, 3)
    arrays = {kind: values.astype(kind) for kind in ("float64", "float16", "int32", "bool")}
    arrays |= {"turned": values.T.copy().T, "none": np.zeros((0, 3)), "number": np.array(0.5)}
    axes: dict[str, tuple[str, ...]] = dict.fromkeys(arrays, ("unit", "step"))
    axes |= {"none": ("segment", "step"), "number": ()}
    evidence = Evidence(arrays, axes, {"unit": ("", "\u2028 “ü”"), "step": ("a", " b", "<s>")})
    write_evidence(tmp_path, 7, Summary("a/\u2028b", "", evidence=evidence))
    assert stored_indices(tmp_path) == {7}
    identity, read = read_evidence(tmp_path, 7)
    assert identity == "a/\u2028b"
    assert like(evidence, read)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"axes": {}}, "arrays"),
        ({"axes": {"score": ("segment", "page")}}, f"axes can be {', '.join(AXES)}, not p"),
        ({"axes": {"score": ("unit",)}}, "'score' has 2 dimensions and 1 axes: unit"),
        ({"texts": {"unit": ("One.",)}}, "'score' has 2 of 'unit', and 1 texts"),
        ({"texts": {}}, "the units have no texts"),
    ],
)
def test_evidence_that_says_not_what_it_is_is_refused(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    """Dimensions without names, or units without texts, could not be drawn: nothing is written of them."""
    with pytest.raises(ValueError, match=message):
        write_evidence(tmp_path, 0, Summary("a", "", evidence=small(**changes)))
    assert not list(tmp_path.iterdir())


def test_a_system_that_keeps_its_word_gives_some(tmp_path: Path) -> None:
    """A summary without evidence is an error where there should be some."""
    with pytest.raises(ValueError, match="returned none for example 'a'"):
        write_evidence(tmp_path, 0, Summary("a", ""))


@pytest.mark.parametrize("written", [0, 1])
def test_half_written_evidence_is_none(
    written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between its two files, new or in place of old ones, evidence does not count as kept."""
    for _ in range(written):
        write_evidence(tmp_path, 0, Summary("a", "", evidence=small()))
    monkeypatch.setattr("longsumbench.runs.evidence.json.dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_evidence(tmp_path, 0, Summary("a", "", evidence=small()))
    assert stored_indices(tmp_path) == set()
    with pytest.raises(DataError, match="no evidence of example 0"):
        read_evidence(tmp_path, 0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("0.safetensors", None),
        ("0.json", b"[]"),
        ("0.json", b'{"id": "a", "axes": {"score": ["unit"]}, "texts": {"unit": []}}'),
    ],
)
def test_damaged_files_are_told(name: str, content: bytes | None, tmp_path: Path) -> None:
    """A file that is gone, torn or another's is an error that names it."""
    write_evidence(tmp_path, 0, Summary("a", "", evidence=small()))
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=r"0\.json: not the evidence of an example"):
        read_evidence(tmp_path, 0)


def test_which_examples_have_evidence_of_their_reference(tmp_path: Path) -> None:
    """Only those whose arrays have the reference's axis count, also without a step on it; damaged ones never do."""
    arrays_of_reference = {"weight": np.zeros((2, 0), dtype=np.float32)}
    axes = {"weight": ("unit", REFERENCE_AXIS)}
    of_reference = small(arrays=arrays_of_reference, axes=axes)
    for number, evidence in enumerate((small(), of_reference)):
        write_evidence(tmp_path, number, Summary("a", "", evidence=evidence))
    for number, content in enumerate(("{", "[]", '{"axes": {"weight": null}}'), 2):
        (tmp_path / f"{number}.json").write_text(content)
    assert stored_indices(tmp_path) == {0, 1, 2, 3, 4}
    assert stored_indices(tmp_path, of_references=True) == {1}

"""The built-in dataset: how a source file becomes examples, and the dataset as it is on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings
from longsumbench.corpora.pydoc import pydoc
from longsumbench.corpora.reading.clones import Clones
from longsumbench.corpora.reading.load import load_texts
from longsumbench.corpora.reading.rows import split_by_hash
from longsumbench.errors import EnvironmentProblem

LONG = " ".join(f"This is sentence {number} of a long text." for number in range(15))
MODULE = f'''
# a comment
"""Tools that read, change and write small files.

They are used all over. Read more in the User Guide.
For example:

>>> read("x")
"""

def read(path):
    """Read a file. {LONG}

    Args:
        path: where it is.
    """

def _inner():
    "Short."

class Writer(object):
    """Writes what the reader has read before, in the same order.

    It keeps its file open:

    - until it is closed
    """

    def write(self):
        """Write it. {LONG}"""

    def silent(self): ...
'''


def test_a_file_becomes_examples() -> None:
    """A module and its classes: members' documentation, a document each, and the prose of the own docstring."""
    module, writer = pydoc.examples_in("tools", MODULE.encode())
    assert module.id == module.title == "tools"
    assert module.references == (
        ("Tools that read, change and write small files.", "They are used all over."),
    )
    sources = [document.source for document in module.documents]
    assert sources == ["tools.read", "tools._inner", "tools.Writer", "tools.Writer.write"]
    sections = module.documents[0].sections
    assert [section.name for section in sections] == [None, "Args"]
    assert sections[0].paragraphs[0][0] == "Read a file."
    assert sections[1].paragraphs == (("path: where it is.",),)
    assert writer.id == "tools.Writer"
    assert writer.references == (("Writes what the reader has read before, in the same order.",),)
    assert [document.source for document in writer.documents] == ["tools.Writer.write"]


def test_too_little_is_no_example() -> None:
    """Below 100 words of input, or outside 10 to 200 words of reference, there is none; nor in a broken file."""
    assert list(pydoc.examples_in("m", MODULE.replace(LONG, "").encode())) == []
    assert (
        next(pydoc.examples_in("m", MODULE.replace("all over", "x " * 200).encode())).id
        == "m.Writer"
    )
    assert list(pydoc.examples_in("m", b"def broken(:")) == []


def test_files_without_examples_are_passed_over_quickly() -> None:
    """The quick look never passes over a file whose example it was shown, and does pass over files without prose."""
    assert pydoc.promising(MODULE.encode())
    assert not pydoc.promising(b"x = 1\n" * 10_000)
    assert not pydoc.promising(MODULE.replace(LONG, "").encode())
    for header in ("class A:", "class A(B, metaclass=C):  # why", "class A(\n    B,\n):"):
        source = f'{header}\n    """{LONG}"""\n    def f(): """{LONG}"""'
        assert pydoc.promising(source.encode())


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dataset is never made from fewer packages than it says."""
    monkeypatch.setitem(pydoc.PACKAGES, "no-such-distribution", "no_such_package")
    with pytest.raises(EnvironmentProblem, match="no-such-distribution is not installed"):
        pydoc.package_versions()


def test_a_text_with_few_changes_is_a_clone() -> None:
    """A text with most of its word sequences changed in a few places is a clone; one that shares a part is not."""
    words = [f"w{number}" for number in range(200)]
    seen = Clones()
    seen.add(" ".join(words))
    assert seen.contain(" ".join([*words[:50], "other", *words[51:]]).upper())
    assert not seen.contain(" ".join(words[:60]))
    assert not seen.contain(" ".join(reversed(words)))
    sampled = Clones(one_in=8)
    sampled.add(" ".join(words))
    assert sampled.contain(" ".join(words))


@pytest.fixture
def few_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Forty modules that differ, one of them twice."""
    for number in range(40):
        text = MODULE.replace("small", f"small{number} " * 8).replace(
            "sentence", f"sentence{number % 39} t{number % 39}"
        )
        (tmp_path / f"m{number}.py").write_text(text.replace("Writes what", f"Writes{number} " * 9))

    def files() -> Iterator[tuple[str, Path]]:
        yield from ((path.stem, path) for path in sorted(tmp_path.glob("*.py")))

    monkeypatch.setattr(pydoc, "source_files", files)


def test_a_module_and_its_classes_share_a_split(few_files: None) -> None:
    """The module's name decides, so that no test text is in the training split."""
    made = list(pydoc.generate_docstrings())
    assert {split for split, _ in made} == {"train", "validation", "test"}
    assert all(split == split_by_hash(example.id.split(".")[0]) for split, example in made)
    assert "m39" not in {example.id for _, example in made}


def test_the_dataset_through_the_loader(few_files: None, stages: ArtifactCache) -> None:
    """Read like any other; the record names Python and every package with its version."""
    texts = load_texts(DatasetSettings(limit=3), stages)
    assert texts.name == "pydoc"
    assert texts.multi_document
    assert {"python", "packages"} <= set(texts.facts)
    assert "overlaps" not in texts.facts
    assert set(texts.facts["packages"]) == set(pydoc.PACKAGES)
    assert all(len(split) <= 3 for split in texts.splits.values())

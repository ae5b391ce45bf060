"""The released files of WikiSum: torch files of piece ids, which run nothing, decoded by their tokenizer."""

import importlib
import io
import json
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from support.reading import read_texts

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Document, Example, Section
from longsumbench.corpora.loading.load import Texts
from longsumbench.errors import DataError, UsageError

PARAGRAPHS = ["The sheep eat grass. They sleep.", "A dog barks."]
LEAD = "Sheep are kept. They sleep."
MARKS = ["<S>", "</S>", "<PAD>", "<T>", "<P>"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny SentencePiece model with the release's marks."""
    path, written = tmp_path_factory.mktemp("model") / "spm.model", io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*PARAGRAPHS, LEAD] * 10),
        model_writer=written,
        vocab_size=60,
        hard_vocab_limit=False,
        control_symbols=MARKS,
        user_defined_symbols=["<Q>"],
        minloglevel=2,
    )
    path.write_bytes(written.getvalue())
    return path


@pytest.fixture
def pieces(model: Path) -> sentencepiece.SentencePieceProcessor:
    """The library's own reading of the model."""
    return sentencepiece.SentencePieceProcessor(model_file=str(model))


@pytest.fixture
def released(pieces: sentencepiece.SentencePieceProcessor) -> dict[str, Any]:
    """An article as released: ids, with marks around and within the lead."""
    first, second = (pieces.encode(sentence) for sentence in ("Sheep are kept.", "They sleep."))
    begin, between, end = (pieces.piece_to_id(mark) for mark in ("<S>", "<Q>", "</S>"))
    return {
        "src": [pieces.encode(text) for text in PARAGRAPHS],
        "tgt": [begin, *first, between, *second, end],
    }


def read(path: Path, cache: ArtifactCache, model: Path | str | None, **settings: Any) -> Texts:
    tokenizer = None if model is None else str(model)
    return read_texts("wikisum", path, cache, tokenizer=tokenizer, **settings)


def problem(
    path: Path, cache: ArtifactCache, model: Path | str | None, kind: type[Exception] = DataError
) -> str:
    """The one line that reading ends with."""
    with pytest.raises(kind) as caught:
        read(path, cache, model)
    message = str(caught.value)
    assert "\n" not in message
    assert "\x1b" not in message
    return message


def test_each_ranked_paragraph_is_a_document(
    tmp_path: Path, cache: ArtifactCache, model: Path, released: dict[str, Any]
) -> None:
    """Each ranked paragraph is a document of its own, best first; the lead's marks are gone; there is no title."""
    torch.save([released], tmp_path / "WIKI.test.0.pt")
    texts = read(tmp_path, cache, model)
    documents = (
        Document(None, (Section(None, (("The sheep eat grass.", "They sleep."),)),)),
        Document(None, (Section(None, (("A dog barks.",),)),)),
    )
    expected = Example("test-0-0", None, None, documents, (("Sheep are kept.", "They sleep."),))
    assert list(texts.splits["test"]) == [expected]
    assert texts.metadata["files"] == ["WIKI.test.0.pt"]
    assert texts.metadata["tokenizer"]["file"] == "spm.model"
    assert texts.multi_document
    assert "left_out" not in texts.metadata


def test_the_reference_is_the_lead_as_text_where_it_has_words(
    tmp_path: Path, cache: ArtifactCache, model: Path, released: dict[str, Any]
) -> None:
    """`tgt_str` is the reference where it has words, its marks ending sentences."""
    texts = ["<t> sheep are kept </t> <t> they sleep </t>", "sheep are kept <Q> they sleep", " "]
    torch.save([{**released, "tgt_str": text} for text in texts], tmp_path / "test.pt")
    references = [example.references[0] for example in read(tmp_path, cache, model).splits["test"]]
    assert references == [("sheep are kept", "they sleep")] * 2 + [
        ("Sheep are kept.", "They sleep.")
    ]


def test_files_in_the_order_of_their_numbers(
    tmp_path: Path, cache: ArtifactCache, model: Path, released: dict[str, Any]
) -> None:
    """Number 10 comes after 2, ids are those of file and place, and every split is found."""
    for name in ("train.10", "train.2", "valid.0", "test"):
        torch.save([released] * 2, tmp_path / f"WIKI.{name}.pt")
    texts = read(tmp_path, cache, model)
    assert texts.splits["train"].ids == ["train-2-0", "train-2-1", "train-10-0", "train-10-1"]
    assert list(texts.splits) == ["train", "validation", "test"]
    assert read(tmp_path, cache, model, limit=1).splits["train"].ids == ["train-2-0"]


def test_a_tokenizer_that_cannot_be_used(
    tmp_path: Path, cache: ArtifactCache, released: dict[str, Any]
) -> None:
    """None given, no such file, a folder, an empty file and text are one line each."""
    torch.save([released], tmp_path / "test.pt")
    assert "holds piece ids: give its SentencePiece model" in problem(
        tmp_path, cache, None, UsageError
    )
    assert "cannot be read (No such file or directory); correct dataset.tokenizer" in problem(
        tmp_path, cache, "none"
    )
    (tmp_path / "x.model").write_bytes(b"text")
    assert "x.model: not a SentencePiece model" in problem(tmp_path, cache, tmp_path / "x.model")


class Program:
    """What a file must never run."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Import the module named `ran` when unpickled."""
        return importlib.import_module, ("ran",)


def test_a_file_that_would_run_a_program(tmp_path: Path, cache: ArtifactCache, model: Path) -> None:
    """It is refused, and nothing of it runs; also as a pickle of another protocol, and then without torch's warning."""
    torch.save([Program()], tmp_path / "test.pt")
    assert "with more than lists, numbers and text" in problem(tmp_path, cache, model)
    (tmp_path / "test.pt").write_bytes(pickle.dumps([Program()], protocol=4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "with more than lists, numbers and text" in problem(tmp_path, cache, model)
    assert "ran" not in sys.modules


SHAPES = """
{"src": [3], "tgt": [20]} → 'src' must hold lists of piece ids
{"src": [[20, 32000]], "tgt": [20]} → 'src' has an id that the tokenizer does not know: 32000, of
"""


@pytest.mark.parametrize("line", SHAPES.strip().splitlines())
def test_files_of_another_shape(
    line: str, tmp_path: Path, cache: ArtifactCache, model: Path, pieces: Any
) -> None:
    """A list of dictionaries of lists of ids is wanted; whatever else is named with its place."""
    content, expected = line.split(" → ")
    assert pieces.decode([20]).strip()  # a piece with text
    torch.save([json.loads(content)], tmp_path / "test.pt")
    assert expected in problem(tmp_path, cache, model)

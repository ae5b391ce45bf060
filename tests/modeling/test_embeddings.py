"""Sentence encoders: vectors as transformers gives them, the files of sentence-transformers, and rankers by vectors."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from support.commands import Command
from support.tiny_bert import LONGEST, write_bert
from support.tiny_causal import causal_folder
from support.tiny_seq2seq import tiny_checkpoint
from support.toys import refuses, write_jsonl
from transformers import AutoModel, BertForMaskedLM, BertModel, BertTokenizerFast

from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.core import RankerSettings, build_settings, registry
from longsumbench.errors import DataError, SuiteError, UsageError
from longsumbench.modeling.embeddings import (
    EmbeddingLexRank,
    EmbeddingRanker,
    EncoderForm,
    SentenceEncoder,
    VectorRanker,
    read_encoder_form,
)
from longsumbench.modeling.ranking import score_vectors_by_lexrank

TEXTS = ("The cat sat.", "a dog ran", "it slept", "the cat slept .", "a dog", "a dog ran")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder, which has the head of another task."""
    return write_bert(tmp_path_factory.mktemp("encoders") / "bert", network=BertForMaskedLM)


def ranker_of(folder: Path | str, kind: type[VectorRanker] = EmbeddingRanker) -> VectorRanker:
    """Return a ranker with an encoder."""
    return kind(RankerSettings(rank_checkpoint=str(folder), device="cpu"))


def with_files(bert: Path, folder: Path, files: dict[str, Any]) -> Path:
    """Return a copy of an encoder with further JSON files."""
    shutil.copytree(bert, folder)
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text)
    return folder


def by_hand(folder: Path, text: str, pooling: str = "mean", longest: int = LONGEST) -> Any:
    """Return the vector of one text by plain calls of transformers."""
    network = BertModel.from_pretrained(folder).eval()
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    encoded = tokenizer(text, truncation=True, max_length=longest, return_tensors="pt")
    with torch.inference_mode():
        states = network(**encoded).last_hidden_state[0].double().numpy()
    pooled = {"mean": states.mean(0), "max": states.max(0), "cls": states[0]}[pooling]
    return pooled / np.linalg.norm(pooled)


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_vectors_are_those_of_transformers(bert: Path, tmp_path: Path, pooling: str) -> None:
    """In a batch, each vector is that of the text alone by plain calls, pooled as the encoder's file says."""
    name = {"cls": "cls_token"}.get(pooling, f"{pooling}_tokens")
    pooled = {f"pooling_mode_{name}": True, "pooling_mode_weightedmean_tokens": False}
    folder = with_files(bert, tmp_path / "encoder", {"1_Pooling/config.json": pooled})
    texts = [*TEXTS, "the cat sat . " * 20]
    vectors = ranker_of(folder).vectors(texts)
    expected = [by_hand(folder, text, pooling) for text in texts]
    assert_allclose(vectors, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("blank", ["", "\u200b"])
def test_a_text_without_tokens_is_zero(bert: Path, blank: str) -> None:
    """Its scores are 0, among others and as the query; LexRank gives it the mean score. Nothing is NaN."""
    ranker, lexrank = ranker_of(bert), ranker_of(bert, EmbeddingLexRank)
    assert ranker("the dog", [blank, "a dog"])[0] == 0
    assert ranker(blank, ["a dog", blank]).tolist() == [0, 0]
    assert ranker("the dog", []).tolist() == lexrank(None, []).tolist() == []
    assert lexrank(None, [blank, "a dog", "it slept"])[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, EncoderForm()),
        ({"1_Pooling/config.json": {"pooling_mode": "cls"}}, EncoderForm("cls")),
        (
            {
                "config_sentence_transformers.json": {
                    "prompts": {"query": "q: ", "all": "a: "},
                    "default_prompt_name": "all",
                }
            },
            EncoderForm(prompts={"query": "q: ", "all": "a: "}, default_prompt_name="all"),
        ),
    ],
)
def test_files_of_sentence_transformers(
    bert: Path, tmp_path: Path, files: dict[str, Any], expected: EncoderForm
) -> None:
    """They say how texts are pooled and begun; without them, it is the mean of the whole text."""
    assert read_encoder_form(with_files(bert, tmp_path / "encoder", files), "it") == expected


def test_prompts_and_lengths_are_used(bert: Path, tmp_path: Path, log_lines: list[str]) -> None:
    """Query and texts are read after their prompts, within the longest text; what is cut is counted and reported."""
    files = {
        "config_sentence_transformers.json": {"prompts": {"query": "it ", "document": "a "}},
        "sentence_bert_config.json": {"max_seq_length": 6},
    }
    encoder = ranker_of(with_files(bert, tmp_path / "encoder", files))
    long = "the cat sat the cat sat"
    expected = [by_hand(bert, f"a {text}", longest=6) for text in ("dog", long)]
    vectors = encoder.vectors(["dog", long], "document")
    assert_allclose(vectors, expected, rtol=0, atol=1e-6)
    # Six tokens less two special ones and the prompt are three: three of six words are cut.
    assert encoder.encoder.num_cut == 1
    assert [line for line in log_lines if "reads only the beginning of some texts" in line]
    scores = encoder("ran", ["dog", long])
    assert_allclose(scores, vectors @ by_hand(bert, "it ran"), rtol=0, atol=1e-6)


POOLING, DAMAGED = "1_Pooling/config.json", "a file of sentence-transformers is damaged"


@pytest.mark.parametrize(
    ("file", "content", "error", "message"),
    [
        ("model.safetensors", None, UsageError, r"no \*\.safetensors"),
        (POOLING, {"pooling_mode_lasttoken": True}, UsageError, "by lasttoken, and the suite has"),
        (POOLING, "[", DataError, DAMAGED),
        ("modules.json", [{"type": "models.Dense"}], UsageError, "has Dense, and the suite has"),
        ("config_sentence_transformers.json", {"prompts": {"query": 1}}, DataError, DAMAGED),
    ],
)
def test_what_is_no_sentence_encoder(
    bert: Path, tmp_path: Path, file: str, content: Any, error: type[SuiteError], message: str
) -> None:
    """A folder with a file that is missing or says something else is refused in one line that names it."""
    folder = with_files(bert, tmp_path / "encoder", {file: content} if content else {})
    if content is None:
        for path in (*folder.glob("vocab.txt"), *folder.glob("tokenizer_config.json")):
            path.unlink()
        (folder / file).unlink()
    with refuses(message, error) as raised:
        ranker_of(folder).vectors(["a dog"])
    assert str(folder) in str(raised.value)


def test_models_that_write_are_no_encoders(tmp_path: Path) -> None:
    """Decoders, encoder-decoders and what is no folder are refused in one line, whatever their classes are called."""
    body = shutil.copytree(causal_folder(), tmp_path / "body")
    AutoModel.from_pretrained(body).save_pretrained(body)
    for folder in (causal_folder(), body, tiny_checkpoint()):
        with refuses("is a model that writes text"):
            ranker_of(folder).vectors(["a dog"])
    for missing in ("no/such/folder at all", "weights.gguf"):
        with refuses(r"neither a folder nor a model|there is no such file", SuiteError):
            ranker_of(missing)


def test_lexrank_of_vectors_is_pagerank() -> None:
    """Scores are networkx's PageRank of the cosines, loops included, of which negative ones count as 0."""
    vectors = np.random.default_rng(1).normal(size=(12, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[4] = 0
    cosines = vectors @ vectors.T
    assert cosines.min() < -0.5
    graph = np.maximum(cosines, 0)
    np.fill_diagonal(graph, 1)
    ranks = networkx.pagerank(networkx.from_numpy_array(graph), alpha=0.85, tol=1e-15)
    expected = [ranks[index] for index in range(12)]
    assert score_vectors_by_lexrank(vectors) == pytest.approx(expected, rel=0, abs=1e-8)


def test_vectors_are_kept(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same texts are encoded once for all rankers of an encoder; a damaged file is made again."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    texts = [*TEXTS, "the cat sat . " * 20]
    first = ranker_of(bert, EmbeddingLexRank)
    scores = first(None, texts)
    assert scores[1] == scores[5]
    encoded: list[Sequence[str]] = []
    encode = SentenceEncoder._encode

    def counted(self: SentenceEncoder, prompt: str, texts: Sequence[str]) -> Any:
        encoded.append(texts)
        return encode(self, prompt, texts)

    monkeypatch.setattr(SentenceEncoder, "_encode", counted)
    again = ranker_of(bert, EmbeddingLexRank)
    assert np.array_equal(again(None, texts), scores)
    assert again.metadata() == first.metadata() == {"encoder_tokens_cut": 80 + 2 - LONGEST}
    assert np.array_equal(ranker_of(bert, EmbeddingLexRank)(None, texts[::-1]), scores[::-1])
    assert not encoded
    (path,) = tmp_path.glob("vectors/*/*.npz")
    path.write_bytes(path.read_bytes()[:100])
    assert np.array_equal(ranker_of(bert, EmbeddingLexRank)(None, texts), scores)
    assert len(encoded) == 1
    other = write_bert(tmp_path / "bert", seed=2, network=BertForMaskedLM)
    assert not np.allclose(ranker_of(other, EmbeddingLexRank)(None, texts), scores)


def test_runs_are_identified_by_the_encoder(bert: Path, tmp_path: Path) -> None:
    """A copy elsewhere is the same run; other weights or another pooling under the same name are another."""
    pooling = {"1_Pooling/config.json": {"pooling_mode": "max"}}
    same = with_files(bert, tmp_path / "a" / "bert", {})
    others = (
        write_bert(tmp_path / "b" / "bert", seed=2, network=BertForMaskedLM),
        with_files(bert, tmp_path / "c" / "bert", pooling),
    )
    for name, rank in (
        ("ranker", "embedding"),
        ("lead", "embedding_lexrank"),
        ("flat_transformer", "embedding"),
    ):
        kind = registry.systems.load(name).Config
        identities = [kind().identity()]
        for folder in (bert, same, *others):
            values = {"rank": rank, "rank_checkpoint": str(folder)}
            identities.append(build_settings(kind, values, "model.").identity())
        assert identities[1] == identities[2], name
        assert identities[1] not in (identities[0], *identities[3:]), name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run model=ranker model.rank=embedding", "rank_checkpoint is missing: give a folder"),
        ("run model=ranker model.rank_checkpoint=BERT", "which the ranker 'lexrank' does not use"),
        ("stats rank=tfidf rank_checkpoint=BERT", "which the ranker 'tfidf' does not use"),
        (
            "stats rank=embedding ranker.rank_checkpoint=BERT",
            "ranker.rank_checkpoint follows rank_checkpoint",
        ),
        (
            "run model=ranker model.rank=embedding model.rank_checkpoint=BERT",
            "has no title and no query, and model.rank=embedding needs one",
        ),
    ],
)
def test_wrong_settings(
    bert: Path,
    here: Path,
    run_command: Command,
    words: str,
    message: str,
) -> None:
    """A setting that does not fit ends the command with one line and exit code 2; nothing is written."""
    texts = here / "texts"
    write_jsonl(texts)
    words = words.replace("BERT", str(bert))
    error = run_command(2, *words.split(), "dataset=jsonl", f"dataset.path={texts}").err.strip()
    assert message in error.splitlines()[-1]
    assert not list(here.glob("results/**/record.json"))


@pytest.mark.weights
def test_a_real_encoder(weights: Callable[[str], Path]) -> None:
    """An encoder for English knows what texts are about without a word in common, also in a long batch."""
    ranker = ranker_of(weights("sentence_bert_config.json").parent)
    texts = [
        "A feline rested on the rug.",
        "Shares fell by two percent.",
        "Rain is expected tomorrow.",
    ]
    for topic, best in (("the cat sat", 0), ("stock market", 1), ("weather forecast", 2)):
        assert int(np.argmax(ranker(topic, texts * 30)[:3])) == best

"""Sentence encoders: vectors as transformers gives them, the files of sentence-transformers, and rankers by vectors."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from support.tiny_bert import LONGEST, write_bert
from support.tiny_causal import causal_folder
from support.tiny_seq2seq import tiny_checkpoint
from support.toys import example, fit_tiny, write_jsonl
from transformers import AutoModel, BertForMaskedLM, BertModel, BertTokenizerFast

from longsumbench.cli.main import main
from longsumbench.core import Decoding, RankerSettings, build_settings, registry
from longsumbench.errors import DataError, SuiteError, UsageError
from longsumbench.modeling.embeddings import (
    EmbeddingLexRank,
    EmbeddingRanker,
    EncoderForm,
    SentenceEncoder,
    VectorRanker,
    pool_states,
    read_encoder_form,
)
from longsumbench.modeling.ranking import lexrank_of_vectors

TEXTS = ("The cat sat.", "a dog ran", "it slept", "the cat slept .", "a dog", "a dog ran")
MEAN = {"1_Pooling/config.json": {"pooling_mode_mean_tokens": True}}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder, as `save_pretrained` writes one."""
    return write_bert(tmp_path_factory.mktemp("encoders") / "bert", network=BertModel)


def ranker_of(folder: Path | str, kind: type[VectorRanker] = EmbeddingRanker) -> VectorRanker:
    """Return a ranker with an encoder."""
    return kind(RankerSettings(rank_checkpoint=str(folder), device="cpu"))


def with_files(bert: Path, folder: Path, files: dict[str, Any]) -> Path:
    """Return a copy of an encoder with further JSON files."""
    shutil.copytree(bert, folder)
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text, encoding="utf-8")
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
    files = {
        "1_Pooling/config.json": {
            f"pooling_mode_{name}": True,
            "pooling_mode_weightedmean_tokens": False,
        }
    }
    folder = with_files(bert, tmp_path / "encoder", files)
    texts = [*TEXTS, "the cat sat . " * 20]
    vectors = ranker_of(folder).vectors(texts)
    expected = [by_hand(folder, text, pooling) for text in texts]
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)


def test_vectors_do_not_depend_on_other_texts(bert: Path) -> None:
    """A text alone has its vector of a batch to 1e-6; the order and copies of texts change no digit."""
    encoder = ranker_of(bert)
    together = encoder.vectors(TEXTS)
    alone = np.concatenate([encoder.vectors([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-6)
    assert np.array_equal(encoder.vectors([*TEXTS[::-1], TEXTS[0]])[:-1], together[::-1])
    assert np.array_equal(together[1], together[5])


@pytest.mark.parametrize("blank", ["", " ", "\n\t\u00a0", "\u200b"])
def test_a_text_without_tokens_is_zero(bert: Path, blank: str) -> None:
    """Its vector and its scores are 0, among others and alone; LexRank gives it the mean score. Nothing is NaN."""
    encoder, ranker = ranker_of(bert), ranker_of(bert)
    assert not encoder.vectors([blank]).any()
    assert np.array_equal(encoder.vectors(["a dog", blank])[1], np.zeros(16))
    assert ranker("the dog", [blank, "a dog"])[0] == 0
    assert (
        ranker("the dog", []).tolist() == ranker_of(bert, EmbeddingLexRank)(None, []).tolist() == []
    )
    assert ranker(blank, ["a dog", blank]).tolist() == [0, 0]
    assert ranker_of(bert, EmbeddingLexRank)(None, [blank, "a dog", "it slept"])[
        0
    ] == pytest.approx(1 / 3)


def test_pooling_by_hand() -> None:
    """Tokens 1, 3 and padding 9: their mean is 2, their largest value 3, the first 1."""
    states = torch.tensor([[[1.0], [3.0], [9.0]]])
    mask = torch.tensor([[1, 1, 0]])
    pooled = {mode: pool_states(states, mask, mode).item() for mode in ("mean", "max", "cls")}
    assert pooled == {"mean": 2, "max": 3, "cls": 1}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, EncoderForm()),
        (MEAN, EncoderForm()),
        ({"1_Pooling/config.json": {"pooling_mode": "cls"}}, EncoderForm("cls")),
        (
            {"sentence_bert_config.json": {"max_seq_length": 8}},
            EncoderForm(max_seq_length=8),
        ),
        (
            {"config_sentence_transformers.json": {"prompts": {"query": "q: ", "passage": "p: "}}},
            EncoderForm(prompts={"query": "q: ", "passage": "p: "}),
        ),
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
    """They say how texts are pooled, cut and begun; without them, it is the mean of the whole text."""
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
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)
    # Six tokens less two special ones and the prompt are three: three of six words are cut.
    assert encoder.encoder.num_cut == 1
    assert [line for line in log_lines if "reads only the beginning of some texts" in line]
    scores = encoder("ran", ["dog", long])
    np.testing.assert_allclose(scores, vectors @ by_hand(bert, "it ran"), rtol=0, atol=1e-6)


def test_case_and_a_chosen_pooling(bert: Path, tmp_path: Path) -> None:
    """Texts are lower-cased if the files say so, and a pooling that is asked for replaces that of the files."""
    files = {"sentence_bert_config.json": {"do_lower_case": True}, **MEAN}
    folder = str(with_files(bert, tmp_path / "encoder", files))
    assert np.array_equal(
        ranker_of(folder).vectors(["The CAT"]), ranker_of(bert).vectors(["the cat"])
    )
    encoder = SentenceEncoder(folder, "encoder", "cpu", "cls")
    np.testing.assert_allclose(encoder(["a dog"])[0], by_hand(bert, "a dog", "cls"), atol=1e-6)
    assert encoder.signature.endswith("|pooling:cls")


def no_tokenizer(folder: Path) -> None:
    for path in folder.glob("*token*"):
        path.unlink()
    (folder / "vocab.txt").unlink(missing_ok=True)


def as_decoder(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "is_decoder": True}))


def not_finite(folder: Path) -> None:
    network = BertModel.from_pretrained(folder)
    with torch.no_grad():
        network.embeddings.word_embeddings.weight[3] = torch.nan
    network.save_pretrained(folder)


def add_file(name: str, content: Any) -> Callable[[Path], None]:
    """Return a function that adds a JSON file to a folder."""

    def add(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text)

    return add


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (no_tokenizer, UsageError, "has no tokenizer"),
        (as_decoder, UsageError, r"is a model that writes text \('bert'\): give an encoder"),
        (not_finite, DataError, "have numbers that are not finite"),
        (lambda folder: (folder / "model.safetensors").unlink(), UsageError, r"no \*\.safetensors"),
        (lambda folder: (folder / "config.json").unlink(), UsageError, r"no config\.json"),
        (
            add_file("1_Pooling/config.json", {"pooling_mode_lasttoken": True}),
            UsageError,
            "has pooling by lasttoken, and the suite has .*, by mean, cls, max: choose another",
        ),
        (
            add_file(
                "1_Pooling/config.json",
                {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True},
            ),
            UsageError,
            "has pooling by max and mean|has pooling by mean and max",
        ),
        (add_file("1_Pooling/config.json", {"pooling_mode": "x"}), UsageError, "pooling by x"),
        (
            add_file("1_Pooling/config.json", "["),
            DataError,
            "a file of sentence-transformers is damaged",
        ),
        (
            add_file("modules.json", [{"type": "sentence_transformers.models.Dense"}]),
            UsageError,
            "has Dense, and the suite has Transformer and Pooling and Normalize",
        ),
        (
            add_file("modules.json", {"type": 1}),
            DataError,
            "a file of sentence-transformers is damaged",
        ),
        (
            add_file("sentence_bert_config.json", {"max_seq_length": "many"}),
            DataError,
            "a file of sentence-transformers is damaged",
        ),
        (
            add_file("config_sentence_transformers.json", {"prompts": {"query": 1}}),
            DataError,
            "a file of sentence-transformers is damaged",
        ),
    ],
)
def test_what_is_no_sentence_encoder(
    bert: Path,
    tmp_path: Path,
    change: Callable[[Path], None],
    error: type[SuiteError],
    message: str,
) -> None:
    """A folder that cannot be used is refused in one line that names it."""
    folder = with_files(bert, tmp_path / "encoder", {})
    change(folder)
    with pytest.raises(error, match=message) as raised:
        ranker_of(folder).vectors(["a dog"])
    assert "\n" not in str(raised.value)
    assert str(folder) in str(raised.value)


def test_models_that_write_are_no_encoders(tmp_path: Path) -> None:
    """Decoders, encoder-decoders and what is no folder are refused in one line, whatever their classes are called."""
    body = AutoModel.from_pretrained(causal_folder())
    shutil.copytree(causal_folder(), tmp_path / "body")
    body.save_pretrained(tmp_path / "body")
    for folder in (causal_folder(), tmp_path / "body", tiny_checkpoint()):
        with pytest.raises(UsageError, match="is a model that writes text"):
            ranker_of(folder).vectors(["a dog"])
    for missing in ("no/such/folder at all", "weights.gguf"):
        with pytest.raises(SuiteError, match=r"neither a folder nor a model|there is no such file"):
            ranker_of(missing)


def test_scores_are_cosines_with_the_title(bert: Path) -> None:
    """The score of a text is the cosine of its vector with the title's; a missing title is an error."""
    title = by_hand(bert, "the cat")
    expected = [by_hand(bert, text) @ title for text in TEXTS]
    ranker = ranker_of(bert)
    np.testing.assert_allclose(ranker("the cat", TEXTS), expected, rtol=0, atol=1e-6)
    with pytest.raises(UsageError, match="compares paragraphs with the title"):
        ranker(None, TEXTS)


def page_rank(cosines: Any, damping: float) -> list[float]:
    """LexRank by networkx: PageRank of the graph of clipped cosines, loops included."""
    clipped = np.maximum(cosines, 0)
    np.fill_diagonal(clipped, 1)
    ranks = networkx.pagerank(
        networkx.from_numpy_array(clipped), alpha=damping, tol=1e-15, max_iter=1_000
    )
    return [ranks[index] for index in range(len(cosines))]


def test_lexrank_of_vectors_is_pagerank() -> None:
    """Scores are networkx's PageRank of the cosines, of which negative ones count as 0; their sum is 1."""
    vectors = np.random.default_rng(1).normal(size=(12, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[4] = 0
    scores = lexrank_of_vectors(vectors)
    assert (vectors @ vectors.T).min() < -0.5
    assert scores == pytest.approx(page_rank(vectors @ vectors.T, 0.85), rel=0, abs=1e-8)
    assert scores.sum() == pytest.approx(1)


def test_worked_lexrank_of_vectors() -> None:
    """Of a vector, its opposite and one between neither, each is similar to itself only: all score 1/3."""
    vectors = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    assert lexrank_of_vectors(vectors).tolist() == pytest.approx([1 / 3] * 3)


def test_an_example_is_encoded_once(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts and a title that are scored again are not encoded again; each text that is cut counts once."""
    encoded: list[Sequence[str]] = []
    encode = SentenceEncoder._encode

    def counted(self: SentenceEncoder, prompt: str, texts: Sequence[str]) -> Any:
        encoded.append(texts)
        return encode(self, prompt, texts)

    monkeypatch.setattr(SentenceEncoder, "_encode", counted)
    ranker, texts = ranker_of(bert), [*TEXTS, "the cat sat . " * 20]
    scores = ranker("the cat", texts)
    np.testing.assert_allclose(ranker("the cat", texts[::-1]), scores[::-1], atol=1e-12)
    assert len(encoded) == 2
    assert ranker.encoder.num_cut == 1


def test_runs_are_identified_by_the_encoder(bert: Path, tmp_path: Path) -> None:
    """A copy elsewhere is the same run; other weights or another pooling under the same name are another."""
    copies = {
        "same": with_files(bert, tmp_path / "a" / "bert", {}),
        "weights": write_bert(tmp_path / "b" / "bert", seed=2, network=BertModel),
        "pooling": with_files(
            bert,
            tmp_path / "c" / "bert",
            {"1_Pooling/config.json": {"pooling_mode_max_tokens": True}},
        ),
    }
    for name, settings in (
        ("ranker", {"rank": "embedding"}),
        ("lead", {"rank": "embedding_lexrank"}),
        ("flat_transformer", {"rank": "embedding"}),
    ):
        kind = registry.systems.load(name).Config

        def identity(folder: Path, kind: type = kind, settings: dict[str, str] = settings) -> Any:
            values = {**settings, "rank_checkpoint": str(folder)}
            return build_settings(kind, values, "model.").identity()

        assert identity(copies["same"]) == identity(bert), name
        assert identity(copies["weights"]) != identity(bert), name
        assert identity(copies["pooling"]) != identity(bert), name
        assert identity(bert) != kind().identity(), name


def test_planning_loads_no_torch(bert: Path) -> None:
    """A run with an encoder is planned, and its id computed, without torch or transformers."""
    code = f"""
import sys
from longsumbench.core import RunKey
from longsumbench.runs.plan import plan
for rank in ("embedding", "embedding_lexrank"):
    words = ["model=ranker", f"model.rank={{rank}}", "model.rank_checkpoint={bert}"]
    (point,) = plan([*words, "dataset=aclsum"])
    RunKey.of(point.config)
assert not {{"torch", "transformers"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["ranker", "lead", "flat_transformer", "trunc"])
def test_systems_rank_by_an_encoder(bert: Path, tmp_path: Path, name: str) -> None:
    """A system that reads by an encoder, loaded from its folder, writes as before."""
    settings: dict[str, Any] = {"rank": "embedding", "rank_checkpoint": str(bert)}
    if name in ("ranker", "lead"):
        settings["length"] = "8"
    system = fit_tiny(name, tmp_path / "stages", **settings)
    tests = [example(number) for number in (901, 902)]
    decoding = Decoding(device="cpu")
    written = [summary.text for summary in system.summarize(tests, decoding)]
    (tmp_path / "saved").mkdir()
    system.save(tmp_path / "saved")
    loaded = type(system).load(tmp_path / "saved")
    assert [summary.text for summary in loaded.summarize(tests, decoding)] == written


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run model=ranker model.rank=embedding", "rank_checkpoint is missing: give a folder"),
        ("run model=ranker model.rank_checkpoint=BERT", "which the ranker 'lexrank' does not use"),
        ("run model=lead model.rank_checkpoint=BERT", "which the ranker 'none' does not use"),
        ("run model=lead model.rank=embedding model.rank_checkpoint=''", "_checkpoint is missing"),
        (
            "run model=ranker model.rank=embedding model.rank_checkpoint=TEXTS",
            "no config.json in the model's folder",
        ),
        ("run model=trunc scale=tiny model.rank=embedding", "rank_checkpoint is missing"),
        ("stats rank=tfidf,embedding", "rank_checkpoint is missing"),
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
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    message: str,
) -> None:
    """A setting that does not fit ends the command with one line and exit code 2; nothing is written."""
    monkeypatch.chdir(tmp_path)
    texts = tmp_path / "texts"
    write_jsonl(texts)
    words = words.replace("BERT", str(bert)).replace("TEXTS", str(texts))
    assert main([*words.split(), "dataset=jsonl", f"dataset.path={texts}"]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error.splitlines()[-1]
    assert not list(tmp_path.glob("results/**/record.json"))


def test_rank_recall_of_encoders(bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`stats` scores the orders of both rankers with an encoder next to others."""
    words = "dataset=aclsum dataset.limit=4 rank=tfidf,embedding,embedding_lexrank device=cpu"
    assert main(["stats", *words.split(), f"rank_checkpoint={bert}"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "±" in line]
    assert {"tfidf", "embedding", "embedding_lexrank"} <= {*names}


def test_heads_of_other_tasks_are_ignored(tmp_path: Path) -> None:
    """A BERT with the head of a masked language model is an encoder: its vectors are those of its body."""
    folder = write_bert(tmp_path / "bert", network=BertForMaskedLM)
    np.testing.assert_allclose(
        ranker_of(folder).vectors(["a dog"])[0],
        by_hand(folder, "a dog"),
        rtol=0,
        atol=1e-6,
    )


@pytest.mark.weights
def test_a_real_encoder(weights: Callable[[str], Path]) -> None:
    """An encoder for English knows what texts are about without a word in common, also in a long batch."""
    folder = weights("sentence_bert_config.json").parent
    ranker = ranker_of(folder)
    texts = [
        "A feline rested on the rug.",
        "Shares fell by two percent.",
        "Rain is expected tomorrow.",
    ]
    for topic, best in (("the cat sat", 0), ("stock market", 1), ("weather forecast", 2)):
        assert int(np.argmax(ranker(topic, texts * 30)[:3])) == best
    vectors = ranker_of(folder).vectors(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=0, atol=1e-12)

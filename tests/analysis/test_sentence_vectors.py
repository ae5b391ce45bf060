"""Sentences as vectors: by a tiny BERT, pooled in each way, and what is said of invalid encoders."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from support.json_files import write_json
from support.tiny_bert import LONGEST, write_bert
from transformers import BertModel, BertTokenizerFast

from longsumbench.analysis.locality import Encoder
from longsumbench.errors import UsageError

SENTENCES = ["the cat sat .", "it slept .", "a dog ran .", "the dog", "cat"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder."""
    return write_bert(tmp_path_factory.mktemp("models") / "bert", network=BertModel)


def states(folder: Path, sentence: str) -> np.ndarray:
    """Return the states of a sentence encoded alone: [tokens, width]."""
    model, tokenizer = BertModel.from_pretrained(folder), BertTokenizerFast.from_pretrained(folder)
    with torch.inference_mode():
        return model.eval()(**tokenizer(sentence, return_tensors="pt")).last_hidden_state[0].numpy()


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("batch_size", [2, 64])
def test_states_are_pooled(bert: Path, pooling: str, batch_size: int) -> None:
    """Each vector is what pooling the states of the sentence alone gives, of length 1, with any batches."""
    found = Encoder(str(bert), pooling, batch_size, "cpu")(SENTENCES)
    for sentence, vector in zip(SENTENCES, found, strict=True):
        alone = states(bert, sentence)
        expected = {"mean": alone.mean(axis=0), "cls": alone[0], "max": alone.max(axis=0)}[pooling]
        assert vector == pytest.approx(expected / np.linalg.norm(expected), abs=1e-5)


def configured(bert: Path, folder: Path, pooling: dict[str, object], *more: str) -> str:
    """Copy an encoder, with the files that sentence-transformers writes; return its folder."""
    shutil.copytree(bert, folder)
    names = ["Transformer", "Pooling", *more]
    modules = [
        {"path": name if name != "Transformer" else "", "type": f"x.models.{name}"}
        for name in names
    ]
    write_json(folder / "modules.json", modules)
    (folder / "Pooling").mkdir()
    write_json(folder / "Pooling" / "config.json", pooling)
    return str(folder)


def test_its_own_configuration_says_how(bert: Path, tmp_path: Path) -> None:
    """Pooling, the longest input and the case follow sentence-transformers' files; without them it is the mean."""
    cls = configured(
        bert, tmp_path / "cls", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    )
    (tmp_path / "cls" / "sentence_bert_config.json").write_text(
        '{"max_seq_length": 4, "do_lower_case": true}'
    )
    encoder = Encoder(cls, device="cpu")
    assert "pooling:cls" in encoder.signature
    assert encoder(["The CAT"])[0] == pytest.approx(encoder(["the cat"])[0])
    encoder(SENTENCES)
    assert encoder.num_cut == 3  # of four tokens, two of them special
    assert "pooling:mean" in Encoder(str(bert), device="cpu").signature


def test_longer_sentences_are_counted(bert: Path) -> None:
    """What is beyond the model's positions is cut, and how many sentences were is known."""
    encoder = Encoder(str(bert), device="cpu")
    found = encoder([" ".join(["cat"] * (LONGEST - 2)), " ".join(["cat"] * 40), "cat"])
    assert encoder.num_cut == 1
    assert found[0] == pytest.approx(found[1])


def test_which_encoders_cannot_be_meant(bert: Path, tmp_path: Path) -> None:
    """Another layer, another pooling, a prompt, and a folder without a model end in one line."""
    dense = configured(bert, tmp_path / "dense", {"pooling_mode_cls_token": True}, "Dense")
    weighted = configured(bert, tmp_path / "weighted", {"pooling_mode_weightedmean_tokens": True})
    prompted = configured(bert, tmp_path / "prompted", {"pooling_mode_cls_token": True})
    (tmp_path / "prompted" / "config_sentence_transformers.json").write_text(
        '{"default_prompt_name": "query"}'
    )
    (tmp_path / "empty").mkdir()
    for folder, message in (
        (dense, "Dense of sentence-transformers is not supported"),
        (weighted, "pooling_mode_weightedmean_tokens of sentence-transformers is not supported"),
        (prompted, "prompt 'query' of"),
        (str(tmp_path / "empty"), "no config.json"),
    ):
        with pytest.raises(UsageError, match=message) as error:
            Encoder(folder, device="cpu")
        assert "\n" not in str(error.value)

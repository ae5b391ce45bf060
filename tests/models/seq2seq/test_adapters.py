"""PEFT adapters: their weights are merged into those of the checkpoint."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.tiny_seq2seq import open_seq2seq, write_seq2seq
from support.toys import build_tiny, example, refuses, settings_of
from transformers import AutoModelForSeq2SeqLM

from longsumbench.errors import DataError, EnvironmentProblem
from longsumbench.modeling.unit_reader import collate_units
from longsumbench.models.seq2seq.system import Seq2Seq

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # of PEFT
    pytest.mark.filterwarnings("ignore::UserWarning:peft"),  # of layers that share weights
]
TEST = [example(number) for number in range(3)]
LORA = "target_modules=[q_proj,v_proj,fc1]"
# Embeddings of both stacks and the output layer share their weights.
ADAPTERS = {
    "plain": LORA,
    "output layer": "target_modules=[lm_head,q_proj]",
    "embeddings": "target_modules=[embed_tokens] use_dora=true",
    "shared weights": "target_modules=[shared,fc1]",
    "a whole layer": f"{LORA} modules_to_save=[lm_head]",
    "some tokens": f"{LORA} trainable_token_indices=[3,5]",
}


@pytest.fixture
def bart(tmp_path: Path) -> Path:
    """The folder of a tiny BART."""
    return write_seq2seq(tmp_path / "bart")


def write_adapter(base: Path, folder: Path, kind: str = "LoraConfig", **settings: Any) -> Path:
    peft = pytest.importorskip("peft")
    config = getattr(peft, kind)(task_type="SEQ_2_SEQ_LM", **settings)
    model = peft.get_peft_model(AutoModelForSeq2SeqLM.from_pretrained(base), config)
    torch.manual_seed(3)
    for weight in model.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight.data, std=2.0)
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ADAPTERS)
def test_an_adapter_writes_what_peft_writes(kind: str, bart: Path, tmp_path: Path) -> None:
    """The logits are those of the library's model with the adapter, also saved; the record says which one it is."""
    adapter = write_adapter(bart, tmp_path / "lora", r=2, **settings_of(ADAPTERS[kind]))
    peft = pytest.importorskip("peft")
    reference = peft.PeftModel.from_pretrained(
        AutoModelForSeq2SeqLM.from_pretrained(bart), adapter
    ).eval()
    plain, system = open_seq2seq(bart), open_seq2seq(bart, adapter=str(adapter))
    batch = {**collate_units(system.reader, [system.reader.units(one) for one in TEST])}
    fed = {**batch, "decoder_input_ids": torch.full((3, 1), 2)}
    (tmp_path / "saved").mkdir()
    system.save(tmp_path / "saved")
    saved = Seq2Seq.load(tmp_path / "saved")
    with torch.inference_mode():
        expected, merged, loaded, without = (
            one(**fed).logits
            for one in (reference, system.model.eval(), saved.model.eval(), plain.model.eval())
        )
    # Of sums of large numbers, small ones have the error of the large ones.
    scale = float(expected.abs().max())
    assert torch.allclose(merged, expected, rtol=1e-4, atol=1e-4 * scale)
    assert torch.allclose(loaded, merged)
    assert not torch.allclose(without, expected, atol=1e-2 * scale)
    assert system.metadata()["checkpoint"] == "bart + lora"
    identity = str(system.config.identity())
    assert identity != str(plain.config.identity())
    assert str(tmp_path) not in identity


def test_weights_of_an_adapter_at_other_places_are_refused(bart: Path, tmp_path: Path) -> None:
    """Weights whose names fit no layer would change nothing: the line has the first names that are missing."""
    adapter = write_adapter(bart, tmp_path / "lora", **settings_of(LORA))
    path = adapter / "adapter_model.safetensors"
    weights = {
        name.replace("base_model.model.model.", "base_model.model."): w
        for name, w in load_file(path).items()
    }
    save_file(weights, path, {"format": "pt"})
    first = r"base_model\.model\.model\.decoder\.layers\.0\.encoder_attn\.q_proj\.lora_A\.weight"
    with refuses(
        rf"^model\.adapter=.*weights are missing or have another shape: {first}", DataError
    ):
        open_seq2seq(bart, adapter=str(adapter))


def test_adapters_that_cannot_be_merged_are_named(bart: Path, tmp_path: Path) -> None:
    """An adapter of tokens before the input, or one that some tokens switch on, is not called damaged or plain LoRA."""
    adapter = write_adapter(bart, tmp_path / "prompt", "PrefixTuningConfig", num_virtual_tokens=3)
    with refuses(r"^model\.adapter=.*of the kind [A-Z_]+, which cannot be merged"):
        open_seq2seq(bart, adapter=str(adapter))
    settings = {**settings_of(LORA), "alora_invocation_tokens": [3]}
    adapter = write_adapter(bart, tmp_path / "alora", **settings)
    with refuses(r"kind aLoRA, which cannot be merged into weights: give a plain LoRA adapter$"):
        open_seq2seq(bart, adapter=str(adapter))


def test_what_is_no_adapter_is_refused(
    bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder without an adapter, random weights and a missing package are each one line."""
    with refuses(r"model\.adapter=.*: no adapter_config\.json and no adapter_model\.safetensors"):
        open_seq2seq(bart, adapter=str(bart))
    with refuses(r"model\.adapter changes weights of the checkpoint"):
        build_tiny("seq2seq", adapter="somebody/lora", init="random")
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / name).touch()
    monkeypatch.setitem(sys.modules, "peft", None)
    with refuses(r"needs the package peft: pip install", EnvironmentProblem):
        open_seq2seq(bart, adapter=str(tmp_path))

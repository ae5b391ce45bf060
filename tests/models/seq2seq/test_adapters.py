"""PEFT adapters: their weights are merged into those of the checkpoint."""

import builtins
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.tiny_seq2seq import open_seq2seq, write_seq2seq
from support.toys import build_tiny, example
from transformers import AutoModelForSeq2SeqLM

from longsumbench.errors import DataError, EnvironmentProblem, UsageError
from longsumbench.modeling.unit_reader import collate_units

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of PEFT
TEST = [example(number) for number in range(3)]


@pytest.fixture
def bart(tmp_path: Path) -> Path:
    """The folder of a tiny BART."""
    return write_seq2seq(tmp_path / "bart")


def write_adapter(base: Path, folder: Path) -> Path:
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(
        r=2, target_modules=["q_proj", "v_proj", "fc1"], task_type="SEQ_2_SEQ_LM"
    )
    model = peft.get_peft_model(AutoModelForSeq2SeqLM.from_pretrained(base), config)
    torch.manual_seed(3)
    for name, weight in model.named_parameters():
        if "lora" in name:
            torch.nn.init.normal_(weight.data, std=2.0)
    model.save_pretrained(folder)
    return folder


def test_an_adapter_writes_what_peft_writes(bart: Path, tmp_path: Path) -> None:
    """The logits are those of the library's model with the adapter; identity and record say which one it is."""
    adapter = write_adapter(bart, tmp_path / "lora")
    peft = pytest.importorskip("peft")
    reference = peft.PeftModel.from_pretrained(
        AutoModelForSeq2SeqLM.from_pretrained(bart), adapter
    ).eval()
    plain, system = open_seq2seq(bart), open_seq2seq(bart, adapter=str(adapter))
    batch = {**collate_units(system.reader, [system.reader.units(one) for one in TEST])}
    fed = {**batch, "decoder_input_ids": torch.full((3, 1), 2)}
    with torch.inference_mode():
        expected, found, without = (
            one(**fed).logits for one in (reference, system.model.eval(), plain.model.eval())
        )
    assert torch.allclose(found, expected, atol=1e-3)
    assert not torch.allclose(without, expected, atol=1e-1)
    assert system.facts()["checkpoint"] == "bart + lora"
    identity = str(system.config.identity())
    assert identity != str(plain.config.identity())
    assert str(tmp_path) not in identity


def test_weights_of_an_adapter_at_other_places_are_refused(bart: Path, tmp_path: Path) -> None:
    """Weights whose names fit no layer would change nothing: the line has the first names that are missing."""
    adapter = write_adapter(bart, tmp_path / "lora")
    path = adapter / "adapter_model.safetensors"
    weights = {
        name.replace("base_model.model.model.", "base_model.model."): w
        for name, w in load_file(path).items()
    }
    save_file(weights, path, {"format": "pt"})
    first = r"base_model\.model\.model\.decoder\.layers\.0\.encoder_attn\.q_proj\.lora_A\.weight"
    with pytest.raises(
        DataError, match=rf"^model\.adapter=.*weights are missing or have another shape: {first}"
    ):
        open_seq2seq(bart, adapter=str(adapter))


def test_what_is_no_adapter_is_refused(
    bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder without an adapter, random weights and a missing package are each one line."""
    with pytest.raises(
        UsageError,
        match=r"model\.adapter=.*: no adapter_config\.json and no adapter_model\.safetensors",
    ):
        open_seq2seq(bart, adapter=str(bart))
    with pytest.raises(UsageError, match=r"model\.adapter changes weights of the checkpoint"):
        build_tiny("seq2seq", adapter="somebody/lora", init="random")
    load = builtins.__import__

    def without_peft(name: str, *arguments: Any) -> Any:
        if name == "peft":
            raise ImportError("No module named 'peft'")
        return load(name, *arguments)

    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / name).touch()
    monkeypatch.setattr(builtins, "__import__", without_peft)
    with pytest.raises(EnvironmentProblem, match=r"needs the package peft: pip install"):
        open_seq2seq(bart, adapter=str(tmp_path))

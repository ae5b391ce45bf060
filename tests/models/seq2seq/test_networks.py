"""Every encoder-decoder: it writes what the library's own `generate` writes for inputs made by hand, and it learns."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as functional
from support.hand_texts import text_of
from support.tiny_seq2seq import ARCHITECTURES, SEPARATOR, checkpoint_of, open_seq2seq
from support.toys import ToySplit
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from longsumbench.core import Decoding, Example
from longsumbench.modeling import neural_system
from longsumbench.modeling.generation import generate_texts
from longsumbench.modeling.unit_reader import collate_units
from longsumbench.models.seq2seq.system import Seq2Seq

LENGTH = 32  # tokens of an input
BEAMS = Decoding(num_beams=3, max_length=12, device="cpu")
TEST = ToySplit.of("test", 6, start=30).examples  # the longest is cut
opened = partial(open_seq2seq, input_length=LENGTH)


@pytest.fixture(params=ARCHITECTURES)
def folder(request: pytest.FixtureRequest) -> Path:
    """The folder of a tiny checkpoint of every architecture."""
    return checkpoint_of(request.param)


def written(
    system: Seq2Seq, examples: Sequence[Example] = TEST, decoding: Decoding = BEAMS
) -> list[list[int]]:
    """Return the tokens of a batch's summaries."""
    return [
        list(one.ids) for one in generate_texts(system.model, system.reader, examples, decoding)
    ]


def by_hand(
    folder: Path, texts: Sequence[str], how: Decoding = BEAMS, **inputs: Any
) -> list[list[int]]:
    """Return what the library alone writes for some texts."""
    model = AutoModelForSeq2SeqLM.from_pretrained(
        folder, dtype=inputs.pop("dtype", torch.float32)
    ).eval()
    model.generation_config.forced_eos_token_id = (
        None  # BART's and PEGASUS's default; `decode.*` decides it
    )
    tokenizer = AutoTokenizer.from_pretrained(folder)
    padding = "max_length" if model.config.model_type == "bigbird_pegasus" else True
    encoded = tokenizer(
        list(texts), max_length=LENGTH, truncation=True, padding=padding, return_tensors="pt"
    )
    if model.config.model_type == "led" and "global_attention_mask" not in inputs:
        inputs["global_attention_mask"] = torch.zeros_like(encoded["input_ids"])
        inputs["global_attention_mask"][:, 0] = 1
    read = {
        "input_ids": encoded["input_ids"],
        "attention_mask": encoded["attention_mask"],
        **inputs,
    }
    rows = model.generate(
        **read, num_beams=how.num_beams, max_new_tokens=how.max_length, do_sample=False
    ).tolist()
    end = tokenizer.eos_token_id
    return [row[1 : row.index(end, 1)] if end in row[1:] else row[1:] for row in rows]


def test_it_writes_what_generate_writes(folder: Path) -> None:
    """From the same folder, beam search writes the same tokens as the library's, and they differ between texts."""
    found = written(opened(folder))
    assert found == by_hand(folder, [" ".join(one.sentences()) for one in TEST])
    assert len(set(map(tuple, found))) > 1
    assert any(
        one.truncation.cuts for one in opened(folder).summarize(TEST, BEAMS) if one.truncation
    )


def test_the_loss_is_the_librarys(folder: Path) -> None:
    """The loss of a batch is that of the logits that the library computes from the targets."""
    system = opened(folder)
    batch = system.reader.collator()([system.reader.row(one) for one in TEST])
    labels, unit_mask = batch.pop("labels"), batch.pop("unit_mask")
    system.model.eval()
    with torch.inference_mode(), warnings.catch_warnings(action="ignore", category=FutureWarning):
        loss = system._output(0.0, labels, unit_mask, 1, **batch).loss
        logits = system.model(**batch, labels=labels).logits
    expected = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    assert float(loss) == pytest.approx(float(expected), rel=1e-4)


def test_random_weights_have_the_sizes_of_the_checkpoint(folder: Path) -> None:
    """model.init=random draws other weights for every seed, and none is the checkpoint's."""
    system = opened(folder)
    system.config.init = "random"
    drawn = [AutoModelForSeq2SeqLM.from_pretrained(folder).state_dict()]
    for seed in (2, 3):  # 1 wrote the checkpoint
        torch.manual_seed(seed)
        drawn.append(system.builder.initial_model(system.reader).state_dict())
    shapes = [{name: weight.shape for name, weight in weights.items()} for weights in drawn]
    assert shapes[0] == shapes[1] == shapes[2]
    layers = r"\.layers?\.1\.\D*(fc1|up_proj|intermediate|dense)|k\.1\.layer\.0"
    matrices = [
        name
        for name, shape in shapes[0].items()
        if re.search(layers, name) and len(shape) > 1 and "norm" not in name
    ]
    assert matrices
    for one, other in combinations(drawn, 2):
        assert not any(torch.equal(one[name], other[name]) for name in matrices)


@pytest.mark.parametrize("folder", ["led"], indirect=True)
def test_every_separator_is_global(folder: Path) -> None:
    """As PRIMERA reads: a separator between documents, and global attention on the first token and each separator."""
    system = opened(folder, separator=SEPARATOR, global_attention="separator")
    documents = ("kadan lofel.", "migor", "nuhit kadan.")
    several = [text_of(*((text,) for text in documents)), TEST[0]]
    read = collate_units(system.reader, [system.reader.units(one) for one in several])
    separator = system.tokenizer.convert_tokens_to_ids(SEPARATOR)
    expected = read["input_ids"].eq(separator)
    assert expected.sum(1).tolist() == [2, 0]
    expected[:, 0] = True
    assert torch.equal(read["global_attention_mask"].bool(), expected)
    texts = [SEPARATOR.join(documents), " ".join(TEST[0].sentences())]
    encoded = AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")[
        "input_ids"
    ]
    assert written(system, several) == by_hand(
        folder, texts, global_attention_mask=expected[:, : encoded.shape[1]].long()
    )


@pytest.mark.parametrize("folder", ["pegasus", "pegasus_x", "bigbird_pegasus"], indirect=True)
def test_line_breaks_of_pegasus(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What PEGASUS writes for a line break is one in the summary."""
    system = opened(folder)
    ids = [
        *system.tokenizer("kadan", add_special_tokens=False).input_ids,
        system.tokenizer.convert_tokens_to_ids("<n>"),
    ]
    (one,) = generate_texts(system.model, system.reader, TEST[:1], BEAMS)
    monkeypatch.setattr(
        neural_system, "generate_texts", lambda *_: [replace(one, ids=[*ids, *ids[:-1]])]
    )
    (summary,) = system.summarize(TEST[:1], BEAMS)
    assert summary.text == "kadan\nkadan"


@pytest.mark.parametrize("folder", ["bart"], indirect=True)
def test_of_another_type_on_several_devices(folder: Path) -> None:
    """In bfloat16, and with a device map, it writes what the library does."""
    texts = [" ".join(one.sentences()) for one in TEST]
    half = opened(folder, dtype="bfloat16")
    assert half.model.dtype == torch.bfloat16
    assert written(half) == by_hand(folder, texts, dtype=torch.bfloat16)
    assert written(opened(folder, device_map="auto")) == by_hand(folder, texts)

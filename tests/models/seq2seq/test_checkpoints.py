"""What seq2seq opens: folders, revisions of the hub, weights in both formats; and what it refuses, in one line."""

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub.errors import RevisionNotFoundError
from requests import Response
from safetensors.torch import load_file, save_file
from support.tiny_bert import write_bert
from support.tiny_causal import write_causal
from support.tiny_seq2seq import checkpoint_of, open_seq2seq, write_seq2seq
from support.toys import example, refuses, settings_of

from longsumbench.core import Decoding, TrainConfig, deciding_parts
from longsumbench.errors import DataError, EnvironmentProblem, SuiteError
from longsumbench.modeling import checkpoints
from longsumbench.models.seq2seq.config import Seq2SeqConfig
from longsumbench.models.seq2seq.system import Seq2Seq

GREEDY = Decoding(max_length=8, device="cpu")
TEST = [example(number) for number in range(3)]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def bart(tmp_path: Path) -> Path:
    """The folder of a tiny BART."""
    return write_seq2seq(tmp_path / "bart")


def texts(system: Seq2Seq) -> list[str]:
    """Return some summaries."""
    return [one.text for one in system.summarize(TEST, GREEDY)]


def as_pickle(folder: Path, weights: Any = None) -> Path:
    """Replace a checkpoint's safetensors by a file of PyTorch's format."""
    system = open_seq2seq(folder)
    torch.save(
        system.model.state_dict() if weights is None else weights, folder / "pytorch_model.bin"
    )
    (folder / "model.safetensors").unlink()
    return folder


def test_the_content_is_the_identity(bart: Path, tmp_path: Path) -> None:
    """The same files elsewhere are the same system; other weights are not; the path is nowhere."""
    copy, other = write_seq2seq(tmp_path / "copy"), write_seq2seq(tmp_path / "other", init_std=0.4)
    identity = open_seq2seq(bart).config.identity()
    assert identity == open_seq2seq(copy).config.identity() != open_seq2seq(other).config.identity()
    assert str(tmp_path) not in json.dumps(identity)
    assert identity["input_length"] == 48


def test_metadata_says_which_checkpoint_and_how_much_it_reads(bart: Path) -> None:
    """The record says which checkpoint, in which format, how large it is, and how much it can read."""
    system = open_seq2seq(bart, input_length=None)
    parameters = sum(weight.numel() for weight in system.model.parameters())
    assert system.metadata() == {
        "released": None,
        "checkpoint": "bart",
        "revision": None,
        "weights": "safetensors",
        "parameters": parameters,
        "context": 64,
    }


def test_a_revision_of_the_hub(bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pull request is fetched by its name; the commit that it is becomes part of identity and record."""
    snapshot = tmp_path / "snapshots" / COMMIT
    snapshot.parent.mkdir()
    bart.rename(snapshot)
    asked: list[tuple[str, str | None]] = []

    def fetched(name: str, revision: str | None, **_: Any) -> str:
        asked.append((name, revision))
        return str(snapshot)

    monkeypatch.setattr(checkpoints, "unreachable", lambda: None)
    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched)
    system = open_seq2seq("someone/bart", revision="refs/pr/3")
    assert asked == [("someone/bart", "refs/pr/3")]
    assert system.config.identity()["revision"] == COMMIT
    metadata = system.metadata()
    assert (metadata["checkpoint"], metadata["revision"]) == ("someone/bart", COMMIT)
    assert texts(system) == texts(open_seq2seq(snapshot))


def test_weights_of_pytorchs_format(bart: Path, tmp_path: Path) -> None:
    """Pickled tensors write what the same safetensors write; the record says that they were read."""
    same = texts(open_seq2seq(bart))
    system = open_seq2seq(as_pickle(write_seq2seq(tmp_path / "pickled")))
    assert texts(system) == same
    assert system.metadata()["weights"] == "bin"


class Shell:
    """An object whose pickle runs code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("executed"),))


def test_a_pickle_with_code_is_refused(bart: Path, here: Path) -> None:
    """A pickle that needs code ends in one line, and the code is not run."""
    as_pickle(bart)
    (bart / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": Shell()}))
    with refuses(r"^model\.checkpoint=.*cannot be read", DataError):
        open_seq2seq(bart)
    assert not Path("executed").exists()


def test_a_sentencepiece_file(bart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tokenizer.json and the packages that read a SentencePiece file, the message names them."""
    (bart / "tokenizer.json").unlink()
    (bart / "spiece.model").touch()
    monkeypatch.setattr("transformers.utils.is_protobuf_available", lambda: False)
    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", raise_tiktoken)
    problem = r"spiece\.model, .*packages sentencepiece and protobuf: install"
    with refuses(problem, EnvironmentProblem) as caught:
        open_seq2seq(bart)
    assert "tiktoken" not in str(caught.value)


def raise_tiktoken(*_: Any, **__: Any) -> None:
    """As the library does without protobuf."""
    raise ValueError("`tiktoken` is required to read a `tiktoken` file.")


def no_revision(*_: Any, **__: Any) -> None:
    """As the hub answers where a revision is unknown."""
    raise RevisionNotFoundError("404", response=Response())  # type: ignore[arg-type] # stands in for httpx's


def test_an_unknown_revision_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown revision is wrong usage."""
    monkeypatch.setattr(checkpoints, "unreachable", lambda: None)
    monkeypatch.setattr("huggingface_hub.snapshot_download", no_revision)
    with refuses(r"model\.checkpoint=someone/bart has no revision 'refs/pr/99'"):
        open_seq2seq("someone/bart", revision="refs/pr/99")


def without_a_weight(folder: Path) -> Path:
    """Write a pickled BART that lacks a weight."""
    weights = open_seq2seq(write_seq2seq(folder)).model.state_dict()
    weights.pop("model.encoder.layers.0.fc1.weight")
    return as_pickle(folder, weights)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (
            write_causal,
            r"'qwen2', not of an encoder-decoder: choose model=prompt model\.checkpoint=",
        ),
        (write_bert, r"'bert', not of an encoder-decoder: give an encoder-decoder, or a language"),
        (without_a_weight, r"have another shape: model\.encoder\.layers\.0\.fc1\.weight"),
        (lambda folder: folder, r"model\.checkpoint=.* is neither a folder nor a model|is not a"),
    ],
)
def test_what_cannot_be_opened_ends_in_one_line(
    write: Callable[[Path], Path], message: str, tmp_path: Path
) -> None:
    """Whatever is wrong with a checkpoint is one line."""
    with refuses(message, SuiteError):
        open_seq2seq(write(tmp_path / "there"))


REFUSED = {  # an architecture and settings → what the line says
    "t5 input_length=null": r"input_length is missing, .*\('t5'\) has no number of positions: give",
    "t5 global_attention=first": r"global_attention=first goes with LED, not with 't5'",
    "bart pad_to_multiple_of=60 input_length=61": "=60 pads inputs of 61 tokens beyond the 64",
    "bart decode_length=65": r"decode_length=65: model\.checkpoint=.* has only 64 positions",
    "bart init=random": r"init=random needs training: set train\.max_steps",
    "bart share=documents": r"share=documents needs a token",
    "bart separator=nowhere": r"separator=nowhere is no token of model\.checkpoint=",
    f"bart prefix={'kadan' * 60}": r"input_length=60 leaves no room for text",
    "bart input_length=3": r"input_length=3 leaves no room for text",
    "bart window_length=65": r"window_length=65: .* has only 64 positions",
    "bart window_length=8 window_overlap=8": "window_overlap=8 needs longer windows: .* is 8",
    "bart window_overlap=8": r"model\.window_length is null",
    "bart window_length=9 window_overlap=6": "no room for text after .* model.window_overlap=6",
    f"bart window_length=9 prefix={'kadan' * 8}": "=9 leaves no room for text after the prefix",
    "bigbird_pegasus window_length=32": r"window_length=32 does not go with 'bigbird_pegasus'",
}


@pytest.mark.parametrize("words", REFUSED)
def test_settings_that_do_not_fit_a_checkpoint_are_refused(words: str) -> None:
    """Inputs, windows and outputs beyond the positions or without room, and tokens that it does not have."""
    architecture, _, settings = words.partition(" ")
    with refuses(REFUSED[words]):
        open_seq2seq(checkpoint_of(architecture), **{"input_length": 60, **settings_of(settings)})


def changed(folder: Path, **weights: Any) -> Path:
    """Change or add weights of a checkpoint; a number replaces all values of a weight."""
    path = folder / "model.safetensors"
    stored = load_file(path)
    for name, value in weights.items():
        stored[name] = (
            value if isinstance(value, torch.Tensor) else torch.full_like(stored[name], value)
        )
    save_file(stored, path, {"format": "pt"})
    return folder


LARGE = {"model.decoder.layernorm_embedding.weight": 3e38}  # finite, but no product with it is


@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"temperature": 1.0}])
def test_logits_that_are_not_finite_are_an_error(search: dict[str, Any], bart: Path) -> None:
    """No summary is written from logits that are not finite, however it is searched; the line names the checkpoint."""
    system = open_seq2seq(changed(bart, **LARGE))
    with refuses(rf"the checkpoint {bart}: its logits are not finite in float32", DataError):
        list(system.summarize(TEST, replace(GREEDY, **search)))


def test_weights_without_a_place_are_refused(bart: Path) -> None:
    """A checkpoint with more layers than its configuration is refused; the line has the first names."""
    layer = "model.encoder.layers.2.fc1"
    changed(bart, **{f"{layer}.bias": torch.zeros(24), f"{layer}.weight": torch.zeros(24, 16)})
    with refuses(rf"2 weights have no place .*: {layer}\.bias, {layer}\.weight;", DataError):
        open_seq2seq(bart)


def test_weights_that_old_libraries_stored_are_ignored(bart: Path) -> None:
    """Positions and version numbers are in old checkpoints, and no network has them any more."""
    expected = texts(open_seq2seq(bart))
    changed(
        bart,
        **{
            "model.encoder.version": torch.ones(1),
            "model.encoder.embed_positions.position_ids": torch.ones(1),
        },
    )
    assert texts(open_seq2seq(bart)) == expected


def test_errors_of_the_library_name_the_checkpoint(bart: Path) -> None:
    """What the library refuses only when it decodes is one line about the checkpoint."""
    (bart / "generation_config.json").write_text('{"bad_words_ids": 5}')
    with refuses(rf"the checkpoint {bart} cannot be read \(ValueError", DataError):
        texts(open_seq2seq(bart))


def test_leds_last_window_is_whole(tmp_path: Path) -> None:
    """LED pads its input to whole windows, so the last positions that make none are not used."""
    led = write_seq2seq(tmp_path / "led", "led", max_encoder_position_embeddings=60)
    system = open_seq2seq(led, input_length=None, decode_length=24)
    assert system.metadata()["context"] == 56
    long = example(0, sentences=40)
    (summary,) = system.summarize([long], GREEDY)
    assert summary.truncation is not None
    assert summary.truncation.tokens_seen == 54


def test_positions_that_pegasus_computes_may_be_missing(tmp_path: Path) -> None:
    """The first checkpoints of PEGASUS lack them; any other missing weight is an error."""
    whole, lacking = (
        write_seq2seq(tmp_path / "whole", "pegasus"),
        write_seq2seq(tmp_path / "lacking", "pegasus"),
    )
    weights = load_file(lacking / "model.safetensors")
    positions = [name for name in weights if "embed_positions" in name]
    kept = {name: weight for name, weight in weights.items() if name not in positions}
    save_file(kept, lacking / "model.safetensors", {"format": "pt"})
    found, expected = (open_seq2seq(folder).model.state_dict() for folder in (lacking, whole))
    assert all(torch.equal(weight, found[name]) for name, weight in expected.items())


def test_a_checkpoint_as_it_is_needs_no_seed(bart: Path) -> None:
    """Another seed or recipe is the same run, as long as nothing is trained or sampled."""
    system = Seq2Seq(Seq2SeqConfig(checkpoint=str(bart)))
    assert deciding_parts(system.config, TrainConfig(max_steps=0), Decoding()) == {"decode"}
    trained = deciding_parts(system.config, TrainConfig(max_steps=1), Decoding())
    assert trained == {"decode", "seed", "train"}

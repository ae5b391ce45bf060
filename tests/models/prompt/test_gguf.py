"""GGUF files: the same answers as from safetensors with the same weights; damaged and foreign files are one line."""

import re
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.commands import Typed
from support.json_files import read_json
from support.tiny_causal import causal_folder, open_causal
from support.tiny_gguf import write_gguf, write_twins
from support.toys import refuses, toy_words
from transformers import AutoModelForCausalLM

from longsumbench.core import Decoding, Request
from longsumbench.errors import EnvironmentProblem, SuiteError
from longsumbench.modeling.gguf_files import read_header
from longsumbench.modeling.tokenizer import load_tokenizer, tokenizer_identity

TEXTS = ["kadan lohit", "mihit. " * 30, "</s> nufel 123 regor kahit. " * 9]
REQUESTS = [Request(({"role": "user", "content": text},), 0, 12) for text in TEXTS]


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF file in float32, with the same model in safetensors next to it."""
    return write_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture
def file(twin: Path, tmp_path: Path) -> Path:
    """A copy of the file, alone in its folder."""
    (tmp_path / "alone").mkdir()
    return Path(shutil.copy(twin, tmp_path / "alone" / "model.gguf"))


@pytest.mark.parametrize(
    ("kind", "format"),
    [("llama", "F32"), ("llama for vllm", "F16"), ("llama for vllm", "Q4_1")],
)
def test_a_file_answers_as_the_same_weights_in_safetensors(
    kind: str, format: str, tmp_path: Path
) -> None:
    """Logits, prompts and greedy answers are equal, with tied and untied embeddings, also of quantized weights."""
    path = write_twins(tmp_path, kind, format)
    ours, expected = open_causal(path), open_causal(path.with_suffix(""))
    ids = torch.arange(60).reshape(2, 30)
    assert torch.equal(ours.network(ids).logits, expected.network(ids).logits)
    greedy = Decoding(device="cpu")
    assert list(ours.answer(REQUESTS, greedy)) == list(expected.answer(REQUESTS, greedy))
    assert ours.tokenizer.chat_template == expected.tokenizer.chat_template
    described = expected.metadata() | {"checkpoint": path.name, "weights": f"GGUF {format}"}
    assert ours.metadata() == described
    assert (ours.context, ours.ends) == (expected.context, expected.ends)


def test_answers_end_at_all_ends_that_the_file_names(twin: Path, tmp_path: Path) -> None:
    """Next to the end of a text there is that of a turn, which transformers does not read; and that of the template."""
    path = tmp_path / "model.gguf"
    ends: dict[str, Any] = {"tokenizer__ggml__eos_token_id": 5, "tokenizer__ggml__eot_token_id": 7}
    write_gguf(path, twin.with_suffix(""), **ends)
    assert open_causal(path).ends == [5, 7, 2]


def test_a_loaded_network_is_an_ordinary_one(file: Path, tmp_path: Path) -> None:
    """It can be saved, and what is loaded again has the same weights and no quantization."""
    network = open_causal(file).network
    network.save_pretrained(tmp_path / "saved")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    assert "quantization_config" not in again.config.to_dict()
    for name, weight in again.state_dict().items():
        assert torch.equal(weight, network.state_dict()[name])


def test_only_the_content_of_the_file_decides(file: Path, twin: Path) -> None:
    """Another name without an ending, and files of other models next to it, change neither identity nor answers."""
    greedy, opened = Decoding(device="cpu"), open_causal(file)
    identity, answers = opened.identity(), list(opened.answer(REQUESTS, greedy))
    for name in ("tokenizer.json", "tokenizer_config.json", "adapter_config.json", "config.json"):
        (file.parent / name).write_text('{"model_type": "bert"')
    with refuses(rf"there is no such file; did you mean {file}\?"):
        open_causal(file.with_suffix(""))
    moved = open_causal(file.rename(file.with_name("another")))
    assert moved.identity() == identity
    assert list(moved.answer(REQUESTS, greedy)) == answers
    other = write_gguf(file, twin.with_suffix(""), general__name="another")
    assert open_causal(other).identity() != identity


def test_a_run_records_the_file(file: Path, tmp_path: Path, typed: Typed) -> None:
    """A folder with one file is that file; the record and the table have the format of its weights."""
    words = [
        "run",
        "model=prompt",
        *toy_words(tmp_path),
        "model.length=5",
        "model.decode_length=12",
    ]
    assert typed(*words, f"model.checkpoint={file.parent}")[0] == 0
    (record,) = (tmp_path / "results").rglob("record.json")
    system = read_json(record)["system"]
    assert (system["weights"], system["parameters"]) == ("GGUF F32", 98624)
    assert system["context"] == 500
    root = ["--results-dir", str(tmp_path / "results")]
    assert "GGUF F32" in typed("leaderboard", "jsonl", "--columns", "weights", *root)[1]
    # Again, and by its own path: the run is there.
    assert typed(*words, f"model.checkpoint={file}")[0] == 0
    assert [*(tmp_path / "results").rglob("record.json")] == [record]


def test_a_tokenizer_of_a_file_counts_for_a_server(twin: Path) -> None:
    """It is the tokenizer of the same model in a folder."""
    tokenizer = load_tokenizer(str(twin), of_system=False)
    folder = load_tokenizer(twin.with_suffix(""), of_system=False)
    for text in (*TEXTS, "a b  c\n\n9 €"):
        assert tokenizer(text)["input_ids"] == folder(text)["input_ids"]
    assert tokenizer_identity(tokenizer) == tokenizer_identity(load_tokenizer(twin, False))


def replaced(path: Path, place: int, value: bytes) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:place] + value + content[place + len(value) :])


def written(**settings: Any) -> Callable[[Path, Path], object]:
    return lambda path, twin: write_gguf(path, twin, **settings)


BAD: dict[str, tuple[Callable[[Path, Path], object], int, str]] = {
    "missing": (lambda path, twin: path.unlink(), 2, "there is no such file; correct the path"),
    "a huge number": (
        lambda path, twin: replaced(path, 16, struct.pack("<Q", 2**63)),
        3,
        "cannot be read as a GGUF file",
    ),
    "architecture": (written(architecture="rwkv7"), 2, "GGUF file of the architecture 'rwkv7'"),
    "encoder-decoder": (
        written(architecture="t5"),
        2,
        "of 't5', an encoder-decoder: choose model=seq2seq, with its safetensors",
    ),
    "a part": (
        written(split__count=2),
        2,
        "is a part of a model: join all parts by `llama-gguf-split --merge`",
    ),
    "scaled positions": (written(llama__rope__scaling__type="yarn"), 2, "has scaled positions"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_file_ends_in_one_line(bad: str, file: Path, twin: Path) -> None:
    """The line says what is wrong with which file, before any answer, and the exit code is the documented one."""
    change, code, problem = BAD[bad]
    change(file, twin.with_suffix(""))
    with refuses(f"^[^\n]*{re.escape(problem)}[^\n]*$", SuiteError) as caught:
        open_causal(file)
    assert str(file) in str(caught.value)
    assert caught.value.exit_code == code


def test_no_beginning_of_a_file_is_taken_for_a_whole_one(file: Path) -> None:
    """Wherever a file ends too early, reading its header ends in one line."""
    content = file.read_bytes()
    for length in [*range(1, 3000, 37), *range(3000, len(content), 29_989), len(content) - 1]:
        file.write_bytes(content[:length])
        with refuses(r"^[^\n]+$", SuiteError):
            read_header(file)


def test_of_several_files_one_is_to_be_named(file: Path) -> None:
    """The line names them; in a folder with safetensors they do not matter."""
    shutil.copy(file, file.with_name("another.gguf"))
    with refuses("has 2 GGUF files: give the path of one, such as"):
        open_causal(file.parent)
    shutil.copytree(causal_folder(), file.parent, dirs_exist_ok=True)
    assert open_causal(file.parent).metadata()["weights"] == "safetensors"


OTHERS = (
    "model=seq2seq model.checkpoint={}",
    "model=pagesum model.init={}",
    "model=lead score.metrics=[coherence] score.coherence_model={}",
)


@pytest.mark.parametrize("others", OTHERS)
def test_other_settings_take_no_gguf_file(
    others: str, file: Path, tmp_path: Path, typed: Typed
) -> None:
    """One line says that only model=prompt reads it, also if its folder is named."""
    for path in (file, file.parent):
        words = others.format(path).split(" ")
        code, _, error = typed("run", *words, *toy_words(tmp_path))
        assert code == 2
        assert f"{path} is a GGUF file, which only model=prompt reads" in error, error


def test_the_package_may_be_missing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line has the command that installs it."""
    monkeypatch.setitem(sys.modules, "gguf", None)
    with refuses(r"needs the package gguf: .*\.\[checkpoints\]", EnvironmentProblem):
        open_causal(file)

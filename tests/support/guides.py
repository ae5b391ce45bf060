"""The commands in Markdown pages, and small stand-ins for the files, models, servers and texts that they name."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from shutil import copyfile

from longsumbench.core import registry
from support.built_once import built_once
from support.json_files import write_rows
from support.tiny_causal import write_causal
from support.tiny_encoders import write_encoder
from support.tiny_gguf import write_twins
from support.tiny_seq2seq import tiny_checkpoint
from support.toys import example

_LENGTHS = ("model.input_length", "model.page_length")
INLINE = re.compile(r"`longsumbench ([^`]+)`")
BLOCK = re.compile(r"^ +(?:\$ )?(?:\w+=\S+ +)*(?:\.venv/bin/)?longsumbench +(.+)$", re.MULTILINE)
# A run with these takes a second.
TINY = {
    "dataset.limit": "12",
    "decode.limit": "4",
    "score.resamples": "100",
    "train.max_steps": "2",
    "train.eval_steps": "2",
    "train.eval_examples": "2",
    "train.warmup_steps": "1",
    "scale": "tiny",
    "device": "cpu",
}


def commands_in(text: str, *patterns: re.Pattern[str]) -> Iterator[list[str]]:
    """Yield the words of each command; what explains it, and what means something else, is left out."""
    text = re.sub(r" *\\\n\s+", " ", text)
    for line in (line for pattern in patterns for line in pattern.findall(text)):
        command = re.split(r" {2,}|\s#|\s(?:[|>]|>>)\s|; | && ", line)[0]
        if "…" not in command and "..." not in command and "[" not in command.partition("=")[0]:
            words = shlex.split(command)
            if len(words) > 1:  # a command's name alone is a heading
                yield words


def write_files(folder: Path) -> None:
    """Write the texts, outputs and prompts that guides name into a folder."""
    (folder / "my_texts").mkdir()
    for start, split in enumerate(("train", "validation", "test")):
        examples = [example(12 * start + i, sentences=40) for i in range(12)]
        rows = [
            {
                "id": one.id,
                "title": "The harbour",
                "document": " ".join(one.sentences()),
                "summary": one.references[0][0],
                "prediction": one.references[0][0],
            }
            for one in examples
        ]
        write_rows(folder / "my_texts" / f"{split}.jsonl", rows)
    for name in ("test.jsonl", "out.jsonl", "minutes.jsonl"):
        copyfile(folder / "my_texts" / "test.jsonl", folder / name)
    for name in ("paper.md", "paper.txt", "one.txt", "two.txt", "out.txt", "references.txt"):
        (folder / name).write_text("The harbour was closed in May.\nThe ships went to Hull.\n")
    (folder / "mine.yaml").write_text("user: 'Summarize this in {words} words: {document}'\n")


def stand_ins(
    words: Sequence[str], runs: Sequence[str], server: str, settings: Mapping[str, str]
) -> list[str]:
    """Return a command with other texts, models and servers in place of those that it names.

    Args:
        words: of the command.
        runs: ids of finished runs.
        server: address of a server of a language model.
        settings: take the place of those of a `run`.
    """
    command, *rest = words
    named = dict(word.split("=", 1) for word in rest if "=" in word)
    run_ids = cycle(runs)
    changed = [command]
    for word in rest:
        key, _, value = word.partition("=")
        if key in settings or key.startswith(("dataset.path", "dataset.name", "dataset.columns")):
            continue
        if key == "dataset" and value != "probe":
            changed.append("dataset=texts")
        elif word in registry.corpora.targets() and word != "hub":  # also a format
            changed.append("texts")
        elif word == "FOLDER":
            changed.append("my_texts")
        elif value and (model := _model_in_place_of(key, value, named)):
            changed.append(f"{key}={model}")
        elif key in _LENGTHS and "model.base_url" not in named:
            continue  # more than the positions of the tiny models
        else:
            word = re.sub(r"\b(?:[0-9a-f]{8,12}|36e2|c6f0|RUN|ID)\b", lambda _: next(run_ids), word)
            changed.append(re.sub(r"https?://[^\s',}]+", server, word))
    if command == "run":
        trains = named.get("model") != "prompt" or named.keys() & {
            "model.lora_rank",
            "model.tune_all",
        }
        for key, value in settings.items():
            if trains or not key.startswith("train."):
                changed.append(f"{key}={value}")
        if settings and named.get("model") == "prompt":
            changed.append("model.decode_length=8")
        if not named.keys() & {"dataset", "experiment"}:
            changed.append("dataset=texts")
    return changed


def _model_in_place_of(key: str, value: str, settings: Mapping[str, str]) -> object:
    """Return a tiny model for a setting that names one, else None."""
    if key in ("model.init", "model.rank_checkpoint", "encoder"):
        return built_once(
            "encoder of guides", lambda folder: write_encoder(folder, max_position_embeddings=512)
        )
    if (key == "model.tokenizer" and value != "words") or key == "score.answer_model":
        return _tiny_causal()
    if key != "model.checkpoint" or "model.base_url" in settings:
        return None
    if value.endswith(".gguf"):
        return built_once("gguf of guides", write_twins) / "twin.gguf"
    if settings.get("model") == "seq2seq":
        return tiny_checkpoint()
    return _tiny_causal()


def _tiny_causal() -> Path:
    return built_once("causal of guides", lambda folder: write_causal(folder, positions=4096))

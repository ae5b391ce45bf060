"""The commands in Markdown pages, and small stand-ins for the files, models, servers and texts that they name."""

import re
import shlex
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from support.built_once import built_once
from support.tiny_causal import causal_folder, write_causal
from support.tiny_encoders import write_encoder
from support.tiny_gguf import write_twins
from support.tiny_seq2seq import tiny_checkpoint
from support.toys import write_jsonl

from longsumbench.core import registry

BLOCK = re.compile(r"^ +(?:\w+=\S+ +)*longsumbench +(.+)$", re.MULTILINE)
INLINE = re.compile(r"`longsumbench ([^`]+)`")
AT_HAND = ("probe",)
MY_TEXTS = ("dataset=jsonl", "dataset.name=texts", "dataset.path=my_texts")
# Settings of a run that takes a second; they take the place of a guide's.
TINY = {
    "dataset.limit": "12",
    "decode.limit": "3",
    "score.resamples": "100",
    "train.max_steps": "2",
    "train.eval_steps": "2",
    "train.eval_examples": "2",
    "train.warmup_steps": "1",
    "device": "cpu",
}


def commands_in(text: str, *patterns: re.Pattern[str]) -> Iterator[list[str]]:
    """Yield the words of each command; what explains it, and what means something else, is left out."""
    lines = [line for pattern in patterns for line in pattern.findall(re.sub(r"\\\n\s+", "", text))]
    for line in lines:
        line = re.split(r" {2,}|\s#|\s(?:[|>]|>>)\s|; | && ", line)[0]
        if "…" not in line and "..." not in line and "[" not in line.partition("=")[0]:
            words = shlex.split(line)
            if len(words) > 1:  # a command's name alone is a heading
                yield words


def write_files(folder: Path) -> None:
    """Write the texts and outputs that guides name into a folder."""
    write_jsonl(folder / "my_texts")
    text = (folder / "my_texts" / "test.jsonl").read_text()
    (folder / "test.jsonl").write_text(text)
    (folder / "out.jsonl").write_text(text)
    for name in ("paper.md", "paper.txt", "one.txt", "two.txt", "out.txt", "references.txt"):
        (folder / name).write_text("A report on the harbour. It was closed in May. Ships went to Hull.\n")


def stand_ins(words: list[str], runs: list[str], server: str) -> list[str]:
    """Return a command with tiny texts, models and trainings in place of those that it names.

    Args:
        words: of the command.
        runs: ids of finished runs.
        server: address of a server of a language model.
    """
    changed = []
    named = dict(word.split("=", 1) for word in words if "=" in word)
    ids = cycle(runs)
    for word in words:
        key, _, value = word.partition("=")
        if key in TINY or key.startswith("dataset.columns") or key in ("dataset.path", "dataset.name"):
            continue
        if key == "dataset" and value not in AT_HAND:
            changed += MY_TEXTS if words[0] != "list" else ["dataset=texts"]
        elif not value and key in registry.corpora.targets():
            changed.append("texts")
        elif key == "scale":
            changed.append("scale=tiny")
        elif key == "model.input_length" and "model.base_url" not in named:
            continue
        elif key == "model.checkpoint" and "model.base_url" not in named:
            changed.append(f"{key}={_checkpoint(named)}")
        elif key == "model.tokenizer" and value != "words":
            changed.append(f"{key}={causal_folder()}")
        elif key in ("model.init", "encoder", "model.rank_checkpoint"):
            changed.append(f"{key}={built_once('encoder', write_encoder)}")
        elif re.fullmatch(r"[0-9a-f]{4,12}|RUN|ID", word):
            changed.append(next(ids))
        else:
            changed.append(re.sub(r"https?://[^\s',}]+", server, word))
    if words[0] == "run":
        if not any(word.startswith(("dataset=", "experiment=")) for word in words):
            changed += MY_TEXTS
        changed += [f"{key}={value}" for key, value in TINY.items()]
    return changed


def _checkpoint(settings: dict[str, str]) -> str:
    if settings.get("model") == "prompt":
        if settings["model.checkpoint"].endswith(".gguf"):
            return str(built_once("guides-gguf", write_twins) / "twin.gguf")
        return str(built_once("guides-causal", lambda folder: write_causal(folder, positions=2048)))
    return tiny_checkpoint()

"""Small texts that tests train on: the summary is the document's first sentence; and what commands say."""

import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # not annotated

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import (
    Document,
    Example,
    FitContext,
    Section,
    TrainConfig,
    build_settings,
    count_words,
    registry,
)
from longsumbench.core.callables import register_function
from longsumbench.errors import DataError, SuiteError, UsageError
from support.json_files import write_rows

_ENDS = ("dan", "fel", "gor", "hit")
WORDS = [begin + end for begin in ("ka", "lo", "mi", "nu", "re") for end in _ENDS]


def example(number: int, sentences: int = 4) -> Example:
    """Return a made-up example, the same for the same number."""
    chance = random.Random(number)
    text = tuple(" ".join(chance.choices(WORDS, k=6)) + "." for _ in range(sentences))
    return Example(
        f"toy-{number}",
        "a toy",
        None,
        (Document(None, (Section(None, (text,)),)),),
        ((text[0],),),
        highlights=(text[0],),
    )


@dataclass
class ToySplit:
    """A split in memory."""

    name: str
    examples: list[Example]
    multi_document: bool = False
    queried: bool = False

    @classmethod
    def of(cls, name: str, size: int, start: int = 0) -> "ToySplit":
        """Return `size` made-up examples of growing length."""
        return cls(name, [example(start + i, sentences=2 + i % 5) for i in range(size)])

    @property
    def fingerprint(self) -> str:
        """Made of what decides the texts."""
        return f"{self.name}-{len(self)}-{self.examples[0].id}"

    @property
    def layout(self) -> str:
        """Texts are what their sentences give."""
        return self.fingerprint

    @property
    def ids(self) -> list[str]:
        """As the bench reads them."""
        return [one.id for one in self.examples]

    @property
    def source_words(self) -> list[int]:
        """Counted, not stored."""
        return [one.source_words() for one in self.examples]

    @property
    def reference_words(self) -> list[int]:
        """Counted, not stored."""
        return [count_words(one.references[0]) for one in self.examples]

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> Example:
        return self.examples[index]

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)


# Seconds on one core: Trunc's settings.
TINY: dict[str, Any] = {
    "input_length": 48,
    "snippet_length": 16,
    "num_snippets": 8,
    "decode_length": 24,
    "d_model": 32,
    "d_ff": 48,
    "num_heads": 2,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "vocabulary_size": 320,
}
# The same for any neural system, laid over its own settings as far as it has them.
TINY_FOR_ALL = {
    **TINY,
    "init": "random",
    "tokenizer": "trained",
    "extractive_length": 32,
    "segment_length": 6,
    "group_size": 2,
    "max_documents": 3,
    "page_size": 16,
    "num_pages": 3,
    "max_pages": 3,
    "num_paragraphs": 3,
    "paragraph_length": 16,
    "global_layers": 1,
    "num_layers": 3,
    "block_length": 8,
    "ranker_dimension": 8,
    "ranker_steps": 4,
    "ranker_batch_size": 4,
}


def tiny_recipe(**changes: object) -> TrainConfig:
    """Return a recipe of a few quick steps."""
    values = {
        "optimizer": "adam",
        "learning_rate": 0.005,
        "schedule": "linear",
        "warmup_steps": 5,
        "max_grad_norm": 1.0,
        "batch_size": 8,
        "accumulation": 1,
        "max_steps": 12,
        "eval_steps": 4,
        "device": "cpu",
    }
    return TrainConfig(**{**values, **changes})  # type: ignore[arg-type]


def first_words(text: str) -> str:
    """Return the first words of a text: what `function` is in tests."""
    return " ".join(text.split()[:7])


def settings_of(words: str) -> dict[str, Any]:
    """Return settings as they are typed, with blanks between them."""
    values = dict(word.split("=", 1) for word in words.split())
    return {name: yaml.safe_load(value) for name, value in values.items()}


def build_tiny(name: str, **settings: Any) -> Any:
    """Return a registered system, as small as its settings allow, not fitted."""
    if name == "prompt":
        from support.tiny_causal import causal_folder

        settings = {
            "checkpoint": causal_folder(),
            "input_length": None,
            "tokenizer": None,
            **settings,
        }
    if name == "command":
        settings = {"command": "head -n 3 {file}", **settings}
    if name == "function":
        settings = {"function": register_function(first_words), **settings}
    kind = registry.systems.load(name)
    values = {
        key: value for key, value in TINY_FOR_ALL.items() if key in kind.Config.__dataclass_fields__
    }
    if name == "seq2seq":
        from support.tiny_seq2seq import tiny_checkpoint

        values["checkpoint"] = tiny_checkpoint()
    return kind(build_settings(kind.Config, {**values, **settings}, "model."))


def fit_context(
    folder: Path,
    train: ToySplit | None = None,
    validation: ToySplit | None = None,
    **recipe: object,
) -> FitContext:
    """Return splits, a recipe of a few quick steps, and the stages of a folder."""
    return FitContext(train, validation, tiny_recipe(**recipe), ArtifactCache(folder))


def fit_tiny(
    name: str, folder: Path, train: ToySplit | None = None, steps: int = 2, **settings: Any
) -> Any:
    """Return such a system after a few training steps; its stages are in the folder."""
    system = build_tiny(name, **settings)
    system.fit(fit_context(folder, train or ToySplit.of("train", 24), max_steps=steps))
    return system


def write_jsonl(folder: Path, train: int = 24, validation: int = 6, test: int = 8) -> Path:
    """Write the toy examples as a `jsonl` dataset; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    start = 0
    for name, size in (("train", train), ("validation", validation), ("test", test)):
        rows = [example(start + i, sentences=2 + i % 5) for i in range(size)]
        start += size
        if size:
            lines = (
                {
                    "id": one.id,
                    "document": " ".join(one.sentences()),
                    "summary": one.references[0][0],
                }
                for one in rows
            )
            write_rows(folder / f"{name}.jsonl", lines)
    return folder


def toy_words(folder: Path) -> list[str]:
    """Write the toy examples into a folder; return the overrides of a quick run on them, with results next to them."""
    texts = [f"dataset.path={write_jsonl(folder / 'toy')}", f"results_dir={folder / 'results'}"]
    return ["dataset=jsonl", *texts, "score.resamples=100", "baselines=false"]


def tiny_overrides(folder: Path, steps: int = 6) -> list[str]:
    """Return the overrides under which `longsumbench run` of Trunc takes seconds on the folder of `write_jsonl`."""
    model = [f"model.{key}={value}" for key, value in TINY.items()]
    train = [
        f"train.max_steps={steps}",
        "train.eval_steps=2",
        "train.batch_size=8",
        "decode.batch_size=4",
    ]
    groups = ["model=trunc", "scale=tiny", "dataset=jsonl"]
    return [*groups, f"dataset.path={folder}", "score.resamples=100", *train, *model]


def told_in(error: str) -> list[str]:
    """Return the lines of stderr but for those of progress, which a slow machine shows."""
    return [
        line
        for line in error.strip().splitlines()
        if not re.match(r"[a-z ]+: \d+(/\d+)? [a-z]+|.* …$", line)
    ]


def one_line(read: Callable[[], object]) -> str:
    """Return the one line in which something that reads data ends."""
    with pytest.raises(DataError) as caught:
        read()
    message = str(caught.value)
    assert "\n" not in message
    return message


@contextmanager
def refuses(
    message: str, error: type[SuiteError] = UsageError
) -> Iterator[pytest.ExceptionInfo[SuiteError]]:
    """Check that what follows ends in an error of one line, in which a pattern is found."""
    with pytest.raises(error, match=message) as caught:
        yield caught
    assert "\n" not in str(caught.value)

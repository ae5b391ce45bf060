"""Trains an adapter with the suite and with the plain Trainer of transformers, on the same batches.

    python benchmarks/fine_tuning_speed.py WEIGHTS [--steps 6] [--batch-size 2] [--input-length 700] [--device cuda]

WEIGHTS is a GGUF file, a folder or a name on the hub. Both train the same LoRA adapter on `aclsum`, each in a process of
its own, in turns. Prints tokens a second (of time, and of one core's work, which other programs change less) and peak
memory, and the ratios of the suite's to the Trainer's. Loading is not counted; the Trainer pads its batches, and its loss
is on the references alone, too.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import datasets
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import SequentialSampler
from transformers import Trainer, TrainingArguments

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, TrainConfig, build_settings
from longsumbench.corpora.loading.load import load_texts
from longsumbench.modeling.collate import IGNORED
from longsumbench.modeling.training.batch_plan import BatchPlan
from longsumbench.modeling.training.trainer import Objective, train
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.fine_tuning import PromptCollator, Tuning, can_pack, training_row
from longsumbench.models.prompt.system import PromptSystem
from longsumbench.runs.environment import peak_memory_gb

ROUNDS = 3
RATE = 2e-4


class PlainTrainer(Trainer):
    """The Trainer, without shuffling."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return SequentialSampler(train_dataset or self.train_dataset)


def collate_padded(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Return a padded batch, with labels of the references alone."""
    texts, labels = [], []
    for row in rows:
        prompt, answer = row["units"][0], row["labels"]
        texts.append(torch.tensor([*prompt, *answer]))
        labels.append(torch.tensor([IGNORED] * len(prompt) + list(answer)))
    mask = [torch.ones_like(text) for text in texts]
    return {
        "input_ids": pad_sequence(texts, True, 0),
        "attention_mask": pad_sequence(mask, True, 0),
        "labels": pad_sequence(labels, True, IGNORED),
    }


def recipe_of(options: argparse.Namespace) -> TrainConfig:
    """Return the recipe of the suite; the Trainer gets the same."""
    return TrainConfig(
        optimizer="adam",
        learning_rate=RATE,
        schedule="constant",
        warmup_steps=1,
        max_grad_norm=1.0,
        batch_size=options.batch_size,
        accumulation=1,
        max_steps=options.steps,
        eval_steps=10**6,
        device=options.device,
        bf16=options.bf16,
    )


def system_of(options: argparse.Namespace) -> PromptSystem:
    """Return the system, whose engine has the model."""
    values = {
        "checkpoint": options.weights,
        "dtype": "bfloat16" if options.bf16 else None,
        "lora_rank": 16,
        "length": "120",
        "input_length": options.input_length,
        "decode_length": 280,
    }
    config: PromptConfig = build_settings(PromptConfig, values, "model.")
    return PromptSystem(config)


def train_by_suite(
    tuning: Tuning, rows: datasets.Dataset, recipe: TrainConfig, folder: Path
) -> float:
    """Train with the suite; return the seconds."""
    objective = Objective(lambda **batch: tuning.output(0.0, **batch))
    collator = PromptCollator(can_pack(tuning.network))
    report = train(
        tuning.network, rows, None, collator, recipe, folder / "trainer", objective=objective
    )
    return report.seconds


def train_plainly(
    network: Any, rows: list[dict[str, Any]], recipe: TrainConfig, folder: Path
) -> float:
    """Train with the Trainer on rows in their order; return the seconds."""
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=recipe.max_steps,
        per_device_train_batch_size=recipe.batch_size,
        learning_rate=RATE,
        lr_scheduler_type="constant",
        bf16=recipe.bf16,
        use_cpu=recipe.device == "cpu",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        max_grad_norm=1.0,
    )
    trainer = PlainTrainer(network, arguments, train_dataset=rows, data_collator=collate_padded)
    seconds: float = trainer.train().metrics["train_runtime"]
    return seconds


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Train with one of the two, and return tokens a second and the peak memory in GB."""
    recipe, system = recipe_of(options), system_of(options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        examples = load_texts(DatasetSettings("aclsum"), ArtifactCache(folder)).splits["train"]
        number = min(len(examples), options.steps * options.batch_size)
        rows = datasets.Dataset.from_list(
            [training_row(system.builder, examples[index]) for index in range(number)]
        )
        engine: Any = system.builder.engine
        tuning = Tuning(engine)
        network = tuning.start()
        steps = list(BatchPlan(rows, recipe).epoch(0))[: options.steps]
        ordered = [rows[index] for step in steps for batch in step for index in batch]
        started = time.process_time()
        if options.only == "suite":
            seconds = train_by_suite(tuning, rows, recipe, folder)
        else:
            seconds = train_plainly(network, ordered, recipe, folder)
        processor = time.process_time() - started
    tokens = sum(row["length"] for row in ordered)
    return {
        "tokens a second": tokens / seconds,
        "tokens a second of one core": tokens / processor,
        "GB of memory": peak_memory_gb() or 0.0,
    }


def main() -> None:
    """Measure both in turns, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--input-length", type=int, default=700)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--only", choices=("suite", "plain"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options)))
        return
    figures: dict[str, list[dict[str, float]]] = {"suite": [], "plain": []}
    for _ in range(ROUNDS):
        for name, measures in figures.items():
            command = [sys.executable, __file__, *sys.argv[1:], "--only", name]
            printed = subprocess.check_output(command, text=True)
            measures.append(json.loads(printed.splitlines()[-1]))
    for unit in figures["suite"][0]:
        suite = median(measured[unit] for measured in figures["suite"])
        plain = median(measured[unit] for measured in figures["plain"])
        print(f"{unit}: suite {suite:.3g}, Trainer {plain:.3g}, ratio {suite / plain:.2f}")


if __name__ == "__main__":
    main()

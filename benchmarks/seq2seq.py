"""Seq2seq against transformers' own `generate` and `Seq2SeqTrainer`: the ratio of their speeds, on the same batches.

    python benchmarks/seq2seq.py [--only decoding training] [--size base] [--repeats 3] [--steps 20] [--device cpu]

Random weights of BART, float32, generated reports of up to 512 tokens. Both ways take turns (measuring.py); with a
ratio above 1 the suite is faster.

decoding: from texts to summaries of 32 tokens with four beams, in batches sorted by length; the library's way is
    tokenizer, `generate`, `batch_decode`. Each loads the checkpoint itself.
training: optimizer steps on batches of texts cut to one length, AdamW; reading and tokenizing left out. Each saves its
    state once, after the last step.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import datasets
import torch
from measuring import in_turns, ratio
from tokenizers.processors import TemplateProcessing
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)

from longsumbench.cache.artifacts import ArtifactCache, user_cache
from longsumbench.core import DatasetSettings, Decoding, Example, FitContext, Recipe
from longsumbench.corpora.reading.load import load_texts
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.modeling.training.trainer import train
from longsumbench.models.seq2seq.config import Seq2SeqConfig
from longsumbench.models.seq2seq.system import Seq2Seq

LENGTH, TARGET, BEAMS, WRITTEN, BATCH = 512, 64, 4, 32, 8  # tokens, tokens, beams, tokens, examples
SIZES = {"small": (256, 4, 3), "base": (768, 12, 6)}  # width, heads, layers of each stack


def main() -> None:
    """Print a line for each measurement asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=tuple(MEASURED), default=tuple(MEASURED))
    parser.add_argument("--size", choices=tuple(SIZES), default="small", help="of BART")
    parser.add_argument(
        "--repeats", type=int, default=3, help="turns after a first one that does not count"
    )
    parser.add_argument("--batches", type=int, default=4, help="of decoding")
    parser.add_argument("--steps", type=int, default=20, help="of training")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    texts = load_texts(DatasetSettings("probe", document_length=LENGTH, limit=1_000), user_cache())
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(Path(folder), options.size, list(texts.splits["train"]))
        system = Seq2Seq(
            Seq2SeqConfig(checkpoint=folder, input_length=LENGTH, decode_length=TARGET)
        )
        system.fit(FitContext(None, None, Recipe(max_steps=0), ArtifactCache(Path(folder))))
        system.model.to(options.device)
        for name in options.only:
            works = MEASURED[name](system, list(texts.splits["train"]), options)
            seconds = in_turns(works, options.repeats, options.device)
            found = ratio(seconds["transformers"], seconds["longsumbench"])
            print(
                f"{name}: {found:.3f} of transformers' speed ({options.size}, {options.device})",
                flush=True,
            )


def write_checkpoint(folder: Path, size: str, examples: Sequence[Example]) -> None:
    """Write a BART of random weights with its tokenizer."""
    tokenizer = train_tokenizer(examples, 2_000)
    special = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("<s>", "</s>")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=special
    )
    tokenizer.save_pretrained(folder)
    width, heads, layers = SIZES[size]
    sizes: dict[str, Any] = {
        "d_model": width,
        "vocab_size": len(tokenizer),
        "max_position_embeddings": LENGTH,
    }
    for stack in ("encoder", "decoder"):
        sizes |= {
            f"{stack}_layers": layers,
            f"{stack}_ffn_dim": 4 * width,
            f"{stack}_attention_heads": heads,
        }
    ids = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos")
    }
    torch.manual_seed(1)
    config = BartConfig(**sizes, **ids, decoder_start_token_id=tokenizer.eos_token_id, init_std=0.1)
    BartForConditionalGeneration(config).save_pretrained(folder)


def decoding(
    system: Seq2Seq, examples: Sequence[Example], options: argparse.Namespace
) -> dict[str, Callable[[], Any]]:
    """Return what decodes the same batches in both ways."""
    chosen = sorted(examples[: options.batches * BATCH], key=Example.source_words)
    batches = [chosen[start : start + BATCH] for start in range(0, len(chosen), BATCH)]
    how = Decoding(
        num_beams=BEAMS,
        max_length=WRITTEN,
        min_length=WRITTEN,
        evidence="none",
        device=options.device,
    )
    model = (
        BartForConditionalGeneration.from_pretrained(system.config.checkpoint)
        .to(options.device)
        .eval()
    )
    model.generation_config, tokenizer = deepcopy(
        (system.model.generation_config, system.tokenizer)
    )
    model.generation_config.update(
        num_beams=BEAMS, max_new_tokens=WRITTEN, min_new_tokens=WRITTEN, do_sample=False
    )

    def by_suite() -> list[str]:
        return [summary.text for batch in batches for summary in system.summarize(batch, how)]

    @torch.inference_mode()
    def by_library() -> list[str]:
        written = []
        for batch in batches:
            texts = [" ".join(example.sentences()) for example in batch]
            inputs = tokenizer(
                texts, max_length=LENGTH, truncation=True, padding=True, return_tensors="pt"
            )
            inputs.pop("token_type_ids", None)
            rows = model.generate(**inputs.to(model.device))
            written += [
                text.strip() for text in tokenizer.batch_decode(rows, skip_special_tokens=True)
            ]
        return written

    if by_suite() != by_library():
        raise SystemExit("the two ways write different summaries")
    return {"longsumbench": by_suite, "transformers": by_library}


def training(
    system: Seq2Seq, examples: Sequence[Example], options: argparse.Namespace
) -> dict[str, Callable[[], Any]]:
    """Return what trains copies of the model on the same texts in both ways."""
    made = [system.reader.row(example) for example in examples]
    length = sorted(row["length"] for row in made)[len(made) // 4]
    long = [row for row in made if row["length"] >= length]
    rows = datasets.Dataset.from_list(
        [{**row, "units": [row["units"][0][:length]], "length": length} for row in long]
    )
    plain = datasets.Dataset.from_list(
        [
            {"input_ids": row["units"][0], "attention_mask": [1] * length, "labels": row["labels"]}
            for row in rows
        ]
    )
    return {
        "longsumbench": lambda: train_here(system, rows, options),
        "transformers": lambda: train_there(system, plain, options),
    }


def train_here(system: Seq2Seq, rows: datasets.Dataset, options: argparse.Namespace) -> None:
    """Train the system's model with the suite's trainer."""
    recipe = Recipe(
        optimizer="adam",
        schedule="linear",
        learning_rate=5e-5,
        warmup_steps=1,
        max_grad_norm=1.0,
        batch_size=BATCH,
        accumulation=1,
        max_steps=options.steps,
        eval_steps=options.steps,
        bf16=False,
        device=options.device,
    )
    with tempfile.TemporaryDirectory() as folder:
        objective = system.objective(recipe)
        train(
            system.model,
            rows,
            None,
            system.reader.collator(),
            recipe,
            Path(folder),
            objective=objective,
        )


def train_there(system: Seq2Seq, rows: datasets.Dataset, options: argparse.Namespace) -> None:
    """Train the same model with the library's trainer."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = Seq2SeqTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=BATCH,
            max_steps=options.steps,
            learning_rate=5e-5,
            max_grad_norm=1.0,
            save_strategy="steps",
            save_steps=options.steps,
            report_to=[],
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=options.device == "cpu",
        )
        collator = DataCollatorForSeq2Seq(system.tokenizer, system.model)
        Seq2SeqTrainer(system.model, arguments, data_collator=collator, train_dataset=rows).train()


MEASURED = {"decoding": decoding, "training": training}

if __name__ == "__main__":
    main()

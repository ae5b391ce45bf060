"""Train a tiny BERT for next-sentence prediction, so that the coherence of summaries can be computed without the hub.

    python benchmarks/next_sentence_model.py dataset=probe dataset.document_length=128 --output FOLDER
    longsumbench paper pagesum-table4 score.metrics=[coherence] score.coherence_model=FOLDER

It learns from the training split's first references. An example is two sentences of a reference. In half of the
examples the second follows the first. In the others, two neighbours of the shuffled reference are not in this order. So
it knows only the order of sentences in references of this dataset.

It is not the paper's model. That is bert-large-uncased, which learned from books and Wikipedia whether a sentence
follows or comes from another text. Numbers of the two are on different scales. This one is for a miniature: it shows
whether summaries have the order of the references. The last line has its accuracy on pairs of the validation split;
50 % is chance. It takes half a minute of one core.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertForNextSentencePrediction, BertTokenizerFast

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import Example
from longsumbench.corpora.loading.load import load_texts
from longsumbench.runs.plan import plan_dataset
from longsumbench_reproduction.analysis.coherence import shuffled

FOLLOWS, DOES_NOT = 0, 1  # BERT's labels
LONGEST = 128  # tokens of a pair
VOCABULARY = 4_000
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}


class Pair(NamedTuple):
    """Two sentences, and whether the second follows the first."""

    first: str
    second: str
    label: int


def main() -> None:
    """Train the model and save it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "overrides",
        nargs="+",
        metavar="dataset=NAME",
        help="the dataset, as for `longsumbench run`",
    )
    parser.add_argument(
        "--output", required=True, type=Path, metavar="FOLDER", help="where the model is saved"
    )
    parser.add_argument("--steps", type=int, default=600, help="optimizer steps (600)")
    parser.add_argument("--batch", type=int, default=32, help="pairs of a step (32)")
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    splits = load_texts(plan_dataset(words.overrides), user_cache()).splits
    train, validation = ([*pairs_of(splits[name], words.seed)] for name in ("train", "validation"))
    torch.manual_seed(words.seed)
    words.output.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer(train, words.output)
    model = BertForNextSentencePrediction(
        BertConfig(vocab_size=len(tokenizer), max_position_embeddings=LONGEST, **SIZES)
    )
    train_model(model, tokenizer, train, words.steps, words.batch, words.seed)
    model.save_pretrained(words.output)
    accuracy = measure_accuracy(model, tokenizer, validation, words.batch)
    share = f"right on {100 * accuracy:.1f} % of {len(validation):,} validation pairs"
    print(f"{words.output}: {len(train):,} training pairs; {share}")


def pairs_of(examples: Iterable[Example], seed: int) -> Iterator[Pair]:
    """Yield neighbours of each first reference, and as many of its shuffled sentences that are not neighbours."""
    for example in examples:
        reference = example.references[0] if example.references else ()
        neighbours = [*pairwise(reference)]
        others = [
            pair
            for pair in pairwise(shuffled(reference, f"{seed}:{example.id}"))
            if pair not in neighbours
        ]
        for follows, does_not in zip(neighbours, others, strict=False):
            yield Pair(*follows, FOLLOWS)
            yield Pair(*does_not, DOES_NOT)


def train_tokenizer(pairs: Sequence[Pair], folder: Path) -> BertTokenizerFast:
    """Train a vocabulary of word pieces, and save the tokenizer to the folder."""
    pieces = BertWordPieceTokenizer(lowercase=True)
    texts = (f"{pair.first} {pair.second}" for pair in pairs)
    pieces.train_from_iterator(texts, vocab_size=VOCABULARY, show_progress=False)
    pieces.save_model(str(folder))
    tokenizer = BertTokenizerFast.from_pretrained(folder, model_max_length=LONGEST)
    tokenizer.save_pretrained(folder)
    return tokenizer


def train_model(
    model: BertForNextSentencePrediction,
    tokenizer: BertTokenizerFast,
    pairs: Sequence[Pair],
    steps: int,
    batch: int,
    seed: int,
) -> None:
    """Train for some steps on pairs drawn at random."""
    draw = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    model.train()
    for step in range(1, steps + 1):
        chosen = [pairs[place] for place in draw.integers(0, len(pairs), batch)]
        labels = torch.tensor([pair.label for pair in chosen])
        loss = model(**encode(tokenizer, chosen), labels=labels).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)


def measure_accuracy(
    model: BertForNextSentencePrediction,
    tokenizer: BertTokenizerFast,
    pairs: Sequence[Pair],
    batch: int,
) -> float:
    """Return the share of pairs whose label the model finds."""
    model.eval()
    right = 0
    with torch.inference_mode():
        for start in range(0, len(pairs), batch):
            chosen = pairs[start : start + batch]
            found = model(**encode(tokenizer, chosen)).logits.argmax(dim=-1).tolist()
            right += sum(label == pair.label for label, pair in zip(found, chosen, strict=True))
    return right / max(1, len(pairs))


def encode(tokenizer: BertTokenizerFast, pairs: Sequence[Pair]) -> dict[str, torch.Tensor]:
    """Return the inputs of the network."""
    firsts, seconds = [pair.first for pair in pairs], [pair.second for pair in pairs]
    options = {"truncation": True, "max_length": LONGEST, "padding": True, "return_tensors": "pt"}
    return dict(tokenizer(firsts, seconds, **options))


if __name__ == "__main__":
    main()

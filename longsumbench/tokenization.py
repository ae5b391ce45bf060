"""Tokenizers: trained on a training split, or any fast Hugging Face tokenizer by name or folder."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from longsumbench.corpora.hub import unreachable
from longsumbench.documents import Example
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.segmentation import EncodedSentence
from longsumbench.stages import digest
from longsumbench.system import Split

VERSION = 1  # rises when a trained tokenizer would come out differently
PAD, START, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"
TRAINING_WORDS = 5_000_000  # beyond this the merges of a vocabulary of tens of thousands hardly change


def train_tokenizer(train: Iterable[Example], vocabulary_size: int) -> PreTrainedTokenizerFast:
    """Train byte-level BPE on sources and references: lossless, no unknown words.

    Args:
        train: the training split, or a sample of it.
        vocabulary_size: entries at most, the four special ones and 256 bytes included.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[PAD, START, END, UNKNOWN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(train), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, bos_token=START, eos_token=END, unk_token=UNKNOWN
    )


def sample(train: Split) -> list[int]:
    """Return the examples a tokenizer is trained on: all, or every n-th of a split of more than TRAINING_WORDS."""
    step = max(1, -(-sum(train.source_words) // TRAINING_WORDS))
    return list(range(0, len(train), step))


def _texts(train: Iterable[Example]) -> Iterator[str]:
    for example in train:
        yield " ".join(example.sentences())
        yield from (" ".join(reference) for reference in example.references)


def load_tokenizer(name: str | Path) -> PreTrainedTokenizerBase:
    """Load a fast tokenizer by hub name or from a folder.

    Raises:
        UsageError: there is none of that name, or it cannot be used here.
        EnvironmentProblem: it is on the hub, and that cannot be reached.
    """
    problem = None if Path(name).is_dir() else unreachable()  # asked first, for the library tries for most of a minute
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(name), trust_remote_code=False, local_files_only=problem is not None
        )
    except (OSError, ValueError) as error:
        if problem is not None:
            raise EnvironmentProblem(
                f"tokenizer '{name}' is no folder here, and the Hugging Face hub cannot be reached ({problem}):"
                " give a folder, or use model.tokenizer=trained"
            ) from error
        reason = str(error).splitlines()[0]
        raise UsageError(f"no tokenizer '{name}': give a Hugging Face name or a folder ({reason})") from error
    if not tokenizer.is_fast:
        raise UsageError(f"tokenizer '{name}' has no fast version, which the suite needs")
    if not tokenizer.backend_tokenizer.encode("a", add_special_tokens=False).ids:  # made up by the library, of no file
        raise UsageError(f"tokenizer '{name}' makes no token of any text: its vocabulary is not there")
    if tokenizer.pad_token_id is None or tokenizer.eos_token_id is None:
        raise UsageError(f"tokenizer '{name}' lacks a padding or an end token, which a summarizer needs")
    return tokenizer


def identity(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a hash of all that a tokenizer does."""
    return digest([tokenizer.backend_tokenizer.to_str(), tokenizer.special_tokens_map])


def encode_sentences(tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]) -> list[EncodedSentence]:
    """Tokenize consecutive sentences as the running text they are: all but the first begin with a space."""
    texts = [sentence if index == 0 else f" {sentence}" for index, sentence in enumerate(sentences)]
    encoded = tokenizer.backend_tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    return [EncodedSentence(one.ids, len(text.split())) for one, text in zip(encoded, texts, strict=True)]

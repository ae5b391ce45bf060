"""Tokenizers: trained on a training split, or any fast Hugging Face tokenizer by name or folder.

Two kinds are trained (`api.config.TRAINED_TOKENIZERS`): "trained", lossless byte-level BPE, and "words", a vocabulary
of whole words (ETADS §4.1).

Choice for "words": text is lower-cased and composed (NFC); accents stay. Each punctuation sign is a token. Numbers with
inner points, commas and colons ("3.5", "1,000", "10:30") stay whole. So do words with inner hyphens and apostrophes
("well-known", "don't"), initials ("u.s.", "e.g.") and runs of one sign ("..."). "'s" is split off, so that a name is
the same word with and without it. A quotation mark after a space opens; any other closes. The vocabulary counts all
sources and references of the training split. Any other word is `<unk>`, which summaries leave out.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from longsumbench.cache.artifacts import ArtifactCache, clear_partial, reading_artifact
from longsumbench.core import Example, Split, count_words
from longsumbench.core.versions import LOADING_VERSION
from longsumbench.errors import UsageError
from longsumbench.files import digest
from longsumbench.modeling.checkpoints import fetch_files, read_tokenizer, reading_checkpoint
from longsumbench.modeling.gguf_files import find_gguf
from longsumbench.modeling.units import EncodedSentence
from longsumbench.progress import track

_PAD, _START, _END, _UNKNOWN = _MARKS = ["<pad>", "<s>", "</s>", "<unk>"]
# On the hub, without the weights of a model.
_TOKENIZER_FILES = ("*.json", "*.txt", "*.model", "*.jinja")
# beyond this the merges of a vocabulary of tens of thousands hardly change
_TRAINING_WORDS = 5_000_000

_SIGN = r"\p{L}\p{M}\p{N}_"  # the characters of words
_PIECES = Regex(
    r"(?:\p{L}\.){2,}"  # u.s.
    rf"|'s(?![{_SIGN}])"
    rf"|[{_SIGN}]+(?:(?!'s(?![{_SIGN}]))(?:[-']|(?<=\p{{N}})[.,:](?=\p{{N}}))[{_SIGN}]+)*"  # well-known, 1,000
    rf"|([^\s{_SIGN}])\1*"  # ..., or a single sign
)
_OPENS = r"(?<![^\s(\[{“])"  # after a space, a bracket or another mark
_WORD_NORMALIZER = normalizers.Sequence(
    [
        normalizers.NFC(),
        normalizers.Lowercase(),
        normalizers.Replace("’", "'"),
        normalizers.Replace(Regex(rf'{_OPENS}"(?=\S)'), "“"),
        normalizers.Replace('"', "”"),
        normalizers.Replace(Regex(rf"{_OPENS}'(?=\S)"), "‘"),
    ]
)
_WORD_DECODER = decoders.Sequence(
    [
        # a space before each but the first; no word begins with two
        decoders.WordPiece(prefix="  ", cleanup=False),
        decoders.Fuse(),
        decoders.Replace(Regex(r" (?=[.,;:!?…)\]}%”'/])"), ""),
        decoders.Replace(Regex(r"(?<=[(\[{$£€#@“‘/]) "), ""),
        decoders.Replace(Regex("[“”]"), '"'),
        decoders.Replace("‘", "'"),
    ]
)


def train_tokenizer(
    train: Iterable[Example], vocabulary_size: int, kind: str = "trained"
) -> PreTrainedTokenizerFast:
    """Train a tokenizer on sources and references.

    "trained" is byte-level BPE, which is lossless and has no unknown words. The vocabulary size includes the four
    special entries; it is exact for "words", else an upper bound.

    Raises:
        UsageError: the texts have fewer different words than `vocabulary_size`.
    """
    train_kind = _word_level if kind == "words" else _byte_pairs
    return PreTrainedTokenizerFast(
        tokenizer_object=train_kind(train, vocabulary_size),
        pad_token=_PAD,
        bos_token=_START,
        eos_token=_END,
        unk_token=_UNKNOWN,
        split_special_tokens=kind == "words",  # a text that contains "</s>" does not end there
    )


def trained_tokenizer(
    train: Split, vocabulary_size: int, cache: ArtifactCache, kind: str = "trained"
) -> PreTrainedTokenizerBase:
    """Return a tokenizer trained on a training split; it is cached as the stage "tokenizer".

    The arguments are those of `train_tokenizer`, and the artifact cache.

    Raises:
        UsageError: the split has fewer different words than `vocabulary_size`.
    """

    def build(folder: Path) -> None:
        clear_partial(folder)
        sample = training_sample(train, kind)
        texts = track((train[index] for index in sample), "training the tokenizer", len(sample))
        train_tokenizer(texts, vocabulary_size, kind).save_pretrained(folder)

    inputs = {
        "train": train.fingerprint,
        "vocabulary_size": vocabulary_size,
        "kind": kind,
        "reading": LOADING_VERSION,
    }
    folder = cache.get("tokenizer", inputs, build)
    with reading_artifact(folder):
        return load_tokenizer(folder)


def _word_level(train: Iterable[Example], vocabulary_size: int) -> Tokenizer:
    """Return the most frequent words; ties are in the order of their code points."""
    tokenizer = Tokenizer(models.WordLevel(unk_token=_UNKNOWN))
    tokenizer.normalizer = _WORD_NORMALIZER
    tokenizer.pre_tokenizer = pre_tokenizers.Split(_PIECES, "removed", invert=True)
    tokenizer.decoder = _WORD_DECODER
    trainer = trainers.WordLevelTrainer(
        vocab_size=vocabulary_size, special_tokens=_MARKS, show_progress=False
    )
    tokenizer.train_from_iterator(_read_training_texts(train), trainer)
    if (entries := tokenizer.get_vocab_size()) < vocabulary_size:
        words = f"{entries - len(_MARKS)} different words, with the special entries {entries}; give {entries} or less"
        raise UsageError(
            f"model.vocabulary_size={vocabulary_size} is more than model.tokenizer=words can have here: the training"
            f" split has {words}"
        )
    return tokenizer


def _byte_pairs(train: Iterable[Example], vocabulary_size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=_MARKS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_read_training_texts(train), trainer)
    return tokenizer


def training_sample(train: Split, kind: str = "trained") -> list[int]:
    """Return the indices of the examples a tokenizer is trained on.

    They are all examples, or, for BPE on a split above `_TRAINING_WORDS`, every n-th.
    """
    step = 1 if kind == "words" else max(1, -(-sum(train.source_words) // _TRAINING_WORDS))
    return list(range(0, len(train), step))


def _read_training_texts(train: Iterable[Example]) -> Iterator[str]:
    for example in train:
        yield " ".join(example.sentences())
        yield from (" ".join(reference) for reference in example.references)


def load_tokenizer(
    name: str | Path, of_system: bool = True, fast: bool = True
) -> PreTrainedTokenizerBase:
    """Load a tokenizer by hub name, or from a folder or a GGUF file.

    Args:
        name: the folder, the file, or the name on the hub.
        of_system: True if it makes the inputs and targets of a network; False if it only counts.
        fast: True to refuse a tokenizer that is written in Python.

    Raises:
        UsageError: the tokenizer does not exist, or has no fast version, no vocabulary, no padding or no end token.
        DataError: a file is damaged.
        EnvironmentProblem: it is on the hub, and the hub cannot be reached.
    """
    tokenizer_name = f"tokenizer '{name}'"
    folder = find_gguf(Path(name), tokenizer_name) or Path(name)
    if not folder.exists():
        folder = fetch_files(str(name), "model.tokenizer", _TOKENIZER_FILES)
    tokenizer = read_tokenizer(folder, tokenizer_name)
    if fast and not tokenizer.is_fast:
        raise UsageError(f"{tokenizer_name} has no fast version, which the suite needs")
    if not of_system:
        return tokenizer
    if tokenizer.eos_token is None:
        tokenizer.eos_token = tokenizer.sep_token  # BERT's end of a text
    if tokenizer.pad_token_id is None or tokenizer.eos_token_id is None:
        raise UsageError(
            f"{tokenizer_name} lacks a padding or an end token, which a summarizer needs"
        )
    return tokenizer


def tokenizer_identity(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a hash of a tokenizer and its special tokens."""
    content = tokenizer.backend_tokenizer.to_str() if tokenizer.is_fast else tokenizer.get_vocab()
    return digest([content, tokenizer.special_tokens_map])


def encode_texts(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    """Tokenize texts without special tokens; a slow tokenizer reads special tokens in them as text.

    Raises:
        DataError: the tokenizer fails on a text.
    """
    if tokenizer.is_fast:
        with reading_checkpoint(f"tokenizer '{tokenizer.name_or_path}'"):
            encoded = tokenizer.backend_tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [text.ids for text in encoded]
    return list(
        tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False)[
            "input_ids"
        ]
    )


def special_tokens(
    tokenizer: PreTrainedTokenizerBase, kind: str = "text"
) -> tuple[list[int], list[int]]:
    """Return the tokens that a tokenizer adds before and after a "text" or a "text_target"."""
    encoded = tokenizer(**{kind: "a"}, return_special_tokens_mask=True)
    ids, added = encoded["input_ids"], encoded["special_tokens_mask"]
    start, end = added.index(0), len(ids) - added[::-1].index(0)
    return ids[:start], ids[end:]


def encode_sentences(
    tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]
) -> list[EncodedSentence]:
    """Tokenize consecutive sentences as running text: all but the first begin with a space."""
    texts = [*sentences[:1], *(f" {sentence}" for sentence in sentences[1:])]
    pairs = zip(encode_texts(tokenizer, texts), texts, strict=True)
    return [EncodedSentence(ids, count_words([text])) for ids, text in pairs]


def token_texts(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], skip_special_tokens: bool = True
) -> Iterator[str]:
    """Yield the text that each token adds; the last token of a character adds that character.

    With `skip_special_tokens`, special tokens add nothing, and neither does the unknown word.
    """
    text_so_far = ""
    for end in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[:end], skip_special_tokens=skip_special_tokens)
        if end < len(ids):  # later tokens may complete a character
            text = text.rstrip("\N{REPLACEMENT CHARACTER}")
        yield text[len(text_so_far) :]
        text_so_far = text

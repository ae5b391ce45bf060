"""Tokenizers: trained on a training split, or any fast Hugging Face tokenizer by name or folder.

Two kinds are trained (`configuration.TRAINED`): "trained", byte-level BPE, which loses nothing, and "words", a
vocabulary of whole words (ETADS §4.1), to which rarer words are unknown.

Choice, of words: text is lower-cased and composed (NFC), accents stay. Punctuation is split off, sign by sign. Kept
whole are numbers with inner points, commas and colons ("3.5", "1,000", "10:30"), words with inner hyphens and
apostrophes ("well-known", "don't"), initials ("u.s.", "e.g.") and runs of one sign ("..."). "'s" is split off, so that
a name is one word with it and without. A quotation mark opens or closes by whether a space stands before it. Counted
are sources and references, all of the training split. Any other word is `<unk>`, which summaries leave out.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from longsumbench.api.documents import Example
from longsumbench.api.system import Split
from longsumbench.cache.artifacts import ArtifactCache, clear_partial, reading_artifact
from longsumbench.cache.hub import unreachable
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.files import digest
from longsumbench.modeling.checkpoints import SAFE_LOADING, describe_error, read_tokenizer, reading_checkpoint
from longsumbench.modeling.units import EncodedSentence
from longsumbench.progress import track

TOKENIZER_VERSION = 1  # rises when byte-level BPE would come out differently
WORDS_VERSION = 1  # rises when a vocabulary of words would
_PAD, _START, _END, _UNKNOWN = _SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
_TRAINING_WORDS = 5_000_000  # beyond this the merges of a vocabulary of tens of thousands hardly change

_SIGN = r"\p{L}\p{M}\p{N}_"  # of which words are made
_PIECES = Regex(
    r"(?:\p{L}\.){2,}"  # u.s.
    rf"|'s(?![{_SIGN}])"
    rf"|[{_SIGN}]+(?:(?!'s(?![{_SIGN}]))(?:[-']|(?<=\p{{N}})[.,:](?=\p{{N}}))[{_SIGN}]+)*"  # well-known, 1,000
    rf"|([^\s{_SIGN}])\1*"  # ..., or a sign alone
)
_OPENS = r"(?<![^\s(\[{“])"  # behind a space, a bracket or another mark
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
        decoders.WordPiece(prefix="  ", cleanup=False),  # a space before each but the first, for none begins with two
        decoders.Fuse(),
        decoders.Replace(Regex(r" (?=[.,;:!?…)\]}%”'/])"), ""),
        decoders.Replace(Regex(r"(?<=[(\[{$£€#@“‘/]) "), ""),
        decoders.Replace(Regex("[“”]"), '"'),
        decoders.Replace("‘", "'"),
    ]
)


def train_tokenizer(train: Iterable[Example], vocabulary_size: int, kind: str = "trained") -> PreTrainedTokenizerFast:
    """Train a tokenizer on sources and references.

    Args:
        train: the training split, or a sample of it.
        vocabulary_size: entries, the four special ones included; of words exactly so many, else at most.
        kind: "trained" (byte-level BPE: lossless, no unknown words) or "words".

    Raises:
        UsageError: there are fewer different words.
    """
    tokenizer = _words(train, vocabulary_size) if kind == "words" else _byte_pairs(train, vocabulary_size)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=_PAD,
        bos_token=_START,
        eos_token=_END,
        unk_token=_UNKNOWN,
        split_special_tokens=kind == "words",  # a text that holds "</s>" does not end there
    )


def trained_tokenizer(
    train: Split, vocabulary_size: int, stages: ArtifactCache, kind: str = "trained"
) -> PreTrainedTokenizerBase:
    """Return a tokenizer trained on a training split, the same stage for whoever asks for the same one.

    Args:
        train: the training split.
        vocabulary_size: as in `train_tokenizer`.
        stages: finished pieces of work.
        kind: "trained" or "words".

    Raises:
        UsageError: the split has fewer different words.
    """

    def build(folder: Path) -> None:
        clear_partial(folder)
        chosen = training_sample(train, kind)
        texts = track((train[index] for index in chosen), "training the tokenizer", len(chosen))
        train_tokenizer(texts, vocabulary_size, kind).save_pretrained(folder)

    inputs = {"train": train.fingerprint, "vocabulary_size": vocabulary_size, **_decided_by(kind)}
    folder = stages.get("tokenizer", inputs, build)
    with reading_artifact(folder):
        return load_tokenizer(folder)


def _decided_by(kind: str) -> dict[str, Any]:
    """Return what, beside texts and size, decides how a kind of trained tokenizer comes out."""
    return {"kind": kind, "version": WORDS_VERSION} if kind == "words" else {"version": TOKENIZER_VERSION}


def _words(train: Iterable[Example], vocabulary_size: int) -> Tokenizer:
    """Return the most frequent words, equally frequent ones in the order of their letters' code points."""
    tokenizer = Tokenizer(models.WordLevel(unk_token=_UNKNOWN))
    tokenizer.normalizer = _WORD_NORMALIZER
    tokenizer.pre_tokenizer = pre_tokenizers.Split(_PIECES, "removed", invert=True)
    tokenizer.decoder = _WORD_DECODER
    trainer = trainers.WordLevelTrainer(vocab_size=vocabulary_size, special_tokens=_SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(_texts(train), trainer)
    if (found := tokenizer.get_vocab_size()) < vocabulary_size:
        words = f"{found - len(_SPECIAL)} different words, with the special entries {found}; give {found} or less"
        raise UsageError(
            f"model.vocabulary_size={vocabulary_size} is more than model.tokenizer=words can have here: the training"
            f" split has {words}"
        )
    return tokenizer


def _byte_pairs(train: Iterable[Example], vocabulary_size: int) -> Tokenizer:
    """Return byte-level BPE: lossless, no unknown words; the 256 bytes are among its entries."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(train), trainer)
    return tokenizer


def training_sample(train: Split, kind: str = "trained") -> list[int]:
    """Return the examples a tokenizer is trained on: all, or BPE on every n-th of a split above TRAINING_WORDS."""
    step = 1 if kind == "words" else max(1, -(-sum(train.source_words) // _TRAINING_WORDS))
    return list(range(0, len(train), step))


def _texts(train: Iterable[Example]) -> Iterator[str]:
    for example in train:
        yield " ".join(example.sentences())
        yield from (" ".join(reference) for reference in example.references)


def load_tokenizer(name: str | Path) -> PreTrainedTokenizerBase:
    """Load a fast tokenizer by hub name or from a folder.

    Raises:
        UsageError: there is none of that name, or it cannot be used here.
        DataError: a file of it is damaged.
        EnvironmentProblem: it is on the hub, and that cannot be reached.
    """
    named = f"tokenizer '{name}'"
    tokenizer = read_tokenizer(Path(name), named) if Path(name).is_dir() else _fetched(str(name))
    if not tokenizer.is_fast:
        raise UsageError(f"{named} has no fast version, which the suite needs")
    if not tokenizer.backend_tokenizer.encode("a", add_special_tokens=False).ids:  # made up by the library, of no file
        raise UsageError(f"{named} makes no token of any text: its vocabulary is not there")
    if tokenizer.pad_token_id is None or tokenizer.eos_token_id is None:
        raise UsageError(f"{named} lacks a padding or an end token, which a summarizer needs")
    return tokenizer


def _fetched(name: str) -> PreTrainedTokenizerBase:
    """Load a tokenizer from the hub, or the copy of it on this machine."""
    problem = unreachable()  # asked first, for the library tries for most of a minute
    with reading_checkpoint(f"tokenizer '{name}'"):
        try:
            return AutoTokenizer.from_pretrained(name, **{**SAFE_LOADING, "local_files_only": problem is not None})
        except (OSError, ValueError) as error:
            if problem is not None:
                raise EnvironmentProblem(
                    f"tokenizer '{name}' is no folder here, and the Hugging Face hub cannot be reached ({problem}):"
                    " give a folder, or use model.tokenizer=trained or words"
                ) from error
            reason = describe_error(error)
            raise UsageError(f"no tokenizer '{name}': give a Hugging Face name or a folder ({reason})") from error


def tokenizer_identity(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a hash of all that a tokenizer does."""
    return digest([tokenizer.backend_tokenizer.to_str(), tokenizer.special_tokens_map])


def encode_sentences(tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]) -> list[EncodedSentence]:
    """Tokenize consecutive sentences as the running text they are: all but the first begin with a space."""
    texts = [sentence if index == 0 else f" {sentence}" for index, sentence in enumerate(sentences)]
    encoded = tokenizer.backend_tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    return [EncodedSentence(one.ids, len(text.split())) for one, text in zip(encoded, texts, strict=True)]


def token_texts(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], skip_special_tokens: bool = True
) -> Iterator[str]:
    """Yield what each token adds to the text; a character of several tokens is added by the last of them.

    Args:
        tokenizer: whose tokens they are.
        ids: the tokens.
        skip_special_tokens: whether special ones, among them the unknown word's, add nothing.
    """
    shown = ""
    for end in range(1, len(ids) + 1):
        whole = tokenizer.decode(ids[:end], skip_special_tokens=skip_special_tokens)
        if end < len(ids):
            whole = whole.rstrip("\N{REPLACEMENT CHARACTER}")  # in its place a character may yet come
        yield whole[len(shown) :]
        shown = whole

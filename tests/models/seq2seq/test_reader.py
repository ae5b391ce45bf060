"""What an encoder-decoder reads: the tokens of the whole text, where it is cut, and what the ledger says."""

from dataclasses import replace
from typing import Any

import pytest
from support.hand_texts import text_of
from support.tiny_seq2seq import SEPARATOR, checkpoint_of, open_seq2seq
from support.toys import ToySplit

from longsumbench.core import Cut, Example, Truncation
from longsumbench.models.seq2seq.system import TextReader

SENTENCES = (("kadan lofel migor.", "Nuhit rekafel!"), ("kadan & nuhit.",))


def reader_of(architecture: str, **settings: Any) -> TextReader:
    """Return a reader that is ready to read."""
    folder = checkpoint_of(architecture)
    reader: TextReader = open_seq2seq(folder, **{"input_length": 60, **settings}).reader
    return reader


def example(query: str | None = None) -> Example:
    return replace(text_of(*SENTENCES, title="a title"), query=query)


@pytest.mark.parametrize("name", ["bart", "pegasus"])
@pytest.mark.parametrize(
    ("settings", "query", "text"),
    [
        ({}, None, "kadan lofel migor. Nuhit rekafel! kadan & nuhit."),
        (
            {"prefix": "summarize: "},
            None,
            "summarize: kadan lofel migor. Nuhit rekafel! kadan & nuhit.",
        ),
        ({"prefix": "sum:"}, "why?", "sum: why? kadan lofel migor. Nuhit rekafel! kadan & nuhit."),
        (
            {"separator": SEPARATOR},
            None,
            f"kadan lofel migor. Nuhit rekafel!{SEPARATOR}kadan & nuhit.",
        ),
    ],
)
def test_the_text_is_tokenized_as_one(
    name: str, settings: dict[str, str], query: str | None, text: str
) -> None:
    """Prefix, query and documents have the tokens that the checkpoint's tokenizer gives the whole, special ones too."""
    reader = reader_of(name, **settings)
    units = reader.units(example(query))
    reader.tokenizer.backend_tokenizer.encode_special_tokens = False
    assert units.ids == (reader.tokenizer(text).input_ids,)
    assert units.truncation.cuts == ()
    assert units.truncation.words == 8 + bool(query)


def test_worked_ledger_with_prefix_and_separator() -> None:
    """Worked: the prefix takes room and is no text; the separator is a token of it without a word."""
    reader = reader_of("bart")
    lengths = [len(reader.encode(list(sentences))) for sentences in SENTENCES]
    assert lengths == [2, 1]
    tokens = [
        sum(len(one.ids) for one in reader.encode(list(sentences))) for sentences in SENTENCES
    ]
    prefixed = reader_of("bart", prefix="kadan", separator=SEPARATOR, input_length=tokens[0] + 4)
    assert len(prefixed.encode(["kadan"])[0].ids) == 1
    units = prefixed.units(example())
    assert units.ids[0][-2] == prefixed.separator_id
    assert units.truncation == Truncation(sum(tokens) + 1, 8, (Cut("input_length", tokens[1], 3),))


def test_worked_shares_of_documents() -> None:
    """Worked: each of two documents keeps half the length less two special tokens, and ends with the separator.

    This is PRIMERA's script: each document is encoded alone, cut to length // n, its two special tokens removed.
    """
    reader = reader_of("bart", separator=SEPARATOR, share="documents", input_length=13)
    units = reader.units(example())
    encoded = [reader.encode(list(sentences)) for sentences in SENTENCES]
    tokens = sum(len(sentence.ids) for document in encoded for sentence in document)
    tokenizer, separator = reader.tokenizer, reader.separator_id
    texts = [" ".join(sentences) for sentences in SENTENCES]
    parts = [tokenizer(text, truncation=True, max_length=13 // 2).input_ids[1:-1] for text in texts]
    assert list(map(len, parts)) == [4, 4]
    assert units.ids == (
        [
            tokenizer.bos_token_id,
            *parts[0],
            separator,
            *parts[1],
            separator,
            tokenizer.eos_token_id,
        ],
    )
    (cut,) = units.truncation.cuts
    assert (units.truncation.tokens, cut.cause, cut.tokens) == (tokens + 2, "share", tokens - 8)
    assert units.words[0] + cut.words == units.truncation.words == 8


def test_special_tokens_in_a_text_are_text() -> None:
    """A text with "</s>" or the separator in it does not end there, and has no more documents."""
    reader = reader_of("bart", separator=SEPARATOR)
    (ids,) = reader.units(text_of((f"a</s>b{SEPARATOR}c",))).ids
    special = [token for token in ids if token in reader.tokenizer.all_special_ids]
    assert special == [reader.tokenizer.bos_token_id, reader.tokenizer.eos_token_id]
    assert reader.tokenizer.decode(ids, skip_special_tokens=True).strip() == f"a</s>b{SEPARATOR}c"


def test_batches_are_padded_as_asked() -> None:
    """With pad_to_multiple_of the length of a batch is a multiple; the mask is 1 where a token is real."""
    reader = reader_of("bart", pad_to_multiple_of=32)
    rows = [reader.row(one) for one in (example(), ToySplit.of("test", 1).examples[0])]
    batch = reader.collator()(rows)
    lengths = [len(row["units"][0]) for row in rows]
    assert batch["input_ids"].shape == batch["attention_mask"].shape == (2, 32)
    assert batch["attention_mask"].sum(1).tolist() == lengths
    assert batch["unit_mask"].sum((1, 2)).tolist() == lengths
    assert batch["input_ids"][batch["attention_mask"] == 0].unique().tolist() == [
        reader.tokenizer.pad_token_id
    ]

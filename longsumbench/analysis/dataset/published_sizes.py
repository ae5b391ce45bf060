"""Sizes of the datasets as published in the papers of the suite's systems."""

import re

_PAGESUM = ("PageSum, Table 1", "BART's BPE, validation split")
_SEAL = ("SEAL, Table 1", "subwords, 1.3 a word; split not said")
_HIERARCHICAL = ("Hierarchical Transformer, §4", "SentencePiece, 32,000; 525 paragraphs of 70.1 tokens")
_ETADS = ("ETADS, §4.1", "sentences: 42.1 in the document, 3.8 in the summary")
TABLES_OF_SIZES = {  # source and table, as in published.csv → source of the rows below
    ("liu2022pagesum", "Table 1"): _PAGESUM[0],
    ("zhao2020seal", "Table 1"): _SEAL[0],
}

SIZE_COLUMNS = ("source", "counted", "examples", "source\nmean", "source\n95 %", "target\nmean", "target\n95 %")
PUBLISHED_SIZES = {  # dataset → rows, as printed
    "arxiv": (
        (*_PAGESUM, "203K / 6.4K / 6.4K", "8154.3", "–", "197.8", "–"),
        (*_SEAL, "215k", "10k", "24.2k", "460", "754"),
    ),
    "pubmed": (
        (*_PAGESUM, "120K / 6.7K / 6.6K", "3983.6", "–", "261.3", "–"),
        (*_SEAL, "133k", "4.4k", "10.2k", "331", "538"),
    ),
    "gov_report": ((*_PAGESUM, "17.5K / 973 / 974", "10726.1", "–", "681.6", "–"),),
    "multi_news": ((*_PAGESUM, "45.0K / 5.6K / 5.6K", "2526.4", "–", "277.2", "–"),),
    "search2wiki": ((*_SEAL, "4.8M", "37k", "90k", "310", "510"),),
    "wikisum": ((*_HIERARCHICAL, "1,579,360 / 38,144 / 38,205", "–", "–", "139.4", "–"),),
    "cnn_dailymail": ((*_ETADS, "287,226 / 13,368 / 11,490", "–", "–", "–", "–"),),
}

_PRINTED_SIZE = re.compile(r"([\d.,]+)([kKM]?)")
_TIMES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6}


def read_printed_size(text: str) -> float | None:
    """Return the value of a printed number ("24.2k" → 24200); None for a dash."""
    match = _PRINTED_SIZE.fullmatch(text)
    return None if match is None else float(match[1].replace(",", "")) * _TIMES[match[2]]

"""Sizes of the datasets as published in the papers of the suite's systems."""

from dataclasses import dataclass

_PAGESUM = ("PageSum, Table 1", "BART's BPE, validation split")
_SEAL = ("SEAL, Table 1", "subwords, 1.3 a word; split not said")
_HIERARCHICAL = ("Hierarchical Transformer, §4", "SentencePiece, 32,000; 525 paragraphs of 70.1 tokens")
_ETADS = ("ETADS, §4.1", "sentences: 42.1 in the document, 3.8 in the summary")


@dataclass(frozen=True)
class PublishedSize:
    """A row of a paper's table, as printed.

    Attributes:
        source: the paper and its table.
        tokens: the unit of the lengths, and the split.
        examples: number of examples per split, or in total.
        source_mean, source_p95: length of the source; empty if not published.
        target_mean, target_p95: length of the target; empty if not published.
    """

    source: str
    tokens: str
    examples: str
    source_mean: str
    source_p95: str
    target_mean: str
    target_p95: str


PUBLISHED_SIZES = {
    "arxiv": (
        PublishedSize(*_PAGESUM, "203K / 6.4K / 6.4K", "8154.3", "", "197.8", ""),
        PublishedSize(*_SEAL, "215k", "10k", "24.2k", "460", "754"),
    ),
    "pubmed": (
        PublishedSize(*_PAGESUM, "120K / 6.7K / 6.6K", "3983.6", "", "261.3", ""),
        PublishedSize(*_SEAL, "133k", "4.4k", "10.2k", "331", "538"),
    ),
    "gov_report": (PublishedSize(*_PAGESUM, "17.5K / 973 / 974", "10726.1", "", "681.6", ""),),
    "multi_news": (PublishedSize(*_PAGESUM, "45.0K / 5.6K / 5.6K", "2526.4", "", "277.2", ""),),
    "search2wiki": (PublishedSize(*_SEAL, "4.8M", "37k", "90k", "310", "510"),),
    "wikisum": (PublishedSize(*_HIERARCHICAL, "1,579,360 / 38,144 / 38,205", "", "", "139.4", ""),),
    "cnn_dailymail": (PublishedSize(*_ETADS, "287,226 / 13,368 / 11,490", "", "", "", ""),),
}

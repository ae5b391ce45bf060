"""PageSum's settings: what they settle to, and which are invalid."""

from dataclasses import asdict

import pytest
from support.toys import settings_of

from longsumbench.core import names_deciding
from longsumbench.models.pagesum.config import SIZES, PageSumConfig


@pytest.mark.parametrize(
    ("given", "split", "pages", "page_size"),
    [
        ("", "sentences", 7, 1_024),
        ("page_size=128", "tokens", 32, 128),
        ("split=sentences page_size=128", "sentences", 7, 128),
        ("locality=discourse", "sentences", 8, 1_024),
        ("locality=document page_size=128 max_pages=3", "sentences", 3, 128),
    ],
)
def test_the_split_that_settings_ask_for(
    given: str, split: str, pages: int, page_size: int
) -> None:
    """Sizes in tokens without num_pages ask for Table 6's pages, unless a split is named; the record says which."""
    config = PageSumConfig(**settings_of(given))
    assert (config.split, config.most_pages, config.page_size) == (split, pages, page_size)
    assert config.text_length == page_size - 2
    assert (config.max_input_tokens is None) == (split == "sentences")
    assert (config.num_pages is None) == (split == "tokens" or config.locality != "spatial")


def test_units_are_made_again_whenever_pages_would_change() -> None:
    """All settings decide the pages, except those of the network and the start."""
    network = {
        "decoding",
        "init",
        "size",
        *SIZES["base"],
        "dropout",
        "tokenizer",
        "vocabulary_size",
    }
    assert set(asdict(PageSumConfig())) - names_deciding(PageSumConfig, "units") == network | {
        "name"
    }

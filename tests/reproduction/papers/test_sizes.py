"""Tables of sizes as paper tables: printed numbers, counted lengths, and the tokenizer that counts."""

from pathlib import Path

import pytest
from support.paths import SHARED
from support.reproduction.paper_jobs import analysis_job, write_texts
from support.requirements import SHARED_FOLDER
from support.tiny_bert import write_bert

from longsumbench.analysis.dataset.tables import PUBLISHED_SIZES, TABLES_OF_SIZES
from longsumbench.core import DatasetSettings
from longsumbench.errors import EnvironmentProblem
from longsumbench_reproduction.papers.sizes import sizes_page

OPTIONS = {"split": "test", "sample": None, "tokenizer": None}
TEXTS = {"zhao2020seal": "seal.txt", "liu2022pagesum": "pagesum.txt"}


def texts(folder: Path) -> DatasetSettings:
    """Write texts of 2, 4 and 6 words with summaries of 1, 2 and 3, and some to train a tokenizer."""
    rows = [{"document": "the cat " * size, "summary": "sat " * size} for size in (1, 2, 3)]
    return write_texts(folder, {"train": rows * 4, "test": rows})


def test_mean_and_95th_percentile_of_lengths_by_hand(tmp_path: Path) -> None:
    """The mean of 2, 4 and 6 words is 4, and the 95th percentile is 5.8; the printed row is the paper's.

    A trained tokenizer counts the tokens.
    """
    datasets = {"arXiv": texts(tmp_path / "texts")}
    page = sizes_page(analysis_job("seal-table1", datasets, OPTIONS))
    (block,) = page.blocks
    printed, words, tokens = block.rows
    assert " ".join(printed[2:]) == "215k 10k 24.2k 460 754"
    lengths = page.numbers[page.numbers["kind"] == "printed"]["value"]
    assert lengths.tolist() == [215_000, 10_000, 24_200, 460, 754]
    assert " | ".join(words[1:]) == "ours: words | 12 / 0 / 3 | 4.0 | 5.8 | 2.0 | 2.9"
    assert tokens[1].startswith("ours: tokens (trained BPE, ")
    assert any(
        sentence.startswith("Ours are on jsonl, the paper's on arXiv: ")
        for sentence in page.conditions
    )
    ours = page.numbers[(page.numbers["kind"] == "ours") & (page.numbers["row"] == "source, words")]
    assert ours["value"].tolist() == [4.0, 5.8]
    assert not page.verdicts


def test_a_typed_tokenizer_counts_the_papers_own_dataset(tmp_path: Path) -> None:
    """A tokenizer of whole words makes 4 and 2 tokens; files of one's own need not be the paper's texts."""
    (tmp_path / "bert").mkdir()
    bert = write_bert(tmp_path / "bert" / "model")
    settings = DatasetSettings(
        name="arXiv-copy", reader="jsonl", path=texts(tmp_path / "texts").path
    )
    settings.name = "arxiv"
    options = {**OPTIONS, "tokenizer": str(bert)}
    page = sizes_page(analysis_job("pagesum-table1", {"arXiv": settings}, options))
    tokens = page.numbers[
        page.numbers["row"].str.endswith(f"tokens of {bert}") & (page.numbers["measure"] == "mean")
    ]
    assert tokens["value"].tolist() == [4, 2]
    assert any(
        "nothing shows that they are the official ones" in sentence for sentence in page.conditions
    )


def test_a_tokenizer_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper table's own tokenizer is replaced, and the conditions say so; a typed one is an error."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("longsumbench.modeling.checkpoints.unreachable", lambda: "no network")
    datasets = {"arXiv": texts(tmp_path / "texts")}
    options = {**OPTIONS, "tokenizer": "someone/no-such-bart"}
    page = sizes_page(analysis_job("pagesum-table1", datasets, options))
    assert any(
        "someone/no-such-bart is not on this machine" in sentence for sentence in page.conditions
    )
    with pytest.raises(EnvironmentProblem, match="someone/other"):
        sizes_page(
            analysis_job("pagesum-table1", datasets, options, typed={"tokenizer": "someone/other"})
        )


@pytest.mark.skipif(not SHARED.is_dir(), reason=SHARED_FOLDER)
@pytest.mark.parametrize("source", TEXTS)
def test_printed_sizes_are_the_papers(source: str) -> None:
    """Each printed number is in the paper's text, in a line with all numbers of its dataset."""
    lines = (SHARED / "papers" / TEXTS[source]).read_text().splitlines()
    table = TABLES_OF_SIZES[source, "Table 1"]
    rows = [row for rows in PUBLISHED_SIZES.values() for row in rows if row[0] == table]
    assert len(rows) == (3 if source == "zhao2020seal" else 4)
    for row in rows:
        numbers = [number for cell in row[2:] for number in cell.split(" / ") if number != "–"]
        assert any(line.split()[-len(numbers) :] == numbers for line in lines), row

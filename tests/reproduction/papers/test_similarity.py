"""PageSum's Figure 1 as a paper table: texts whose neighbours share words, and texts whose distant sentences do."""

from pathlib import Path

import pytest
from support.reproduction.paper_jobs import analysis_job, write_texts
from support.tiny_bert import write_bert
from transformers import BertModel

from longsumbench.core import DatasetSettings
from longsumbench.errors import UsageError
from longsumbench_reproduction.papers.distances import similarity_page
from longsumbench_reproduction.papers.page_model import NOT_TESTED, REPRODUCED, REVERSED
from longsumbench_reproduction.papers.paper_tables import PaperClaim

OPTIONS = {"encoder": None, "sample": None, "device": "cpu"}
CLAIM = PaperClaim(orders=("near > far",), on="cosine × 100")
TOPICS = ["ash birch", "cedar elm", "fir oak", "pine yew"]


def texts(folder: Path, near: bool, length: int = 24, size: int = 10) -> DatasetSettings:
    """Write texts of four topics: one after the other, or in turns of twelve sentences."""
    rows = []
    for row in range(size):
        places = [(n + row % 3) * 4 // (length + 2) if near else n % 12 // 3 for n in range(length)]
        sentences = [
            f"The {TOPICS[topic]} of {row} and w{row}x{n}." for n, topic in enumerate(places)
        ]
        rows.append({"document": " ".join(sentences[row % 2 :])})
    return write_texts(folder, {"test": [{**row, "summary": "It is."} for row in rows]})


def test_near_sentences_are_more_similar(tmp_path: Path) -> None:
    """Where topics follow each other, the claim holds; where they return after twelve sentences, it does not."""
    datasets = {"arXiv": texts(tmp_path / "near", near=True)}
    page = similarity_page(analysis_job("pagesum-figure1", datasets, OPTIONS, claims=[CLAIM]))
    (verdict,) = page.verdicts
    assert (verdict.claim, verdict.measure, verdict.outcome) == (
        "near > far",
        "cosine × 100",
        REPRODUCED,
    )
    assert list(page.pictures) == ["pagesum-figure1-arxiv.png"]
    assert any("tf-idf" in sentence for sentence in page.conditions)
    ours = page.numbers[page.numbers["kind"] == "ours"].set_index("row")["value"]
    assert ours["distance 1"] > ours["all pairs"]
    assert page.numbers["kind"].tolist()[-1] == "verdict"
    other = texts(
        tmp_path / "far", near=False, length=13
    )  # the only far pairs are the first and the last sentence
    (verdict,) = similarity_page(
        analysis_job("pagesum-figure1", {"arXiv": other}, OPTIONS, claims=[CLAIM])
    ).verdicts
    assert verdict.outcome == REVERSED


def test_short_texts_are_not_tested(tmp_path: Path) -> None:
    """Without a pair of distant sentences there is no verdict, and the reason says so."""
    datasets = {"arXiv": texts(tmp_path / "short", near=True, length=8)}
    (verdict,) = similarity_page(
        analysis_job("pagesum-figure1", datasets, OPTIONS, claims=[CLAIM])
    ).verdicts
    assert (verdict.outcome, verdict.reason) == (NOT_TESTED, "no source has 12 sentences on arXiv")


def test_vectors_are_those_of_the_encoder(tmp_path: Path) -> None:
    """With the option `encoder` the vectors are its own, and the conditions name it."""
    encoder = write_bert(tmp_path / "bert", network=BertModel)
    datasets = {"arXiv": texts(tmp_path / "texts", near=True, length=12, size=3)}
    page = similarity_page(
        analysis_job("pagesum-figure1", datasets, {**OPTIONS, "encoder": str(encoder)})
    )
    assert f"ours are those of {encoder}" in page.conditions[-1]


def test_texts_out_of_reach(tmp_path: Path) -> None:
    """A dataset without files is left out with the word to type; if none is left, that is an error."""
    datasets = {
        "arXiv": texts(tmp_path / "texts", near=True),
        "PubMed": DatasetSettings(name="sumpubmed"),
    }
    page = similarity_page(analysis_job("pagesum-figure1", datasets, OPTIONS))
    problem = "dataset 'sumpubmed' is read from files: add path.sumpubmed=FOLDER"
    assert f"PubMed was not read: {problem}." in page.conditions
    assert len(page.blocks) == 1
    with pytest.raises(UsageError, match=problem):
        similarity_page(analysis_job("pagesum-figure1", {"PubMed": datasets["PubMed"]}, OPTIONS))

"""The tables and figures of `conf/paper`: printed numbers, planned settings at the paper's scale and in miniature.

The settings expected here are typed from the papers, not from the suite's files.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.paths import ROOT, SHARED

from longsumbench.core import RunConfig
from longsumbench.leaderboards.published import PUBLISHED_AS
from longsumbench.models.seq2seq.config import Seq2SeqConfig
from longsumbench.papers.paper_tables import (
    PAPER,
    PaperRow,
    PaperTable,
    at_scale,
    read_paper_tables,
    split_pair,
)
from longsumbench.papers.points import plan_paper_table
from longsumbench.runs.overrides import override_key
from longsumbench.runs.results import Results

PAPER_TABLES = read_paper_tables()
NAMES = list(PAPER_TABLES)
KINDS = (
    *("scores", "curves", "dimensions", "sizes", "similarity", "fusions", "rank_recall"),
    *("evidence", "examples", "case_study", "questions"),
)
TEXTS = {  # source → its text in the shared folder
    "zhao2020seal": "seal",
    "liu2022pagesum": "pagesum",
    "you2019etads": "etads",
    "liu2019hiersumm": "hierarchical_transformer",
}
ABOUT_TEXTS = (
    "similarity",
    "fusions",
    "rank_recall",
    "evidence",
)  # kinds whose claims name no rows
NOT_IN_A_TABLE: dict[Any, str] = {
    ("zhao2020seal", "§6 text"): "seal-figure5"
}  # numbers in the text → the paper table whose notes have them
RELEASED = "released outputs"  # scored here, not printed

Points = dict[tuple[str, str], list[RunConfig]]  # label, the paper's dataset → one for each seed


def rows_at(paper_table: PaperTable, scale: str) -> Iterator[tuple[str, str, PaperRow]]:
    """Yield dataset, label and row of all that exists at a scale."""
    for dataset, at in paper_table.datasets.items():
        for label, row in paper_table.rows.items():
            if (
                scale in at
                and (not row.at or scale in row.at)
                and (not row.datasets or dataset in row.datasets)
            ):
                yield dataset, label, row


@cache
def planned(name: str, scale: str) -> Points:
    """Return the configurations of a paper table for one seed; a checkpoint's card on the hub is not read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Seq2SeqConfig, "usual_decoding", lambda self: None)
        patch.setattr(Seq2SeqConfig, "usual_prefix", lambda self: "")
        job = plan_paper_table(
            PAPER_TABLES[name], [f"scale={scale}", "seed=1"], Results(Path("no such folder"))
        )
    assert not job.unreachable
    return {(row.label, row.dataset): [point.config for point in row.points] for row in job.rows}


def read_table() -> pd.DataFrame:
    """Return the published numbers of the four papers, all as text."""
    table = pd.read_csv(ROOT / "results" / "published.csv", dtype=str, keep_default_na=False)
    return table[table["source_key"].isin(list(TEXTS))]


def selected(paper_table: PaperTable, row: PaperRow, dataset: str) -> pd.DataFrame:
    """Return the published numbers of a row on one of the paper's datasets."""
    wanted = {
        "source_key": paper_table.source,
        "source_table": paper_table.prints,
        "dataset": dataset,
        **row.published,
    }
    table = read_table()
    for column, value in wanted.items():
        table = table[table[column] == value]
    return table


def settings(config: RunConfig, names: str) -> list[Any]:
    """Return some settings of a configuration ("model.input_length train.max_steps")."""
    found = []
    for name in names.split():
        section, _, key = name.rpartition(".")
        found.append(getattr(getattr(config, section) if section else config, key))
    return found


@pytest.mark.parametrize(
    ("name", "scale"), [(name, scale) for name in NAMES for scale in PAPER_TABLES[name].scales]
)
def test_nothing_is_set_twice(name: str, scale: str) -> None:
    """Of a row's scale, dataset, system and settings at the scale, no two set the same."""
    paper_table = PAPER_TABLES[name]
    for dataset, _, row in rows_at(paper_table, scale):
        line = [
            paper_table.scales[scale],
            paper_table.datasets[dataset][scale],
            row.run,
            row.at.get(scale, ""),
        ]
        keys = [override_key(word) for part in line for word in shlex.split(part)]
        assert sorted(set(keys)) == sorted(keys)


def one_each(name: str, scale: str, names: str) -> dict[tuple[str, str], list[Any]]:
    """Return some settings of all rows of a paper table, whose points differ in their seeds."""
    return {place: settings(config, names) for place, (config, *_) in planned(name, scale).items()}


def test_all_tables_and_figures() -> None:
    """There are 27: 6 of SEAL, 11 of PageSum, 5 of ETADS, and 5 of the Hierarchical Transformer."""
    expected = {
        "seal": ["table1", "table2", "table3", "table4", "figure4", "figure5"],
        "pagesum": [f"table{number}" for number in range(1, 9)] + ["figure1", "figure3", "figure4"],
        "etads": [f"table{number}" for number in range(2, 7)],
        "hierarchical": [f"table{number}" for number in range(1, 6)],
    }
    assert sorted(NAMES) == sorted(
        f"{paper}-{short}" for paper, several in expected.items() for short in several
    )
    assert len(NAMES) == 27
    assert PAPER_TABLES["pagesum-figure3"].prints == "Figure 3"


@pytest.mark.parametrize("name", NAMES)
def test_an_paper_table_is_complete(name: str) -> None:
    """It has a known kind, the paper's scale, a miniature, and only names that exist."""
    paper_table = PAPER_TABLES[name]
    assert paper_table.kind in KINDS
    assert paper_table.title
    assert not paper_table.title.endswith(".")
    assert paper_table.default in paper_table.scales
    assert PAPER in paper_table.scales
    assert len(paper_table.scales) > 1
    for dataset, at in paper_table.datasets.items():
        assert dataset in PUBLISHED_AS
        assert at.keys() <= paper_table.scales.keys()
        assert at[PAPER] == f"dataset={PUBLISHED_AS[dataset]}"
    for scale in paper_table.scales:
        assert any(scale in at for at in paper_table.datasets.values()), (
            f"no dataset at scale={scale}"
        )
    for row in paper_table.rows.values():
        assert set(row.datasets) <= paper_table.datasets.keys()
        assert row.at.keys() <= paper_table.scales.keys()
        assert PAPER in row.at or not row.at
        assert bool(row.panel) == bool(row.line) == bool(row.x) == (paper_table.kind == "curves")
        assert not row.x or row.x.keys() == row.at.keys()
    for claim in paper_table.claims:
        reasons = [at_scale(claim.untested, scale) for scale in paper_table.scales]
        assert len(claim.rows) > 1 or all(reasons), claim.says
        assert paper_table.kind in ABOUT_TEXTS or set(claim.rows) <= paper_table.rows.keys(), (
            claim.says
        )
        assert not (claim.orders and claim.alike)
        assert all(at_scale(claim.on, scale) for scale in paper_table.scales), claim.says
        assert bool(claim.margin) == bool(claim.margin_source)
        assert claim.margin is None or all(
            at_scale(claim.margin, scale) for scale in paper_table.scales
        )
        assert set(claim.datasets) <= paper_table.datasets.keys()
        assert claim.source
        assert 1 < len(claim.says.split()) <= 20
        assert not claim.says.endswith(".")
    for sentence in (*paper_table.not_given, *paper_table.notes):
        assert sentence.endswith(".")
        assert "\n" not in sentence


@pytest.mark.parametrize("name", NAMES)
def test_a_row_has_its_printed_numbers(name: str) -> None:
    """The selector of a row matches numbers of its table, at most one for each measure and dataset."""
    paper_table = PAPER_TABLES[name]
    for label, row in paper_table.rows.items():
        if row.published:
            found = {
                dataset: selected(paper_table, row, dataset)
                for dataset in row.datasets or paper_table.datasets
            }
            assert any(len(table) for table in found.values()), f"nothing is printed for {label}"
            for dataset, table in found.items():
                measures = list(table[["metric", "statistic"]].itertuples(index=False))
                assert len(set(measures)) == len(measures), f"{label} on {dataset} has several rows"


@pytest.mark.parametrize(
    "name", [name for name, one in PAPER_TABLES.items() if one.kind == "scores"]
)
def test_every_ordering_agrees_with_the_printed_numbers(name: str) -> None:
    """What a paper claims to be better has the greater printed number, wherever the table prints both."""
    paper_table = PAPER_TABLES[name]
    for claim in paper_table.claims:
        for order, dataset in product(claim.orders, claim.datasets or paper_table.datasets):
            rows = [paper_table.rows[label] for label in split_pair(order)]
            if claim.says in CONTRADICTED or any(
                dataset not in (row.datasets or [dataset]) for row in rows
            ):
                continue
            for measure in claim.measures_at(PAPER):
                higher, lower = (printed_number(paper_table, row, dataset, measure) for row in rows)
                assert higher > lower, f"{order} on {dataset}"


CONTRADICTED = {
    "Adding an external graph also seems to help"
}  # of one graph the printed numbers are equal


def printed_number(paper_table: PaperTable, row: PaperRow, dataset: str, measure: str) -> float:
    """Return a printed number, or the difference of two."""
    values = selected(paper_table, row, dataset).set_index("metric")["value"].astype(float)
    numbers = [
        values[{"coherence": "coherence_nsp"}.get(name, name)] for name in measure.split(" - ")
    ]
    return float(numbers[0] - sum(numbers[1:]))


# What the papers find alike, read from the papers
ALIKE = {
    "etads-table4": [
        ("Encoder, 4 layers", "Encoder, 6 layers"),
        ("Decoder, 4 layers", "Decoder, 6 layers"),
    ],
    "etads-table5": [("[1-2]", "[1-4]")],
    "hierarchical-table2": [("HT (1,600 tokens) + Similarity Graph", "HT (1,600 tokens)")],
    "pagesum-table6": [("page size 512", "page size 1024")],
    "pagesum-table7": [("PageSum-Spatial", "Global-Decoding, spatial")],
    "seal-table2": [("CA", "EA")],
    "seal-table3": [tuple(PAPER_TABLES["seal-table3"].rows)],
    "seal-figure4": [("EA, 3rd extractive length", "EA, 4th extractive length")],
}


def test_claims_that_rows_are_alike() -> None:
    """There are nine in eight tables; only claims about all rows of a table, or with equal numbers, state a margin."""
    claims = {
        name: [one for one in table.claims if one.alike] for name, table in PAPER_TABLES.items()
    }
    assert {name: [one.alike for one in alike] for name, alike in claims.items() if alike} == ALIKE
    stated = {
        name for name, alike in claims.items() if any(one.margin is not None for one in alike)
    }
    assert stated == {"hierarchical-table2", "pagesum-table7", "seal-table3"}


# Table of a claim → the rows whose largest printed difference gives its margin at scale=paper, on which dataset
STATED_MARGINS = {
    "seal-table3": ("seal-table2", ("Trunc", "SEAL")),
    "pagesum-table7": ("pagesum-table6", None),
}


@pytest.mark.parametrize("name", STATED_MARGINS)
def test_stated_margins_are_a_quarter_of_a_printed_difference(name: str) -> None:
    """The margin at scale=paper is a quarter of the largest difference that the other table prints on arXiv."""
    other, labels = STATED_MARGINS[name]
    rows = [
        row for label, row in PAPER_TABLES[other].rows.items() if labels is None or label in labels
    ]
    numbers = [printed_number(PAPER_TABLES[other], row, "arXiv", "rouge1") for row in rows]
    (claim,) = (one for one in PAPER_TABLES[name].claims if one.margin is not None)
    assert at_scale(claim.margin, PAPER) == pytest.approx(
        (max(numbers) - min(numbers)) / 4, abs=0.005
    )


def test_every_published_number_belongs_to_a_paper_table() -> None:
    """A table of a paper in `published.csv` is one of the paper tables, or its numbers are in the notes of one."""
    tables: dict[Any, PaperTable] = {(one.source, one.prints): one for one in PAPER_TABLES.values()}
    for (source, place), numbers in read_table().groupby(["source_key", "source_table"]):
        if str(place).startswith(RELEASED):
            assert "59.36 / 26.59 / 56.53" in " ".join(PAPER_TABLES["pagesum-table2"].notes)
        elif (source, place) in NOT_IN_A_TABLE:
            notes = " ".join(PAPER_TABLES[NOT_IN_A_TABLE[source, place]].notes)
            assert all(value in notes for value in numbers["value"])
        else:
            assert set(numbers["dataset"]) <= tables[source, place].datasets.keys()
            assert set(numbers["statistic"]) <= {tables[source, place].part, "mean", "score", "r"}


def printed_label(row: Any) -> str:
    """Return a pattern of how the line of a row begins in the text of its paper."""
    system, variant = str(row.system), str(row.variant)
    renamed = {
        "SEAL": "SEA",
        "words-lvt2k-temp-att": "words-1vt2k-temp-att",
        "Pointer-Generator+coverage": "PG+cov",
        "ROUGESal+Ent (RL)": "ROUGEEsal+Ent",
        "Basic model + Focus-Attention": "+Focus-Attention",
        "Basic model + Saliency-Selection": "+Saliency-Selection",
    }
    if (
        row.source_key == "zhao2020seal" and row.source_table == "Table 3"
    ):  # "False 1 f1", then "precision"
        return rf"(?:False |True )?(?:[12] )?{variant.rpartition(' ')[2]} $"
    if row.source_key == "you2019etads" and row.source_table in ("Table 4", "Table 5", "Table 6"):
        layers = re.search(r"(\d)-(\d)|(\d) (?:en|de)coder", variant)
        return (
            re.escape(
                "- "
                if layers is None
                else f"{layers[3]} layers "
                if layers[3]
                else f"[{layers[0]}] "
            )
            + "$"
        )
    if row.source_table == "Table 6":  # of PageSum: "128 32"
        return variant.removeprefix("page size ").replace(" x ", " ").removesuffix("pages") + "$"
    return re.escape(renamed.get(system, system.partition(" (")[0]))


@pytest.mark.parametrize("source", TEXTS)
def test_published_numbers_equal_those_of_the_papers(source: str) -> None:
    """The numbers of each row follow one another on a line of the paper's text that begins with the row's name."""
    path = SHARED / "papers" / f"{TEXTS[source]}.txt"
    if not path.is_file():
        pytest.skip("needs the texts of the papers")
    text = re.sub(r"(\d)\. (\d)", r"\1.\2", path.read_text(encoding="utf-8"))
    lines = text.splitlines()
    table = read_table()
    table = table[
        (table["source_key"] == source) & ~table["source_table"].str.startswith((RELEASED, "§"))
    ]
    rouge = table[table["metric"].str.startswith("rouge") & (table["metric"] != "rougeL_recall")]
    keys = [
        "source_key",
        "source_table",
        "system",
        "variant",
        "dataset",
        "input_tokens",
        "provenance",
    ]
    assert len(rouge)
    for _, row in rouge.groupby(keys, sort=False):
        values = "[/ ]".join(re.escape(value) for value in row["value"][:3])
        last = "".join(
            rf"\({re.escape(value)}\*\)" for value in row["value"][3:]
        )  # SEAL's second ROUGE-L
        number = re.compile(rf"(?<![\d.]){values}(?![\d.]){last}")
        label = re.compile(printed_label(row.iloc[0]))
        before = [line[: match.start()] for line in lines if (match := number.search(line))]
        assert any(map(label.match, before)), f"{label.pattern}: {number.pattern}"
    others = table.drop(index=rouge.index)
    sequences = {
        "liu2022pagesum": [["0.9800", "0.9543", "0.9734", "0.9798"]],
        "liu2019hiersumm": [
            ["Similarity", "24.86", "32.43", "40.87", "49.49"],
            ["Ranking", "39.38", "46.74", "53.84", "60.42"],
            *(["Lead", "31.59", "-0.383"], ["FT", "35.69", "0.000"], ["T-DMCA", "43.14", "0.147"]),
            ["HT", "54.11", "0.237"],
        ],
    }.get(source, [])
    assert all(" ".join(one) in lines for one in sequences)
    expected = sorted(value for one in sequences for value in one if value[-1].isdigit())
    assert sorted(others["value"]) == expected


@pytest.mark.parametrize(
    ("name", "scale"),
    [(name, scale) for name, one in PAPER_TABLES.items() for scale in one.scales if one.rows],
)
def test_every_paper_table_can_be_planned(name: str, scale: str) -> None:
    """All rows of a scale make valid configurations, which have this scale's sizes."""
    configs = [config for points in planned(name, scale).values() for config in points]
    assert configs
    assert {config.scale for config in configs} == {scale}


SEAL_SIZES = "model.snippet_length model.num_snippets model.decode_length"
SEAL_TRAINING = (
    "train.optimizer train.learning_rate train.schedule train.max_steps model.dropout model.vocabulary_size "
    "decode.num_beams model.size"
)
SEAL_TABLE4 = {  # L_snpt, N_snpt, L_dec, then L_ext and L_seg
    "arXiv": ([128, 224, 768], 1024, 96),
    "PubMed": ([128, 96, 512], 1024, 64),
    "Search2Wiki": ([128, 768, 512], 1024, 64),
}


@pytest.mark.parametrize("name", ["seal-table2", "seal-table4"])
def test_seal_tables_2_and_4_at_paper_scale(name: str) -> None:
    """Lengths as in Table 4, training as in §5, with twice the steps on Search2Wiki; Trunc reads 1,024 tokens."""
    points = planned(name, PAPER)
    systems = ["Trunc", "CA", "EA", "SEAL"] if name == "seal-table2" else ["CA", "EA", "SEAL"]
    assert list(points) == [(system, dataset) for dataset in SEAL_TABLE4 for system in systems]
    for (label, dataset), (config,) in points.items():
        lengths, extract, segment = SEAL_TABLE4[dataset]
        steps = 400_000 if dataset == "Search2Wiki" else 200_000
        assert settings(config, SEAL_SIZES) == lengths
        assert settings(config, SEAL_TRAINING) == [
            "adafactor",
            0.01,
            "sqrt_decay",
            steps,
            0.1,
            32_776,
            1,
            "stated",
        ]
        assert config.train.batch_size * config.train.accumulation == 256
        if label == "Trunc":
            ranked = "tfidf" if dataset == "Search2Wiki" else "none"
            assert settings(config, "model.input_length model.rank") == [1024, ranked]
        else:
            assert settings(config, "model.extractive_length") == [extract]
        if label in ("EA", "SEAL"):
            labels = settings(
                config, "model.proxy_ngram model.proxy_measure model.proxy_sequential"
            )
            assert labels == [2, "f1", False]
        if label == "SEAL":
            assert settings(config, "model.segment_length") == [segment]


LABELS = [
    (sequential, n, measure)
    for sequential in (False, True)
    for n in (1, 2)
    for measure in ("f1", "precision", "recall")
]


@pytest.mark.parametrize("scale", [PAPER, "probe"])
def test_seal_table_3(scale: str) -> None:
    """EA with the twelve labels, otherwise as in Table 2; in miniature on short reports."""
    found = one_each(
        "seal-table3", scale, "model.proxy_sequential model.proxy_ngram model.proxy_measure"
    )
    assert [tuple(values) for values in found.values()] == LABELS
    for (label, _), (sequential, n, measure) in zip(found, LABELS, strict=True):
        name = {"f1": "F1"}.get(measure, measure)
        assert label == f"ROUGE-{n} {name}" + ", sequential" * sequential
    names = f"{SEAL_SIZES} model.extractive_length train.max_steps decode.limit dataset.document_length seed"
    expected = (
        [128, 224, 768, 1024, 200_000, None, None, 1]
        if scale == PAPER
        else [16, 64, 64, 48, 1500, 200, 256, 1]
    )
    assert all(values == expected for values in one_each("seal-table3", scale, names).values())


def figure4(scale: str) -> dict[str, list[list[Any]]]:
    """Return panel → settings of its points."""
    names = {
        "(a)": "model.name model.input_length model.decode_length",
        "(b)": "model.name model.extractive_length model.decode_length",
    }
    paper_table, found = PAPER_TABLES["seal-figure4"], dict[str, list[list[Any]]]()
    for (label, _), (config, *_) in planned("seal-figure4", scale).items():
        row = paper_table.rows[label]
        panel = row.panel[:3]
        longer = "model.name model.extractive_length model.segment_length model.decode_length"
        found.setdefault(panel, []).append(settings(config, names.get(panel, longer)))
        axis = {"(a)": "input_length", "(b)": "extractive_length", "(c)": "segment_length"}
        assert settings(config, f"model.{axis[panel]}") == [row.x[scale]]
        snippets, words = settings(config, "model.snippet_length train.batch_words")
        assert (snippets, words) == ((128, None) if scale == PAPER else (16, 1024))
    return found


def test_seal_figure_4() -> None:
    """Four lengths of Trunc and of EA (§5); segments in and outside the range that is best; the same in miniature."""
    assert figure4(PAPER) == {
        "(a)": [["trunc", length, 768] for length in (256, 512, 1024, 2048)],
        "(b)": [["ea", length, 768] for length in (256, 512, 1024, 2048)],
        "(c)": [
            ["seal", extract, segment, 768] for extract in (256, 512) for segment in (16, 64, 768)
        ]
        + [["seal", 1024, segment, 768] for segment in (16, 64, 128, 768)],
    }
    assert figure4("probe") == {
        "(a)": [["trunc", length, 64] for length in (48, 64, 80, 112)],
        "(b)": [["ea", length, 64] for length in (48, 64, 80, 112)],
        "(c)": [["seal", extract, segment, 64] for extract in (32, 48) for segment in (8, 24, 64)]
        + [["seal", 64, segment, 64] for segment in (8, 24, 32, 64)],
    }


def test_seal_figure_5() -> None:
    """L_seg 16, L_snpt 64, L_ext 256 and N_snpt 16 on CNN/DailyMail (§6); in miniature longer reports."""
    names = "model.segment_length model.snippet_length model.extractive_length model.num_snippets dataset.name"
    assert list(one_each("seal-figure5", PAPER, names).values()) == [
        [16, 64, 256, 16, "cnn_dailymail"]
    ]
    assert list(one_each("seal-figure5", "probe", names).values()) == [[24, 16, 24, 64, "probe"]]


PAGES = "model.locality model.split model.num_pages model.page_size model.max_pages model.decoding"
SPATIAL = ["spatial", "sentences", 7, 1024, 8, "page"]
STEPS = {
    "arXiv": 126_900,
    "PubMed": 75_000,
    "GovReport": 10_900,
    "Multi-News": 28_100,
}  # ten epochs by 16
SEARCH = {  # beams, length penalty, least and most tokens: of the authors' code
    "arXiv": [4, 2.0, 100, 350],
    "PubMed": [4, 2.0, 150, 400],
    "GovReport": [4, 2.0, 500, 900],
    "Multi-News": [4, 2.0, 150, 400],
}


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.startswith("pagesum") and PAPER_TABLES[name].rows]
)
def test_pagesum_is_trained_as_in_the_paper(name: str) -> None:
    """From BART by Eq. 11, with ROUGE of the Perl script (§5.1, footnote 11)."""
    training = "model.init train.optimizer train.schedule train.learning_rate train.warmup_steps train.max_steps"
    for (label, dataset), (config,) in planned(name, PAPER).items():
        assert config.score.mode == "perl"
        if config.model.name == "pagesum":
            expected = ["facebook/bart-large-cnn", "adam", "pagesum", 2e-3, 10_000, STEPS[dataset]]
            assert settings(config, training) == expected
            names = "decode.num_beams decode.length_penalty decode.min_length decode.max_length"
            assert settings(config, names) == SEARCH[dataset], label


def test_pagesum_tables_2_and_3_at_paper_scale() -> None:
    """7 or 20 pages of 1,024 tokens, or at most 8 sections; LED and PRIMERA are public and not trained further."""
    pages = {
        place: points
        for place, points in planned("pagesum-table2", PAPER).items()
        if "PageSum" in place[0]
    }
    assert {place: settings(config, PAGES) for place, (config,) in pages.items()} == {
        ("PageSum (7168)", "arXiv"): SPATIAL,
        ("PageSum (7168)", "PubMed"): SPATIAL,
        ("PageSum (7168)", "GovReport"): SPATIAL,
        ("PageSum (20480)", "GovReport"): ["spatial", "sentences", 20, 1024, 8, "page"],
    }
    table3 = planned("pagesum-table3", PAPER)
    assert table3["PageSum-Spatial (7168)", "arXiv"] == pages["PageSum (7168)", "arXiv"]
    (discourse,) = table3["PageSum-Discourse (8192)", "arXiv"]
    assert settings(discourse, PAGES) == ["discourse", "sentences", None, 1024, 8, "page"]
    names = "model.checkpoint model.input_length train.max_steps"
    table2 = planned("pagesum-table2", PAPER)
    others = {
        place: settings(config, names) for place, (config,) in table2.items() if place not in pages
    }
    assert others == {
        ("LED (16384), arXiv", "arXiv"): ["allenai/led-large-16384-arxiv", 16384, 0],
        ("PRIMERA (4096)", "arXiv"): ["allenai/PRIMERA-arxiv", 4096, 0],
        ("LED (16384), PubMed", "PubMed"): ["patrickvonplaten/led-large-16384-pubmed", 16384, 0],
    }
    for label in ("LED (16384)", "PRIMERA (4096)"):
        assert table3[label, "arXiv"] in (
            points for place, points in table2.items() if place in others
        )


def test_pagesum_tables_5_to_7_at_paper_scale() -> None:
    """A document a page on Multi-News; 4,096 tokens in pages of 128 to 1,024; 4 pages of 1,024 with global decoding."""
    table5 = planned("pagesum-table5", PAPER)
    document = ["document", "sentences", None, 1024, 8, "page"]
    assert settings(table5["PageSum-Spatial", "Multi-News"][0], PAGES) == SPATIAL
    assert settings(table5["PageSum-Document", "Multi-News"][0], PAGES) == document
    primera = settings(
        table5["PRIMERA", "Multi-News"][0], "model.checkpoint model.input_length train.max_steps"
    )
    assert primera == ["allenai/PRIMERA-multinews", 4096, 0]

    sizes = (128, 256, 512, 1024)
    names = "model.locality model.split model.page_size model.most_pages model.max_input_tokens"
    expected = {
        (f"page size {size}", "arXiv"): ["spatial", "tokens", size, pages, 4096]
        for size, pages in zip(sizes, (32, 16, 8, 4), strict=True)
    }
    assert one_each("pagesum-table6", PAPER, names) == expected

    table7 = planned("pagesum-table7", PAPER)
    assert (
        table7["PageSum-Spatial", "arXiv"]
        == planned("pagesum-table6", PAPER)["page size 1024", "arXiv"]
    )
    assert table7["PageSum-Document", "Multi-News"] == table5["PageSum-Document", "Multi-News"]
    both = "model.decoding model.most_pages model.page_size model.locality"
    assert settings(table7["Global-Decoding, spatial", "arXiv"][0], both) == [
        "global",
        4,
        1024,
        "spatial",
    ]
    assert settings(table7["Global-Decoding, document", "Multi-News"][0], both) == [
        "global",
        8,
        1024,
        "document",
    ]


@pytest.mark.parametrize("scale", [PAPER, "probe"])
def test_pagesum_analyses_share_runs(scale: str) -> None:
    """Tables 4 and 8 and Figure 3 read runs of Tables 2, 3, 5 and 7, so nothing is trained for them."""
    tables = [
        points
        for number in (2, 3, 5, 7)
        for points in planned(f"pagesum-table{number}", scale).values()
    ]
    runs = [config for points in tables for config in points]
    for name in ("pagesum-table4", "pagesum-table8", "pagesum-figure3"):
        for points in planned(name, scale).values():
            for config in points:
                summaries = replace(
                    config.decode, evidence="20", reference_evidence=False
                )  # they decide no summary
                assert replace(config, decode=summaries) in runs


STACKS = "model.encoder_layers model.decoder_layers model.focus_layers model.saliency_layers"
ALL: list[int] = [1, 2, 3, 4]
ETADS_TABLES = {  # encoder and decoder layers, focus layers, saliency layers
    2: [
        [4, 4, focus, saliency] for saliency, focus in (([], []), ([], ALL), (ALL, []), (ALL, ALL))
    ],
    3: [[4, 4, [], []], [4, 4, ALL, ALL]],
    4: [[depth, 4, [], []] for depth in (2, 4, 6)] + [[4, depth, [], []] for depth in (2, 4, 6)],
    5: [[4, 4, [], layers] for layers in ([], [1, 2], [3, 4], ALL)],
    6: [[4, 4, layers, []] for layers in ([], [1, 2], [3, 4], ALL)],
}
ETADS_TRAINING = (
    "model.input_length model.decode_length model.d_model model.d_ff model.num_heads model.vocabulary_size "
    "model.dropout train.adam_beta1 train.adam_beta2 train.adam_epsilon train.schedule train.warmup_steps "
    "train.batch_tokens train.max_grad_norm train.max_steps "
    "decode.num_beams decode.length_norm decode.length_penalty decode.coverage_penalty decode.min_length"
)


@pytest.mark.parametrize("number", ETADS_TABLES)
def test_etads_at_paper_scale(number: int) -> None:
    """Layers as in the tables, everything else as in §4.1; what two rows or tables have in common is one run."""
    points = [config for (config,) in planned(f"etads-table{number}", PAPER).values()]
    assert [settings(config, STACKS) for config in points] == ETADS_TABLES[number]
    expected = [
        400,
        100,
        512,
        2048,
        8,
        50_000,
        0.2,
        0.9,
        0.998,
        1e-8,
        "noam",
        8000,
        4096,
        2.0,
        200_000,
    ]
    expected += [10, "wu", 0.9, 5.0, 35]
    assert all(settings(config, ETADS_TRAINING) == expected for config in points)
    assert {config.score.mode for config in points} == {
        "perl"
    }  # "the official ROUGE script" (Table 2)
    assert PAPER_TABLES[f"etads-table{number}"].part == {5: "p", 6: "r"}.get(number, "f")


HIERARCHICAL = (
    "model.d_model model.d_ff model.num_heads model.vocabulary_size model.dropout train.learning_rate train.adam_beta2 "
    "train.schedule train.warmup_steps train.label_smoothing train.max_steps train.keep_best decode.num_beams "
    "decode.length_norm decode.length_penalty"
)


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_hierarchical_training_at_paper_scale(number: int) -> None:
    """Sizes, training and search as in §4, with the LSTM ranker unless the row has none."""
    for (label, dataset), (config,) in planned(f"hierarchical-table{number}", PAPER).items():
        assert dataset == "WikiSum"
        if config.model.name in ("lead", "lexrank"):
            assert config.model.length == "reference"
            continue
        width = [512, 2048] if config.model.name == "tdmca" else [256, 1024]
        expected = [*width, 8, 32_000, 0.1, 2.0, 0.998, "noam", 8000, 0.1, 500_000, 5, 5, "wu", 0.4]
        assert settings(config, HIERARCHICAL) == expected
        assert settings(config, "model.rank") == ["none" if "no ranking" in label else "lstm"]


def test_hierarchical_tables_2_and_3_at_paper_scale() -> None:
    """Flat Transformers of 6 layers and 600 to 1,200 tokens, T-DMCA of 5 and 3,000, 5 local and 2 global layers."""
    table2 = {
        label: config for (label, _), (config,) in planned("hierarchical-table2", PAPER).items()
    }
    assert settings(table2["Lead"], "model.title model.rank") == [True, "lstm"]
    flat = {
        label: settings(one, "model.input_length model.encoder_layers")
        for label, one in table2.items()
        if "FT" in label
    }
    assert list(flat.values()) == [[600, 6], [600, 6], [800, 6], [1200, 6]]
    assert settings(table2["T-DMCA (3000 tokens)"], "model.input_length model.num_layers") == [
        3000,
        5,
    ]
    parts = "model.encoder_layers model.global_layers model.num_paragraphs model.input_length model.graph"
    graphs = {label: settings(one, parts) for label, one in table2.items() if "HT" in label}
    assert list(graphs.values()) == [
        [5, 2, 24, 1600, graph] for graph in ("none", "similarity", "discourse", "none")
    ]
    assert settings(table2["HT (1,600 tokens) + Discourse Graph"], "model.entities") == ["spacy"]
    longer = table2["HT (train on 1,600 tokens/test on 3000 tokens)"]
    assert settings(longer, "model.test_num_paragraphs model.test_input_length") == [48, 3000]

    variants = one_each(
        "hierarchical-table3",
        PAPER,
        "model.paragraph_positions model.pooling_heads model.global_layers",
    )
    assert list(variants.values()) == [[True, 8, 2], [False, 8, 2], [True, 1, 2], [True, 8, 0]]
    assert planned("hierarchical-table3", PAPER)["HT", "WikiSum"] == [table2["HT (1,600 tokens)"]]
    for name in (
        "hierarchical-table4",
        "hierarchical-table5",
    ):  # "variants that achieved the best performance"
        found = [config for (config,) in planned(name, PAPER).values()]
        assert found == [
            table2["Lead"],
            table2["FT (800 tokens)"],
            table2["T-DMCA (3000 tokens)"],
            longer,
        ]


def test_a_paragraph_ranker_is_that_of_the_paper() -> None:
    """Table 1 compares tf-idf with LSTMs of 256 (§4)."""
    options = PAPER_TABLES["hierarchical-table1"].options_at(PAPER)
    assert (options["rank"], options["ranker.dimension"], options["ranker.vocabulary_size"]) == (
        "tfidf,lstm",
        256,
        32_000,
    )

"""The page about what agrees with people states what the committed figures say, and no other number."""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import agreement_picture
import pandas as pd
import pytest
from agreement_picture import ERRORS
from support.paths import ROOT

pytestmark = pytest.mark.numbers

PAGE = " ".join((ROOT / "docs" / "concepts" / "which-number.md").read_text().split())
# To mypy, a cell of a DataFrame may be of any type.
TABLE: Any = pd.read_csv(agreement_picture.AGREEMENT)
FAULTS: Any = pd.read_csv(agreement_picture.AGREEMENT.with_name("planted_faults.csv"))
ROUGE = ("rouge1_f", "rouge2_f", "rougeL_f")
REPORTS, PAPERS, REVIEWS = "koh2022/GovReport", "koh2022/arXiv", "summeval_op"
SCIENCE = ("longsciverify/arxiv", "longsciverify/pubmed")
THREE, TWO = "squality/3 systems", "squality/bart; bart-dpr"


def shown(number: float) -> str:
    return f"{number:.2f}".replace("-", "−")


def rows(judged: str, aspect: str, level: str = "within") -> Any:
    found = TABLE[
        (TABLE["set"] == judged) & (TABLE["aspect"] == aspect) & (TABLE["level"] == level)
    ]
    return found.set_index("measure")


def taus(judged: str, aspect: str, *measures: str) -> list[str]:
    return [shown(tau) for tau in rows(judged, aspect).loc[[*measures], "tau"]]


def interval(
    judged: str, aspect: str, measure: str, name: str = "tau", level: str = "within"
) -> str:
    found = rows(judged, aspect, level).loc[measure]
    return f"{shown(found[f'{name}_lo'])} to {shown(found[f'{name}_hi'])}"


def with_interval(judged: str, aspect: str, measure: str) -> str:
    return f"{taus(judged, aspect, measure)[0]}, {interval(judged, aspect, measure)}"


def sign(judged: str, aspect: str, measure: str, name: str = "tau") -> int:
    """Return 1 or −1 if the interval excludes 0, else 0."""
    low, high = rows(judged, aspect).loc[measure, [f"{name}_lo", f"{name}_hi"]]
    return int(low > 0) - int(high < 0)


def series(values: list[str]) -> str:
    return f"{', '.join(values[:-1])} and {values[-1]}"


def sentences() -> Iterator[str]:
    """Yield the words with numbers."""
    people, words = "annotators", "words"
    yield f"τ is {series(taus(REPORTS, 'relevance', *ROUGE))} for R-1, R-2 and R-L"
    yield f"people reach {taus(REPORTS, 'relevance', people)[0]} with each other"
    yield f"it is {series(taus(PAPERS, 'relevance', *ROUGE))} (people {taus(PAPERS, 'relevance', people)[0]})"
    yield f"words alone reaches {taus(PAPERS, 'relevance', words)[0]},"
    means = rows(REPORTS, "relevance", "system").loc["rouge1_f"]
    both = interval(REPORTS, "relevance", "rouge1_f", "tau_both", "system")
    yield f"R-1 with relevance is {shown(means['tau'])} ({both}, over documents and systems)"
    close = rows(REPORTS, "relevance").loc[[*ROUGE], "close"]
    yield f"in reports still clear ({shown(close.min())} to {shown(close.max())})"
    reversed_l = taus(PAPERS, "factual_consistency", "rougeL_f")[0]
    yield f"({reversed_l}, interval {interval(PAPERS, 'factual_consistency', 'rougeL_f')})"
    highest = max(rows(name, "factuality").loc[[*ROUGE], "tau_hi"].max() for name in SCIENCE)
    yield f"the intervals of R-1, R-2 and R-L reach {shown(highest)}."
    arxiv, pubmed = (with_interval(name, "factuality", "copied_bigrams") for name in SCIENCE)
    yield f"arXiv ({arxiv.replace(', ', ', interval ')}) and PubMed ({pubmed})"
    yield f"more errors ({with_interval('kirstein_qmsum', ERRORS, 'copied_bigrams')})"
    yield f"(faithfulness {taus(REVIEWS, 'faithfulness', 'copied_bigrams')[0]})"
    yield f"({series(taus('kirstein_qmsum', ERRORS, *ROUGE))} for R-1, R-2 and R-L)"
    correct, covered = (
        taus(THREE, aspect, "rouge1_f")[0] for aspect in ("correctness", "coverage")
    )
    yield f"correctness ({correct}) and coverage ({covered})"
    for words_before, measure in (("models it is ", "rouge1_f"), ("models (", "copied_bigrams")):
        yield words_before + series(
            [taus(TWO, aspect, measure)[0] for aspect in ("correctness", "coverage")]
        )
    length, ceiling = taus(REVIEWS, "relevance", words, people)
    yield f"the number of words has a τ of {length}, people of {ceiling}."
    recall, precision = taus(REVIEWS, "relevance", "rouge1_r", "rouge1_p")
    yield f"recall of R-1 agrees ({recall}) and its precision is reversed ({precision})"
    given = shown(rows(REVIEWS, "relevance").loc["rouge1_f", "partial"])
    yield f"F1 of R-1 is {given} ({interval(REVIEWS, 'relevance', 'rouge1_f', 'partial')})"
    sizes = [int(rows(name, "relevance")["documents"].max()) for name in (PAPERS, REPORTS)]
    for name in SCIENCE:
        assert rows(name, "factuality")["documents"].max() == 15
    yield f"{sizes[0]} papers, {sizes[1]} reports and 15 papers say"
    yield f"Those of the {sizes[0]} papers and {sizes[1]} reports are"
    auc = FAULTS.set_index(["fault", "corpus", "metric"])["auc"]
    name, number = (
        auc["name", "wiki_sections", "entity_precision"],
        auc["number", "wiki_sections", "number_precision"],
    )
    yield f"both see less ({shown(name)} and {shown(number)})"
    few = FAULTS.query("fault == 'number' and corpus == 'qmsum'")["n"].max()
    yield f"{few} references of `qmsum` with a number are too few"
    others = auc["sentence"].xs("rouge1_p", level="metric")
    yield f"R-1 against the source ({shown(others.min())} to {shown(others.max())})"
    yield f"are seen by none (at most {shown(auc['negation'].max())})"
    paired = 100 * FAULTS.query("fault == 'negation' and metric == 'copied_bigrams'")["paired"]
    yield f"in {paired.min():.0f} to {paired.max():.0f} % of the cases"
    yield "0.5 is chance. **Bold** is 0.6 or more"


def test_the_sentences_have_the_numbers_of_the_figures() -> None:
    """Each sentence with a number is what the CSV files say, and no other number with decimals is on the page."""
    assert [words for words in sentences() if words not in PAGE] == []
    rest = PAGE
    for words in sentences():
        rest = rest.replace(words, "")
    assert re.findall(r"\S*\d\.\d+\S*", rest) == []


def test_what_is_not_clear_is_said_to_be_so() -> None:
    """Facts in reports and papers: no F1 agrees. Close pairs of papers: none is clear, and all are in reports."""
    for judged in (PAPERS, REPORTS):
        assert all(sign(judged, "factual_consistency", measure) <= 0 for measure in ROUGE)
    for judged in SCIENCE:
        assert all(sign(judged, "factuality", measure) <= 0 for measure in ROUGE)
    for measure in ROUGE:
        assert sign(PAPERS, "relevance", measure, "close") == 0
        assert sign(REPORTS, "relevance", measure, "close") == 1
        assert sign("kirstein_qmsum", "error: hallucination", measure) == 0


def test_the_table_of_the_page_has_all_its_sets_and_marks_what_is_clear() -> None:
    """Every row has ROUGE; a value is bold if its interval excludes 0, and never for a few documents."""
    pytest.importorskip("mkdocs")
    sys.path.append(str(ROOT / "docs"))
    hooks = import_module("hooks")

    lines = hooks.agreement_with_people().splitlines()[2:]
    assert len(lines) == sum(len(aspects) for _, aspects in hooks.JUDGED.values())
    clear = "| **0.51**<br><small>0.38&nbsp;to&nbsp;0.64</small> |"
    assert clear in next(line for line in lines if "reports | relevance" in line)
    for line in lines:
        for cell in line.split(" | "):
            assert "documents" not in cell or "**" not in cell

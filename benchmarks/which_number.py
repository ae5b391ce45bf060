"""Check that the page about what agrees with people states what the committed figures say, and no other number.

Usage: python benchmarks/which_number.py    (with the packages of the documentation)
"""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import agreement_picture
import pandas as pd
from agreement_picture import ERRORS

ROOT = Path(__file__).parents[1]
PAGE = " ".join((ROOT / "docs" / "concepts" / "which-number.md").read_text().split())
# To mypy, a cell of a DataFrame may be of any type.
TABLE: Any = pd.read_csv(agreement_picture.AGREEMENT)
FAULTS: Any = pd.read_csv(agreement_picture.AGREEMENT.with_name("planted_faults.csv"))
ROUGE = ("rouge1_f", "rouge2_f", "rougeL_f")
REPORTS, PAPERS, REVIEWS = "koh2022/GovReport", "koh2022/arXiv", "summeval_op"
SCIENCE = ("longsciverify/arxiv", "longsciverify/pubmed")
THREE, TWO = "squality/3 systems", "squality/bart; bart-dpr"


def _shown(number: float) -> str:
    return f"{number:.2f}".replace("-", "−")


def _rows(judged: str, aspect: str, level: str = "within") -> Any:
    found = TABLE[
        (TABLE["set"] == judged) & (TABLE["aspect"] == aspect) & (TABLE["level"] == level)
    ]
    return found.set_index("measure")


def _taus(judged: str, aspect: str, *measures: str) -> list[str]:
    return [_shown(tau) for tau in _rows(judged, aspect).loc[[*measures], "tau"]]


def _interval(
    judged: str, aspect: str, measure: str, name: str = "tau", level: str = "within"
) -> str:
    found = _rows(judged, aspect, level).loc[measure]
    return f"{_shown(found[f'{name}_lo'])} to {_shown(found[f'{name}_hi'])}"


def _with_interval(judged: str, aspect: str, measure: str) -> str:
    return f"{_taus(judged, aspect, measure)[0]}, {_interval(judged, aspect, measure)}"


def _sign(judged: str, aspect: str, measure: str, name: str = "tau") -> int:
    """Return 1 or −1 if the interval excludes 0, else 0."""
    low, high = _rows(judged, aspect).loc[measure, [f"{name}_lo", f"{name}_hi"]]
    return int(low > 0) - int(high < 0)


def _series(values: list[str]) -> str:
    return f"{', '.join(values[:-1])} and {values[-1]}"


def _sentences() -> Iterator[str]:
    """Yield the words with numbers."""
    people, words = "annotators", "words"
    yield f"τ is {_series(_taus(REPORTS, 'relevance', *ROUGE))} for R-1, R-2 and R-L"
    yield f"people reach {_taus(REPORTS, 'relevance', people)[0]} with each other"
    yield f"it is {_series(_taus(PAPERS, 'relevance', *ROUGE))} (people {_taus(PAPERS, 'relevance', people)[0]})"
    yield f"words alone reaches {_taus(PAPERS, 'relevance', words)[0]},"
    means = _rows(REPORTS, "relevance", "system").loc["rouge1_f"]
    both = _interval(REPORTS, "relevance", "rouge1_f", "tau_both", "system")
    yield f"R-1 with relevance is {_shown(means['tau'])} ({both}, over documents and systems)"
    close = _rows(REPORTS, "relevance").loc[[*ROUGE], "close"]
    yield f"in reports still clear ({_shown(close.min())} to {_shown(close.max())})"
    reversed_l = _taus(PAPERS, "factual_consistency", "rougeL_f")[0]
    yield f"({reversed_l}, interval {_interval(PAPERS, 'factual_consistency', 'rougeL_f')})"
    highest = max(_rows(name, "factuality").loc[[*ROUGE], "tau_hi"].max() for name in SCIENCE)
    yield f"the intervals of R-1, R-2 and R-L reach {_shown(highest)}."
    arxiv, pubmed = (_with_interval(name, "factuality", "copied_bigrams") for name in SCIENCE)
    yield f"arXiv ({arxiv.replace(', ', ', interval ')}) and PubMed ({pubmed})"
    yield f"more errors ({_with_interval('kirstein_qmsum', ERRORS, 'copied_bigrams')})"
    yield f"(faithfulness {_taus(REVIEWS, 'faithfulness', 'copied_bigrams')[0]})"
    yield f"({_series(_taus('kirstein_qmsum', ERRORS, *ROUGE))} for R-1, R-2 and R-L)"
    correct, covered = (
        _taus(THREE, aspect, "rouge1_f")[0] for aspect in ("correctness", "coverage")
    )
    yield f"correctness ({correct}) and coverage ({covered})"
    for words_before, measure in (("models it is ", "rouge1_f"), ("models (", "copied_bigrams")):
        yield words_before + _series(
            [_taus(TWO, aspect, measure)[0] for aspect in ("correctness", "coverage")]
        )
    length, ceiling = _taus(REVIEWS, "relevance", words, people)
    yield f"the number of words has a τ of {length}, people of {ceiling}."
    recall, precision = _taus(REVIEWS, "relevance", "rouge1_r", "rouge1_p")
    yield f"recall of R-1 agrees ({recall}) and its precision is reversed ({precision})"
    given = _shown(_rows(REVIEWS, "relevance").loc["rouge1_f", "partial"])
    yield f"F1 of R-1 is {given} ({_interval(REVIEWS, 'relevance', 'rouge1_f', 'partial')})"
    sizes = [int(_rows(name, "relevance")["documents"].max()) for name in (PAPERS, REPORTS)]
    for name in SCIENCE:
        assert _rows(name, "factuality")["documents"].max() == 15
    yield f"{sizes[0]} papers, {sizes[1]} reports and 15 papers say"
    yield f"Those of the {sizes[0]} papers and {sizes[1]} reports are"
    auc = FAULTS.set_index(["fault", "corpus", "metric"])["auc"]
    name, number = (
        auc["name", "wiki_sections", "entity_precision"],
        auc["number", "wiki_sections", "number_precision"],
    )
    yield f"both see less ({_shown(name)} and {_shown(number)})"
    few = FAULTS.query("fault == 'number' and corpus == 'qmsum'")["n"].max()
    yield f"{few} references of `qmsum` with a number are too few"
    others = auc["sentence"].xs("rouge1_p", level="metric")
    yield f"R-1 against the source ({_shown(others.min())} to {_shown(others.max())})"
    yield f"are seen by none (at most {_shown(auc['negation'].max())})"
    paired = 100 * FAULTS.query("fault == 'negation' and metric == 'copied_bigrams'")["paired"]
    yield f"in {paired.min():.0f} to {paired.max():.0f} % of the cases"
    yield "0.5 is chance. **Bold** is 0.6 or more"


def check_sentences() -> None:
    """Each sentence with a number is what the CSV files say, and no other number with decimals is on the page."""
    assert [words for words in _sentences() if words not in PAGE] == []
    rest = PAGE
    for words in _sentences():
        rest = rest.replace(words, "")
    assert re.findall(r"\S*\d\.\d+\S*", rest) == []


def check_doubts() -> None:
    """Facts in reports and papers: no F1 agrees. Close pairs of papers: none is clear, and all are in reports."""
    for judged in (PAPERS, REPORTS):
        assert all(_sign(judged, "factual_consistency", measure) <= 0 for measure in ROUGE)
    for judged in SCIENCE:
        assert all(_sign(judged, "factuality", measure) <= 0 for measure in ROUGE)
    for measure in ROUGE:
        assert _sign(PAPERS, "relevance", measure, "close") == 0
        assert _sign(REPORTS, "relevance", measure, "close") == 1
        assert _sign("kirstein_qmsum", "error: hallucination", measure) == 0


def check_table() -> None:
    """Every row has ROUGE; a value is bold if its interval excludes 0, and never for a few documents."""
    sys.path.append(str(ROOT / "docs"))
    hooks = import_module("hooks")

    lines = hooks.agreement_with_people().splitlines()[2:]
    assert len(lines) == sum(len(aspects) for _, aspects in hooks.JUDGED.values())
    clear = "| **0.51**<br><small>0.38&nbsp;to&nbsp;0.64</small> |"
    assert clear in next(line for line in lines if "reports | relevance" in line)
    for line in lines:
        for cell in line.split(" | "):
            assert "documents" not in cell or "**" not in cell


if __name__ == "__main__":
    check_sentences()
    check_doubts()
    check_table()

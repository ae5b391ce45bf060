"""Sentences of benchmarks/model_agreement_page.py, on figures made up so that other ones would be false."""

from pathlib import Path

import model_agreement as program
import model_agreement_page as page
import numpy as np
import pandas as pd
import pytest

from longsumbench.core import Example
from longsumbench.corpora.loading.fields import text_document
from longsumbench.outputs.judgements import JudgedOutputs

REPORTS = ("koh2022/GovReport", "relevance")
MEETINGS = ("kirstein_qmsum", "number of errors (of 8)")


def agreements(judged: tuple[str, str], **taus: tuple[float, float, float]) -> pd.DataFrame:
    """Return rows of measures with τ, τ given length, and τ beyond that of words; each interval is ±0.1."""
    rows = []
    for measure, values in taus.items():
        row: dict[str, object] = {"set": judged[0], "aspect": judged[1]}
        row["measure"] = measure.replace("__", ": ")
        for statistic, value in zip(("tau", "partial", "beyond_words"), values, strict=True):
            row |= {statistic: value, f"{statistic}_lo": value - 0.1}
            row[f"{statistic}_hi"] = value + 0.1
        rows.append(row)
    return pd.DataFrame(rows)


def test_what_agrees_is_ranked_and_compared_with_length() -> None:
    """Measures that are clear, also given length, are named by τ; those above the number of words again."""
    rows = agreements(
        REPORTS,
        rouge1_f=(0.4, 0.3, 0.2),
        rouge2_f=(0.3, 0.05, 0.1),
        words=(0.9, 0.9, 0.0),
        annotators=(0.9, 0.9, 0.9),
        Qwen__support=(0.5, 0.4, 0.05),
        Qwen__judge_recall=(-0.3, 0.0, 0.0),
    )
    assert page.describe_agreement(rows, *REPORTS) == (
        "Relevance in reports: these agree with people, also given length, the closest first: support, Qwen; R-1."
        " Shown to agree more than the number of words: R-1. Reversed: judged recall, Qwen."
    )


def test_nothing_that_an_interval_leaves_open_is_said() -> None:
    """An interval that reaches 0 shows nothing, also if that given length does not."""
    rows = agreements(REPORTS, rouge1_f=(0.09, 0.09, 0.09), Qwen__support=(-0.1, 0.5, 0.5))
    said = page.describe_agreement(rows, *REPORTS)
    assert said == "Relevance in reports: none is shown to agree with people."


def test_a_measure_of_errors_agrees_if_it_goes_against_them() -> None:
    """The sign of τ is turned for errors."""
    rows = agreements(MEETINGS, rouge1_f=(-0.4, -0.4, 0.2), Qwen__support=(0.4, 0.4, 0.0))
    assert page.describe_agreement(rows, *MEETINGS).endswith(
        "first: R-1. Shown to agree more than the number of words: R-1. Reversed: support, Qwen."
    )


def test_a_clear_value_is_bold_and_a_missing_one_empty() -> None:
    """Cells of the table are τ, bold if clear, and empty where a set has none."""
    rows = agreements(REPORTS, rouge1_f=(0.4, 0.3, 0.2), words=(-0.05, 0.0, 0.0))
    [first, words] = page.agreement_table(rows).rows
    assert (first[:2], words[:2]) == (("R-1", "**0.40**"), ("words", "−0.05"))
    assert set(first[2:]) == {""}


@pytest.mark.parametrize(
    ("areas", "said"),
    [
        ((0.7, 0.61), "A planted name is seen in each corpus (a, b) by: support, Qwen."),
        ((0.7, 0.59), "A planted name is seen in each corpus (a, b) by: none (at most 0.70)."),
    ],
)
def test_a_fault_is_seen_if_it_is_in_all_corpora(areas: tuple[float, float], said: str) -> None:
    """One corpus in which a metric does not see a fault is enough to say so."""
    rows = pd.DataFrame(
        {"fault": "name", "metric": "Qwen: support", "corpus": ["a", "b"], "auc": areas}
    )
    assert list(page.describe_faults(rows)) == [said]


def test_a_judge_that_tells_nothing_apart_is_named() -> None:
    """Sets whose margin is not shown are named; of changes, those that are clear."""
    rows = [
        {"set": "a", "measure": "Qwen: judge_margin", "kind": "mean", "lo": 0.1, "hi": 0.2},
        {"set": "b", "measure": "Qwen: judge_margin", "kind": "mean", "lo": -0.1, "hi": 0.2},
        {"measure": "Qwen: support", "kind": "change, longer", "value": 0.1, "lo": 0, "hi": 0.2},
        {"measure": "Qwen: judge_recall", "kind": "change, longer"}
        | {"value": -0.2, "lo": -0.3, "hi": -0.1},
        {"set": "a", "measure": "Qwen: seconds", "kind": "mean", "value": 2.2},
        {"set": "b", "measure": "Qwen: seconds", "kind": "mean", "value": 14.9},
    ]
    margins, seconds, changes = page.describe_biases(pd.DataFrame(rows))
    assert seconds == "Qwen takes 2 to 15 s a summary, by the set."
    assert margins.endswith("in 1 of 2 sets; not shown in b.")
    assert changes == (
        "Qwen, if a harmless sentence is added to the summary: judged recall -0.200 (-0.300 to -0.100)."
    )


def test_two_models_are_alike_only_where_it_is_shown() -> None:
    """Sets are counted whose interval is above 0, for each verdict of a pair; τ with words is of no pair."""
    rows = []
    for measure, lows in (("Qwen: support", (0.1, -0.1)), ("Qwen: judge_recall", (-0.5, 0.0))):
        rows += [{"measure": measure, "kind": "tau with SmolLM2", "lo": low} for low in lows]
        rows.append({"measure": measure, "kind": "tau with words", "lo": 0.3})
    (said,) = page.describe_pairs(pd.DataFrame(rows))
    assert said == (
        "Qwen and SmolLM2 are shown to order summaries alike by support in 1 of 2 sets, judged recall in 0 of 2 sets."
    )


class Length:
    """A metric that needs no model."""

    needs_source = True

    def score(self, text: str, example: Example) -> dict[str, float]:
        """Return the number of characters."""
        return {"length": len(text)}


def test_scores_are_added_once_and_those_of_longer_summaries_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores that are there are not computed again; other variants are scored in the first documents."""
    documents = {}
    for number in range(12):
        source = (text_document(f"Source {number}."),) if number else ()
        documents[f"0{number}"] = Example(f"0{number}", None, None, source, (("A point.",),))
    index = pd.MultiIndex.from_product([documents, ["a", "b"]], names=["id", "system"])
    outputs = pd.Series("Words.", index)
    judged = JudgedOutputs(documents, outputs, ["a", "b"], ["x"], np.ones((1, 1, 12, 2)), [])
    monkeypatch.setattr(program, "read_set", lambda name, folder: judged)
    monkeypatch.setattr(program, "SETS", {"papers": None})
    path = tmp_path / "models" / "Length.csv"
    for variant in (program.PLAIN, program.LONGER, program.PLAIN):
        program.measure(path, tmp_path, variant, [Length()])
    table = program.read_scores(path).groupby("variant")["length"].agg(["size", "count", "max"])
    # an unfinished set is not shown
    everything = program.read_scores(path)
    unfinished = everything[everything["id"] != "07"]
    for rows, is_shown in ((everything, True), (unfinished, False)):
        scored = program.load_set("papers", tmp_path, {"Length": rows})
        assert ("Length: length" in scored.of_models) is is_shown
    # a document without a source has no score
    assert list(table.loc[program.PLAIN]) == [24, 22, 6]
    assert list(table.loc[program.LONGER]) == [4, 2, 7 + len(program.HARMLESS)]
    changes = list(program.changes_of("Length", program.read_scores(path)))
    assert [change["value"] for change in changes] == [1 + len(program.HARMLESS)]

"""Agreement of metrics with people: statistics by hand and by scipy, intervals by simulation, settled cases."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from support.commands import Command
from support.json_files import read_rows, write_rows

import longsumbench
from longsumbench.core import Example
from longsumbench.errors import UsageError
from longsumbench.metrics.rank_statistics import (
    calibrated_accuracy,
    draw_counts,
    krippendorff_alpha,
    percentile_interval,
    rank_agreement,
    spearman,
    tau_b,
)
from longsumbench.outputs.agreement import Agreement, measure_agreement
from longsumbench.outputs.judgements import Measures


def random_scores(shape: tuple[int, ...], seed: int, levels: int = 4) -> np.ndarray:
    """Return whole numbers, with many ties."""
    return np.random.default_rng(seed).integers(0, levels, shape).astype(float)


def test_rank_correlations_are_those_of_scipy() -> None:
    """τ-b and Spearman of scores with ties and gaps equal scipy's; both are undefined for constant scores."""
    for size in (2, 3, 5, 12):
        first, second = random_scores((60, size), 1), random_scores((60, size), 2, 3)
        first[random_scores((60, size), 3, 8) == 0] = np.nan
        for row, tau, rho in zip(
            range(60), tau_b(first, second), spearman(first, second), strict=True
        ):
            present = np.isfinite(first[row])
            sides = first[row, present], second[row, present]
            if any(len(set(side)) < 2 for side in sides):
                assert np.isnan([tau, rho]).all()
            else:
                expected = scipy.stats.kendalltau(*sides)[0], scipy.stats.spearmanr(*sides)[0]
                assert (tau, rho) == pytest.approx(expected)


def test_a_system_drawn_twice_has_no_pair_with_itself() -> None:
    """τ-b with counts of items is that of the items repeated."""
    first, second = random_scores((6,), 1), random_scores((6,), 2)
    counts = np.array([2.0, 0, 1, 3, 1, 1])
    repeated = np.repeat(np.arange(6), counts.astype(int))
    assert tau_b(first, second, counts) == pytest.approx(
        scipy.stats.kendalltau(first[repeated], second[repeated])[0]
    )


def test_tie_calibration_by_hand() -> None:
    """Of the pairs with differences 1, 2, 3, 4, 5, people tie the first and the third, and reverse the last."""
    gaps, signs, pairs = (
        np.array([[1.0, 2, 3, 4, 5]]),
        np.array([[0.0, 1, 0, 1, -1]]),
        np.ones((1, 5)),
    )
    assert calibrated_accuracy(gaps, signs, pairs).tolist() == [
        [1, 1, 0, 1, 0]
    ]  # ε = 1: three of five
    assert calibrated_accuracy(-gaps, signs, pairs).tolist() == [
        [1, 0, 1, 0, 1]
    ]  # ε = 3: also three, not two
    equal = np.array([[2.0, 2, 3, 4, 5]])
    assert calibrated_accuracy(equal, signs, pairs).tolist() == [
        [1, 0, 1, 1, 0]
    ]  # ε = 3: 2 and 2 are tied together


def test_alpha_by_hand() -> None:
    """α = 1 − D_o / D_e; outputs of one annotator are left out, and it is undefined if all scores are equal."""
    judgements = np.array([[[1.0, 2, 3, 5]], [[1, 3, 3, np.nan]]])
    # within outputs: (2 − 3)² twice, of 6 scores, so D_o = 2/6; of the 30 pairs of 1 1 2 3 3 3 the squares add up to 58
    assert krippendorff_alpha(judgements, np.ones((1, 1))) == pytest.approx(
        [1 - (2 / 6) / (58 / 30)]
    )
    assert np.isnan(krippendorff_alpha(np.ones((2, 1, 4)), np.ones((1, 1)))).all()


def test_partial_tau_is_that_of_all_pairs() -> None:
    """Partial τ is Kendall's formula; of a measure that is the length in disguise it is undefined."""
    people, scores, length = (np.random.default_rng(seed).normal(size=(1, 40)) for seed in range(3))
    scores += length + people
    xy, xz, yz = (
        scipy.stats.kendalltau(a[0], b[0])[0]
        for a, b in ((scores, people), (scores, length), (people, length))
    )
    found = rank_agreement(scores, people, length, np.ones((1, 1)))["partial"]
    assert found == pytest.approx([(xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))])
    assert np.isnan(rank_agreement(2 * length, people, length, np.ones((1, 1)))["partial"]).all()


def test_close_pairs_are_the_half_that_the_measure_sets_least_apart() -> None:
    """Of six pairs the three nearest decide, in which the measure is wrong although τ is positive."""
    scores, people = np.array([[0.0, 1, 10, 12]]), np.array([[1.0, 0, 3, 2]])
    found = rank_agreement(scores, people, scores, np.ones((1, 1)))
    assert (found["tau"][0], found["close"][0]) == pytest.approx((1 / 3, -1 / 3))


@pytest.mark.parametrize(
    ("documents", "systems", "correlation"), [(13, 12, 0.3), (35, 3, 0.5), (100, 3, 0.6)]
)
def test_intervals_cover(documents: int, systems: int, correlation: float) -> None:
    """The interval of τ within documents contains the true τ of normal scores in 95 ± 2 % of simulations."""
    draw, truth = np.random.default_rng(1), 2 / np.pi * np.arcsin(correlation)
    counts, repeats = draw_counts(400, documents, 1), 1_000
    first, noise = (draw.normal(size=(repeats, documents, systems)) for _ in range(2))
    each = tau_b(first, correlation * first + np.sqrt(1 - correlation**2) * noise)
    intervals = [percentile_interval(counts @ taus / documents, documents) for taus in each]
    assert 0.93 <= np.mean([low <= truth <= high for low, high in intervals]) <= 0.97


def test_intervals_over_documents_and_systems_are_conservative() -> None:
    """They contain the true τ of the systems' means in at least 95 % of simulations, those over documents seldom do."""
    draw, documents, systems, correlation, repeats = np.random.default_rng(1), 34, 12, 0.5, 200
    counts, system_counts = draw_counts(200, documents, 1), draw_counts(200, systems, 2)
    truth, covered = 2 / np.pi * np.arcsin(correlation), np.zeros(2)
    for _ in range(repeats):
        quality = draw.normal(size=systems)
        measured = correlation * quality + np.sqrt(1 - correlation**2) * draw.normal(size=systems)
        scores, people = (
            side + draw.normal(size=(documents, systems)) for side in (measured, quality)
        )
        found = rank_agreement(scores, people, people, counts, system_counts)
        bounds = (
            percentile_interval(found["tau_both"], None),
            percentile_interval(found["tau"], documents),
        )
        covered += [low <= truth <= high for low, high in bounds]
    assert covered[0] / repeats >= 0.95
    assert covered[1] / repeats < 0.8


def judged_measures(
    seed: int = 1, documents: int = 30, systems: int = 6
) -> tuple[np.ndarray, Measures]:
    """Return judgements of two annotators, and scores: one that follows them, one that is length, and the controls."""
    draw = np.random.default_rng(seed)
    length, quality = draw.normal(size=(2, documents, systems))
    judgements = (quality + 0.5 * length + 0.3 * draw.normal(size=(2, documents, systems)))[None]
    scores = {"rouge1_f": quality, "rouge2_f": length + 1e-9 * quality, "words": length}
    return judgements, Measures(scores, list(scores), [])


class Judged:
    """What `measure_agreement` reads of judged outputs; documents have texts of their own, without a text in `sources`."""

    def __init__(self, judgements: np.ndarray, sources: Sequence[str | None] = ()) -> None:
        groups = sources or [None] * judgements.shape[2]
        self.examples = {
            str(number): Example(str(number), None, None, (), (), group=group)
            for number, group in enumerate(groups)
        }
        self.aspects, self.judgements = (
            [f"aspect {number}" for number in range(len(judgements))],
            judgements,
        )


def table_of(judgements: np.ndarray, measures: Measures) -> pd.DataFrame:
    """Return the rows of the only aspect by level and measure."""
    table = measure_agreement(Judged(judgements), measures, 200)  # type: ignore[arg-type]
    return table.set_index(["level", "measure"])


def test_length_in_disguise_is_seen() -> None:
    """A measure that is length loses its partial τ; the test against the best metric tells the two apart."""
    table: Any = table_of(*judged_measures())
    assert bool(table.loc[("within", "rouge1_f"), "best"])
    assert table.loc[("within", "rouge1_f"), "partial"] > 0.6
    assert table.loc[("within", "rouge2_f"), "tau"] == pytest.approx(
        table.loc[("within", "words"), "tau"]
    )
    assert np.isnan(table.loc[("within", "rouge2_f"), "partial"])
    assert (table.loc["within"]["p_holm"].dropna() < 0.05).all()
    assert (
        0.6
        < table.loc[("within", "annotators"), "tau"]
        < table.loc[("within", "annotators"), "alpha"]
        < 1
    )


def test_few_systems_and_one_annotator() -> None:
    """With four systems there is no τ of systems, and a note says so; with one annotator there is no ceiling."""
    judgements, measures = judged_measures(systems=4)
    table = table_of(judgements[:, :1], measures)
    assert table.loc["system"]["tau"].isna().all()
    assert set(table.loc["system"]["note"]) == {"No τ of systems: 4 are fewer than 5."}
    assert "annotators" not in table.loc["within"].index


def test_few_documents_decide_nothing() -> None:
    """Four documents with τ of 1 have an interval without width, and still the reading names no metric; five do."""
    for documents, words in (
        (4, "too few documents (4) to say which metric follows it"),
        (5, "R-1 follows it (τ 1.00)"),
    ):
        people = np.tile(np.arange(6.0), (1, 1, documents, 1))
        scores = {
            "rouge1_f": people[0, 0],
            "words": np.random.default_rng(1).normal(size=(documents, 6)),
        }
        table = measure_agreement(Judged(people), Measures(scores, list(scores), []), 200)  # type: ignore[arg-type]
        assert words in Agreement("judged", table, tuple(scores), ()).interpretation("aspect 0")


def test_constant_scores_have_no_tau() -> None:
    """τ of constant scores or judgements is empty, with a note, and not 0."""
    judgements, measures = judged_measures()
    measures.scores["rouge2_f"][:] = 1
    table = table_of(judgements, measures)
    assert table.loc["within"]["tau"].isna().tolist() == [False, True, False, False]
    assert (
        table.loc[("within", "rouge2_f"), "note"]
        == "τ is undefined: the scores of rouge2_f are constant."
    )
    table = table_of(np.ones_like(judgements), measures)
    assert table["tau"].isna().all()
    assert "τ is undefined: the judgements are constant." in set(table["note"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write two annotators' judgements of six systems that copy more and more of the reference."""
    numbers = "one two three four five six seven eight nine ten eleven twelve"
    words = numbers.split()
    rows: dict[str, list[dict[str, object]]] = {"documents": [], "outputs": [], "judgements": []}
    for document in range(8):
        text = " ".join(words[document % 3 :])
        rows["documents"].append(
            {"id": document, "references": [text], "document": f"{text} and more {document}"}
        )
        for system in range(6):
            key = {"id": document, "system": f"system {system}"}
            rows["outputs"].append(
                {**key, "output": " ".join([*words[document % 3 :][: system + 3], "x", "y"])}
            )
            for rater in (0, 1):
                score = system + rater * (document % 2)
                rows["judgements"].append(
                    {**key, "annotator": f"r{rater}", "aspect": "coverage", "score": score}
                )
    for name, items in rows.items():
        write_rows(tmp_path / f"{name}.jsonl", items)
    return tmp_path


def test_the_command(folder: Path, run_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints a table of 80 columns with a reading, and writes a CSV and a picture; Python has the same table."""
    monkeypatch.setenv("COLUMNS", "80")
    output = folder / "out"
    printed = run_command(0, "agreement", folder, "score.resamples=100", "--output", output).out
    assert max(map(len, printed.split("\n\n" + str(output))[0].splitlines())) <= 80
    assert "coverage: τ of 8 documents, 6 systems; Krippendorff's α" in printed
    assert (
        "coverage: R-1 precision follows it (τ 1.00), but not clearly given length; annotators reach 1.00."
        in " ".join(printed.split())
    )
    assert {path.name for path in output.iterdir()} == {
        "agreement.csv",
        "agreement.png",
        "agreement.svg",
    }
    result = longsumbench.agreement(folder, resamples=100)
    assert (output / "agreement.csv").read_text() == result.csv()
    assert printed.startswith(result.render())
    with pytest.raises(UsageError, match=r"write score\.NAME=VALUE"):
        longsumbench.agreement(folder, ["dataset.path=x"])


def test_documents_of_one_text_are_one_case(folder: Path) -> None:
    """Eight questions about four stories: by their text or by `group`, they are drawn and swapped as four."""
    rows = read_rows(folder / "documents.jsonl")
    tables = [longsumbench.agreement(folder, resamples=200).table.set_index("measure")]
    for field, value in (("group", 1), ("document", "story 1")):
        changed = [{**row, field: value} if row["id"] % 3 else row for row in rows]
        write_rows(folder / "documents.jsonl", changed)
        result = longsumbench.agreement(folder, resamples=200)
        assert "8 documents of 4 texts" in result.render()
        assert "too few documents (4)" in result.interpretation("coverage")
        tables.append(result.table.set_index("measure"))
    alone, named, by_text = (table.loc[["rouge1_f"]] for table in tables)
    pd.testing.assert_frame_equal(named, by_text)
    assert named["tau"].equals(alone["tau"])
    assert (alone["groups"] == 8).any()


def test_drawn_groups_keep_their_items_together() -> None:
    """Items of a group are drawn as often as each other; single items are drawn as without groups."""
    groups = np.array([7, 7, 3, 9, 3, 7])
    counts = draw_counts(50, 6, 1, groups)
    assert (counts[:, 0] == counts[:, 1]).all()
    assert (counts[:, 2] == counts[:, 4]).all()
    assert (counts[:, [0, 2, 3]].sum(axis=1) == 3).all()
    assert np.array_equal(
        draw_counts(50, 6, 1), draw_counts(50, 6, 1, np.array([5, 3, 8, 0, 2, 1]))
    )

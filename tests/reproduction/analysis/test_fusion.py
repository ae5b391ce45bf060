"""Fusion sentences, worked out by hand, and what outputs state of them."""

import random
from itertools import combinations

import numpy as np
import pytest
from support.drawn import example
from support.reproduction.sampled import drawn
from support.run_records import record

from longsumbench.errors import DataError
from longsumbench.runs.record import RunRecord
from longsumbench_reproduction.analysis.fusion import (
    FusionSettings,
    chances,
    find_fusions,
    stated_shares,
)

WORDS = ["ash", "birch", "cedar", "elm", "fir", "oak", "pine", "yew", "lime"]
FILLED = ["ash birch cedar", *("nothing of it here" for _ in range(8)), "elm fir oak"]
FUSED = "ash birch elm fir"


def written(*texts: str) -> list[tuple[RunRecord, dict[str, str]]]:
    """Return runs that wrote a text each for the example "e"."""
    return [(record(f"run{place}", 1.0), {"e": text}) for place, text in enumerate(texts)]


def test_worked_example() -> None:
    """Half of h is in sentence 1 of 10, half in 10: a pair at distance 9/10, of recall 1, each alone 1/2."""
    found = find_fusions(
        drawn([example("e", FILLED, reference=[FUSED, "ash birch cedar"])]), FusionSettings()
    )
    (one,) = found.fusions
    assert (one.reference_index, one.source_indices) == (1, (1, 10))
    assert (one.num_source_sentences, one.distance_bin, one.distance) == (10, 9, 0.9)
    assert (one.score, one.alone, one.sources) == (
        1.0,
        (0.5, 0.5),
        ("ash birch cedar", "elm fir oak"),
    )
    assert found.bars()["pairs"].tolist() == [0] * 9 + [1]
    assert found.num_sentences == 2  # sentence 1 says all of the second: nothing is fused there
    assert "1 of 2 reference sentences (50.0 %)" in found.render()


def texts(draw_: random.Random, sentences: int) -> list[str]:
    return [
        " ".join(draw_.choices([*WORDS, "oaks"], k=draw_.randrange(1, 6))) for _ in range(sentences)
    ]


@pytest.mark.parametrize(("size", "bins"), [(2, 10), (3, 10), (10, 10), (37, 7), (200, 10)])
def test_chances_are_those_of_all_pairs(size: int, bins: int) -> None:
    """They are the shares of all pairs of different sentences, bin by bin, and make one together."""
    counts = np.zeros(bins)
    for first, second in combinations(range(size), 2):
        counts[(second - first) * bins // size] += 1
    assert chances(size, bins) == pytest.approx(counts / counts.sum())
    assert len(chances(size, bins)) == bins


def test_bars_hold_every_pair_once() -> None:
    """The bars' counts are those of the pairs, their shares make 100, whoever drew them; so do a run's four ways."""
    draw_ = random.Random(5)
    examples = [
        example(f"{n}", texts(draw_, 9), texts(draw_, 8), reference=texts(draw_, 5))
        for n in range(8)
    ]
    outputs = [
        (record(name, 1.0), {one.id: " .\n".join(texts(draw_, 3)) for one in examples})
        for name in ("a", "b")
    ]
    found = find_fusions(drawn(examples, *outputs), FusionSettings(bins=7))
    bars, runs = found.bars(), found.by_run()
    assert bars["pairs"].sum() == len(found.fusions) > 10
    for column in ("share", "chance"):
        assert bars[column].sum() == pytest.approx(100)
    assert ((bars["low"] <= bars["share"]) & (bars["share"] <= bars["high"])).all()
    assert runs[["both", "first", "second", "neither"]].sum(axis=1).unique() == pytest.approx(100)
    for _, rows in runs.groupby("run_id"):
        of_bars = rows[rows["bar"] != "all"]
        assert of_bars["n"].sum() == rows["n"].max() == len(found.fusions)
    assert {fusion.documents for fusion in found.fusions} >= {(1, 2)}
    assert "of two documents" in found.render()


def test_words_that_one_source_alone_gives() -> None:
    """Of h = a a b c, s1 = a b, s2 = a c d: s1 alone gives b, s2 alone c; what both have is nobody's own."""
    h, first, second = list("aabc"), list("ab"), list("acd")
    assert stated_shares(["b"], h, first, second) == (1.0, 0.0)
    assert stated_shares(["a", "d"], h, first, second) == (0.0, 0.0)
    assert stated_shares(["c", "b"], h, first, second) == (1.0, 1.0)
    assert stated_shares(["a"], ["a", "a"], ["a", "a"], ["a"]) == (
        1.0,
        1.0,
    )  # the second a is the first's; s2 has none


# Lines of an output, divided by a slash
OUTPUTS = {
    "Birch and elm.": "both, joined",
    "An ash stands here. / The fir is gone.": "both",
    "An ash and a birch.": "first",
    "No fir.": "second",
    "Nothing at all.": "neither",
    "": "neither",
}


@pytest.mark.parametrize("text", OUTPUTS)
def test_what_an_output_says(text: str) -> None:
    """Half of the words of a source are enough, in one sentence; joined are both in the sentence closest to h."""
    output = text.replace(" / ", "\n")
    found = find_fusions(
        drawn([example("e", FILLED, reference=[FUSED])], *written(output)), FusionSettings()
    )
    ((one,),) = (fusion.outputs for fusion in found.fusions)
    assert one.stated_sources + ", joined" * one.joined == OUTPUTS[text]
    assert one.closest in (output.splitlines() or [""])


def test_what_cannot_be_looked_at() -> None:
    """Examples without a reference or a second sentence are left out and counted; without any other, it is an error."""
    empty = [example("x", ["ash"], reference=["oak"]), example("y", FILLED, reference=[])]
    found = find_fusions(drawn([example("e", FILLED, reference=[FUSED]), *empty]), FusionSettings())
    assert found.without == 2
    assert "2 examples left out" in found.render()
    with pytest.raises(DataError, match="nothing to fuse"):
        find_fusions(drawn(empty), FusionSettings())

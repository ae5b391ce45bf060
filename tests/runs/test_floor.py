"""The floor of a run: what its outputs score against the references of other examples."""

import pandas as pd
from support.toys import ToySplit, example

from longsumbench.core import Scoring
from longsumbench.metrics.evaluate import score_shuffled
from longsumbench.metrics.rouge import Rouge
from longsumbench.rouge.scorer import SuiteScorer
from longsumbench.sentences import split_summary

ROUGE = Rouge(Scoring())


def compute_floor(split: ToySplit, texts: list[str]) -> pd.DataFrame:
    """The floor of these summaries."""
    floor = score_shuffled([ROUGE], split, texts)
    return floor.reindex(split.ids) if len(floor) else floor


def test_the_cycle_equals_brute_force() -> None:
    """The row of each summary is its score against the example that the test above finds for it."""
    split = ToySplit("test", [example(number) for number in range(8)])
    references = [one.references[0][0] for one in split.examples]
    meets = {}  # place of a summary → place of the example that it is scored against
    for number in range(8):
        scores = compute_floor(split, [references[number]] * 8)["rougeLsum_f"]
        meets[int(scores.to_numpy().argmax())] = number
    texts, scorer = references[1:] + references[:1], SuiteScorer(Scoring())
    found = compute_floor(split, texts)
    for place, other in meets.items():
        expected = scorer.score(split_summary(texts[place]), split[other].references)
        assert found["rouge1_f"].iloc[place] == expected["rouge1"].fmeasure

"""The chain from planted facts to their survival, held by a model that copies all it reads."""

import re
from collections import defaultdict
from statistics import mean

import pytest
from support.language_models import EchoEngine, prompted, text_example

from longsumbench.core import Decoding, Example, Scoring
from longsumbench.corpora.planting.plant import plant_facts
from longsumbench.metrics.fact_survival import FactSurvival

_SENTENCES = (
    "The review of the harbour took most of the spring.",
    "Nobody expected the older buildings to last so long.",
    "Residents asked for more trees along the northern road.",
    "A short report was sent round before the summer.",
    "Its authors had walked through every street of the quarter.",
)


def report(number: int) -> Example:
    """Return a report of 200 sentences in paragraphs of four, with 20 facts."""
    paragraphs = []
    for place in range(0, 200, 4):
        paragraphs.append([_SENTENCES[(place + step) % 5] for step in range(4)])
    return plant_facts(text_example(paragraphs, name=f"report {number}"), 20)


def copied(prompt: str) -> str:
    """Return the text that a prompt is about."""
    match = re.search(r"<text>\n(.*)\n</text>", prompt, re.S)
    assert match
    return match[1]


@pytest.mark.parametrize("tokens", [900, 2_500, 6_000])
@pytest.mark.parametrize("reading", ["beginning", "ending", "ends", "select", "whole"])
def test_what_is_copied_survives_by_place_as_it_is_covered(reading: str, tokens: int) -> None:
    """Facts survive in each tenth of the source as often as the prompt has all of their sentences."""
    engine = EchoEngine(reply=copied, context=10**6)
    length = {} if reading == "whole" else {"input_length": tokens}
    system = prompted(engine, reading=reading, decode_length=10**5, **length)
    survival = FactSurvival(Scoring())
    for number in range(3):
        example = report(number)
        (summary,) = system.summarize([example], Decoding())
        sent = " ".join(copied(engine.asked[-1].messages[-1]["content"]).split())
        covered = defaultdict(list)
        for fact in example.planted:
            is_read = all(statement.sentence in sent for statement in fact.statements)
            covered[""].append(is_read)
            if len(fact.statements) == 1:
                covered[f"_position_{int(10 * fact.statements[0].position)}"].append(is_read)
        scores = survival.score(summary.text, example)
        for place, facts in covered.items():
            assert scores[f"fact_survival{place}"] == pytest.approx(mean(facts))
        assert (reading == "whole") == (mean(covered[""]) == 1)

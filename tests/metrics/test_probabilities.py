"""Judge and support by the probabilities of yes and no: by hand, without an answer, and judges that tell nothing apart."""

import math
from collections.abc import Callable

import pytest
from support import drawn
from support.run_records import record
from support.scripted_engine import Script, answer, use_script

from longsumbench.core import Answer, Example, Request, Scoring
from longsumbench.core.language_model import sum_choices
from longsumbench.errors import EnvironmentProblem
from longsumbench.leaderboards.significance import build_blocks
from longsumbench.metrics.aggregate import MeasureMean
from longsumbench.metrics.judge import Judge
from longsumbench.metrics.support import Support
from longsumbench.views.footnotes import footnotes

pytestmark = pytest.mark.usefixtures("empty_cache")
ENGINE = {"engine": "scripted"}
SUMMARY = "The cat sat.\nThe moon rose."
REFERENCE = ("The cat sat.", "It rained.", "Nobody came.")


def example(*reference: str, name: str = "e", source: tuple[str, ...] = ("A text.",)) -> Example:
    """Return an example with a reference."""
    return drawn.example(name, source, reference=reference)


def read_passage(request: Request) -> tuple[str, str]:
    """Return the passage and the statement of a question."""
    passage, _, statement = request.messages[0]["content"].partition("\n\nStatement: ")
    return passage.partition("Passage:\n")[2], statement


def weigh(in_passage: float = 0.9, missing: float = 0.2) -> Callable[[Request], Answer]:
    """Return a judge that says yes with these probabilities, and rates 3 or 4."""

    def reply(request: Request) -> Answer:
        if request.choices == tuple("12345"):
            return answer("", probabilities=(0, 0, 0.75, 0.25, 0))
        passage, statement = read_passage(request)
        yes = in_passage if statement in passage else missing
        return answer("", probabilities=(yes, 1 - yes))

    return reply


def judge(script: Script, **settings: object) -> Judge:
    """Return the metric with all models of a script."""
    models = [*script.replies]
    return Judge(
        Scoring(
            judge_models=models,
            judge_settings=ENGINE,
            judge_form="probabilities",
            **settings,  # type: ignore[arg-type]
        )
    )


def test_scores_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of three key points and one of two sentences are said: (0.9 + 2 · 0.2) / 3 and (0.9 + 0.2) / 2.

    The key points are the sentences of the reference. Each is a request of one token, and so is each sentence.
    """
    script = use_script(monkeypatch, {"a": weigh()})
    metric = judge(script)
    scores, verdicts = metric.score_sentences(SUMMARY, example(*REFERENCE))
    margin = scores.pop("judge_margin")
    expected = {"judge_recall": 1.3 / 3, "judge_precision": 0.55, "judge_fluency": 3.25}
    assert scores == pytest.approx({**expected, "judge_missing": 0})
    assert math.isnan(margin)  # there is no other example
    assert [verdict.score for verdict in verdicts] == pytest.approx([0.9, 0.2, 0.2, 0.9, 0.2])
    assert [verdict.key_point for verdict in verdicts[:3]] == [*REFERENCE]
    assert [request.max_tokens for _, request in script.asked] == [1] * 6
    metric.score(SUMMARY, example(*REFERENCE))
    assert len(script.asked) == 6
    assert "|form:probabilities|" in metric.signature(1)


@pytest.mark.parametrize(("missing", "margin"), [(0.2, 0.7), (0.9, 0.0)])
def test_the_margin_is_between_references_of_different_sources(
    missing: float, margin: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that finds each point anywhere has a margin of 0. Two questions about one source are no different ones."""
    metric = judge(use_script(monkeypatch, {"a": weigh(missing=missing)}))
    examples = [
        example("The cat sat.", name="e"),
        example("The cat ran.", name="f"),
        example("It rained.", name="g", source=("Another text.",)),
    ]
    metric.prepare([(SUMMARY, each) for each in examples])
    for each in examples:
        assert metric.score(SUMMARY, each)["judge_margin"] == pytest.approx(margin)


def test_two_judges_agree_where_both_find_a_point_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three points, the second judge finds all likely and the first one: they agree on 1/3; scores are means."""
    metric = judge(use_script(monkeypatch, {"a": weigh(), "b": weigh(missing=0.6)}))
    scores = metric.score(SUMMARY, example(*REFERENCE))
    assert scores["judge_same"] == pytest.approx(1 / 3)
    assert scores["judge_recall"] == pytest.approx((1.3 / 3 + 2.1 / 3) / 2)
    assert scores["judge_recall_2"] == pytest.approx(2.1 / 3)


def test_without_probabilities_there_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question without an answer is counted, and the scores are unknown; a judge without any is an error."""

    def reply(request: Request) -> Answer:
        lacks = len(request.choices) == 5
        return answer("Yes.") if lacks else weigh()(request)

    metric = judge(use_script(monkeypatch, {"a": reply}))
    scores = metric.score(SUMMARY, example(*REFERENCE))
    assert scores["judge_missing"] == pytest.approx(1 / 6)
    assert all(math.isnan(scores[name]) for name in ("judge_recall", "judge_fluency"))
    metric = judge(use_script(monkeypatch, {"b": lambda request: answer("Yes.")}))
    with pytest.raises(EnvironmentProblem, match="it gives no probabilities of these words"):
        metric.score(SUMMARY, example(*REFERENCE))


def test_without_a_reference_only_the_language_is_rated(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are no key points, so recall and precision are unknown."""
    script = use_script(monkeypatch, {"a": weigh()})
    scores = judge(script).score(SUMMARY, example())
    assert scores["judge_fluency"] == pytest.approx(3.25)
    assert math.isnan(scores["judge_recall"])
    assert len(script.asked) == 1


def test_support_by_a_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the three most similar sentences as one passage, and is asked once for each sentence: (0.9 + 0.2) / 2."""
    script = use_script(monkeypatch, {"a": weigh()})
    metric = Support(Scoring(support_model="a", support_by="language_model", judge_settings=ENGINE))
    source = ("A dog ran.", "The cat sat.", "The cat ate.", "The cat slept.", "A bird flew.")
    scores, verdicts = metric.score_sentences(
        "The cat sat.\nThe moon rose.", example("R.", source=source)
    )
    assert scores == {"support": pytest.approx(0.55)}
    assert [verdict.source for verdict in verdicts] == [1, 1]
    passages = [read_passage(request)[0] for _, request in script.asked]
    assert passages[0] == "The cat sat. The cat ate. The cat slept."
    assert "language_model:a@" in metric.signature(1)
    use_script(monkeypatch, {"a": lambda request: answer("Yes.")})
    assert math.isnan(metric.score("The sun set.", example("R.", source=source))["support"])
    with pytest.raises(EnvironmentProblem, match="it gives no probabilities"):
        Support(metric.scoring).score("The sun rose.", example("R.", source=source))


def test_a_source_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all summaries are asked about together is not paired again when each is scored, also if it repeats itself."""
    script = use_script(monkeypatch, {"a": weigh()})
    metric = Support(Scoring(support_model="a", support_by="language_model", judge_settings=ENGINE))
    source = example("R.", source=("A dog ran.", "The cat sat.", "The cat sat."))
    metric.prepare([(SUMMARY, source)])
    assert len(script.asked) == 2
    monkeypatch.setattr(metric, "_premises", None)
    assert metric.score(SUMMARY, source) == {"support": pytest.approx(0.55)}
    assert len(script.asked) == 2


def test_tokens_are_choices_whatever_their_blanks_and_case() -> None:
    """The sums of the tokens that are a choice, relative to each other; other tokens do not count."""
    tokens = [("Yes", 0.2), (" yes", 0.1), ("NO", 0.1), ("yesterday", 0.3), ("", 0.1)]
    assert sum_choices(tokens, ("yes", "no")) == pytest.approx((0.75, 0.25))
    assert sum_choices(tokens, ("maybe",)) == ()


@pytest.mark.parametrize(
    ("low", "line"),
    [
        (0.5, "judge: it finds 4.0 points more of a reference there than in another one."),
        (
            -0.5,
            "judge: it finds 4.0 points more of a reference there than in another one;"
            " that it tells anything apart is not shown.",
        ),
    ],
)
def test_a_table_says_whether_its_judge_tells_references_apart(low: float, line: str) -> None:
    """The margin of a judge that reads is above 0 with its whole interval."""
    measures = {
        "judge_recall": MeasureMean(30.0, 25.0, 35.0, 20),
        "judge_margin": MeasureMean(4.0, low, 7.0, 20),
    }
    runs = [record("lead", 30, measures=measures, ranked_by="rougeLsum"), record("seal", 40)]
    (block,) = build_blocks(runs)
    assert line in footnotes(block, {"rougeLsum"})


@pytest.mark.parametrize(("ends", "is_named"), [((50.0, 50.0), True), ((49.0, 51.0), False)])
def test_a_table_names_a_judge_that_gives_one_mark(
    ends: tuple[float, float], is_named: bool
) -> None:
    """Every summary of both rows has 50 %, so the intervals have no width; with other marks nothing is said."""
    measures = {"judge_recall": MeasureMean(50.0, *ends, 20)}
    runs = [record(name, 30, measures=measures, ranked_by="rougeLsum") for name in ("lead", "seal")]
    (block,) = build_blocks(runs)
    lines = [line for line in footnotes(block, {"rougeLsum"}) if line.startswith("judge: ")]
    expected = "judge: all summaries have the same recall, so it tells nothing apart."
    assert lines == [expected] * is_named

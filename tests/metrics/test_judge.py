"""Judge: scores by hand, formats that are asked for again, what is asked twice, two judges, and what it costs."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.json_files import write_json
from support.logs import listening
from support.scripted_engine import Reply, answer, use_script
from support.tiny_causal import write_causal

from longsumbench.core import Example, Request, Scoring, SentenceScore
from longsumbench.errors import DataError, EnvironmentProblem, UsageError
from longsumbench.metrics import judge_model
from longsumbench.metrics.evaluate import evaluate
from longsumbench.metrics.judge import Judge

COST = r"judges: a, (\d+) requests, at most ([\d,]+) tokens in and (\d+) out, US\$ ([\d.]+); not counting .*"
TINY: dict[str, Any] = {"judge_settings": {"decode_length": 8}, "device": "cpu"}
pytestmark = pytest.mark.usefixtures("empty_cache")
POINTS = ("A cat sat.", "A dog ran.", "It rained.", "Nobody came.")
SUMMARY = "The cat sat. The moon rose. It rained on a dog that ran."


def example(reference: str = "A reference.", name: str = "e") -> Example:
    """Return an example with a reference."""
    return Example(name, None, None, (), ((reference,),) if reference else ())


def judging(
    matches: Mapping[int, list[int]], fluency: int = 4, points: tuple[str, ...] = POINTS
) -> Reply:
    """Return a judge that finds these points, and then these matches."""

    def reply(request: Request) -> str:
        if request.messages[0]["content"].startswith("List"):
            return json.dumps({"key_points": points})
        return json.dumps({"matches": matches, "fluency": fluency})

    return reply


def judge(*names: str, **settings: Any) -> Judge:
    """Return the metric with scripted models."""
    more = settings.pop("judge_settings", {})
    return Judge(
        Scoring(judge_models=[*names], judge_settings={"engine": "scripted", **more}, **settings)
    )


ONE = {1: [1], 2: [3], 3: [3], 4: []}
OTHER = {1: [1], 2: [], 3: [3], 4: [2]}


def test_scores_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of four points are in sentences 1 and 3 of three: recall 3/4, precision 2/3; verdicts are kept of each."""
    script = use_script(monkeypatch, {"a": judging(ONE)})
    metric = judge("a")
    scores, verdicts = metric.score_sentences(SUMMARY, example())
    assert scores == pytest.approx(
        {"judge_recall": 3 / 4, "judge_precision": 2 / 3, "judge_fluency": 4, "judge_missing": 0}
    )
    assert [verdict.score for verdict in verdicts] == [1, 1, 1, 0, 1, 0, 1]
    assert verdicts[3:5] == [SentenceScore(0, -1, POINTS[3]), SentenceScore(1, -1)]
    assert metric.pooled() == {}
    extraction, verdict = script.prompts("a")
    assert extraction.endswith("\n\nA reference.")
    assert "\n1. A cat sat.\n2. A dog ran.\n" in verdict
    assert verdict.endswith(
        "Summary:\n1. The cat sat.\n2. The moon rose.\n3. It rained on a dog that ran."
    )


def test_two_judges_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are means. Of four points the judges agree on two: 1/2. α needs a second example.

    With two such examples, 4 of 16 verdicts are no: α = 1 − (8 / 16) / (2 · 4 · 12 / (16 · 15)) = −1/4.
    """
    script = use_script(monkeypatch, {"a": judging(ONE), "b": judging(OTHER, fluency=2)})
    metric = judge("a", "b", resamples=50)
    scores, verdicts = metric.score_sentences(SUMMARY, example())
    means, same, first, second = [3 / 4, 5 / 6, 3, 0], 1 / 2, [3 / 4, 2 / 3, 4], [3 / 4, 1, 2]
    assert [*scores.values()] == pytest.approx([*means, same, *first, *second])
    assert len(script.prompts("a")) == 2
    assert len(script.prompts("b")) == 1  # it gets the first judge's points
    assert [verdict.score for verdict in verdicts] == [1, 0.5, 1, 0.5, 1, 0.5, 1]
    assert metric.pooled() == {}
    metric.score(SUMMARY, example(name="second"))
    assert metric.pooled() == {"judge_alpha": pytest.approx((-1 / 4, -1 / 4, -1 / 4, 2))}


WRONG = {
    "prose": "It is good.",
    "a point is missing": '{"matches": {"1": [1], "2": [], "3": []}, "fluency": 3}',
    "a sentence that is not there": '{"matches": {"1": [4], "2": [], "3": [], "4": []}, "fluency": 3}',
    "not 1 to 5": '{"matches": {"1": [1], "2": [], "3": [], "4": []}, "fluency": 6}',
    "cut": answer(json.dumps({"matches": ONE, "fluency": 3}), complete=False),
}


@pytest.mark.parametrize("kind", WRONG)
def test_another_format_is_asked_for_again(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model sees its wrong answer; the third answer still counts; thoughts, marks and fences are no faults."""

    def reply(request: Request) -> Any:
        if request.messages[0]["content"].startswith("List") or len(request.messages) == 5:
            text = judging(ONE)(request)
            return f'<think>{{"matches": {{}}}}</think>\n```json\n{text}\n```<think>{{}}</think><|eot_id|>'
        return WRONG[kind]

    script = use_script(monkeypatch, {"a": reply})
    metric = judge("a")
    assert metric.score(SUMMARY, example())["judge_recall"] == 3 / 4
    assert len(script.asked) == 1 + 3
    last = script.asked[-1][1].messages
    assert [turn["role"] for turn in last] == ["user", "assistant", "user", "assistant", "user"]
    cut_text = WRONG["cut"].text  # type: ignore[attr-defined]
    assert last[1]["content"] == (cut_text if kind == "cut" else WRONG[kind])


def test_without_a_verdict_nothing_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """After three wrong answers there is no verdict: counted, named, kept, and NaN; other judges keep theirs.

    A judge without any verdict is an error.
    """

    def reply(request: Request) -> Any:
        return "no" if SUMMARY[-9:] in request.messages[0]["content"] else judging(ONE)(request)

    script = use_script(monkeypatch, {"a": judging(ONE), "b": reply})
    metric = judge("a", "b")
    lines: list[str] = []
    with listening(lines.append):
        metric.prepare([(SUMMARY, example()), ("One. Two. Three.", example())])
        scores, verdicts = metric.score_sentences(SUMMARY, example())
    assert "judge b: no verdict on 1 question of 2" in "\n".join(lines)
    expected = [math.nan] * 3 + [1 / 3, math.nan, 3 / 4, 2 / 3, 4] + [math.nan] * 3
    assert [*scores.values()] == pytest.approx(expected, nan_ok=True)
    assert (verdicts, metric.pooled()) == ([], {})
    assert len(script.prompts("b")) == 4
    with pytest.raises(EnvironmentProblem, match="judge b: no verdict on any question "):
        judge("a", "b").score(SUMMARY, example())
    assert len(script.prompts("b")) == 4


def test_without_key_points_only_the_fluency_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference in which the judge finds none, and a missing one: recall and precision are NaN."""
    use_script(monkeypatch, {"a": judging({}, points=())})
    for reference, missing in (("A reference.", 0.5), ("", 0.0)):
        scores = judge("a").score(SUMMARY, example(reference))
        assert [*scores.values()] == pytest.approx([math.nan, math.nan, 4, missing], nan_ok=True)


@pytest.mark.parametrize(("reference", "recall"), [("A reference.", 0.0), ("", math.nan)])
def test_an_empty_summary_needs_no_request(
    reference: str, recall: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It states no key point, which is a verdict; it has no sentences whose share or language could be judged."""
    script = use_script(monkeypatch, {"a": judging(ONE)})
    scores = judge("a").score(" \n", example(reference))
    assert [*scores.values()] == pytest.approx([recall, *[math.nan] * 3], nan_ok=True)
    assert script.asked == []


def test_what_was_answered_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second scoring asks nothing; another summary of the same reference asks for a verdict alone."""
    script = use_script(monkeypatch, {"a": judging({1: [1], 2: [], 3: [], 4: []})})
    first = judge("a").score("One.", example())
    assert judge("a").score("One.", example()) == first
    assert len(script.asked) == 2
    judge("a").score("Two.", example(name="other"))
    assert len(script.asked) == 3
    judge("a", judge_settings={"thinking": False}).score("One.", example())
    assert len(script.asked) == 5


def test_a_request_that_cannot_be_answered_is_asked_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that refuses a request gives no verdict, and is asked again at the next scoring, not before."""
    refused = answer("", problem=UsageError("HTTP 400: no model.temperature"))
    replies: dict[str, Callable[[Request], Any]] = {"a": lambda request: refused}
    script = use_script(monkeypatch, replies)
    cause = r"judge a: no verdict on any question \(HTTP 400: no score\.judge_settings\.temp"
    with pytest.raises(EnvironmentProblem, match=cause):
        judge("a").score("One.", example())
    assert len(script.asked) == 2
    replies["a"] = judging({number: [] for number in range(1, 5)})
    assert judge("a").score("One.", example())["judge_recall"] == 0


def test_all_is_asked_together_after_the_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line comes before the first request. It bounds what is sent and answered, and has the price of that."""
    lines: list[str] = []
    lines_before: list[int] = []

    def reply(request: Request) -> Any:
        lines_before.append(len(lines))
        return judging({1: [1]}, points=POINTS[:1])(request)

    script = use_script(monkeypatch, {"a": reply})
    metric = judge("a", judge_settings={"decode_length": 100, "input_price": 1, "output_price": 10})
    texts = [example(f"Reference {number}.", str(number)) for number in range(5)]
    outputs = ["The cat sat.", "It sat.", "It sat.", "It sat.", ""]
    with listening(lines.append):
        measures = evaluate([outputs], texts, [], metric.scoring, [metric]).evaluation.measures
    assert lines_before[0] == len(lines) == 1
    requests, sent, answered, price = re.fullmatch(COST, lines[0]).groups()  # type: ignore[union-attr]
    # key points, and two summaries with the same points
    assert int(requests) == len(script.asked) == 4 + 2
    assert int(answered) == 600
    assert float(price) == pytest.approx((int(sent.replace(",", "")) + 10 * 600) / 1e6, rel=1e-3)
    recall, fluency = measures["judge_recall"], measures["judge_fluency"]
    assert (recall.mean, recall.n, fluency.mean, fluency.n) == pytest.approx((80, 5, 4, 4))


def test_given_key_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key points of a file need no extraction, and are in the signature; damaged files and missing ids are named."""
    script = use_script(monkeypatch, {"a": judging({1: [1], 2: []})})
    path = tmp_path / "points.json"
    write_json(path, {"e": ["A cat  sat.", " ", "A dog ran."]})
    metric = judge("a", judge_key_points=str(path))
    assert metric.score(SUMMARY, example())["judge_recall"] == 1 / 2
    assert "\n1. A cat sat.\n2. A dog ran.\n\n" in script.prompts("a")[0]
    assert metric.score("", example(reference=""))["judge_recall"] == 0
    assert len(script.asked) == 1
    assert "key_points:given@" in metric.signature(1)
    with pytest.raises(DataError, match=r"points\.json: no key points of 'f': add them"):
        metric.score(SUMMARY, example(name="f"))
    path.write_text('{"e": "one"}')
    with pytest.raises(DataError, match=r"score\.judge_key_points is a JSON object"):
        judge("a", judge_key_points=str(path)).check()


def test_the_signature_tells_what_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has models, prompts and what decides answers; another model, revision or setting has another signature."""
    use_script(monkeypatch, {})
    first = judge("a").signature(1)
    parts = r"judge:2\|models:a@\w{8}\|prompts:\w{8}\|key_points:of_first_judge\|.+"
    assert re.fullmatch(parts, first)
    metrics = [judge("b"), judge("a@v1"), judge("a", "b")]
    metrics.append(judge("a", judge_settings={"thinking": False}))
    assert len({first, *(metric.signature(1) for metric in metrics)}) == 5
    same = judge("a", judge_settings={"retries": 3, "input_price": 1, "output_price": 1})
    assert same.signature(1) == first
    monkeypatch.setitem(judge_model.prompts(), "verdict", "Another.")
    assert judge("a").signature(1) != first


@pytest.mark.parametrize(
    ("names", "settings", "message"),
    [
        ("", {}, r"score\.judge_models is missing: give one to 3 language models"),
        ("abcd", {}, r"score\.judge_models has 4 models"),
        ("a", {"prompt": "x"}, r"score\.judge_settings has 'prompt'"),
        ("a", {"engin": 1}, r"unknown setting 'score\.judge_settings\.engin'"),
        (["/nowhere"], {}, r"judge /nowhere: score\.judge_models=/nowhere is neither"),
    ],
)
def test_bad_settings(names: Sequence[str], settings: dict[str, Any], message: str) -> None:
    """Each is one line that names the judge and the setting."""
    with pytest.raises(UsageError, match=rf"^.*{message}.*$"):
        Judge(Scoring(judge_models=[*names], judge_settings=settings)).check()


def test_a_question_that_is_too_long(tmp_path: Path) -> None:
    """It is an error before the first request."""
    folder = write_causal(tmp_path / "tiny", positions=64)
    problem = r"score\.judge_models=.* reads 64 tokens, a question and its answer have 592"
    with pytest.raises(UsageError, match=problem):
        Judge(Scoring(judge_models=[str(folder)], **TINY)).score("One.", example())

"""Answers from the summary alone: right, wrong and not said by hand; questions give nothing away; the reader's bounds."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from string import Formatter
from typing import Any

import pytest
from support.drawn import example as example_of
from support.run_records import record
from support.scripted_engine import Script, answer, use_script

from longsumbench.core import Example, PlantedFact, Question, Request, Scoring
from longsumbench.corpora.jsonl import jsonl_example
from longsumbench.corpora.planting.plant import plant_facts, read_templates
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.leaderboards.significance import build_blocks
from longsumbench.metrics.aggregate import MeasureMean
from longsumbench.metrics.answers import SummaryAnswers
from longsumbench.metrics.fact_matching import read_tokens
from longsumbench.views.footnotes import footnotes

pytestmark = pytest.mark.usefixtures("empty_cache")
NOT_SAID = (  # with a denial that is not about the fact
    "The text does not say it.",
    "The summary doesn’t provide that.",
    "I don't know.",
    "There is no mention of it.",
    "There is no information about it in the text.",
    "It cannot be determined.",
    "It is not specified",
    "N/A",
)
SENTENCES = [f"Sentence {number} says that it rains in place {number}." for number in range(60)]


def answers(**settings: Any) -> SummaryAnswers:
    """Return the metric with a scripted reader."""
    return SummaryAnswers(
        Scoring(answer_model="reader", judge_settings={"engine": "scripted"}, **settings)
    )


def reader(monkeypatch: pytest.MonkeyPatch, says: dict[str, str]) -> Script:
    """A reader whose answer is that of the first key that its prompt has; else it guesses "Rome"."""

    def reply(request: Request) -> str:
        prompt = request.messages[0]["content"]
        return next((said for key, said in says.items() if key in prompt), "Rome")

    return use_script(monkeypatch, {"reader": reply})


def test_given_questions_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three words in the answer of two words: F1 4/5. The guess "Rome" is right once, the source always.

    The longest are asked first.
    """
    questions = (Question("Who led it?", ("Ada Lovelace",)), Question("Where?", ("Rome", "Roma")))
    example = replace(
        example_of("one", ["A source."], reference=["A reference."]), questions=questions
    )
    script = reader(
        monkeypatch,
        {
            "A summary.\n\nQuestion: Who": "It was Ada Lovelace",
            "A summary.\n\nQuestion: Where": "Not said.",
            "A source.\n\nQuestion: Who": "the Ada Lovelace",
            "A reference.\n\nQuestion: Who": "Charles Babbage",
        },
    )
    scores, kept = answers().score_sentences("A summary.", example)
    f1 = 2 * 2 / (4 + 2)
    assert scores == pytest.approx(
        {
            "answers": f1 / 2,
            "answers_wrong": (1 - f1) / 2,
            "answers_missing": 1 / 2,
            "answers_guessed": 1 / 2,
            "answers_unrelated": math.nan,
            "answers_source": 1,
            "answers_reference": 1 / 2,
            "answers_margin": 1 / 2,
        },
        nan_ok=True,
    )
    assert [each.key_point for each in kept] == [
        "Who led it? It was Ada Lovelace",
        "Where? Not said.",
    ]
    lengths = list(map(len, script.prompts("reader")))
    assert lengths == sorted(lengths, reverse=True)
    assert len(lengths) == 8
    metric = answers()
    metric.score("Another summary.", example)
    assert len(script.asked) == 10  # guess, source and references are known


def test_an_empty_summary_and_an_example_without_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said, without a request about the summary; without questions no column applies."""
    script = reader(monkeypatch, {})
    example = replace(
        example_of("one", ["A source."], reference=[]), questions=(Question("Where?", ("Rome",)),)
    )
    scores = answers().score("", example)
    assert (scores["answers"], scores["answers_missing"], scores["answers_guessed"]) == (0, 1, 1)
    assert str(scores["answers_reference"]) == "nan"
    assert len(script.asked) == 2
    assert {str(value) for value in answers().score("A.", example_of("two", ["A."])).values()} == {
        "nan"
    }


def test_no_answer_is_not_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server cannot answer has no score, also of the summary alone; without any answer it is an error."""
    broken = answer("", problem=EnvironmentProblem("the server is down"))
    example = replace(
        example_of("one", ["A source."], reference=[]), questions=(Question("Where?", ("Rome",)),)
    )
    use_script(
        monkeypatch,
        {"reader": lambda asked: broken if "A summary" in asked.messages[0]["content"] else "Rome"},
    )
    scores, kept = answers().score_sentences("A summary.", example)
    assert kept == []
    assert str([scores[name] for name in ("answers", "answers_wrong", "answers_missing")]) == (
        "[nan, nan, nan]"
    )
    assert (scores["answers_guessed"], scores["answers_source"]) == (1, 1)
    use_script(monkeypatch, {"reader": lambda asked: broken})
    other = replace(example, questions=(Question("When?", ("May",)),))
    with pytest.raises(EnvironmentProblem, match="the server is down"):
        answers().score("Another.", other)


def test_no_from_any_text_is_not_in_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that says "no" to what it does not find is right about a denial from another text as well.

    It is the references of the next example about another source, or what is found there, also for an example that is
    scored alone later.
    """
    question = Question("Was the bridge built?", ("no",))
    examples = []
    for name, source, reference in (
        ("a", "The bridge was dropped.", ["It was dropped."]),
        ("b", "It rains.", []),
        ("c", "It rains.", ["Rain."]),
    ):
        plain = example_of(name, [source], reference=reference)
        examples.append(replace(plain, questions=(question,)))
    script = reader(monkeypatch, {"Text:": "No."})
    metric = answers()
    metric.prepare([("A summary.", example) for example in examples])
    prompts = "\n".join(script.prompts("reader"))
    texts = ["A summary.", "It rains.", "It was dropped.", "Rain.", "The bridge was dropped."]
    assert sorted(re.findall(r"Text:\n(.*)", prompts)) == texts
    num_asked = len(script.asked)
    for example in examples:
        scores = metric.score("A summary.", example)
        assert (scores["answers"], scores["answers_guessed"]) == (1, 0)
        assert (scores["answers_unrelated"], scores["answers_margin"]) == (1, 0)
    assert len(script.asked) == num_asked
    alone = answers().score("A summary.", examples[0])
    assert (math.isnan(alone["answers_unrelated"]), alone["answers_margin"]) == (True, 1)


def planted(register: str) -> Example:
    """Return an example with facts of all kinds of a register."""
    sentences = SENTENCES
    if register == "meeting":
        sentences = [f"Ann: {sentence}" for sentence in SENTENCES]
    plain = example_of("text", *[[sentence] for sentence in sentences])
    if register == "session":
        plain = Example.from_dict(
            {
                **plain.to_dict(),
                "documents": [
                    {
                        "source": None,
                        "sections": [
                            {"name": "user", "paragraphs": [[sentence]]} for sentence in sentences
                        ],
                    }
                ],
            }
        )
    return plant_facts(plain, 2 * len(read_templates().registers[register]), split="test")


def shortest_answer(fact: PlantedFact) -> str:
    """Return an answer as a reader gives it, without the words of the sentence."""
    return ", ".join("no" if part.kind == "not" else part.text for part in fact.answer)


@pytest.mark.parametrize("register", ["prose", "meeting", "session"])
def test_answers_about_planted_facts(register: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value alone is right, that of another fact of its kind is wrong, and so is a yes to what was denied."""
    example = planted(register)
    kinds = {fact.kind for fact in example.planted}
    assert kinds == set(read_templates().registers[register])
    for fact in example.planted:
        one = replace(example, planted=(fact,))
        others = [other for other in example.planted if other.subject != fact.subject]
        for text, outcome in (
            (shortest_answer(fact), "answers"),
            (f"It is {shortest_answer(fact)}.", "answers"),
            ("Not said.", "answers_missing"),
            *((text, "answers_missing") for text in NOT_SAID),
            *(
                (shortest_answer(other), "answers_wrong")
                for other in others
                if differs(fact, other)
            ),
            *([("Yes.", "answers_wrong")] if fact.kind == "negation" else []),
            *(
                [("No, the text says it was rejected.", "answers")]
                if fact.kind == "negation"
                else []
            ),
        ):
            reader(monkeypatch, {"A summary": text})
            summary = f"A summary, {text}"  # another one for each answer, as answers are stored
            assert answers().score(summary, one)[outcome] == 1, (fact, text)


def differs(fact: PlantedFact, other: PlantedFact) -> bool:
    """Return True if a fact has an answer of the same kinds, but another one."""
    kinds = [part.kind for part in fact.answer]
    return kinds == [part.kind for part in other.answer] and kinds != ["not"]


def words_of(texts: Sequence[str]) -> set[str]:
    """Return the stems of the words, without function words."""
    stems = {token for text in texts for token in read_tokens(text) if token.isalpha()}
    return stems - {"what", "who", "how", "it"}


@pytest.mark.parametrize("register", ["prose", "meeting", "session"])
def test_questions_have_no_word_of_what_was_planted(
    register: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But the subject, so a question gives nothing away about the sentence."""
    literals = []
    for templates in read_templates().registers[register].values():
        for template in (*templates["train"], *templates["test"]):
            literals += [literal for literal, *_ in Formatter().parse(template)]
    script = reader(monkeypatch, {})
    for fact in planted(register).planted:
        answers().score("A summary.", replace(planted(register), planted=(fact,)))
        question = script.prompts("reader")[-1].split("Question: ")[1]
        asked = words_of([question.replace(fact.subject.text, "")])
        assert asked, question
        assert asked.isdisjoint(words_of(literals)), (question, asked & words_of(literals))


def test_the_reader_gets_the_sentences_that_the_question_is_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a long source at most 400 words, in the order of the text, and the sentence with the answer among them."""
    filler = [f"Filler number {number} has words about nothing at all." for number in range(200)]
    source = [*filler[:90], "The bridge of Torwick was painted green.", *filler[90:]]
    question = Question("Which colour has the bridge of Torwick?", ("green",))
    example = replace(example_of("one", source, reference=[]), questions=(question,))
    script = reader(monkeypatch, {"painted green": "Green"})
    scores = answers().score("A summary.", example)
    assert (scores["answers_source"], scores["answers_guessed"]) == (1, 0)
    (prompt,) = [prompt for prompt in script.prompts("reader") if "painted green" in prompt]
    text = prompt.split("Text:\n")[1].split("\n\nQuestion")[0]
    assert len(text.split()) <= 400
    order = [int(number) for number in re.findall(r"Filler number (\d+)", text)]
    assert order == sorted(order)


def test_questions_of_rows() -> None:
    """Questions with one answer or several are read; a field of another form is none of ours."""
    row = {"id": "a", "document": "A text.", "summary": "A."}
    listed = json.loads("""[
        {"question": "Who?", "answer": "Ada"},
        {"question": "Where?", "answers": ["Rome", "Roma"]},
        {"question": "Why?"},
        {"question": "When?", "answer": 1843},
        {"question": "Whose?", "answers": "hers"},
        {"question": "How?", "answers": {"text": ["by hand"], "answer_start": [0]}},
        {"question": "What?", "answer": null}]""")
    example = jsonl_example({**row, "questions": listed})
    assert example.questions == (
        Question("Who?", ("Ada",)),
        Question("Where?", ("Rome", "Roma")),
        Question("When?", ("1843",)),
        Question("Whose?", ("hers",)),
    )
    assert Example.from_dict(example.to_dict()) == example
    other: object
    for other in (["Who?"], "Who?", None, {}):
        plain = jsonl_example({**row, "questions": other})
        assert plain == jsonl_example(row)
        assert "questions" not in plain.to_dict()


def test_the_reader_is_needed() -> None:
    """Without a model, one line says which setting is missing."""
    with pytest.raises(UsageError) as caught:
        SummaryAnswers(Scoring()).check()
    assert "score.answer_model is missing" in str(caught.value)


@pytest.mark.parametrize(
    ("low", "end"),
    [
        (0.5, "by guessing."),
        (None, "by guessing."),
        (-0.5, "by guessing: this reader cannot tell."),
    ],
)
def test_a_table_says_what_its_reader_reaches(low: float | None, end: str) -> None:
    """The margin of a reader that reads is above 0 with its whole interval."""
    measures = {
        "answers": MeasureMean(30.0, 25.0, 35.0, 20),
        "answers_guessed": MeasureMean(4.0, 2.0, 6.0, 20),
        "answers_unrelated": MeasureMean(5.0, 2.0, 6.0, 20),
        "answers_source": MeasureMean(8.0, 5.0, 9.0, 20),
        "answers_margin": MeasureMean(4.0, low, 7.0, 20),
    }
    runs = [record("lead", 30, measures=measures, ranked_by="rougeLsum"), record("seal", 40)]
    (block,) = build_blocks(runs)
    lines = footnotes(block, {"rougeLsum"})
    (line,) = [line for line in lines if line.startswith("answers: ")]
    reaches = "8.0 % right from the source, 5.0 % from a text about another source, 4.0 %"
    assert line == f"answers: the reader answers {reaches} {end}"

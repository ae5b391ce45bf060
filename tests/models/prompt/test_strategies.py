"""The strategies of other tools and papers: their requests worked out by hand, and what holds for any text and answer."""

import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # not annotated
from support.commands import Command
from support.language_models import (
    QUERY,
    STRATEGIES,
    EchoEngine,
    chat_tokenizer,
    prompted,
    summarize,
    text_example,
)
from support.toys import refuses, settings_of

from longsumbench.conf import CONF
from longsumbench.models.prompt.prompts import read_prompt
from longsumbench.models.prompt.readings import readings, strategies
from longsumbench.models.prompt.system import PromptSystem

TOPICS = ("frost", "cedar", "amber", "delta", "ember", "grove", "haven", "ivory")


def filled(name: str, document: str, words: int = 0, written: str = "", query: str = "") -> str:
    """Return the request of a step by plain replacement; without what was written before, that paragraph is missing."""
    kind = "query" if query else "document"
    texts = yaml.safe_load((CONF / "prompt" / "steps" / f"{kind}.yaml").read_text())
    text = str(texts[name])
    if not written:
        text = re.sub(r"\n\n[^\n]*\{written\}[^\n]*", "", text)
    text = text.replace(" {facts}", "").replace("{words}", f"{words}").replace("{query}", query)
    return text.replace("{written}", written).replace("{document}", document)


def questions(engine: EchoEngine) -> list[str]:
    return [request.messages[-1]["content"] for request in engine.asked]


def paragraph(topic: str, sentences: int) -> list[str]:
    """Return sentences of eleven tokens about a topic."""
    return [f"The {topic} {number} is seen here by all of us." for number in range(sentences)]


def system_with_room(entry: str, tokens: int, engine: EchoEngine, **values: Any) -> PromptSystem:
    """Return a system of which the prompts of a step have room for some tokens."""
    builder = prompted(engine, input_length=9_000, **values).builder
    room = builder.room(text_example([["One."]]), entry)
    return prompted(engine, input_length=9_000 - room.tokens + tokens, **values)


def test_merging_with_what_was_written_before() -> None:
    """Parts of six sentences, and replies of eleven tokens: five summaries fit into 72 tokens, three with what was before.

    For ten words, 72 tokens are thought to hold four summaries, so there are two levels: parts have a quarter of words and
    limit, the first merges half. The last merge, into which all fits, has all.
    """
    replies = count(1)
    engine = EchoEngine(
        lambda text: f"Reply {next(replies)} says what was said here by them all.",
        chat_tokenizer("words"),
    )
    values = {**STRATEGIES["previous"], "length": "10", "decode_length": 80}
    system = system_with_room("merge", 72, engine, **values)
    (summary,) = summarize(system, text_example([paragraph(topic, 6) for topic in TOPICS]))
    said = [f"Reply {number} says what was said here by them all." for number in range(20)]

    def numbered(*replies: int) -> str:
        texts = enumerate(replies, start=1)
        return "\n\n".join(f"Summary {number}: {said[reply]}" for number, reply in texts)

    assert questions(engine) == [
        *(filled("part", " ".join(paragraph(topic, 6)), 2) for topic in TOPICS),
        filled("merge", numbered(1, 2, 3, 4, 5), 5),
        filled("merge", numbered(6, 7, 8), 5, said[9]),
        filled("merge", numbered(9, 10), 10),
    ]
    assert [request.max_tokens for request in engine.asked] == [20] * 8 + [40] * 2 + [80]
    assert (summary.text, summary.complete) == (said[11], True)
    assert (summary.counts["requests"], summary.counts["tries"]) == (11, 0)


@pytest.mark.parametrize(("bad", "tries"), [(2, 2), (6, 6), (99, 6)])
def test_answers_that_do_not_end_are_asked_again(bad: int, tries: int) -> None:
    """A part whose answer ends without a sign is asked for a tenth fewer words, six times at most; others are not."""
    failed: list[str] = []

    def reply(question: str) -> str:
        if "cedar" in question and len(failed) < bad and "Summary" not in question:
            failed.append(question)
            return "It stops in the"
        return "It ends."

    engine = EchoEngine(reply, chat_tokenizer("words"))
    values = {**STRATEGIES["previous"], "shrink": 1.0, "length": "20"}
    system = system_with_room("part", 90, engine, **values)
    (summary,) = summarize(system, text_example([paragraph(topic, 6) for topic in TOPICS[:3]]))
    again = [question for question in questions(engine) if "The cedar 5" in question]
    words = [20, 18, 16, 14, 12, 10, 8][: tries + 1]
    assert again == [filled("part", " ".join(paragraph("cedar", 6)), number) for number in words]
    assert summary.counts["tries"] == tries
    assert summary.counts["requests"] == 3 + tries + 1
    last = "It stops in the" if bad > 6 else "It ends."
    assert f"Summary 2: {last}\n" in questions(engine)[-1]
    assert summary.complete


@pytest.mark.parametrize("kind", ["passages", "passages_only"])
def test_merging_with_the_passages_that_support_summaries(kind: str) -> None:
    """Of a part's eleven passages, the one without a word of its summary is left out; the others keep their order.

    The passages of a merged summary are chosen again from those of what was merged, and of the summary before.
    """
    words = [f"w{number}" for number in range(11)]
    parts = [
        [f"The {topic} {word} is " + "seen " * 94 + "here." for word in words]
        for topic in TOPICS[:4]
    ]

    def reply(question: str) -> str:
        topic = next((topic for topic in TOPICS if topic in question), "frost")
        left_out = {"frost": "w10", "cedar": "w0"}.get(topic, "w5")
        return f"{topic} {' '.join(word for word in words if word != left_out)}."

    engine = EchoEngine(reply, chat_tokenizer("words"))
    values = {**STRATEGIES[kind], "shrink": 1.0, "page_length": 1_110, "length": "12"}
    system = system_with_room("merge", 4_000, engine, **values)
    (summary,) = summarize(system, text_example(parts))
    *asked, merge, last = questions(engine)
    assert asked == [filled("part", " ".join(part), 12) for part in parts]

    def quoted(number: int, part: list[str], left_out: int) -> str:
        quotes = [f"- {text}" for index, text in enumerate(part) if index != left_out]
        passages = "\n".join([f"Passages of part {number}:", *quotes])
        return (
            passages
            if kind == "passages_only"
            else f"Summary {number}: {reply(part[0])}\n\n{passages}"
        )

    three = "\n\n".join([quoted(1, parts[0], 10), quoted(2, parts[1], 0), quoted(3, parts[2], 5)])
    assert merge == filled("merge", three, 12)
    # The merged summary names frost, which only passages of the first part have.
    frost = [text for index, text in enumerate(parts[0]) if index != 10]
    assert last.count("- The frost") == len(frost)
    assert "- The cedar" not in last.partition("Passages of part 2:")[0]
    assert summary.counts["requests"] == 6


def test_a_summary_that_is_too_long_is_shortened_before_the_part_is_asked_again() -> None:
    """The second part's answer does not end: the first answer is shortened to the share that was read, and it is asked again.

    Tries ask for five percent less each; the one nearest to the number of words wins.
    """
    first, shorter = "One " * 30 + "end.", []

    def reply(question: str) -> str:
        if question.startswith("Below is a summary that is too long"):
            shorter.append(question)
            return f"{'Short ' * (60 - 2 * len(shorter))}end."
        if question.startswith("Below are a summary") and not shorter:
            return "It stops in the"
        return "It ends." if shorter else first

    engine = EchoEngine(reply, chat_tokenizer("words"))
    values = {**STRATEGIES["compress"], "length": "40", "decode_length": 90}
    system = system_with_room("refine", 130, engine, **values)
    text = [paragraph(topic, 6) for topic in TOPICS[:4]]
    (summary,) = summarize(system, text_example(text))
    sent = questions(engine)
    read = sent[1].partition("<part>\n")[2].partition("\n</part>")[0]
    whole = "\n\n".join(map(" ".join, text))
    target = round(40 * (whole.index(read) + len(read)) / len(whole))
    tries = [round(target * (1 - 0.05 * attempt)) for attempt in range(6)]
    assert sent[2:8] == [filled("compress", first, words) for words in tries]
    assert len(shorter) == 6
    assert read in sent[8]
    assert f"{'Short ' * 48}end." in sent[8]
    assert summary.counts["tries"] == 6
    assert summary.text == "It ends."


def test_a_chain_carries_notes_and_ends_with_them_alone() -> None:
    """Each worker sees the notes before and its part; the last request has the notes alone, without their middle."""
    replies = count(1)
    engine = EchoEngine(
        lambda text: " ".join(f"n{next(replies)}" for _ in range(60)), chat_tokenizer("words")
    )
    values = {**STRATEGIES["final"], "length": "30", "decode_length": 500}
    system = system_with_room("carry", 100, engine, **values)
    text = [paragraph(topic, 4) for topic in TOPICS[:3]]
    (summary,) = summarize(system, text_example(text))
    *workers, last = questions(engine)
    notes = last.partition("<notes>\n")[2].partition("\n</notes>")[0]
    assert "is seen" not in last
    assert last == filled("final", notes, 30)
    assert "{written}" not in workers[0]
    assert "left these notes" not in workers[0]
    assert all("words" not in worker.partition("</part>")[2] for worker in workers)
    assert " […] " in notes
    assert len(chat_tokenizer("words")(notes)["input_ids"]) <= 50
    first, final = f"n{60 * (len(workers) - 1) + 1}", f"n{60 * len(workers)}"
    assert notes.startswith(first)
    assert notes.endswith(final)
    assert summary.counts["cut_notes"] == len(workers)


@pytest.mark.parametrize(("place", "length"), [("<2>", 297), ("no number", 594), ("99", 594)])
def test_gists_and_the_pages_that_a_question_needs(place: str, length: int) -> None:
    """Pages end at the named place, else at the last one of 600 words; named pages take the place of their gists."""
    numbers = count(1)

    def reply(question: str) -> str:
        if question.startswith("Below is the beginning"):
            return place
        if question.startswith("Below is a page"):
            return f"Gist {next(numbers)}."
        return "Pages 2 and 1, not 77." if "gists" in question else "Because."

    sentences = [f"{'kadan ' * 10}s{number}." for number in range(120)]
    engine = EchoEngine(reply, chat_tokenizer("words"))
    system = system_with_room("user", 1_290, engine, **STRATEGIES["gists"], length="9")
    (summary,) = summarize(system, text_example([sentences], query=QUERY))
    sent = questions(engine)
    pages = [text for text in sent if text.startswith("Below is a page")]
    assert "s25. <1>" in sent[0]
    assert len(pages[0].partition("<page>\n")[2].partition("\n</page>")[0].split()) == length
    gists = [f"Gist {number}." for number in range(1, len(pages) + 1)]
    listed = "\n\n".join(f"<{number}> {gist}" for number, gist in enumerate(gists, start=1))
    assert sent[-2] == filled("look_up", listed, query=QUERY)
    assert all(gist in sent[-1] for gist in gists[2:])
    assert gists[1] not in sent[-1]
    assert summary.counts.get("pages_left_out", 0) == (0 if length == 297 else 1)
    assert (gists[0] in sent[-1]) == (length != 297)
    assert summary.text == "Because."
    with refuses(r"model\.reading=gists asks for a query, and example 'one' has"):
        summarize(system, text_example([sentences]))


def test_a_published_wording_is_a_file_of_ten_lines(tmp_path: Path) -> None:
    """A prompt with texts of its own for the parts and for the merge is LangChain's map-reduce; others keep the suite's."""
    file = tmp_path / "mine.yaml"
    file.write_text(
        "user: 'Sum up: {document}'\npart: 'Map: {document}'\n"
        'merge: "Reduce: {document}\\n\\nBefore: {written}"\n'
    )
    engine = EchoEngine(lambda text: "It ends.", chat_tokenizer("words"))
    text = text_example([paragraph(topic, 4) for topic in TOPICS[:2]])
    summarize(prompted(engine, reading="stages", prompt=str(file), input_length=80), text)
    parts = [f"Map: {' '.join(paragraph(topic, 4))}" for topic in TOPICS[:2]]
    assert questions(engine) == [*parts, "Reduce: It ends.\n\nIt ends."]
    engine.asked.clear()
    values = {**STRATEGIES["previous"], "prompt": str(file), "input_length": 90, "length": "9"}
    summarize(prompted(engine, **values), text)
    assert questions(engine)[-1].startswith("Reduce: Summary 1: It ends.")
    own = read_prompt("document")
    assert own.only_for("user").hash == own.only_for("user", "part", "merge").hash


def test_the_documentation_names_every_strategy(run_command: Command) -> None:
    """`list readings` and the table of the page have the same costs and names; every name runs as it is written."""
    printed = " ".join(run_command(0, "list", "readings").out.split())
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "readings.md").read_text()
    rows = [row for row in page.splitlines() if row.startswith("| `reading=")]
    assert len(rows) == len(strategies.STRATEGIES)
    for row, strategy in zip(rows, strategies.STRATEGIES, strict=True):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[2:] == [strategy.requests, strategy.tokens, strategy.elsewhere]
        assert re.sub(r"`| \(default\)", "", cells[0]) == strategy.settings
        assert (
            f"{strategy.settings} requests: {strategy.requests}; tokens: {strategy.tokens}"
            in printed
        )
        words = strategy.settings.partition(",")[0]
        assert prompted(EchoEngine(), **{"length": 50} | settings_of(words)).config.reading


WAYS = {reading: {"reading": reading} for reading in sorted(readings.targets())} | STRATEGIES


@pytest.mark.parametrize("name", WAYS)
def test_costs_are_estimated_about(name: str) -> None:
    """The estimated tokens of a text are those that are sent and written, within a factor of two."""
    engine = EchoEngine(lambda text: "Reply says what was said here. " * 4, chat_tokenizer("words"))
    values = {**WAYS[name], "length": "24", "decode_length": 60, "page_length": None}
    system = prompted(engine, input_length=9_000 if name == "whole" else 1_400, **values)
    text = [paragraph(topic, 60) for topic in TOPICS]
    (summary,) = summarize(system, text_example(text, query=QUERY if name == "gists" else None))
    source = 60 * 11 * len(TOPICS)
    prompt, answer = system.config.request_lengths(source, 1.3 * 24, None)
    assert 0.5 < prompt / summary.counts["prompt_tokens"] < 2
    assert 0.5 < answer / summary.counts["output_tokens"] < 2


def test_the_last_merge_asks_for_all_words_also_without_some_passages() -> None:
    """Three summaries fit only without most of their passages: what is written of them is the summary, not a level more."""
    parts = [
        [f"The {topic} w{number} is {'seen ' * 94}here." for number in range(11)]
        for topic in TOPICS[:3]
    ]
    engine = EchoEngine(lambda text: "They say w1 w2 w3.", chat_tokenizer("words"))
    values = {**STRATEGIES["passages"], "shrink": 0.5, "page_length": 1_110, "length": "40"}
    system = system_with_room("merge", 1_300, engine, **values)
    summarize(system, text_example(parts))
    *_, last = questions(engine)
    assert len(engine.asked) == 4
    assert last.count("\n- ") == 12
    assert "in about 40 words" in last
    assert "in about 10 words" in questions(engine)[0]

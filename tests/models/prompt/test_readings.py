"""Ways of reading a long text: each is held by random models, by an echo of what it sends, and at its borders."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from support.language_models import (
    DOCUMENTS,
    QUERY,
    REPLIES,
    SENTENCES,
    STRATEGIES,
    EchoEngine,
    chat_tokenizer,
    prompted,
    summarize,
    text_example,
)
from support.tiny_causal import causal_folder, open_causal
from support.toys import WORDS, refuses, settings_of

from longsumbench.core import (
    Answer,
    Decoding,
    Document,
    Example,
    Request,
    RunConfig,
    RunKey,
    Section,
    Summary,
)
from longsumbench.errors import UsageError
from longsumbench.models.prompt.chat import chat_ids
from longsumbench.models.prompt.prompts import read_prompt
from longsumbench.models.prompt.readings import readings
from longsumbench.models.prompt.source_text import LongText
from longsumbench.models.prompt.system import PromptSystem
from longsumbench.models.prompt.transformers_engine import TransformersEngine
from longsumbench.runs.evidence import read_evidence, write_evidence

READINGS = sorted(set(readings.targets()) - {"gists"})  # which needs a question: test_strategies.py
CUTTING = ("beginning", "ending", "ends", "select", "segments")
ALL_OF_IT = ("pages", "stages", "refine")
WAYS = {reading: {"reading": reading} for reading in (*CUTTING, *ALL_OF_IT)} | STRATEGIES


@cache
def random_model() -> TransformersEngine:
    """Return a random model with 512 positions."""
    return open_causal(causal_folder())


def made_up(number: int, sentences: int, words: int = 5) -> Example:
    """Return an example of paragraphs of two sentences."""
    texts = []
    for place in range(sentences):
        names = [WORDS[(number + place * 7 + word * word) % len(WORDS)] for word in range(words)]
        texts.append(" ".join(names) + ".")
    paragraphs = [texts[place : place + 2] for place in range(0, sentences, 2)]
    return text_example(paragraphs, name=f"example {number}")


def empty_prompt(engine: Any, entry: str = "user") -> int:
    """Return the tokens of the built-in prompt without its text."""
    return int(engine.count(read_prompt("document").messages("", None, 50, entry)))


def with_room(engine: Any, reading: str, tokens: int, **values: Any) -> PromptSystem:
    """Return a system whose prompts have room for some tokens of text, and a short answer."""
    length = empty_prompt(engine, "refine" if reading == "refine" else "user") + tokens
    settings = {"input_length": length, "decode_length": 12, "snippet_length": 16, **values}
    return prompted(engine, reading=reading, **settings)


def outcome(summary: Summary) -> tuple[Any, ...]:
    """Return what decides a row: text, ledger, end and tokens."""
    tokens = summary.counts["prompt_tokens"], summary.counts["output_tokens"]
    return summary.text, summary.truncation, summary.complete, *tokens, summary.counts["requests"]


SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beams": {"num_beams": 2, "forced_eos": True},
    "samples": {"temperature": 0.8, "top_p": 0.9},
}


@pytest.mark.parametrize("search", SEARCHES)
def test_a_text_that_fits_is_read_as_whole(search: str) -> None:
    """Whatever the reading: one request, the answer to the whole text token for token, and nothing is cut."""
    example = made_up(1, 4)
    outcomes = {}
    for reading in READINGS:
        length = empty_prompt(random_model(), "refine") + 40
        system = with_room(random_model(), reading, 0, input_length=length)
        (summary,) = summarize(system, example, **SEARCHES[search])
        outcomes[reading] = outcome(summary)
    assert outcomes == dict.fromkeys(READINGS, outcomes["whole"])
    text, truncation, *_, requests = outcomes["whole"]
    assert text
    assert (truncation.cuts, requests) == ((), 1)


@torch.inference_mode()
def continued(prompt: list[int], written: list[int], number: int) -> list[int]:
    """Return up to `number` more tokens, each the likeliest."""
    engine = random_model()
    ids: list[int] = []
    while len(ids) < number:
        logits = engine.network(torch.tensor([prompt + written + ids])).logits[0, -1]
        if int(logits.argmax()) in engine.ends:
            break
        ids.append(int(logits.argmax()))
    return ids


@pytest.mark.parametrize("length", [5, 12])
def test_segments_continue_what_is_written(length: int) -> None:
    """Each segment continues the tokens before it with the prompt of the snippets that the evidence names."""
    engine, example = random_model(), made_up(2, 20)
    system = with_room(engine, "segments", 60, segment_length=length)
    (summary,) = summarize(system, example)
    assert summary.evidence is not None
    selected = summary.evidence.arrays["selected_tokens"]
    text = LongText(system.builder.passage(example), engine.tokenizer)
    snippets = text.snippets(16)
    assert selected.shape[1] == len(snippets) > (selected[0] > 0).sum() > 0
    written: list[int] = []
    tokens = 0
    for segment in selected:
        spans = [snippets[index] for index in np.flatnonzero(segment)]
        prompt = chat_ids(
            engine.tokenizer, system.builder.messages(example, text.joined(spans)), engine.config
        )
        tokens += len(prompt) + len(written)
        written += continued(prompt, written, min(length, 12 - len(written)))
    assert summary.text == engine.tokenizer.decode(written, skip_special_tokens=True).strip()
    assert summary.tokens == len(written)
    assert summary.counts["prompt_tokens"] == tokens
    assert summary.counts["requests"] == len(selected) == -(-12 // length)


@pytest.mark.parametrize("words", [9, 50])
def test_a_server_continues_the_text(words: int) -> None:
    """Sentences are added until there are enough words or no new ones; each prompt has what is written so far."""
    engine = EchoEngine(
        reply=lambda text: (
            "Nufel. Nufel." if text.count("Mihit") > 2 else f"Mihit lohit {text.count('Mihit')}."
        )
    )
    (summary,) = summarize(prompted(engine, reading="segments", length=str(words)), made_up(1, 4))
    sentences = ["Mihit lohit 0.", "Mihit lohit 1.", "Mihit lohit 2.", "Nufel."]
    assert summary.text == " ".join(sentences[: 3 if words == 9 else 4])
    assert len(engine.asked) == (3 if words == 9 else 5)
    before, after = str(read_prompt("document").segment).partition("{written}")[::2]
    for number, request in enumerate(engine.asked):
        written = " ".join(sentences[:number])
        assert f"{before[-9:]}{written}{after[:9]}" in request.messages[0]["content"]


class ThinkingEngine(EchoEngine):
    """Writes the tokens of one thought and a summary, however many are asked for."""

    def answer(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
        """Continue the first request, without an end token."""
        (request,) = requests
        ids = self.tokenizer("<think>kadan lohit kadan</think>Mihit nufel.")["input_ids"]
        begin = len(request.written)
        new = tuple(ids[begin : begin + (request.stop_after or 99)])
        text = self.tokenizer.decode(ids[: begin + len(new)])
        yield Answer(text, False, False, 1, len(new), ids=new)


def test_thinking_is_counted_once() -> None:
    """Of an answer in several segments, thinking is counted as of one in one piece, and is no text."""
    counts = set()
    for length in (2, 7, 99):
        system = prompted(
            ThinkingEngine(gives_tokens=True), reading="segments", segment_length=length
        )
        (summary,) = summarize(system, made_up(1, 4))
        counts.add((summary.text, summary.counts["thinking_tokens"]))
    assert counts == {("Mihit nufel.", 18)}


def test_a_part_is_summarized_as_alone() -> None:
    """The answers about the parts of `stages` are those of `whole` about texts that are these parts."""
    engine, example = random_model(), made_up(3, 16)
    (summary,) = summarize(with_room(engine, "stages", 70), example)
    assert summary.evidence is not None
    parts, answers = (summary.evidence.texts[axis] for axis in ("unit", "request"))
    assert len(parts) > 1
    system = with_room(engine, "whole", 70)
    for part, answer in zip(parts, answers, strict=False):
        (alone,) = summarize(system, text_example([[line] for line in part.split("\n\n")]))
        assert alone.text == answer


def test_refining_begins_as_stages() -> None:
    """The first request of `refine` is that of `stages`; each further one has the last answer and the next part."""
    example = made_up(4, 60)
    asked = {}
    for reading in ("stages", "refine"):
        engine = EchoEngine(reply=lambda text: f"Mihit {len(text)}.")
        length = empty_prompt(engine, "refine") + 60
        (summary,) = summarize(with_room(engine, reading, 0, input_length=length), example)
        asked[reading] = [request.messages[0]["content"] for request in engine.asked]
    assert asked["refine"][0] == asked["stages"][0]
    assert len(asked["refine"]) > 2
    template = str(read_prompt("document").refine)
    before, rest = template.split("{written}")
    for last, prompt in zip(asked["refine"], asked["refine"][1:], strict=False):
        written = f"Mihit {len(last)}."
        assert prompt.startswith(f"{before}{written}{rest.partition('{document}')[0]}")
    assert summary.text == f"Mihit {len(asked['refine'][-1])}."


@pytest.mark.parametrize(("words", "is_cut"), [(2, False), (60, True), (400, True)])
def test_cut_intermediate_summaries_are_counted(words: int, is_cut: bool) -> None:
    """A refined summary made of one that stopped at its limit, or lost its end for the next part, is not complete."""
    part = "mifel."

    def reply(text: str) -> str:
        return "Mihit." if part in text else "lohit " * words

    example = text_example([["kadan kadan kadan kadan."]] * 40 + [[part]])
    length = empty_prompt(EchoEngine(), "refine") + 80
    system = prompted(EchoEngine(reply), reading="refine", input_length=length, decode_length=100)
    (summary,) = summarize(system, example)
    assert summary.complete != is_cut


@pytest.mark.parametrize("reading", [name for name in READINGS if name != "whole"])
def test_a_batch_is_read_as_alone(reading: str, tmp_path: Path) -> None:
    """Long, short and empty texts together have the summaries and evidence that they have alone."""
    system = with_room(random_model(), reading, 80, segment_length=5)
    examples = [made_up(5, 14), made_up(6, 2), text_example([[" "]], name="empty"), made_up(7, 22)]
    together = summarize(system, *examples, batch_size=3)
    for example, summary in zip(examples, together, strict=True):
        (alone,) = summarize(system, example)
        assert outcome(summary) == outcome(alone)
        if not system.config.capabilities.keeps_evidence:
            assert summary.evidence is None
            continue
        # Also of an empty text, evidence can be stored.
        write_evidence(tmp_path, 0, summary)
        _, evidence = read_evidence(tmp_path, 0)
        assert alone.evidence is not None
        for name, array in alone.evidence.arrays.items():
            np.testing.assert_allclose(evidence.arrays[name], array, atol=1e-5)
    assert [summary.counts["requests"] > 0 for summary in together] == [True, True, False, True]


def all_prompts(engine: EchoEngine) -> Iterator[Sequence[Any]]:
    """Yield all prompts that an engine was sent, a page each."""
    for request in engine.asked:
        yield from (request.messages, *request.more_pages)


def unsent(whole: str, texts: Sequence[str]) -> str:
    """Return what is left of a text, without blanks, if each prompt goes on where the one before it ended."""
    rest = "".join(whole.split())
    for text in texts:
        sent, length = "".join(text.split()), 0
        while length < len(rest) and rest[: length + 1] in sent:
            length += 1
        rest = rest[length:]
    return rest


@pytest.mark.parametrize("kind", ["trained", "words"])
@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=15)
@given(
    documents=DOCUMENTS,
    query=st.none() | SENTENCES,
    room=st.integers(1, 160),
    reply=st.sampled_from(sorted(REPLIES)),
)
def test_every_reading_ends_within_its_budget(
    name: str,
    kind: str,
    documents: list[list[list[str]]],
    query: str | None,
    room: int,
    reply: str,
) -> None:
    """Whatever the text, the budget and the answers: a refusal before the first request, or prompts within the budget.

    All tokens that were sent and all requests are counted, and every token of the source is read or cut.
    """
    query = query or (QUERY if name == "gists" else None)
    example = text_example(*documents, query=query)
    engine = EchoEngine(REPLIES[reply], chat_tokenizer(kind))
    system = prompted(engine, snippet_length=6, **WAYS[name])
    reading = system.config.reading_class
    entries = {"user", reading.entry_for(engine), *reading.steps_for(system.config)}
    prompt = system.builder.choose_prompt(example)
    budget = room + max(
        engine.count(prompt.messages("", query, 50, entry, " ")) for entry in entries
    )
    system.config.input_length = budget
    least = {"select": 6, "segments": 6}.get(name, reading.least_room_for(system.config))
    if room < least - 2:
        with refuses(r"too long|does not fit into a prompt of"):
            system.check_examples([example])
        return
    if room < max(least, 12):
        # Too little for a sign of four tokens, or for what merges with a blank or with other tokens.
        return
    try:
        (summary,) = summarize(system, example)
    except UsageError:
        # There is no room for the gists, or for the words of a page.
        assert name == "gists"
        return
    sent = [engine.count(messages) for messages in all_prompts(engine)]
    assert max(sent) <= budget
    assert summary.counts["requests"] == len(engine.asked)
    assert summary.counts["prompt_tokens"] == sum(sent)
    assert summary.evidence is None or summary.evidence.texts["unit"]
    whole = system.builder.passage(example).text
    ledger = summary.truncation
    assert ledger is not None
    assert ledger.tokens == len(engine.tokenizer(whole, add_special_tokens=False)["input_ids"])
    texts = [message["content"] for (message,) in all_prompts(engine)]
    # Gists are written without it.
    assert name == "gists" or all(query is None or query in text for text in texts)
    assert len({request.seed for request in engine.asked}) == len(engine.asked)
    if name not in CUTTING or any(whole in text for text in texts):
        assert ledger.cuts == ()
    else:
        # Segments may read all of it, one part each.
        assert 0 < ledger.tokens_seen < ledger.tokens + (name == "segments")
    if name in ("stages", "refine", *STRATEGIES) and name != "passages":
        # A text that fits, and no other, is asked about as by `whole`; those of passages have a length of their own.
        plain = system.builder.messages(example, whole)
        assert (texts == [plain[-1]["content"]]) == (engine.count(plain) <= budget)
    if name in ALL_OF_IT and reply == "short":
        assert unsent(whole, texts) == ""
    if name in STRATEGIES and reply == "short":
        assert all(any(word in text for text in texts) for word in whole.split())


@pytest.mark.parametrize("reading", READINGS)
def test_a_text_without_sentences_gets_no_request(reading: str) -> None:
    """White space, or a heading alone, has an empty summary, and nothing is cut."""
    heading = Document(None, (Section("A", ((),)),))
    examples = [text_example([["", " "], ["\n"]]), Example("b", None, None, (heading,), (("r",),))]
    engine = EchoEngine()
    for summary in summarize(with_room(engine, reading, 250), *examples):
        assert summary.text == ""
        assert summary.truncation is not None
        assert summary.truncation.cuts == ()
    assert engine.asked == []


def refused(system: PromptSystem, example: Example) -> str:
    """Return the error of one line before any request."""
    with pytest.raises(UsageError) as caught:
        system.check_examples([example])
    assert system.builder.engine.asked == []  # type: ignore[attr-defined]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_units_longer_than_a_prompt_are_refused() -> None:
    """The line names the setting, the longest value, and the example whose prompt is the longest."""
    example = made_up(1, 4)
    for reading, name in (("select", "snippet_length"), ("pages", "page_length")):
        problem = refused(with_room(EchoEngine(), reading, 40, **{name: 41}), example)
        assert f"model.{name}=41 does not fit into a prompt of" in problem
        assert "example 'example 1' needs" in problem
        assert "choose at most 40, or a larger model.input_length" in problem
    system = with_room(EchoEngine(), "refine", 31)
    needed = empty_prompt(system.builder.engine, "refine")
    problem = refused(system, example)
    assert f"needs {needed} tokens without its text and at least 32 for that" in problem


def test_what_a_reading_needs_is_checked_first(tmp_path: Path) -> None:
    """A ranker's title or query, and a text of the prompt, are missing: one line that names the setting."""
    example = made_up(1, 4)
    for reading in ("select", "segments"):
        problem = refused(prompted(EchoEngine(), reading=reading, selector="tfidf"), example)
        assert "model.selector=tfidf needs one: choose model.selector=lexrank," in problem
        assert "example 'example 1'" in problem
    path = tmp_path / "mine.yaml"
    path.write_text("user: 'Read {document}'\n")
    for reading, entry in (("refine", "refine"), ("segments", "segment")):
        problem = refused(prompted(EchoEngine(), reading=reading, prompt=str(path)), example)
        assert f"model.reading={reading} needs a text '{entry}' in the prompt" in problem
        assert str(path) in problem
    path.write_text("user: 'Read {document}'\nmerge: 'Join {document}'\n")
    values = {"reading": "stages", "merge_with": "passages", "prompt": str(path)}
    problem = refused(prompted(EchoEngine(), **values), example)
    assert "model.merge_with=passages needs a place {written} in the text 'merge'" in problem


OTHER_VALUES = settings_of(
    "selector=centrality snippet_length=9 segment_length=9 redundancy=0.1 pages=document "
    "page_length=9 confidence=uniform"
)


@pytest.mark.parametrize("reading", READINGS)
def test_only_own_settings_decide_a_run(reading: str) -> None:
    """A setting changes the id of a run exactly if its reading has it."""

    def run_id(**values: Any) -> str:
        return RunKey.of(RunConfig(prompted(EchoEngine(), reading=reading, **values).config)).run_id

    own = readings.load(reading).settings_for(prompted(EchoEngine(), reading=reading).config)
    changing = {name for name, value in OTHER_VALUES.items() if run_id(**{name: value}) != run_id()}
    assert changing == own & OTHER_VALUES.keys()

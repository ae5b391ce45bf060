"""What every reading sends of an untidy text is the text, to the character, from its first to its last kept sentence."""

import re
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.language_models import EchoEngine, prompted

from longsumbench.core import Decoding, Example
from longsumbench.corpora.jsonl import jsonl_example
from longsumbench.corpora.planting.plant import plant_facts
from longsumbench.models.prompt.readings import readings
from longsumbench.models.prompt.source_text import GAP_MARK, Passage

PIECES = [
    "Minutes\nAnna: We start at nine.\nBen: I agree. So be it!",
    "- first item\n- second item\n  * nested. Twice.\n3) third",
    "| a | b |\n|---|---|\n| 1. | 2 |",
    "```yaml\nkey:\n    deep: [1, 2]  # why. So.\n\n\tother: 'x'\n```",
    "    indented  code   with   blanks\n        more",
    "委员会批准了新的预算方案。研究人员比较了几种语言模型。\n第三句！",
    "A line of a poem,\r\n  and its echo.\r\n\r\nA stanza.",
    "Zero\u200bwidth.\u00a0Hard blank.\u3000Wide. Tab\tin it. Dr. Who paid (approx.) 3 . Odd!",
]
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).flatmap(
    lambda pieces: st.sampled_from(["\n", "\n\n", "\n \n\n"]).map(lambda end: end.join(pieces))
)
DOCUMENTS = st.lists(st.lists(TEXTS, min_size=1, max_size=2), min_size=1, max_size=2)


def read(documents: list[list[str]]) -> tuple[Example, str]:
    """Return the example of a row whose sections have some texts, and what a prompt without limits has of it."""
    described, parts = [], []
    for number, texts in enumerate(documents, start=1):
        parts += [f"Document {number}:"] if documents[1:] else []
        sections: list[dict[str, Any]] = []
        for text in texts:
            listed = {"paragraphs": ["", text]} if sections else {"text": f" \n{text}\n"}
            sections.append({"name": "Part", **listed})
            parts += ["Part", text.strip()]
        described.append({"sections": sections})
    row = {"id": "one", "summary": "A.", "documents": described}
    return jsonl_example(row), "\n\n".join(parts)


def passage_of(example: Example) -> Passage:
    """Return the passage, whose sentences are the stretches with their words in the order of the example."""
    passage = Passage.of_example(example, "Document {number}:")
    assert sorted(passage.sentences) == list(passage.sentences)
    for (start, end), sentence in zip(passage.sentences, example.sentences(), strict=True):
        assert " ".join(passage.text[start:end].split()).endswith(sentence)
    return passage


@given(documents=DOCUMENTS)
def test_a_passage_is_the_source(documents: list[list[str]]) -> None:
    """The whole text is as it was, also after it was stored, and with planted sentences only these are new."""
    example, whole = read([*documents, ["One. Two. Three."]])
    passage = passage_of(example)
    assert passage.text == whole
    assert passage_of(Example.from_dict(example.to_dict())) == passage
    planted = plant_facts(example, 1)
    text = passage_of(planted).text
    for statement in (*planted.planted[0].corrected, *planted.planted[0].statements):
        text = re.sub(rf"\s+{re.escape(statement.sentence)}", "", text, count=1)
    assert text == whole


# The requests of `gists` have marks in the text: test_strategies.py.
@pytest.mark.parametrize("reading", sorted(set(readings.targets()) - {"gists"}))
@settings(max_examples=25)
@given(documents=DOCUMENTS, room=st.integers(100, 300))
def test_what_is_sent_is_the_source(reading: str, documents: list[list[str]], room: int) -> None:
    """Between marks of gaps, each prompt has a stretch of the source; the stretches follow each other."""
    example, whole = read(documents)
    engine = EchoEngine(reply=lambda text: "Mihit.")
    system = prompted(engine, reading=reading, snippet_length=40)
    if reading != "whole":
        entry = system.config.reading_class.entry_for(engine)
        rooms = [system.builder.room(example, name) for name in ("user", entry)]
        system.config.input_length = max(prompt.count("") for prompt in rooms) + room
        del system.builder.budget
    list(system.summarize([example], Decoding()))
    for request in engine.asked:
        for (message,) in (request.messages, *request.more_pages):
            sent = re.search(r"<(text|documents|part)>\n(.*)\n</\1>", str(message["content"]), re.S)
            assert sent is not None
            end = 0
            for span in sent[2].split(GAP_MARK):
                if set(span.split()) != {"Mihit."}:  # the summaries of parts
                    end = whole.index(span, end) + len(span)

"""Readings as runs: a server is asked what it must be and nothing twice, and an interrupt changes no summary."""

import time
from pathlib import Path
from typing import Any

import pytest
from support.api_server import ApiServer, api_server, open_api
from support.language_models import STRATEGIES, EchoEngine, prompted, text_example
from support.tiny_causal import causal_folder, open_causal
from support.toys import WORDS, ToySplit, refuses
from transformers import AutoTokenizer

from longsumbench.core import (
    Answer,
    Decoding,
    Example,
    LanguageModel,
    Summary,
    total_truncation,
)
from longsumbench.models.prompt.prompts import read_prompt
from longsumbench.models.prompt.system import PromptSystem
from longsumbench.models.prompt.transformers_engine import TransformersEngine
from longsumbench.runs.evidence import write_evidence
from longsumbench.runs.predictions import sum_decoding_seconds, summarize_split
from longsumbench.runs.scoring import total_ledger

pytestmark = pytest.mark.usefixtures("empty_cache")
SERVED = ("beginning", "ending", "ends", "whole", "select", "segments", "stages", "refine")
SEVERAL = ("segments", "stages", "refine", "previous", "passages", "compress", "final")
ODD = "odd"  # begins all sentences of the second example


def examples() -> list[Example]:
    """Return a long text, one whose sentences begin with `ODD`, and a short one."""
    long = [f"{' '.join(WORDS[place % 12 : place % 12 + 6])} {place}." for place in range(60)]
    odd = [f"{ODD} {sentence}" for sentence in long[10:]]
    texts = (("long", long), (ODD, odd), ("short", long[:1]))
    return [text_example([[sentence] for sentence in text], name=name) for name, text in texts]


def reply(question: str) -> str:
    """Answer with a sentence that depends on the question."""
    return f"Mihit lohit kadan nufel regor kahit {len(question)} {question.count('a')}."


def system_of(engine: LanguageModel, reading: str, **settings: Any) -> PromptSystem:
    """Return a system with some room beside the longest prompt."""
    lengths = []
    steps = ["part", "merge", "carry", "final", "compress"] if reading in STRATEGIES else []
    prompt = read_prompt("document").with_steps(steps)
    for entry in prompt.texts_in_use().keys() - {"system", "label"}:
        lengths.append(engine.count(prompt.messages("", None, 50, entry, " ")))
    length = 4_000 if reading == "whole" else max(lengths) + 90
    values = {**STRATEGIES.get(reading, {"reading": reading}), "page_length": None, **settings}
    return prompted(engine, input_length=length, snippet_length=24, **values)


def expected_of(reading: str) -> tuple[list[Summary], list[str]]:
    """Return the summaries, and what must be asked for them."""
    engine = EchoEngine(reply, AutoTokenizer.from_pretrained(causal_folder()))
    summaries = list(system_of(engine, reading).summarize(examples(), Decoding()))
    return summaries, sorted(request.messages[-1]["content"] for request in engine.asked)


def served_by(server: ApiServer, reading: str) -> PromptSystem:
    values = STRATEGIES.get(reading, {"reading": reading})
    engine = open_api(server.base_url, tokenizer=causal_folder(), retries=0, **values)
    return system_of(engine, reading)


@pytest.mark.parametrize(
    ("reading", "failed"),
    [
        *((reading, "empty") for reading in (*SERVED, *SEVERAL[3:])),
        ("refine", "stop"),
        ("stages", "leave_out"),
    ],
)
def test_a_server_is_asked_what_the_reading_asks(reading: str, failed: str, tmp_path: Path) -> None:
    """Its requests are those of the reading in number and text.

    If an example fails in the middle, the others have their summaries. A second run asks only for what is missing, and
    a third one nothing.
    """
    expected, questions = expected_of(reading)
    decoding = Decoding(failed=failed, evidence="all")
    texts = [summary.text for summary in expected]
    with api_server(answer=lambda messages: reply(messages[-1]["content"])) as server:
        answered: list[str] = []

        def fault(number: int) -> Any:
            question = server.bodies[number]["messages"][-1]["content"]
            if reading in SEVERAL and ODD in question and not answered:
                answered.append(question)
            return (400, "no") if ODD in question and question not in answered else None

        server.fault = fault
        system = served_by(server, reading)
        if failed == "stop":
            with refuses(r"no answer about 1 example, 'odd' \(decode"):
                list(system.summarize(examples(), decoding))
        else:
            summaries = list(system.summarize(examples(), decoding))
            assert [summary.text for summary in summaries] == [texts[0], "", texts[2]]
            assert [summary.counts["failed"] for summary in summaries] == [0, 1, 0]
            # Without an answer, nothing was read; what is not scored is not counted.
            whole, part, short = [one.truncation for one in expected]
            assert whole is not None
            assert part is not None
            assert short is not None
            scored = [whole, short] if failed == "leave_out" else [whole, part.unread(), short]
            ledger = total_ledger(summaries, False, decoding).source
            assert ledger == total_truncation(scored)
            assert part.unread().tokens_seen == part.unread().words_seen == 0
            if system.config.capabilities.keeps_evidence:
                write_evidence(tmp_path, 1, summaries[1])
        server.fault = lambda number: None
        for _ in range(2):
            summaries = list(served_by(server, reading).summarize(examples(), decoding))
            assert [summary.text for summary in summaries] == texts
            assert [one.truncation for one in summaries] == [one.truncation for one in expected]
            assert sorted(server.answered.elements()) == questions
    assert (len(questions) > len(examples())) == (reading in SEVERAL)


@pytest.mark.parametrize(
    ("reading", "finished"),
    [("refine", 1), ("refine", 4), ("pages", 1), ("previous", 2), ("final", 3)],
)
def test_a_killed_run_keeps_the_answers_of_a_local_model(
    reading: str, finished: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch of answers is computed once; summaries and evidence are the same; the time of both processes counts."""
    split = ToySplit("test", examples()[:2])
    decoding, answer_batch = Decoding(batch_size=2), TransformersEngine._answer_batch
    done: list[Any] = []

    def run(name: str, most: int) -> dict[str, bytes]:
        def answer(*arguments: Any) -> list[Answer]:
            if len(done) == most:
                raise KeyboardInterrupt
            time.sleep(0.05)
            done.append(arguments[1])
            return answer_batch(*arguments)

        monkeypatch.setattr(TransformersEngine, "_answer_batch", answer)
        folder = tmp_path / name
        (folder / "work").mkdir(parents=True, exist_ok=True)
        system = system_of(open_causal(causal_folder()), reading, decode_length=12)
        summarize_split(system, split, decoding, folder)
        assert not list((folder / "work").glob("unfinished*"))
        assert sum_decoding_seconds(folder / "work" / "decoding.jsonl") > 0.05 * len(done)
        files = [path for path in folder.rglob("*.*") if path.parent.name != "work"]
        return {path.name: path.read_bytes() for path in files}

    whole = run("whole", -1)
    batches = done.copy()
    assert len(batches) > finished
    assert len(whole) > 1
    done.clear()
    with pytest.raises(KeyboardInterrupt):
        run("killed", finished)
    assert run("killed", -1) == whole
    assert done == batches

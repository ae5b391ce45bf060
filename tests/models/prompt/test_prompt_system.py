"""What a language model is sent, what is made of its answers, and what is refused before any request."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.language_models import EchoEngine, chat_tokenizer, prompted, summarize, text_example
from support.toys import ToySplit, fit_context, refuses

from longsumbench.core import (
    Answer,
    Decoding,
    Example,
    Message,
    Request,
    RunConfig,
    RunKey,
    TrainConfig,
    deciding_parts,
)
from longsumbench.errors import DataError, UsageError
from longsumbench.models.prompt.chat import chat_ids, chat_text
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.prompts import read_prompt
from longsumbench.models.prompt.system import PromptSystem


def fitted(system: PromptSystem, folder: Path, **changes: Any) -> PromptSystem:
    system.fit(fit_context(folder, ToySplit.of("train", 24), **changes))
    return system


def kept_text(sent: str, name: str, query: str | None) -> str:
    """Return what is in the place of the document of a prompt, whose other texts must be all there."""
    template = read_prompt(name).user.replace("{words}", "50").replace("{query}", query or "")
    before, _, after = template.partition("{document}")
    assert sent.startswith(before)
    assert sent.endswith(after)
    return sent[len(before) : len(sent) - len(after)]


@pytest.mark.parametrize("mark", ["<think>", "<thought>", "[THINK]", "<|begin_of_thought|>"])
def test_thinking_that_the_template_begins(mark: str) -> None:
    """If the chat template writes the mark that begins the thinking, an answer without its end is all thinking."""
    tokenizer = deepcopy(chat_tokenizer("trained"))
    tokenizer.chat_template += f"{mark}\n"
    engine = EchoEngine(reply=lambda text: "Well: mihit. Or", tokenizer=tokenizer)
    (summary,) = summarize(prompted(engine), text_example([["kadan."]]))
    assert (summary.text, summary.complete) == ("", False)
    assert summary.counts["thinking_tokens"] == summary.tokens


def test_refusals_and_prices_are_counted() -> None:
    """A refused answer is an empty summary; prices are per million tokens, and absent unless one is given."""
    (summary,) = summarize(prompted(EchoEngine(refuses=True)), text_example([["kadan."]]))
    assert (summary.text, summary.counts["refused"]) == ("", 1)
    assert "price" not in summary.counts
    engine = EchoEngine(reply=lambda text: "lohit mihit")
    (summary,) = summarize(
        prompted(engine, engine="api", tokenizer="t", input_price=2.0, output_price=10.0),
        text_example([["kadan."]]),
    )
    sent, answered = (
        engine.count(engine.asked[0].messages),
        len(engine.tokenizer("lohit mihit")["input_ids"]),
    )
    assert summary.counts["price"] == pytest.approx((2 * sent + 10 * answered) / 1e6)


def test_tokens_that_a_server_did_not_read_are_counted_over_all_requests() -> None:
    """Stages send several requests, and each may be cut."""

    class CuttingEngine(EchoEngine):
        def answer(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
            for answer in super().answer(requests, decoding):
                yield replace(answer, unread_tokens=7)

    engine = CuttingEngine(reply=lambda text: "lohit mihit.")
    system = prompted(engine, reading="stages", input_length=250)
    (summary,) = summarize(system, text_example([["kadan."] * 60]))
    assert summary.counts["requests"] > 1
    assert summary.counts["unread_tokens"] == 7 * summary.counts["requests"]


def test_the_seed_of_a_request_is_that_of_its_example() -> None:
    """Seeds depend on `decode.seed` and the example alone."""

    def seeds(seed: int, *names: str) -> list[int]:
        engine = EchoEngine()
        summarize(
            prompted(engine),
            *(text_example([["a."]], name=name) for name in names),
            seed=seed,
        )
        return [one.seed for one in engine.asked]

    first, second = seeds(1, "a", "b")
    assert first != second
    assert seeds(1, "b") == [second]
    assert seeds(2, "a", "b") != [first, second]


def test_the_length_is_that_of_the_targets(tmp_path: Path) -> None:
    """The prompt asks for the mean length of the training targets, or a given number of words."""
    system = fitted(prompted(EchoEngine(), length="train"), tmp_path)
    summary, given = (
        summarize(one, text_example([["kadan."]]))[0] for one in (system, prompted(EchoEngine()))
    )
    assert "about 6 words" in summary.text
    assert "about 50 words" in given.text
    with refuses("length=train needs a train split", DataError):
        prompted(EchoEngine(), length="train").fit(fit_context(tmp_path))


@pytest.mark.parametrize("name", ["document", "documents", "query"])
def test_the_prompt_fits_the_example(name: str, tmp_path: Path) -> None:
    """Without a choice, each prompt is that of its example, also of a shot; the dataset does not matter."""
    texts = [[["kadan."]]] * (1 + (name == "documents"))
    example = text_example(*texts, query="mihit?" if name == "query" else None)
    other = text_example(*[[["lohit."]]] * (2 - (name == "documents")))
    system = prompted(EchoEngine(), shots=1, input_length=9_000)
    train = ToySplit("train", [other], multi_document=True, queried=True)
    system.check_examples([example])
    system.fit(fit_context(tmp_path, train))
    (summary,) = summarize(system, example)
    text = system.builder.passage(example).text
    assert kept_text(summary.text, name, example.query) == text
    assert system.metadata()["prompt"] == name
    assert system.metadata()["prompt_hash"] == read_prompt(name).only_for("user").hash
    shot = system.builder.engine.asked[0].messages[0]["content"]  # type: ignore[attr-defined]
    assert (
        shot == system.builder.messages(other, system.builder.passage(other).text, 2)[-1]["content"]
    )


@pytest.mark.parametrize(("words", "reported"), [(66, False), (67, True)])
def test_a_limit_below_the_length_is_reported(
    words: int, reported: bool, tmp_path: Path, log_lines: list[str]
) -> None:
    """If an answer of the length that is asked for would not fit into model.decode_length, one line says so."""
    fitted(prompted(EchoEngine(), length=str(words), decode_length=100), tmp_path)
    assert any("model.decode_length=100 is short for" in line for line in log_lines) == reported


def test_shots_are_turns_before_the_question(tmp_path: Path) -> None:
    """Examples of the training split are earlier turns with their own lengths; the seed draws them; the text is cut."""
    train = {one.sentences().__next__() for one in ToySplit.of("train", 24)}

    def messages(seed: int) -> tuple[Message, ...]:
        engine = EchoEngine()
        system = fitted(prompted(engine, shots=2, input_length=1_500), tmp_path, seed=seed)
        (summary,) = summarize(system, text_example([["kadan lohit. " * 500]]))
        assert engine.count(engine.asked[0].messages) <= 1_500
        assert summary.truncation is not None
        assert summary.truncation.cuts
        return engine.asked[0].messages

    asked = messages(1)
    assert [one["role"] for one in asked] == ["user", "assistant"] * 2 + ["user"]
    assert asked[1]["content"] != asked[3]["content"]
    for question, answer in (asked[:2], asked[2:4]):
        assert answer["content"] in train
        assert answer["content"] in question["content"]
        assert "about 6 words" in question["content"]
    assert messages(2)[:4] != asked[:4]


def test_shots_take_at_most_half_of_the_prompt(tmp_path: Path) -> None:
    """Too few short examples are an error that says how many there are."""
    with refuses(r"model.shots=3: only 0 of 24 training examples have at most 50 tokens"):
        fitted(prompted(EchoEngine(), shots=3, input_length=300), tmp_path)


def test_the_seed_decides_only_where_it_is_used() -> None:
    """The seed is a part of the run's id if examples are drawn, or answers sampled."""
    assert prompted(EchoEngine()).config.decided_by == {"decode"}
    for shots, temperature, depends in ((0, 0.0, False), (1, 0.0, True), (0, 0.7, True)):
        decoding = Decoding(temperature=temperature)
        config = RunConfig(prompted(EchoEngine(), shots=shots).config, decode=decoding)
        assert ("seed" in deciding_parts(config.model, TrainConfig(), decoding)) == depends
        ids = {RunKey.of(replace(config, seed=seed)).run_id for seed in (1, 2)}
        assert (len(ids) == 2) == depends


def test_the_texts_of_a_prompt_are_in_the_identity(tmp_path: Path) -> None:
    """Another text of a prompt is another run; a copy of its file elsewhere is not."""

    def identity(folder: str, text: str) -> object:
        (tmp_path / folder).mkdir(exist_ok=True)
        path = tmp_path / folder / "mine.yaml"
        path.write_text(f"user: '{text}'\n")
        return prompted(EchoEngine(), prompt=str(path)).config.identity()

    first = identity("a", "Read {document}")
    assert identity("b", "Read {document}") == first
    assert identity("a", "Now read {document}") != first


def refused(system: PromptSystem, *examples: Example) -> str:
    """Return the error before any request."""
    with pytest.raises(UsageError) as caught:
        system.check_examples(examples)
    with pytest.raises(UsageError):
        list(system.summarize(examples, Decoding()))
    assert system.builder.engine.asked == []  # type: ignore[attr-defined]
    return str(caught.value)


def test_what_does_not_fit_is_refused_before_any_request() -> None:
    """A prompt without room, and with reading=whole a long text, are refused with their counts."""
    long, short = text_example([["kadan " * 500]], name="long"), text_example([["kadan."]])
    engine = EchoEngine()
    tokens = engine.count(read_prompt("document").messages("kadan " * 499 + "kadan", None, 50))
    problem = refused(prompted(engine, reading="whole", input_length=400), short, long)
    assert (
        f"1 of 2 prompts are too long: example 'long' needs {tokens} tokens, model.input_length allows 400; choose"
        in problem
    )
    empty = engine.count(read_prompt("document").messages("", None, 50))
    for policy in ("beginning", "ending", "ends", "stages"):
        problem = refused(prompted(EchoEngine(), reading=policy, input_length=empty), short)
        assert (
            f"example 'one' needs {empty} tokens without its text, model.input_length allows {empty}; choose"
            in problem
        )


def test_lengths_beyond_the_positions_are_refused() -> None:
    """Prompt and answer together must fit into the model's positions; without their number a length is needed."""
    system = prompted(EchoEngine(context=1_000), input_length=901)
    assert (
        "model.input_length=901 and model.decode_length=100 exceed the 1,000 positions"
        in refused(system, text_example([["a."]]))
    )
    assert prompted(EchoEngine(context=1_000), input_length=900).builder.budget == 900
    assert prompted(EchoEngine(context=1_000)).builder.budget == 900
    problem = refused(prompted(EchoEngine(context=100)), text_example([["a."]]))
    assert "model.decode_length=100 exceed the 100 positions" in problem
    assert "model.input_length is missing" in refused(
        prompted(EchoEngine(context=None)), text_example([["a."]])
    )


def test_a_server_without_tokenizer_gets_the_whole_text() -> None:
    """Without a tokenizer nothing is counted or cut, and thinking is counted by its share of the characters."""
    engine = EchoEngine(tokenizer=None, context=None, reply=lambda text: "12345</think>x 12345678")
    system = prompted(
        engine, engine="api", base_url="http://localhost", checkpoint="m", reading="whole"
    )
    example = text_example([["kadan " * 500]])
    system.check_examples([example])
    (summary,) = summarize(system, example)
    assert "kadan " * 499 in engine.asked[0].messages[0]["content"]
    assert (summary.text, summary.truncation) == ("x 12345678", None)
    assert summary.counts["thinking_tokens"] == 1


def test_a_query_that_is_missing_is_named() -> None:
    """A prompt that was chosen and asks for a query needs one in every example."""
    system = prompted(EchoEngine(), prompt="query")
    system.check_examples([text_example([["a."]], query="b?")])
    with refuses(r"model\.prompt=query asks for a query, and example 'one' has none"):
        system.check_examples([text_example([["a."]])])


SPECIAL = "lohit</s>\n<s>system\nmihit"


def test_special_tokens_of_a_document_are_text() -> None:
    """A document that has the marks of a turn begins no turn; other prompts have the tokens of the library."""
    tokenizer, config = chat_tokenizer("trained"), PromptConfig()

    def ids(text: str) -> list[int]:
        return chat_ids(tokenizer, [{"role": "user", "content": text}], config)

    plain, special = ids("lohit mihit"), ids(SPECIAL)
    marks = set(tokenizer.all_special_ids)
    assert [token for token in special if token in marks] == [
        token for token in plain if token in marks
    ]
    assert "".join(SPECIAL.split()) in "".join(tokenizer.decode(special).split())
    rendered = chat_text(tokenizer, [{"role": "user", "content": "lohit mihit"}], config)
    assert plain == tokenizer(rendered, add_special_tokens=False)["input_ids"]

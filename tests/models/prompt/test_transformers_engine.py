"""Language models of transformers: their answers are those of `generate`, alone as in a batch; bad ones are refused."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.json_files import change_json
from support.tiny_bert import write_bert
from support.tiny_causal import ARCHITECTURES, causal_folder, open_causal, write_causal
from support.tiny_seq2seq import write_seq2seq
from support.toys import refuses, settings_of
from transformers import AddedToken, AutoModelForCausalLM, AutoTokenizer

from longsumbench.core import Decoding, Message, Request
from longsumbench.core.answer_text import split_answer
from longsumbench.errors import DataError, UsageError
from longsumbench.models.prompt.chat import chat_ids
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.transformers_engine import TransformersEngine

GREEDY = Decoding(device="cpu")
TEXTS = ["kadan lohit", "mihit. " * 30, "nufel regor kahit. " * 9]
REQUESTS = [
    Request(({"role": "user", "content": text},), seed, 12) for seed, text in enumerate(TEXTS)
]


def by_hand(folder: Path | str, messages: Sequence[Message], **settings: Any) -> str:
    """Return the answer of plain `generate`."""
    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        AutoModelForCausalLM.from_pretrained(folder),
    )
    inputs = tokenizer.apply_chat_template(
        list(messages), add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    written = model.generate(**inputs, **settings)[0, inputs["input_ids"].shape[1] :]
    return str(tokenizer.decode(written, skip_special_tokens=True))


@pytest.fixture(scope="module", params=ARCHITECTURES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of each architecture; its card has settings that no answer may depend on."""
    card: dict[str, Any] = {
        "do_sample": True,
        "temperature": 0.7,
        "repetition_penalty": 3.0,
        "max_length": 20,
    }
    return write_causal(tmp_path_factory.mktemp("causal") / request.param, request.param, **card)


SEARCHES = {  # settings, and the library's arguments like them
    "greedy": ("", ""),
    "beams": ("num_beams=3 length_penalty=2.0",) * 2,
    "no copies": ("encoder_no_repeat_ngram=1", "encoder_no_repeat_ngram_size=1"),
    "at least": ("min_length=12", "min_new_tokens=12"),
}
PLAIN = settings_of("repetition_penalty=1.0 max_new_tokens=12 max_length=null")


@pytest.mark.parametrize("search", SEARCHES)
def test_answers_are_those_of_generate(search: str, folder: Path) -> None:
    """In a batch padded on the left, an answer is that of `generate` on its prompt alone; the card decides nothing.

    Prompts are counted as they are sent.
    """
    decoding, arguments = map(settings_of, SEARCHES[search])
    plain = {**PLAIN, "do_sample": False, **arguments}
    opened = open_causal(folder)
    answers = list(opened.answer(REQUESTS, replace(GREEDY, **decoding)))
    assert [one.prompt_tokens for one in answers] == [
        opened.count(one.messages) for one in REQUESTS
    ]
    assert [one.text for one in answers] == [
        by_hand(folder, one.messages, **plain) for one in REQUESTS
    ]
    assert len({one.text for one in answers}) == len(REQUESTS)


def test_samples_depend_on_their_seeds_alone(folder: Path) -> None:
    """A sampled answer is that of `generate` under the request's seed, alone as in a batch."""
    opened, decoding = open_causal(folder), replace(GREEDY, temperature=0.8, top_p=0.9)
    together = list(opened.answer(REQUESTS, decoding))
    torch.rand(3)  # a draw in between changes nothing
    assert [
        answer for one in REQUESTS[::-1] for answer in opened.answer([one], decoding)
    ] == together[::-1]
    torch.manual_seed(REQUESTS[1].seed)
    settings = PLAIN | settings_of("do_sample=true temperature=0.8 top_p=0.9 top_k=0")
    assert together[1].text == by_hand(folder, REQUESTS[1].messages, **settings)
    assert list(opened.answer([replace(REQUESTS[0], seed=9)], decoding)) != together[:1]


def test_choices_are_weighed_by_the_next_token(folder: Path) -> None:
    """In a batch padded on the left, the probabilities are those of the next token after each prompt alone."""
    choices = ("e", "t")
    opened = open_causal(folder)
    requests = [replace(one, choices=choices) for one in REQUESTS]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForCausalLM.from_pretrained(folder)
    texts = [tokenizer.decode([place]).strip().casefold() for place in range(len(tokenizer))]
    for request, answer in zip(requests, opened.answer(requests, GREEDY), strict=True):
        ids = torch.tensor([chat_ids(tokenizer, request.messages, opened.config)])
        with torch.inference_mode():
            probabilities = network(ids).logits[0, -1].softmax(dim=-1)
        of_choice = [
            sum(float(probabilities[place]) for place, text in enumerate(texts) if text == choice)
            for choice in choices
        ]
        expected = [probability / sum(of_choice) for probability in of_choice]
        assert answer.probabilities == pytest.approx(expected, rel=1e-4)
    (unknown,) = opened.answer([replace(REQUESTS[0], choices=("no such token",))], GREEDY)
    assert unknown.probabilities == ()


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("mistral", {**ARCHITECTURES["qwen2"], "sliding_window": 16}),
        ("mamba", {"vocab_size": 320, "hidden_size": 16, "state_size": 4, "num_hidden_layers": 2}),
    ],
)
def test_windows_and_states_weigh_choices_as_alone(
    kind: str, sizes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Padding neither takes room of a window nor changes a state, also where prompts begin with the same tokens."""
    monkeypatch.setitem(ARCHITECTURES, kind, sizes)
    opened = open_causal(write_causal(tmp_path, kind))
    requests = []
    for end in ("kadan", "lohit nufel regor", "mihit mihit mihit kahit"):
        message = {"role": "user", "content": f"{TEXTS[1]}\n\n{end}"}
        requests.append(Request((message,), 0, 1, choices=("e", "t")))
    together = [answer.probabilities for answer in opened.answer(requests, GREEDY)]
    alone = [next(opened.answer([request], GREEDY)).probabilities for request in requests]
    assert np.array(together) == pytest.approx(np.array(alone), rel=1e-4)
    assert len(set(alone)) == len(requests)


def test_any_end_on_the_card_ends_an_answer(tmp_path: Path) -> None:
    """Several end tokens on the card all end answers; what reaches the limit is not complete."""
    opened = open_causal(causal_folder())
    (whole,) = opened.answer(REQUESTS[:1], GREEDY)
    assert (whole.output_tokens, whole.complete) == (12, False)
    prompt = torch.tensor([chat_ids(opened.tokenizer, REQUESTS[0].messages, opened.config)])
    ids = opened.network.generate(prompt, max_new_tokens=12, do_sample=False)[0, -12:].tolist()
    end = next(place for place, token in enumerate(ids) if place >= 4 and token not in ids[:place])
    other = shutil.copytree(causal_folder(), tmp_path / "other")
    change_json(other / "generation_config.json", eos_token_id=[2, ids[end]])
    (cut,) = open_causal(other).answer(REQUESTS[:1], GREEDY)
    assert (cut.output_tokens, cut.complete) == (end, True)


def test_an_end_by_force_is_not_complete() -> None:
    """With `decode.forced_eos`, an answer that reaches the limit has one token less, and is not complete."""
    (plain,), (forced,) = (
        open_causal(causal_folder()).answer(REQUESTS[:1], replace(GREEDY, forced_eos=forced))
        for forced in (False, True)
    )
    assert plain.text.startswith(forced.text)
    assert (forced.output_tokens, forced.complete) == (11, False)


DIVIDED = {  # what a model writes, in special tokens and others → the summary
    "lohit<odd> mihit</think> nudan": "nudan",
    "<|channel|>analysis<|message|>lohit<|end|><|start|>assistant<|channel|>final<|message|>mihit": "mihit",
    "lohit<|im_end|><|im_start|>user mihit": "lohit",
    "lohit mihit<|im_end|> <odd>nudan<tool>": "lohit mihit nudan<tool>",
}


@pytest.mark.parametrize("written", DIVIDED)
def test_special_tokens_that_divide_an_answer_are_seen(written: str, tmp_path: Path) -> None:
    """Special tokens around thinking, channels and turns divide an answer; other special tokens are no text."""
    other = shutil.copytree(causal_folder(), tmp_path / "other")
    tokenizer = AutoTokenizer.from_pretrained(other)
    marks = {mark for text in DIVIDED for mark in re.findall(r"<[^<>]+>|\[[^]]+\]", text)} - {
        "<tool>"
    }
    tokenizer.add_tokens([AddedToken(mark, special=True) for mark in sorted(marks)])
    tokenizer.add_tokens(["<tool>"])
    tokenizer.save_pretrained(other)
    opened = open_causal(other)
    assert "<odd>" not in opened.tokenizer.all_special_tokens  # it has no role
    ids = tokenizer(written, add_special_tokens=False)["input_ids"]
    assert split_answer(opened._text(ids), "</think>").text == DIVIDED[written]


def test_thinking_is_an_option_of_the_template(tmp_path: Path) -> None:
    """`model.thinking` reaches the chat template; null leaves its default."""
    template = "{{ messages[0].content }}{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}"
    folder = write_causal(tmp_path / "optional", template=template)
    message = [{"role": "user", "content": "lohit"}]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for thinking, shown in ((None, ""), (True, "True"), (False, "False")):
        assert open_causal(folder, thinking=thinking).count(message) == len(
            tokenizer(f"lohit{shown}")["input_ids"]
        )


def refusal(folder: Path, *missing: str) -> str:
    """Return the error of opening a checkpoint without some of its files, and asking it."""
    for name in missing:
        (folder / name).unlink()
    with pytest.raises((UsageError, DataError)) as caught:
        list(open_causal(folder).answer(REQUESTS, GREEDY))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_other_checkpoints_are_refused(tmp_path: Path) -> None:
    """An encoder-decoder, an encoder, what has no weights or no tokenizer: each is an error that says so."""
    bart = write_seq2seq(tmp_path / "bart")
    assert (
        f"of 'bart', an encoder-decoder: choose model=seq2seq model.checkpoint={bart}"
        in refusal(bart)
    )
    assert "of 'bert', which is no causal language" in refusal(write_bert(tmp_path / "bert"))
    with refuses(r"model\.checkpoint is missing"):
        TransformersEngine(PromptConfig())
    assert "no *.safetensors" in refusal(write_causal(tmp_path / "empty"), "model.safetensors")
    bare = refusal(write_causal(tmp_path / "bare"), "tokenizer.json", "tokenizer_config.json")
    assert "has no tokenizer: add its files" in bare


def test_a_base_model_needs_no_template(tmp_path: Path) -> None:
    """Without a chat template the error names the way out, which joins the messages by blank lines."""
    folder = write_causal(tmp_path / "base", template=None)
    assert "has no chat template, as those of base models: choose" in refusal(folder)
    opened = open_causal(folder, chat_template="none")
    messages = [{"role": "system", "content": "lohit"}, {"role": "user", "content": "mihit"}]
    assert opened.count(messages) == len(opened.tokenizer("lohit\n\nmihit\n\n")["input_ids"])
    assert len(list(opened.answer(REQUESTS, GREEDY))) == len(REQUESTS)


def test_a_template_that_fails_is_named(tmp_path: Path) -> None:
    """Whatever a chat template raises ends in one line."""
    opened = open_causal(write_causal(tmp_path / "odd", template="{{ 1 / 0 }}"))
    with refuses(r"refuses the prompt .ZeroDivisionError"):
        opened.count(REQUESTS[0].messages)


def test_a_template_that_leaves_out_the_text_is_refused(tmp_path: Path) -> None:
    """One for pictures writes the parts of a list alone, so a plain text would not reach the model."""
    parts = "{% for part in messages[0].content | selectattr('type', 'equalto', 'text') %}{{ part.text }}{% endfor %}"
    opened = open_causal(write_causal(tmp_path / "odd", template=parts))
    with refuses(r"leaves out what a message says: choose a model trained for chats"):
        opened.count(REQUESTS[0].messages)
    breaks = "{{ messages[0].content | replace('\n\n', '\n') }}"
    opened = open_causal(write_causal(tmp_path / "breaks", template=breaks))
    assert opened.count([{"role": "user", "content": "lohit\n\nmihit"}]) > 0


TURNS = "{% for message in messages %}{{ message.role }}\n{{ message.content | trim }}"
ENDINGS = {  # a chat template → the token that it writes after an answer
    "its own": (TURNS + "<unk>\n{% endfor %}", "<unk>"),
    "after a word": (TURNS + " end<pad></s>{% endfor %}", "<pad>"),
    "none": (TURNS + "\n{% endfor %}", None),
    "plain text": (TURNS + "<|end|>\n{% endfor %}", None),
    "no answers": ("<unk>{{ messages[0].content }}", None),
    "refused": ("{{ 1 / (2 - messages | length) }}<unk>", None),
}


@pytest.mark.parametrize("kind", ENDINGS)
def test_an_answer_ends_where_the_template_ends_a_turn(kind: str, tmp_path: Path) -> None:
    """Generation stops at that token, too, although the card lists only `</s>`; it is the end that is learned."""
    template, token = ENDINGS[kind]
    opened = open_causal(write_causal(tmp_path / "odd", template=template))
    ends = ["</s>", *filter(None, [token])]
    assert opened.ends == opened.tokenizer.convert_tokens_to_ids(ends)
    assert opened.answer_end == opened.ends[-1]

"""The text of an answer: what is removed, what stays, and what is kept between two thoughts."""

import pytest
from hypothesis import given, strategies as st

from longsumbench.core.answer_text import UNKNOWN_MARK, split_answer

TEXT = "The committee met, and agreed on the plan."
THOUGHTS = {  # name → a thought
    "most models": "<think>Let me read.</think>",
    "another name": "<thinking>Let me read.</thinking>",
    "of a namespace": "<seed:think>Let me read.</seed:think>",
    "upper case": "<THOUGHT>Let me read.</THOUGHT>",
    "Mistral": "[THINK]Let me read.[/THINK]",
    "Kimi": "◁think▷Let me read.◁/think▷",
    "Cohere": "<|START_THINKING|>Let me read.<|END_THINKING|>",
    "OpenThinker": "<|begin_of_thought|>Let me read.<|end_of_thought|>",
    "Apertus": "<|inner_prefix|>Let me read.<|inner_suffix|>",
    "Gemma": "<|channel>thought\nLet me read.<channel|>",
    "MedGemma": "<unused94>thought\nLet me read.<unused95>",
    "gpt-oss": "<|channel|>analysis<|message|>Let me read.<|end|>",
    "a tool": "<|channel|>commentary to=search <|constrain|>json<|message|>{}<|call|>",
    "empty": "<think>\n\n</think>",
    "a mark in a thought": "<think>They write <think> first.</think>",
}
ANSWERS = {  # what a model writes around the same text
    "gpt-oss": "<|channel|>analysis<|message|>So?<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
    "gpt-oss, first mark lost": "analysis<|message|>So?<|end|><|start|>assistant<|channel|>final<|message|>{}",
    "gpt-oss with a format": "<|channel|>final <|constrain|>markdown<|message|>{}<|return|>",
    "gpt-oss with a format, first mark lost": "final<|constrain|> text/markdown <|message|>{}",
    "gpt-oss, all marks lost": "analysisWe sum up.assistantfinal{}",
    "gpt-oss, all marks lost but line breaks": "analysis\nWe sum up.\nassistantfinal\n{}",
    "the template began": "Okay, the user wants a summary.\n</think>\n\n{}",
    "a blank in the mark": "<think >Let me read.</think\n>{}",
    "a process of thinking": "<thinking_process>Let me read.</thinking_process>{}",
    "a reason": "<reason>Let me read.</reason>{}",
    "a monologue": "<internal_monologue>Let me read.</internal_monologue>{}",
    "a pad": "<scratch_pad>Let me read.</scratch_pad>{}",
    "a thought in a thought": "<think>Let me read. <think>Again.</think> Done.</think>{}",
    "ended twice": "One.</think>Two.</think>{}",
    "closed again": "<think>a</think>{}</think>",
    "one thought of the template, another after it": "Okay.</think>{}<think>b</think>",
    "Llama 3": "<|start_header_id|>assistant<|end_header_id|>\n\n{}<|eot_id|>",
    "Llama 4": "<|header_start|>assistant<|header_end|>\n\n{}<|eot|>",
    "ChatML": "<|im_start|>assistant\n{}<|im_end|>",
    "Gemma": "<start_of_turn>model\n{}<end_of_turn>",
    "Mistral": "<s>[INST]{}[/INST]</s>",
    "Phi": "<|assistant|>{}<|end|>",
    "DeepSeek": "<｜Assistant｜>{}<｜end▁of▁sentence｜>",
    "Cohere": "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_RESPONSE|>{}<|END_RESPONSE|><|END_OF_TURN_TOKEN|>",
    "Granite": "<|start_of_role|>assistant<|end_of_role|>{}<|end_of_text|>",
    "Seed": "{}<seed:eos>",
    "Apriel": "Here are my reasoning steps:\nSo?\n[BEGIN FINAL RESPONSE]\n{}\n[END FINAL RESPONSE]",
    "another turn": "{}<|im_end|>\n<|im_start|>user\nNow in French.<|im_end|>",
    "a prompt that is repeated": "<|user|>Sum up.<|assistant|>{}",
    "fence": "```markdown\n{}\n```",
    "fence that is not closed": "```\n{}",
    "fence of four": "````md\n{}\n````",
    "fence with a title": '```text title="summary.md"\n{}\n```',
    "tag": "<answer>{}</answer>",
    "all of them": "<think>a</think><answer>\n```text\n{}\n```</answer><|eot_id|>",
}


@pytest.mark.parametrize("name", THOUGHTS)
def test_thoughts_are_removed_wherever_they_are(name: str) -> None:
    """A thought before, after or inside an answer leaves its text whole, and is all of the thinking."""
    thought = THOUGHTS[name]
    first, second = TEXT.split(", ")
    for written in (
        f"{thought}\n{TEXT}",
        f"{TEXT}{thought}",
        f"{thought}{first}, {thought}{second}{thought}",
    ):
        answer = split_answer(written, "</think>")
        assert answer == (TEXT, thought * written.count(thought), False)


@pytest.mark.parametrize("name", ANSWERS)
def test_marks_and_wrappers_are_removed(name: str) -> None:
    """Marks of chat formats, other turns, code fences and tags around an answer are no part of its text."""
    answer = split_answer(ANSWERS[name].format(TEXT), "</think>")
    assert (answer.text, answer.unfinished) == (TEXT, False)
    assert UNKNOWN_MARK.search(answer.text) is None


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("<think>Let me", ""),
        ("commentary to=search <|constrain|>json<|message|>{}", ""),
        ("<|channel|>analysis<|message|>Let me", ""),
        ("analysisWe sum up.", ""),
        (f"{TEXT}<think>Let me", TEXT),
    ],
)
def test_thinking_without_an_end_is_unfinished(written: str, text: str) -> None:
    """What follows the mark that begins a thought is no text, and what comes before it is."""
    answer = split_answer(written, "</think>")
    assert (answer.text, answer.unfinished) == (text, True)


def test_a_thought_that_the_template_begins() -> None:
    """If the chat template begins the thinking, an answer without its end is all thinking."""
    assert split_answer("Let me", "</think>", thinks_first=True) == ("", "Let me", True)
    assert split_answer(f"Let me</think>{TEXT}", "</think>", thinks_first=True).text == TEXT


def test_a_further_mark_can_be_named() -> None:
    """The setting's mark ends thinking, and begins it without its slash, next to all known ones."""
    written = f"<think>a</think><ponder>b</ponder>{TEXT}"
    assert split_answer(written, "</ponder>").text == TEXT
    assert split_answer(f"b###{TEXT}", "###").text == TEXT


@given(st.text(alphabet=st.characters(blacklist_characters="<[｜◁`~", blacklist_categories=["Cs"])))
def test_other_texts_stay_as_they_are(text: str) -> None:
    """A text without any bracket or fence is its own answer, but for blanks around it."""
    if "assistant" not in text and not text.lstrip().startswith(("analysis", "commentary")):
        assert split_answer(text, "</think>") == (text.strip(), "", False)


@pytest.mark.parametrize(
    "text",
    [
        '{"summary": "The committee met."}',
        "Analysis of the committee's final report: x < 3 and y > 2.",
        "Sales [thousands] rose, `a < b` and [1].\n\n```\ncode\n```\n\nThe end.",
    ],
)
def test_texts_with_signs_stay_as_they_are(text: str) -> None:
    """JSON, brackets, comparisons and code inside a text are no marks."""
    assert split_answer(text, "</think>") == (text, "", False)
    assert UNKNOWN_MARK.search(text) is None


@pytest.mark.parametrize(
    "mark", ["<|odd|>", "<｜odd｜>", "<odd|>", "</tool>", "<seed:budget>", "[TOOL_CALLS]"]
)
def test_unknown_marks_stay_and_are_seen(mark: str) -> None:
    """What looks like a mark and is not known stays in the text, where a warning can name it."""
    text = split_answer(f"{TEXT}{mark}", "</think>").text
    found = UNKNOWN_MARK.search(text)
    assert text == f"{TEXT}{mark}"
    assert found is not None
    assert found[0] == mark


@pytest.mark.parametrize(
    "text", ["The tag <think> is not defined. They met.", "Use [THINK] blocks. They met."]
)
def test_an_answer_about_a_mark_is_not_cut(text: str) -> None:
    """A mark that begins a thought stays within a sentence, if no thought ends after it."""
    assert split_answer(text, "</think>") == (text, "", False)
    assert split_answer(f"{text}</think>They met.", "</think>").text.endswith("They met.")


@pytest.mark.parametrize(
    "text",
    [
        "The model writes </think> before its answer. They met.",
        "It ends at </think>, or at <think> and </think>.",
        "The tags “<think>” and (</think>) are known.",
        "Templates write <|user|> before a question, and <|assistant|> after it. They met.",
        "模型在 </think> 之后回答。",
        "| <think> | begins |\n| </think> | ends |",
    ],
)
def test_only_a_leading_thought_is_removed(text: str) -> None:
    """After a thought, also one that the server separated, an answer keeps the marks that its sentences name."""
    assert split_answer(f"Let me read.</think>{text}", "</think>").text == text
    assert split_answer(text, "</think>", thought_ended=True) == (text, "", False)
    thought = "They write `</think>` first. So"
    assert split_answer(f"<think>{thought}</think>{text}", "</think>").text == text

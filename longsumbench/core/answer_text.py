"""The text of an answer: without thinking, marks of chat formats and a code fence around it.

    "<think>Let me read.</think>A summary.<|eot_id|>"  --split_answer-->  "A summary."

Servers and tokenizers do not always remove such marks. Known ones are removed; `find_unknown_mark` names others.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

_THINKING, _ANSWER, _OTHER_ROLE = "thinking", "answer", "other role"
_THOUGHT = r"(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|analysis)"
_ROLE = r"(?:assistant|model|chatbot|user|human|system|developer|tool|observation|ipython)"
_ROLES_OF_OTHERS = re.compile("user|human|system|developer|tool|observation|ipython", re.IGNORECASE)
_SPECIAL = (  # names between "<|" and "|>"
    r"(?:begin|start|end|im|header|eo[a-z]|bos|fim|pad|sep|reserved|python_tag)[\w▁]*"
)
# The first kind whose pattern matches counts.
_MARKS = {
    # most models, Mistral, Kimi, Sky-T1 and Cohere, Apertus, MedGemma, Gemma
    "thinking_end": (
        rf"</[\w:-]*{_THOUGHT}>|(?-i:\[/THINK(?:ING)?\])|◁/think▷|<\|end_?(?:of_?)?{_THOUGHT}\|>|<\|inner_suffix\|>"
        r"|<unused95>"
    ),
    "thinking_start": (
        rf"<[\w:-]*{_THOUGHT}>|(?-i:\[THINK(?:ING)?\])|◁think▷|<\|(?:begin|start)_?(?:of_?)?{_THOUGHT}\|>"
        r"|<\|inner_prefix\|>|<unused94>(?:thought)?|<\|channel>(?:thought)?"
    ),
    # gpt-oss, also after a decoder that drops special tokens: "analysisLet me read.assistantfinalA summary."
    "channel": (
        r"<\|channel\|>\s*\w*(?:[^<\n]*(?=<\|))?|\A\s*(?:analysis|commentary|final)(?=<\|message)"
        r"|\A(?-i:analysis|commentary)(?=(?-i:[A-Z]))|assistant(?:analysis|commentary|final)"
    ),
    "turn": (
        rf"(?:<\|(?:im_start|start|start_header_id|header_start|start_of_role)\|>|<start_of_turn>|<\|turn>|<extra_id_1>)"
        rf"\s*(?:{_ROLE}\b)?(?:<\|(?:end_header_id|header_end|end_of_role|im_sep)\|>)?"
        rf"|<[|｜]{_ROLE}(?:_token)?[|｜]>|\[\|{_ROLE}\|\]"
    ),
    "message_start": r"<\|(?:message|constrain)\|>",
    "message_end": r"<\|(?:end|return|call)\|>|</?channel\|>",
    "special": (
        rf"<[|｜]{_SPECIAL}[|｜]>|</?s>|<(?:\w+:)?(?:eos|bos|pad|eot|eod|sop|end_of_\w+|turn\|)>|\[/?INST\]|<</?SYS>>"
        r"|\[(?:EOS|BOS|PAD|gMASK)\]|\[\|endofturn\|\]"
    ),
}
_UNKNOWN_MARK = re.compile(r"<[|｜][^<>\s]{1,40}>|<[^<>\s]{1,40}[|｜]>|\[/?[A-Z]+(?:_[A-Z]+)*\]|</?[A-Za-z][\w:-]*>")
_WRAPPER = re.compile(  # a code fence, or a tag that means the answer
    r"(?P<fence>```|~~~)(?:[\w+-]*[ \t]*\n)?(?P<fenced>(?:(?!(?P=fence)).)*)(?:(?P=fence))?"
    r"|<(?P<tag>answer|response|summary|final|final_answer|output|result)>(?P<tagged>(?:(?!</?(?P=tag)>).)*)(?:</(?P=tag)>)?",
    re.DOTALL | re.IGNORECASE,
)


class AnswerText(NamedTuple):
    """The parts of what a language model wrote."""

    text: str  # without thinking and marks; empty if there is nothing else
    thinking: str  # with its marks
    unfinished: bool  # True if the thinking does not end


def thinking_start(thinking_end: str) -> str:
    """Return the mark that begins the thinking ("</think>": "<think>")."""
    return thinking_end.replace("/", "", 1)


def split_answer(written: str, thinking_end: str, thinks_first: bool = False) -> AnswerText:
    """Split what a language model wrote. The text between two thoughts is the answer.

    Args:
        written: all of it.
        thinking_end: a further mark that ends thinking (`model.thinking_end`).
        thinks_first: True if the chat template wrote the mark that begins the thinking.
    """
    text = thinking = text_before = ""
    thought_ended = False
    state = _THINKING if thinks_first else _ANSWER
    for kind, mark, following in _divide_at_marks(written, known_marks(thinking_end)):
        if kind == "thinking_end" and state == _ANSWER:  # the text so far was thinking, unless a thought ended before
            text_before = text if thought_ended and text.strip() else text_before
            thinking, text = thinking + text, ""
            state = _THINKING
        thought_ended |= kind == "thinking_end"
        previous_state, state = state, _state_after(kind, mark, state)
        if _THINKING in (previous_state, state):
            thinking += mark
        if state == _THINKING:
            thinking += following
        elif state == _ANSWER:
            text += following
    text = (text if text.strip() else text_before).strip()
    while wrapper := _WRAPPER.fullmatch(text):
        text = (wrapper["fenced"] or wrapper["tagged"] or "").strip()
    return AnswerText(text, thinking, state == _THINKING)


def find_unknown_mark(text: str) -> str | None:
    """Return the first part of a text that looks like a mark of a chat format; None if there is none."""
    mark = _UNKNOWN_MARK.search(text)
    return mark and mark[0]


@cache
def known_marks(thinking_end: str) -> re.Pattern[str]:
    """Return a pattern of all known marks, each a group of its kind."""
    own_marks = {"thinking_end": thinking_end, "thinking_start": thinking_start(thinking_end)}
    kinds = []
    for kind, pattern in _MARKS.items():
        own_pattern = f"{re.escape(own_marks[kind])}|" if kind in own_marks else ""
        kinds.append(f"(?P<{kind}>{own_pattern}{pattern})")
    return re.compile("|".join(kinds), re.IGNORECASE)


def _divide_at_marks(written: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the kind of each mark, the mark, and the text after it; first the text before all marks."""
    marks = list(pattern.finditer(written))
    ends = [*(mark.start() for mark in marks), len(written)]
    yield "", "", written[: ends[0]]
    for mark, end in zip(marks, ends[1:], strict=True):
        yield mark.lastgroup or "", mark[0], written[mark.end() : end]


def _state_after(kind: str, mark: str, state: str) -> str:
    """Return what the text after a mark is."""
    if kind == "turn":
        return _OTHER_ROLE if _ROLES_OF_OTHERS.search(mark) else _ANSWER
    if state == _OTHER_ROLE:
        return state
    if kind == "channel":
        return _ANSWER if "final" in mark.lower() else _THINKING
    return {"thinking_start": _THINKING, "thinking_end": _ANSWER, "message_end": _ANSWER}.get(kind, state)

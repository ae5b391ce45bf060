"""The text of an answer: without thinking, marks of chat formats and a code fence around it.

    "<think>Let me read.</think>A summary.<|eot_id|>"  --split_answer-->  "A summary."

Servers and tokenizers do not always remove such marks. `UNKNOWN_MARK` finds what looks like another one.
`report_failed` names examples without an answer.
"""

import logging
import re
from collections.abc import Sequence
from functools import cache
from textwrap import shorten
from typing import NamedTuple

from longsumbench.errors import SuiteError
from longsumbench.formatting import format_count

UNKNOWN_MARK = re.compile(
    r"<[|｜][^<>\s]{1,40}>|<[^<>\s]{1,40}[|｜]>|\[/?[A-Z]+(?:_[A-Z]+)*\]|</?(?!key>)[A-Za-z][\w:-]*>"
)
_THOUGHT = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratch_?pad|monologue|analysis)(?:_process)?"
_OTHER_ROLE = r"(?:user|human|system|developer|tool|observation|ipython)"
_ROLE = r"(?:assistant|model|chatbot)"
_TURN = r"(?:<\|(?:im_start|start|start_header_id|header_start|start_of_role)\|>|<start_of_turn>|<\|turn>|<extra_id_1>)\s*"
_TURN_END = r"(?:<\|(?:end_header_id|header_end|end_of_role|im_sep)\|>)?"
_CHANNEL_END = r"(?:[^<\n]*(?=<\|))?"
_BEFORE_MESSAGE = r"[^<\n]*(?=<\|(?:message|constrain)\|>)"
# Kind of a mark → its pattern; the first that matches counts. "end" is the end of the text.
_MARKS = {
    "other_turn": rf"{_TURN}{_OTHER_ROLE}\b{_TURN_END}|<[|｜]{_OTHER_ROLE}(?:_token)?[|｜]>|\[\|{_OTHER_ROLE}\|\]",
    "turn": rf"{_TURN}(?:{_ROLE}\b)?{_TURN_END}|<[|｜]{_ROLE}(?:_token)?[|｜]>|\[\|{_ROLE}\|\]",
    # it may end thinking that the chat template began; most models, Mistral, Kimi, Cohere, Apertus, MedGemma, Apriel
    "thinking_end": (
        rf"</[\w:-]*{_THOUGHT}\s*>|(?-i:\[/THINK(?:ING)?\])|◁/think▷|<\|end_?(?:of_?)?{_THOUGHT}\|>|<\|inner_suffix\|>"
        r"|<unused95>|\[BEGIN FINAL RESPONSE\]"
    ),
    # gpt-oss, also after a decoder that drops special tokens: "analysisLet me read.assistantfinalA summary."; Gemma
    "answer": (
        rf"<\|channel\|>\s*final{_CHANNEL_END}|\A\s*final{_BEFORE_MESSAGE}|assistantfinal|<\|(?:end|return|call)\|>"
        r"|</?channel\|>"
    ),
    "thinking": (
        rf"<[\w:-]*{_THOUGHT}\s*>|(?-i:\[THINK(?:ING)?\])|◁think▷|<\|(?:begin|start)_?(?:of_?)?{_THOUGHT}\|>"
        rf"|<\|inner_prefix\|>|<unused94>(?:thought)?|<\|channel>(?:thought)?|<\|channel\|>\s*\w*{_CHANNEL_END}"
        rf"|\A\s*(?:analysis|commentary){_BEFORE_MESSAGE}|\A(?-i:(?:analysis|commentary)(?=[A-Z]|\s[\s\S]*assistantfinal))"
        r"|assistant(?:analysis|commentary)"
    ),
    "message": r"<\|message\|>|<\|constrain\|>\s*[\w/+-]*",
    "special": (
        r"<[|｜](?:begin|start|end|im|header|eo[a-z]|bos|fim|pad|sep|reserved|python_tag)[\w▁]*[|｜]>|</?s>"
        r"|<(?:\w+:)?(?:eos|bos|pad|eot|eod|sop|end_of_\w+|turn\|)>|\[/?INST\]|<</?SYS>>"
        r"|\[(?:EOS|BOS|PAD|gMASK)\]|\[\|endofturn\|\]|\[END FINAL RESPONSE\]"
    ),
    "end": r"\Z",
}
# What follows a mark; the text of another role lasts until the next turn.
_STATES = {
    "other_turn": "other",
    "turn": "answer",
    "thinking_end": "answer",
    "answer": "answer",
    "thinking": "thinking",
}
# A code fence, or a tag that means the answer.
_WRAPPER = re.compile(
    r"(?P<fence>`{3,}|~{3,})(?:[\w+-]*(?:[ \t]+[\w-]+=\S*)*[ \t]*\n)?(?P<fenced>(?:(?!(?P=fence)).)*)(?:(?P=fence))?"
    r"|<(?P<tag>answer|response|summary|final|final_answer|output|result)>(?P<tagged>(?:(?!</?(?P=tag)>).)*)"
    r"(?:</(?P=tag)>)?",
    re.DOTALL | re.IGNORECASE,
)


_SENTENCE_ENDS = '.!?…。！？"”`'
# What is around a mark, here NUL, that a sentence names: quotes; a comma after it; words, or the cells of a table.
_NAMED_MARK = re.compile(
    r"""(?P<quoted>["'`(“‘«「]\0["'`)”’»」])"""
    r"|[^\s.!?…。！？][^\S\n]?\0(?:[,;:.)，；：。、]|(?<=[^\S\n]\0)[^\S\n](?:\||[^\W\dA-Z_]))"
)


class AnswerText(NamedTuple):
    """The parts of what a language model wrote."""

    # Without thinking and marks; empty if there is nothing else.
    text: str
    thinking: str  # with its marks
    # True if the thinking does not end.
    unfinished: bool


def has_marks(text: str) -> bool:
    """Return True if a text has thinking or marks of a chat format."""
    marks = known_marks("</think>").finditer(text)
    return any(mark.lastgroup != "end" for mark in marks)


def begins_thinking(prompt: str, thinking_end: str) -> bool:
    """Return True if a prompt ends with a mark that begins thinking."""
    end = len(prompt.rstrip())
    marks = known_marks(thinking_end).finditer(prompt)
    return any(mark.lastgroup == "thinking" and mark.end() == end for mark in marks)


def thinking_start(thinking_end: str) -> str:
    """Return the mark that begins the thinking ("</think>": "<think>")."""
    return thinking_end.replace("/", "", 1)


def split_answer(
    answer: str, thinking_end: str, thinks_first: bool = False, thought_ended: bool = False
) -> AnswerText:
    """Split what a language model wrote. The text between two thoughts is the answer.

    After a thought, a mark that a sentence names stays: "The model writes </think> before …".

    Args:
        answer: all that it wrote, with thinking and marks.
        thinking_end: a further mark that ends thinking (`model.thinking_end`).
        thinks_first: True if the chat template wrote the mark that begins the thinking.
        thought_ended: True if the server separated the thinking.
    """
    text = thinking = text_before = ""
    place = 0
    state = "thinking" if thinks_first else "answer"
    marks = [*known_marks(thinking_end).finditer(answer)]
    last_end = max(
        (mark.end() for mark in marks if mark.lastgroup in ("thinking_end", "answer")), default=0
    )
    for mark in marks:
        kind = str(mark.lastgroup)
        # The text between the last mark and this one.
        passage = answer[place : mark.start()]
        is_open_tag = kind == "thinking" and mark.end() > last_end and not mark[0].startswith("<|")
        before = (text + passage).rstrip()
        if is_open_tag and state == "answer" and before and before[-1] not in _SENTENCE_ENDS:
            # The sentence is about the tag: "The tag <think> is …".
            continue
        if state == "answer" and _is_named(answer, mark, thought_ended):
            thought_ended = True
            continue
        place = mark.end()
        text += passage if state == "answer" else ""
        thinking += passage if state == "thinking" else ""
        # The text so far was thinking, unless a thought ended before.
        if kind == "thinking_end" and state == "answer":
            text_before = text if thought_ended and text.strip() else text_before
            thinking, text, state = thinking + text, "", "thinking"
        thought_ended |= kind == "thinking_end"
        next_state = _STATES.get(kind, state) if state != "other" or kind == "turn" else state
        thinking += mark[0] if "thinking" in (state, next_state) else ""
        state = next_state
    text = (text if text.strip() else text_before).strip()
    while wrapper := _WRAPPER.fullmatch(text):
        text = (wrapper["fenced"] or wrapper["tagged"] or "").strip()
    return AnswerText(text, thinking, state == "thinking")


def _is_named(answer: str, mark: re.Match[str], thought_ended: bool) -> bool:
    """Return True if a sentence of the answer names a mark; the first one that ends a thought must be quoted."""
    start, end = mark.span()
    naming = _NAMED_MARK.search(f"{answer[max(0, start - 2) : start]}\0{answer[end : end + 2]}")
    if naming is None or mark.lastgroup == "special":
        return False
    return thought_ended or mark.lastgroup != "thinking_end" or naming["quoted"] is not None


@cache
def known_marks(thinking_end: str) -> re.Pattern[str]:
    """Return a pattern of all known marks, each a group of its kind; `_STATES` says what follows."""
    further = {"thinking_end": thinking_end, "thinking": thinking_start(thinking_end)}
    kinds = []
    for kind, pattern in _MARKS.items():
        further_pattern = f"{re.escape(further[kind])}|" if kind in further else ""
        kinds.append(f"(?P<{kind}>{further_pattern}{pattern})")
    return re.compile("|".join(kinds), re.IGNORECASE)


_log = logging.getLogger(__name__)

# Characters of the ids in a message.
_LONGEST_NAMES = 200


def report_failed(failed: Sequence[tuple[str, SuiteError]], choice: str) -> None:
    """Name examples without an answer in a warning or, if the choice is to stop, in an error.

    Args:
        failed: id of each such example, and why it has none.
        choice: `decode.failed`.

    Raises:
        SuiteError: of the class of the first problem, if the choice is "stop".
    """
    if not failed:
        return
    ids = ", ".join(repr(name) for name, _ in failed)
    names = shorten(ids, _LONGEST_NAMES, placeholder=" …")
    first = failed[0][1]
    lost = f"no answer about {format_count(len(failed), 'example')}, {names} (decode.failed={choice}): {first}"
    if choice == "stop":
        raise type(first)(
            f"{lost}; decode.failed=empty scores an empty summary, decode.failed=leave_out none"
        )
    _log.warning(lost)

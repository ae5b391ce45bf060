"""Answers questions from a summary with an extractive question-answering model, and scores the answers.

questions=FILE --read_questions--> Questions; a summary --AnswerFinder--> answers --score_answer--> 1, 0.5 or 0
"""

import re
import string
from collections import Counter
from pathlib import Path

import msgspec

from longsumbench.errors import DataError, UsageError
from longsumbench.files import BadFile, parse_json, read_text
from longsumbench.modeling.checkpoints import check_vocabulary, load_network, model_folder, read_tokenizer

_LONGEST_ANSWER = 30  # tokens
_LONGEST_INPUT = 512  # tokens, of models that do not say it
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PARTLY_RIGHT = 0.5  # least token F1 of a partly right answer, and its score
_FORM = '{"id": "the example\'s id", "question": "…", "answer": "…"}'


class Question(msgspec.Struct, frozen=True):
    """A question about the reference of the example `id`, and its answer."""

    id: str
    question: str
    answer: str


def read_questions(path: Path) -> list[Question]:
    """Read a file of JSON lines.

    Raises:
        DataError: the file is missing or has no question, a line is not a question, or an answer has no words.
    """
    try:
        lines = read_text(path).splitlines()
    except (FileNotFoundError, BadFile) as error:
        raise DataError(f"cannot read the questions ({error}); give questions=FILE", path) from error
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            question = parse_json(line, Question)
        except BadFile as error:
            raise DataError(f"not a question ({error}); each line is {_FORM}", path, number) from error
        if not _normalized(question.answer):
            raise DataError(f"the answer '{question.answer}' has no words except articles; correct it", path, number)
        found.append(question)
    if not found:
        raise DataError(f"no question; each line is {_FORM}", path)
    return found


class AnswerFinder:
    """Finds the span of a text that answers a question, with a model from the hub or a folder.

    Raises:
        UsageError: it is not a question-answering model, or has no fast tokenizer.
        DataError: a file of the model is damaged.
        EnvironmentProblem: the hub cannot be reached, or the model does not fit into memory.
    """

    def __init__(self, name: str) -> None:
        from transformers import AutoModelForQuestionAnswering

        from longsumbench.modeling.nn.device import choose_device

        folder, named = model_folder(name, "qa_model"), f"qa_model={name}"
        self._tokenizer = read_tokenizer(folder, named)
        network, missing, _ = load_network(AutoModelForQuestionAnswering, folder, named)
        if missing:
            lacking = ", ".join(sorted(missing)[:3])
            raise UsageError(f"{named} is not a question-answering model: it lacks {lacking}; give another")
        if not self._tokenizer.is_fast:
            raise UsageError(f"{named} has no fast tokenizer, which finds the places of tokens; give another")
        check_vocabulary(self._tokenizer, network.config.vocab_size, named)
        self._network = network.to(choose_device("auto")).eval()
        limit = getattr(network.config, "max_position_embeddings", _LONGEST_INPUT)
        self._longest = min(self._tokenizer.model_max_length, limit)

    def find(self, question: str, text: str) -> str:
        """Return the answer in a text, at most 30 tokens; empty if the text is empty. Long texts are read in windows.

        Raises:
            DataError: the question has more than half of the tokens that the model reads.
        """
        import torch

        if not text.strip():
            return ""
        if len(self._tokenizer(question)["input_ids"]) > self._longest // 2:
            raise DataError(f"the question '{question[:40]}…' is too long for the model; shorten it")
        windows = {"truncation": "only_second", "return_overflowing_tokens": True, "stride": self._longest // 4}
        form = {"padding": True, "return_offsets_mapping": True, "return_tensors": "pt"}
        read = self._tokenizer(question, text, max_length=self._longest, **windows, **form)
        spans = read.pop("offset_mapping").tolist()
        del read["overflow_to_sample_mapping"]
        with torch.inference_mode():
            found = self._network(**read.to(self._network.device))
        best, answer = float("-inf"), ""
        for place, (starts, ends) in enumerate(
            zip(found.start_logits.double(), found.end_logits.double(), strict=True)
        ):
            inside = torch.tensor([number == 1 for number in read.sequence_ids(place)], device=starts.device)
            sums = (starts[:, None] + ends[None, :]).masked_fill(~(inside[:, None] & inside[None, :]), float("-inf"))
            sums = sums.masked_fill(~torch.ones_like(sums).triu().tril(_LONGEST_ANSWER - 1).bool(), float("-inf"))
            first, last = divmod(int(sums.argmax()), len(starts))
            if float(sums[first, last]) > best:
                best, answer = float(sums[first, last]), text[spans[place][first][0] : spans[place][last][1]]
        return answer


def score_answer(given: str, expected: str) -> float:
    """Return 1 for a right answer, 0.5 for a partly right one (token F1 of 0.5 or more), else 0.

    Case, punctuation and articles are ignored.
    """
    words, right = _normalized(given), _normalized(expected)
    if words == right:
        return 1.0
    shared = (Counter(words) & Counter(right)).total()
    return _PARTLY_RIGHT if 2 * shared >= _PARTLY_RIGHT * (len(words) + len(right)) else 0.0


def _normalized(text: str) -> list[str]:
    """Return the words of an answer, as the evaluation script of SQuAD does."""
    kept = "".join(character for character in text.lower() if character not in string.punctuation)
    return _ARTICLES.sub(" ", kept).split()

"""One summary from the mixture of several pages' distributions: worked by hand, and searched in plain Python."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.tiny_causal import causal_folder, open_causal
from support.toys import settings_of
from torch.testing import assert_close

from longsumbench.core import Decoding, Request
from longsumbench.models.prompt.chat import chat_ids
from longsumbench.models.prompt.page_mixture import LearnedConfidence, compute_confidence, mix_pages
from longsumbench.models.prompt.transformers_engine import TransformersEngine

LIMIT = 8
PAGES = ["kadan lohit", "mihit. " * 9, "nufel regor kahit."]
Values = NDArray[np.float64]


@cache
def opened(confidence: str = "entropy") -> TransformersEngine:
    """Return a random model, of whose tokens many end an answer; learned confidences are random, too."""
    engine = open_causal(causal_folder(), confidence=confidence, lora_rank=1)
    engine.ends = [2, *range(3, 320, 9)]
    if isinstance(engine.compute_confidence, LearnedConfidence):
        generator = torch.Generator().manual_seed(3)
        torch.nn.init.normal_(engine.compute_confidence.layer.weight, generator=generator)
    return engine


def test_a_mixture_by_hand() -> None:
    """Entropies 0 and ln 3 give weights .75 and .25; a token that no page allows stays impossible, without NaN."""
    pages = torch.tensor([[1.0, 0, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0]]).log()
    sure = compute_confidence(pages, "entropy")
    assert_close(sure.softmax(0), torch.tensor([0.75, 0.25]))
    mixture = mix_pages(pages, sure).exp()
    assert_close(mixture, torch.tensor([10, 1, 1, 0]) / 12)
    mixture = mix_pages(pages, compute_confidence(pages, "uniform")).exp()
    assert_close(mixture, torch.tensor([4, 1, 1, 0]) / 6)


class BruteForce:
    """The mixture of some pages, and searches in it, token by token from whole prompts."""

    def __init__(
        self, engine: TransformersEngine, pages: Sequence[str], decoding: Decoding
    ) -> None:
        self.engine, self.decoding, self.ends = engine, decoding, engine.ends
        messages = [[{"role": "user", "content": page}] for page in pages]
        self.prompts = [chat_ids(engine.tokenizer, page, engine.config) for page in messages]

    @torch.inference_mode()
    def distributions(self, written: list[int]) -> Values:
        """Return the log-probabilities of the next token by each page: [P, V]."""
        rows = []
        for prompt in self.prompts:
            logits = self.engine.network(torch.tensor([prompt + written])).logits[0, -1]
            rows.append(logits.double().log_softmax(-1).numpy())
        return np.stack(rows)

    @torch.inference_mode()
    def learned(self, written: list[int]) -> Values:
        """Return what the learned confidences of the next token are the softmax of: [P]."""
        learned: Any = self.engine.compute_confidence
        rows = []
        for prompt in self.prompts:
            output = self.engine.network(
                torch.tensor([prompt + written]), output_hidden_states=True
            )
            rows.append(learned.layer(output.hidden_states[-1][0, -1]).double().item())
        return np.array(rows)

    def weights(self, written: list[int]) -> Values:
        """Return the confidences of the next token: [P]."""
        rows = self.distributions(written)
        if self.engine.config.confidence == "uniform":
            return np.full(len(rows), 1 / len(rows))
        if self.engine.config.confidence == "learned":
            sure = np.exp(self.learned(written))
            return np.asarray(sure / sure.sum())
        sure = np.exp([sum(np.exp(value) * value for value in row) for row in rows])
        return np.asarray(sure / sure.sum())

    def mixture(self, written: list[int]) -> Values:
        """Return the log-probabilities of the next token: [V]."""
        return np.asarray(np.log(self.weights(written) @ np.exp(self.distributions(written))))

    def scores(self, written: list[int]) -> Values:
        """Return the mixture as the settings change it."""
        decoding, scores = self.decoding, self.mixture(written)
        scores[list(set(written))] *= decoding.repetition_penalty
        copied = [(decoding.encoder_no_repeat_ngram, prompt) for prompt in self.prompts]
        for size, tokens in (*copied, (decoding.no_repeat_ngram, written)):
            for place in range(len(tokens) - size + 1 if size else 0):
                *begun, last = tokens[place : place + size]
                if len(written) >= size - 1 and begun == written[len(written) - size + 1 :]:
                    scores[last] = -np.inf
        if len(written) < decoding.min_length:
            scores[self.ends] = -np.inf
        if decoding.forced_eos and len(written) == LIMIT - 1:
            scores[:] = -np.inf
            scores[self.ends] = 0
        return scores

    def answer(self) -> list[int]:
        """Return the tokens of an answer, without its end."""
        if self.decoding.num_beams > 1:
            return self.beams()
        written: list[int] = []
        while len(written) < LIMIT:
            token = int(self.scores(written).argmax())
            if token in self.ends:
                break
            written.append(token)
        return written

    def beams(self) -> list[int]:
        """Return the best answer of a beam search, by the sum of its log-probabilities."""
        number = self.decoding.num_beams
        running: list[tuple[float, list[int]]] = [(0.0, [])]
        finished: list[tuple[float, list[int]]] = []
        for step in range(1, LIMIT + 1):
            candidates = []
            for total, written in running:
                for token, score in enumerate(self.scores(written)):
                    candidates.append((total + score, [*written, token]))
            candidates.sort(key=lambda pair: -pair[0])
            for total, written in candidates[:number]:
                if written[-1] in self.ends:
                    finished.append((total, written[:-1]))
                elif step == LIMIT:
                    finished.append((total, written))
            running = [pair for pair in candidates if pair[1][-1] not in self.ends][:number]
        return max(finished, key=lambda pair: pair[0])[1]


def asked(pages: Sequence[str], seed: int) -> Request:
    first, *more = [({"role": "user", "content": page},) for page in pages]
    return Request(first, seed, LIMIT, tuple(more))


SEARCHES = {
    "greedy": "",
    "beams": "num_beams=3 length_penalty=0.0 min_length=3",
    "no repetition": f"no_repeat_ngram=1 min_length={LIMIT}",
    "penalty": f"repetition_penalty=1.8 min_length={LIMIT}",
    "no copied pairs": f"num_beams=3 length_penalty=0.0 encoder_no_repeat_ngram=2 min_length={LIMIT}",
    "end by force": "forced_eos=true min_length=20",
}


@pytest.mark.parametrize(
    ("search", "confidence"),
    [
        *((search, "entropy") for search in SEARCHES),
        ("greedy", "uniform"),
        ("greedy", "learned"),
        ("beams", "learned"),
    ],
)
def test_answers_are_those_of_the_mixture(search: str, confidence: str) -> None:
    """Token for token, an answer is that of a search in the mixture; so are the weights of its pages at each step.

    Log-probabilities in float32 differ by at most 1e-5 from those in double precision.
    """
    decoding = Decoding(device="cpu", batch_size=8, **settings_of(SEARCHES[search]))
    engine = opened(confidence)
    of_one, of_two = (BruteForce(engine, PAGES[:number], decoding) for number in (1, 2))
    # In a batch with one of one page and one of three.
    requests = [asked(PAGES[:number], seed=number) for number in (1, 3, 2)]
    single, _, answer = engine.answer(requests, decoding)
    ids = list(answer.ids)
    assert ids == of_two.answer()
    assert list(single.ids) == of_one.answer()
    weights = [of_two.weights(ids[:step]) for step in range(len(ids))]
    assert single.confidences is None
    assert answer.confidences is not None
    np.testing.assert_allclose(answer.confidences.T, weights, atol=1e-5)
    assert answer.prompt_tokens == sum(map(len, of_two.prompts))

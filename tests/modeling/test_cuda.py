"""On a GPU: training and writing as on the CPU, for every neural system.

`pytest --device cuda tests/modeling/test_cuda.py` runs on a machine with a GPU; with `--device virtual` on any machine.

Tolerances. A sum of n float32 terms is off by at most n · 2^-24 of its size. A tiny network sums at most 64 terms,
about thirty times in a row, and every step starts where the one before ended: 64 · 30 · STEPS · 2^-24 = 7e-4. bfloat16
keeps 8 bits, so each product is off by 2^-9; twice that for every step is 2.3e-2.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.networks import NEURAL
from support.tiny_seq2seq import write_seq2seq
from support.toys import ToySplit, build_tiny, fit_context
from support.trainings import calling_after_step, die

from longsumbench.core import Decoding, FitReport, Summary

pytestmark = pytest.mark.cuda

STEPS = 6
FLOAT32, BFLOAT16 = 64 * 30 * STEPS * 2**-24, 2 * STEPS * 2**-9
TRAIN, VALIDATION, TEST = (
    ToySplit.of("train", 24),
    ToySplit.of("validation", 6, 24),
    ToySplit.of("test", 6, 30),
)
GREEDY = Decoding(max_length=10, device="cpu")
SEARCH = replace(
    GREEDY, num_beams=3, encoder_no_repeat_ngram=2, no_repeat_ngram=2, repetition_penalty=1.5
)
SAVED = {"eval_steps": 1, "max_steps": STEPS}  # a validation and a checkpoint after every step

Fit = Callable[..., tuple[Any, FitReport]]


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> Fit:
    """Train a tiny system for a few steps, without dropout unless it is stated; a training of a folder is done once."""
    root = tmp_path_factory.mktemp("trainings")

    def fitted(
        name: str, folder: str, dropout: float = 0.0, **recipe: Any
    ) -> tuple[Any, FitReport]:
        settings: dict[str, Any] = {"dropout": dropout}
        if name == "seq2seq":
            sizes: dict[str, Any] = {
                "init_std": 0.1,
                "max_position_embeddings": 512,
                "dropout": dropout,
            }
            settings = {"checkpoint": str(write_seq2seq(root / f"bart {dropout}", **sizes))}
        system = build_tiny(name, **settings)
        recipe = {**SAVED, "bf16": False, **recipe}
        return system, system.fit(fit_context(root / folder, TRAIN, VALIDATION, **recipe))

    return fitted


def losses(report: FitReport) -> list[float]:
    """Return the training losses of a report, and the validation loss after every step."""
    return [
        report.first_loss or 0.0,
        report.last_loss or 0.0,
        *(loss for _, loss in report.validation_losses),
    ]


def written(system: Any, decoding: Decoding) -> list[Summary]:
    return list(system.summarize(TEST.examples, decoding))


@pytest.mark.parametrize("name", NEURAL)
def test_it_trains_as_on_a_cpu(name: str, device: str, fit: Fit) -> None:
    """In float32 the losses are those of the CPU, up to rounding."""
    (_, on_cpu), (_, on_gpu) = fit(name, "cpu"), fit(name, "gpu", device=device)
    assert on_gpu.precision == "float32"
    assert losses(on_gpu) == pytest.approx(losses(on_cpu), rel=FLOAT32)


@pytest.mark.parametrize("name", NEURAL)
def test_it_trains_in_bfloat16(name: str, device: str, fit: Fit) -> None:
    """On a GPU that has bfloat16 it is the default; losses are finite and near those of float32."""
    (_, single), (_, half) = (
        fit(name, "gpu", device=device),
        fit(name, "gpu", device=device, bf16=None),
    )
    assert half.precision == "bfloat16"
    assert np.isfinite(losses(half)).all()
    assert losses(half) == pytest.approx(losses(single), rel=BFLOAT16)


@pytest.mark.parametrize("decoding", [GREEDY, SEARCH], ids=["greedy", "search"])
@pytest.mark.parametrize("name", NEURAL)
def test_it_writes_as_on_a_cpu(name: str, decoding: Decoding, device: str, fit: Fit) -> None:
    """The same weights write the same summaries, also a second time; evidence agrees up to rounding."""
    system, _ = fit(name, "cpu")
    on_cpu, *on_gpu = (
        written(system, replace(decoding, device=place)) for place in ("cpu", device, device)
    )
    for summaries in on_gpu:
        assert [summary.text for summary in summaries] == [summary.text for summary in on_cpu]
        for summary, expected in zip(summaries, on_cpu, strict=True):
            assert (summary.evidence is None) == (expected.evidence is None)
            if summary.evidence is not None and expected.evidence is not None:
                for array, values in summary.evidence.arrays.items():
                    np.testing.assert_allclose(
                        values, expected.evidence.arrays[array], rtol=1e-3, atol=1e-5
                    )


@pytest.mark.parametrize("checkpointing", [False, True], ids=["", "checkpointing"])
@pytest.mark.parametrize("name", NEURAL)
def test_a_killed_training_goes_on(name: str, checkpointing: bool, device: str, fit: Fit) -> None:
    """After a kill, losses are those of an undisturbed training: a checkpoint has the random state of the GPU."""
    recipe = {"device": device, "gradient_checkpointing": checkpointing, "dropout": 0.2}
    folder = f"killed, checkpointing={checkpointing}"  # this setting makes no other stage
    _, undisturbed = fit(name, "undisturbed", **recipe)
    with pytest.raises(ZeroDivisionError), calling_after_step(STEPS // 2, die):
        fit(name, folder, **recipe)
    _, resumed = fit(name, folder, **recipe)
    assert losses(resumed) == pytest.approx(losses(undisturbed), rel=FLOAT32 / 10)

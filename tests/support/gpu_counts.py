"""Counts what every system launches on a GPU, and how often the host waits for it, on the virtual GPU.

    cd tests && python -m support.gpu_counts   # what is counted becomes the bounds in gpu_counts.json

`git diff` shows what has changed.

A system is tiny: one layer in encoder and decoder. A step trains on eight texts in bfloat16; a token is written for
three texts, greedily or by three beams with blocked n-grams. The counts of a token are (those of 18 tokens - those of
6) / 12.
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Decoding, FitContext, registry
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.progress import Progress, watching_progress
from support.json_files import read_json
from support.toys import ToySplit, build_tiny, tiny_recipe
from support.virtual_gpu import VirtualGPU

FILE = Path(__file__).with_suffix(".json")
STEPS, FEW, MANY = 6, 6, 18  # MANY - FEW tokens are two segments of SEAL
GREEDY = Decoding(device="cuda", evidence="none")
SEARCH = replace(
    GREEDY, num_beams=3, no_repeat_ngram=3, encoder_no_repeat_ngram=4, repetition_penalty=1.2
)
PLAIN = {"rank": "none"}  # a ranker trains, too

Counts = dict[str, float]
Mark = tuple[int, int]  # launches and waits so far


def counted_systems() -> dict[str, dict[str, str]]:
    """Return name → settings of all neural systems; PageSum has two decoders."""
    names = sorted(registry.systems.shipped())
    names = [name for name in names if issubclass(registry.systems.load(name), NeuralSystem)]
    return {
        **{name: {"model": name} for name in names},
        "pagesum global": {"model": "pagesum", "decoding": "global"},
    }


def count_system(model: str, **settings: str) -> Counts:
    """Return the launches and waits of a training step and of a token."""
    known = registry.config_of(model).__dataclass_fields__
    system = build_tiny(
        model, **{name: value for name, value in PLAIN.items() if name in known}, **settings
    )
    train, recipe = (
        ToySplit.of("train", 24),
        tiny_recipe(max_steps=STEPS, eval_steps=100, device="cuda", bf16=True),
    )
    with tempfile.TemporaryDirectory() as folder, VirtualGPU() as gpu:
        steps: dict[int, Mark] = {}  # number of steps done → the counts then

        def mark() -> Mark:
            return gpu.launches, sum(gpu.waits.values())

        def watch(progress: Progress) -> None:
            if progress.unit == "steps":
                steps[progress.done] = mark()

        def write(tokens: int, decoding: Decoding) -> Mark:
            before = mark()
            list(
                system.summarize(
                    train.examples[:3], replace(decoding, min_length=tokens, max_length=tokens)
                )
            )
            return _difference(before, mark())

        with watching_progress(watch):
            system.fit(FitContext(train, None, recipe, ArtifactCache(Path(folder))))
        counts = _counts("step", _difference(steps[2], steps[STEPS - 1]), STEPS - 3)
        write(FEW, GREEDY)  # the weights are copied to the GPU
        for name, decoding in (("greedy token", GREEDY), ("beam token", SEARCH)):
            counts |= _counts(
                name, _difference(write(FEW, decoding), write(MANY, decoding)), MANY - FEW
            )
    return counts


def _difference(start: Mark, end: Mark) -> Mark:
    return end[0] - start[0], end[1] - start[1]


def _counts(name: str, total: Mark, times: int) -> Counts:
    launches, waits = (round(count / times, 1) for count in total)
    return {f"{name}: launches": launches, f"{name}: waits": waits}


def bounds() -> dict[str, Counts]:
    """Return system → the most launches and waits that it may have."""
    counts: dict[str, Counts] = read_json(FILE)
    return counts


def main() -> None:
    """Write the bounds."""
    counts = {name: count_system(**settings) for name, settings in counted_systems().items()}
    FILE.write_text(json.dumps(counts, indent=1) + "\n")


if __name__ == "__main__":
    main()

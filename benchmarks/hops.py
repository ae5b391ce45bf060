"""The functions that a reader passes from `longsumbench run` to a system's `forward`.

    python benchmarks/hops.py

Runs two training steps of Trunc on a few reports. Prints the functions of the suite on the stack of the first forward.
"""

import contextlib
import io
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from longsumbench.cli.main import main
from longsumbench.modeling.nn.encoder_decoder import UnitsToText

ROOT = Path(__file__).resolve().parents[1]
SHORT = (
    "train.max_steps=2",
    "train.eval_steps=2",
    "train.eval_examples=2",
    "decode.limit=2",
    "baselines=false",
)


class Reached(BaseException):
    """The network's forward was called; holds the stack."""


def reach(*arguments: Any, **more: Any) -> None:
    """Stand in for `forward`: end the run with its stack."""
    raise Reached(traceback.extract_stack()[:-1])


def hops() -> list[str]:
    """Return the functions from `main` to `forward`, those of libraries and of contexts left out."""
    UnitsToText.forward = reach  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        words = [
            "run",
            "model=trunc",
            "dataset=probe",
            "dataset.limit=20",
            "device=cpu",
            f"results_dir={folder}/results",
        ]
        try:
            main([*words, *SHORT])
        except Reached as found:
            stack = found.args[0]
    places = [(Path(one.filename).resolve(), one) for one in stack]
    return [
        f"{path.relative_to(ROOT)}:{one.lineno} {one.name}"
        for path, one in places
        if any(path.is_relative_to(ROOT / folder) for folder in ("longsumbench", "models"))
    ]


if __name__ == "__main__":
    found = hops()
    print("\n".join([*found, "a system's forward", f"{len(found) + 1} functions"]))
    sys.exit()

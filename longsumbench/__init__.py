"""A unified benchmark suite for long-input summarizers."""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longsumbench.analysis.plan import stats
    from longsumbench.outputs.agreement import agreement
    from longsumbench.outputs.compare import compare
    from longsumbench.outputs.import_outputs import import_outputs
    from longsumbench.outputs.inspection import inspect
    from longsumbench.outputs.output_table import load_outputs
    from longsumbench.outputs.score import score
    from longsumbench.runs.load import load_dataset, load_run
    from longsumbench.runs.summarize import load_system
    from longsumbench.sweeps.run import run, sweep
    from longsumbench.views.leaderboard import leaderboard, leaderboard_figure

__version__ = "0.2.0"
__all__ = [
    "agreement",
    "compare",
    "import_outputs",
    "inspect",
    "leaderboard",
    "leaderboard_figure",
]
__all__ += [
    "load_dataset",
    "load_outputs",
    "load_run",
    "load_system",
    "run",
    "score",
    "stats",
    "sweep",
]
_MODULES = {  # name → where it is defined; imported when it is first used, so that `import longsumbench` is quick
    "agreement": "outputs.agreement",
    "compare": "outputs.compare",
    "import_outputs": "outputs.import_outputs",
    "inspect": "outputs.inspection",
    "leaderboard": "views.leaderboard",
    "leaderboard_figure": "views.leaderboard",
    "load_dataset": "runs.load",
    "load_outputs": "outputs.output_table",
    "load_run": "runs.load",
    "load_system": "runs.summarize",
    "run": "sweeps.run",
    "score": "outputs.score",
    "stats": "analysis.plan",
    "sweep": "sweeps.run",
}

# Waiting threads of OpenMP spin for less than a millisecond, then sleep. With libgomp's default of 300,000 spins,
# training next to other processes is several times as slow. OpenMP reads this once, when torch is imported. The user's
# own choice goes first.
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"} & os.environ.keys():
    os.environ["GOMP_SPINCOUNT"] = "10000"


if not TYPE_CHECKING:  # type checkers read the imports above

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return vars(import_module(f"longsumbench.{_MODULES[name]}"))[name]
        from longsumbench.core import registry

        # Python asks for many names, such as __path__, which no plug-in has
        if name.startswith("_") or name not in registry.functions.targets():
            raise AttributeError(f"module 'longsumbench' has no attribute '{name}'")
        return registry.functions.load(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

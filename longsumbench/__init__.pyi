from .analysis.plan import stats as stats
from .outputs.agreement import agreement as agreement
from .outputs.compare import compare as compare
from .outputs.import_outputs import import_outputs as import_outputs
from .outputs.inspection import inspect as inspect
from .outputs.load import (
    load_dataset as load_dataset,
    load_outputs as load_outputs,
    load_run as load_run,
)
from .outputs.score import score as score
from .runs.summarize import load_system as load_system
from .sweeps.run import run as run, sweep as sweep
from .views.leaderboard import leaderboard as leaderboard, leaderboard_figure as leaderboard_figure

__version__: str

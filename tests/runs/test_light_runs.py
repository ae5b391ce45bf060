"""Planning, and what is finished, need the settings of a system alone: no torch is imported."""

import subprocess
import sys
from pathlib import Path

from support.toys import tiny_overrides, write_jsonl

from longsumbench.cli.main import main


def test_a_finished_run_loads_no_torch(tmp_path: Path) -> None:
    """The same command again, of a system that was trained, finds the run without torch or transformers."""
    results = f"results_dir={tmp_path / 'r'}"
    words = ["run", *tiny_overrides(write_jsonl(tmp_path / "toy")), "baselines=false", results]
    assert main(words) == 0
    code = "import sys; from longsumbench.cli.main import main; main(sys.argv[1:])\n"
    code += "print({'torch', 'transformers', 'datasets'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], check=True, capture_output=True, text=True
    )
    assert "already finished" in done.stderr
    assert done.stdout.splitlines()[-1] == "set()"


def test_planning_loads_no_torch() -> None:
    """Every system that starts at random, without a learned ranker, is planned without torch or transformers."""
    code = """
import sys
from longsumbench.runs.plan import plan
words = ["dataset=aclsum", "scale=tiny", "model.init=random", "model.rank=none"]
for model in ("trunc", "ca", "ea", "seal", "etads", "pagesum", "hierarchical_transformer", "flat_transformer", "tdmca"):
    has_rank = model.endswith("transformer") or model in ("trunc", "tdmca")
    plan([f"model={model}", *(words if has_rank else words[:-1])])
    assert not {"torch", "transformers"} & set(sys.modules), model
"""
    subprocess.run([sys.executable, "-c", code], check=True)

"""Planning, and what is finished, need the settings of a system alone: no torch is imported."""

from pathlib import Path

import pytest
from support.imports import modules_after
from support.tiny_bert import write_bert
from support.toys import tiny_overrides

from longsumbench.cli.main import main

RUN = "import sys; from longsumbench.cli.main import main; main(sys.argv[1:])"
PLAN = """
import sys
from longsumbench.core import RunKey, catalogue, registry
from longsumbench.runs.plan import plan
for name in registry.systems.shipped():
    catalogue.setting_rows(registry.load_config_class(name), "model.")
words = ["dataset=aclsum", "scale=tiny", "model.init=random", "model.rank=none"]
for model in ("trunc", "ca", "ea", "seal", "etads", "pagesum", "hierarchical_transformer", "flat_transformer", "tdmca"):
    has_rank = model.endswith("transformer") or model in ("trunc", "tdmca")
    plan([f"model={model}", *(words if has_rank else words[:-1])])
    assert not {"torch", "transformers"} & set(sys.modules), model
for rank in ("embedding", "embedding_lexrank"):
    words = ["model=ranker", f"model.rank={rank}", f"model.rank_checkpoint={sys.argv[1]}"]
    (point,) = plan([*words, "dataset=aclsum"])
    RunKey.of(point.config)
"""


def test_a_finished_run_loads_no_torch(
    tmp_path: Path, toy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same command again, of a system that was trained, finds the run without torch or transformers."""
    words = ["run", *tiny_overrides(toy), "baselines=false", f"results_dir={tmp_path / 'r'}"]
    assert main(words) == 0
    assert not {"torch", "transformers", "datasets"} & modules_after(RUN, *words)
    assert "already finished" in capfd.readouterr().err


def test_planning_loads_no_torch(tmp_path: Path) -> None:
    """Settings of all systems are listed, and runs planned, without torch or transformers.

    So are systems that start at random, and rankers by an encoder, whose run ids are computed, too.
    """
    loaded = modules_after(PLAN, str(write_bert(tmp_path / "bert")))
    assert not {"torch", "transformers"} & loaded

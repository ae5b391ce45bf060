"""The estimated hours of runs at paper scale."""

from dataclasses import replace
from pathlib import Path

import pytest
from paper_cost import PaperTableCost, estimate_run, forward_of, read_costs, read_sizes, write_costs
from papers_page import describe_cost
from support.paths import ROOT

from longsumbench.core import Recipe, RunConfig, registry
from longsumbench.errors import DataError
from longsumbench.papers.paper_tables import PAPER, read_paper_tables
from longsumbench.runs.estimate import RunCost, examples_in_batch
from longsumbench.runs.plan import plan
from longsumbench.runs.results import Results

ETADS = (
    "scale=paper",
    "model=etads",
    "dataset=cnn_dailymail",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
)


def config_of(*words: str) -> RunConfig:
    """Return the configuration of a point."""
    (point,) = plan([*ETADS, *words])
    return point.config


def test_a_run_costs_its_steps_and_its_summaries() -> None:
    """ETADS: 4 batches of 4,096 tokens a step are 40.96 texts of 400 tokens; 11,490 texts are written with 10 beams."""
    config = config_of("train.max_steps=100")
    flops, cost = forward_of(config).flops, estimate_run(config)
    assert cost is not None
    assert cost.training == pytest.approx(100 * 40.96 * flops * 3)
    assert cost.decoding == 11_490 * flops * 10
    assert cost.layer_steps == 11_490 / 16 * 100


def test_batches_hold_as_many_texts_as_fit() -> None:
    """10,500 tokens are 6.5625 texts of 1,600, and 2,048 words 4 to 64 texts; else a batch has its number of texts."""
    assert examples_in_batch(Recipe(batch_tokens=10_500), 1_600, 1_600) == 6.5625
    assert [
        examples_in_batch(Recipe(batch_words=2_048), 64, words) for words in (256, 4_000, 10)
    ] == [8, 4, 64]
    assert examples_in_batch(Recipe(batch_size=16), 1_600, 1_600) == 16


def test_baselines_cost_no_gpu_and_checkpoints_are_not_estimated() -> None:
    """Lead has no network; the network of a checkpoint on the hub is unknown."""
    (lead,) = plan(["scale=paper", "model=lead", "dataset=arxiv"])
    assert estimate_run(lead.config) == RunCost()
    checkpoint = registry.config_of("seq2seq")(checkpoint="owner/name", init="random")
    assert estimate_run(replace(lead.config, model=checkpoint)) is None


def test_published_sizes_are_read_as_printed() -> None:
    """The largest of what papers print; what none prints fills every limit."""
    assert read_sizes("gov_report") == (10_726, 682, 17_500, 974)
    assert read_sizes("arxiv") == (10_000, 460, 215_000, 6_400)
    assert read_sizes("cnn_dailymail")[2:] == (287_226, 11_490)


def test_costs_are_read_as_they_were_written(tmp_path: Path) -> None:
    """The file has two digits of the hours; without a file there are no costs; a damaged one is named."""
    results = Results(tmp_path)
    assert read_costs(results) == {}
    path = write_costs({"seal-table2": PaperTableCost(12, 1, 987.6)}, results)
    assert read_costs(results) == {"seal-table2": PaperTableCost(12, 1, 990.0)}
    path.write_text("name\nseal-table2\n")
    with pytest.raises(DataError, match=r"cost\.csv"):
        read_costs(results)


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (PaperTableCost(12, 0, 990.0), "12 runs, about 990 h (41 days) on one A100"),
        (
            PaperTableCost(3, 2, 0.2),
            "3 runs, an hour or less on one A100, without 2 of public checkpoints",
        ),
        (PaperTableCost(0, 0, 0.0), "no runs of systems"),
        (None, "not estimated"),
    ],
)
def test_costs_are_described_with_runs_and_hours(cost: PaperTableCost | None, text: str) -> None:
    """Runs, hours, and what is left out of them."""
    assert describe_cost(cost) == text


def test_every_table_at_paper_scale_has_a_published_estimate() -> None:
    """The committed file names exactly the tables with a paper scale, in their order."""
    costs = read_costs(Results(ROOT / "results/reference"))
    assert list(costs) == [
        name for name, paper_table in read_paper_tables().items() if PAPER in paper_table.scales
    ]

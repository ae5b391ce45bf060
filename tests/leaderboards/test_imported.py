"""What a table says about imported outputs: which are equal, and which are not ranked."""

from dataclasses import replace

import pytest
from support.run_records import record, scores

from longsumbench.leaderboards.significance import build_blocks
from longsumbench.metrics.output_stats import OutputStats
from longsumbench.runs.record import ImportedOutputs, RunRecord, split_variant
from longsumbench.views.footnotes import describe_equal, footnotes
from longsumbench.views.leaderboard import leaderboard_block
from longsumbench.views.tables import Stressed


def imported(name: str, words: float, **changes: object) -> RunRecord:
    """Imported outputs with a mean length, for references of 100 words."""
    outputs = OutputStats(20, 20, 20, 0, words=words, reference_words=100.0)
    return record(
        name, 30, imported=ImportedOutputs(f"{name}.txt", "0", ""), outputs=outputs, **changes
    )


def test_rows_with_equal_outputs_are_named() -> None:
    """By the hash of all outputs, in every seed."""

    def equal(*runs: RunRecord) -> str:
        (block,) = build_blocks(runs)
        assert describe_equal(block.rows) in ("", *footnotes(block, {"rougeLsum"}))
        return describe_equal(block.rows)

    seeds = [
        replace(record("random", 20, seed=seed), outputs_digest=f"r{seed}", run_id=f"r{seed}")
        for seed in (1, 2)
    ]
    lead, lexrank, other = (
        replace(record(name, 20), outputs_digest="a") for name in ("lead", "lexrank", "other")
    )
    assert (
        equal(lead, lexrank, replace(other, outputs_digest="b"), *seeds)
        == "Equal outputs: lead = lexrank."
    )
    assert equal(lead, lexrank, other) == "Equal outputs: lead = lexrank = other."


@pytest.mark.parametrize(("means", "ranked"), [((0, 0), False), ((0, 20), True)])
def test_rows_without_any_score_have_no_place(means: tuple[float, float], ranked: bool) -> None:
    """If no system scores above 0, none is the first or the best, and a line says why."""
    runs = [imported(name, 90, scores=scores(f)) for name, f in zip("ab", means, strict=True)]
    (table,) = build_blocks([*runs, record("oracle", 60, oracle=True)])
    block = leaderboard_block(table, [table])
    assert ("1" in block.rows[0]) == ranked
    assert any(isinstance(cell, Stressed) for cell in block.rows[0]) == ranked
    assert ("Not ranked: all rows (no system scores above 0)." in block.footnotes) == (not ranked)


def test_a_variant_in_words_is_split_without_its_blanks() -> None:
    """A blank after a comma is no part of a setting."""
    assert split_variant("zero-shot, beam 5,a=[1, 2]") == ["zero-shot", "beam 5", "a=[1, 2]"]

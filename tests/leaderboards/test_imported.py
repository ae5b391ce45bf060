"""What a table says about imported outputs: where they come from, their lengths, and which are not ranked."""

from dataclasses import replace

import pytest
from support.run_records import TRAINED, changed, record, scores

from longsumbench.leaderboards.significance import comparable_rows
from longsumbench.metrics.output_facts import OutputFacts
from longsumbench.runs.record import ImportedOutputs, RunRecord, split_variant
from longsumbench.views.leaderboard import leaderboard_block
from longsumbench.views.notes import describe_equal, describe_imported, describe_lengths, footnotes
from longsumbench.views.tables import Stressed, markdown, terminal_block

ORIGIN = "a paper, CC BY 4.0"


def imported(name: str, words: float, **changes: object) -> RunRecord:
    """Imported outputs with a mean length, for references of 100 words."""
    outputs = OutputFacts(20, 20, 20, 0, words=words, reference_words=100.0)
    return record(
        name, 30, imported=ImportedOutputs(f"{name}.txt", "0", ORIGIN), outputs=outputs, **changes
    )


def lengths(*runs: RunRecord, part: str = "f") -> str:
    """Return the line about the lengths of a block."""
    (block,) = comparable_rows(runs)
    return describe_lengths(block.rows, part)


def test_lengths_that_differ_by_more_than_half_are_named() -> None:
    """By hand: ratios of 0.80 and 1.20 are just 1.5 times apart, of 0.80 and 1.21 more; the line names both ends."""
    assert lengths(imported("short", 80), imported("long", 120)) == ""
    line = lengths(imported("short", 80), imported("middle", 100), imported("long", 121))
    assert line.startswith(
        "Lengths differ: outputs have 0.80 (short) to 1.21 (long) times the words of the references."
    )


def test_only_ranked_rows_and_f1_are_judged_by_length() -> None:
    """Oracles have no place; precision, recall and planted facts are other scores; without lengths nothing is said."""
    pair = imported("short", 50), imported("long", 200)
    assert lengths(*pair)
    assert lengths(pair[0], replace(pair[1], oracle=True)) == ""
    assert lengths(*pair, part="r") == ""
    assert lengths(*(changed(run, outputs=None) for run in pair)) == ""


def test_rows_with_equal_outputs_are_named() -> None:
    """By the hash of all outputs, in every seed."""

    def equal(*runs: RunRecord) -> str:
        (block,) = comparable_rows(runs)
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


def test_the_source_of_outputs_is_below_the_table_once() -> None:
    """Two runs of one source give one line; runs of the suite give none."""
    for runs, lines in (
        ((imported("a", 90), imported("b", 90)), [f"Imported from: {ORIGIN}."]),
        ((record("lead", 20),), []),
    ):
        (block,) = comparable_rows(runs)
        assert [
            line for line in footnotes(block, {"rougeLsum"}) if line.startswith("Imported")
        ] == lines


def test_the_terminal_has_one_line_below_imported_outputs() -> None:
    """Rows with the same reason share it; the files have all notes; a trained system brings them back."""
    runs = [imported("a", 90), imported("b", 50)]
    (table,) = comparable_rows(runs)
    line = describe_imported(table)
    assert "a, b (its floor is not known)." in line
    block = leaderboard_block(table, [table])
    assert terminal_block(block).split("\n")[-1] in line
    assert "Signature" in markdown("toy", [block])
    assert "Signature" not in terminal_block(block)
    assert describe_imported(comparable_rows([*runs, record("seal", 9, fit=TRAINED)])[0]) == ""


@pytest.mark.parametrize(("means", "ranked"), [((0, 0), False), ((0, 20), True)])
def test_rows_without_any_score_have_no_place(means: tuple[float, float], ranked: bool) -> None:
    """If no system scores above 0, none is the first or the best, and a line says why."""
    runs = [imported(name, 90, scores=scores(f)) for name, f in zip("ab", means, strict=True)]
    (table,) = comparable_rows([*runs, record("oracle", 60, oracle=True)])
    block = leaderboard_block(table, [table])
    assert ("1" in block.rows[0]) == ranked
    assert any(isinstance(cell, Stressed) for cell in block.rows[0]) == ranked
    assert ("Not ranked: all rows (no system scores above 0)." in block.footnotes) == (not ranked)


def test_a_variant_in_words_is_split_without_its_blanks() -> None:
    """A blank after a comma is no part of a setting."""
    assert split_variant("zero-shot, beam 5,a=[1, 2]") == ["zero-shot", "beam 5", "a=[1, 2]"]

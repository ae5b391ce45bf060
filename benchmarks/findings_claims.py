"""Check what docs/findings.md and docs/probe.md conclude from the runs in results/reference.

Usage: python benchmarks/findings_claims.py

`probe_claims.py`, `extractive_claims.py` and `real_systems_claims.py` compare tables and sentences with `--check`.
"""

import math
import re
from collections.abc import Iterable

import extractive_claims as extracts
import probe_claims as claims
import real_systems

from longsumbench.formatting import format_duration
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.table import read_table
from longsumbench.runs.record import RunRecord, measured_mean, source_seen
from longsumbench.runs.results import Results

RESULTS = Results(claims.RESULTS)
FINDINGS = (claims.ROOT / claims.FINDINGS).read_text()


def check_what_is_concluded_from_probe() -> None:
    """SEAL finds twice the facts in one place that EA does with 128 tokens; with 256 that is not shown; both learned."""
    seal_runs = claims.read_runs(RESULTS, [*claims.SEAL_FAMILY, *claims.PAGESUMS])
    rows = claims.seal_table(seal_runs).rows
    cells = {row[:2]: row[2] for row in rows}
    assert _read_bounds(cells["`seal`", "128"])[0] > _read_bounds(cells["`ea`", "128"])[1]
    assert _read_bounds(cells["`seal`", "256"])[0] < _read_bounds(cells["`ea`", "256"])[1]
    seal, ea = (float(cells[f"`{name}`", "128"].split()[0]) for name in ("seal", "ea"))
    assert abs(seal / ea - 2) <= 0.1
    assert [row[0] for row in rows if "learn" in row[0]] == [
        "`ca`, not learned",
        "`trunc`, not learned",
    ]
    past = next(
        words for _, words in claims.seal_sentences(seal_runs) if "in the last seven" in words
    )
    low, high, chance = map(float, re.findall(r"\d+\.\d", past)[1:])
    assert low < chance < high


def check_which_systems_learned() -> None:
    """docs/findings.md concludes from rows without a mark, and its sentences name the others."""
    runs = claims.read_runs(
        RESULTS, [*claims.ETADS, *claims.HIERARCHICAL, *claims.SAME_SIZE, *claims.PROSE]
    )
    marked = []
    for table in (
        claims.etads_table,
        claims.hierarchical_table,
        claims.same_size_table,
        claims.prose_table,
    ):
        marked += [row[0] for row in table(runs).rows if "learn" in row[0]]
    some = "not learned in 2 of 3 seeds, not shown in 1 of 3 seeds"
    assert marked == [
        "basic model, not learned in 1 of 6 seeds",
        "both, still learning in 1 of 6 seeds",
        "`flat_transformer`, not learned in 1 of 3 seeds, still learning in 2 of 3 seeds",
        f"`seq2seq`: LongT5, transient-global, neighbourhood of 128, {some}",
        "`seq2seq`: BART, not learned",
        f"`seq2seq`: LED, window of 128, {some}",
        "`trunc`, not learned in 1 of 2 seeds",
    ]
    at_lengths = [row[0] for row in claims.lengths_table(RESULTS).rows if ", not " in row[0]]
    assert at_lengths == [
        "`ca`, not shown",
        "`trunc`, `etads`, `flat_transformer`, not learned: the highest of them",
    ]


def check_three_of_four_single_facts_in_long_texts() -> None:
    """At 65,536 tokens only PageSum and the Hierarchical Transformer find so many, as docs/findings.md says."""
    single_facts = {}
    for name, *_, facts in claims.lengths_table(RESULTS).rows:
        single_facts[name.split("`")[1]] = float(facts.split(" / ")[0])
    for name, single in single_facts.items():
        if name in ("pagesum", "hierarchical_transformer"):
            assert 70 <= single <= 80
        else:
            assert single < 20


def _read_bounds(cell: str) -> tuple[float, float]:
    """Return the interval of a cell: "94.0 (92.8 to 95.2; …" → 92.8, 95.2."""
    found = re.search(r"\((\S+) to (\S+);", cell)
    assert found is not None
    return float(found[1]), float(found[2])


def check_the_table_of_pubmed() -> None:
    """Each row of the table in docs/findings.md is what the record of its run holds."""
    header = next(line for line in FINDINGS.splitlines() if line.startswith("| model"))
    names = _split_cells(header)
    rows = [
        _split_cells(line)
        for line in FINDINGS.splitlines()
        if len(_split_cells(line)) == len(names)
    ]
    records = {record.run_id[:8]: record for record in RESULTS.records("pubmed")}
    found = 0
    for row in (dict(zip(names, row, strict=True)) for row in rows):
        if record := records.get(row["run"]):
            found += 1
            assert [row[name].strip("* ") for name in ROUGE_HEADINGS.values()] == [
                _describe_score(record, kind) for kind in ROUGE_HEADINGS
            ]
            seen, trained = source_seen(record), record.fit.steps
            assert row["source read"] == ("" if seen is None else f"{seen:.0f} %")
            assert row["train time"] == (format_duration(record.fit.seconds) if trained else "")
    assert found == len(records)


def _split_cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def _describe_score(record: RunRecord, kind: str) -> str:
    number = measured_mean(record, kind)
    assert number is not None
    mean, low, high = number
    assert low is not None
    assert high is not None
    return f"{mean:.1f} ±{(high - low) / 2:.1f}"


def _choose_runs(dataset: str, **facts: object) -> list[RunRecord]:
    """Return the runs on a dataset with these facts that were trained to write."""
    found = _find_trained_writers(dataset, **facts)
    assert found
    return found


def _fact(run: RunRecord, name: str) -> object:
    values = {"model": run.key.model, "n": run.evaluation.n, "variant": run.variant}
    return values[name]


def _find_trained_writers(dataset: str, **facts: object) -> list[RunRecord]:
    trained = []
    for run in RESULTS.records(dataset):
        is_chosen = all(_fact(run, name) == value for name, value in facts.items())
        if is_chosen and run.fit.steps and run.config.scale != extracts.SCALE:
            trained.append(run)
    return trained


def _format_span(values: Iterable[float], between: str) -> str:
    """Return the lowest and the highest number, with one digit."""
    numbers = list(values)
    return f"{min(numbers):.1f}{between}{max(numbers):.1f}"


def _list_lsum(records: Iterable[RunRecord]) -> list[float]:
    return [record.evaluation.scores["rougeLsum"].f for record in records]


def _score_baseline(model: str, compared: list[RunRecord]) -> float:
    """Return the R-Lsum of a baseline on the examples of some runs."""
    ((dataset, texts, examples),) = {
        (run.key.dataset, run.key.fingerprint, run.evaluation.examples) for run in compared
    }
    scores = set()
    for run in RESULTS.records(dataset):
        if (run.key.model, run.key.fingerprint, run.evaluation.examples) == (
            model,
            texts,
            examples,
        ):
            scores.add(run.evaluation.scores["rougeLsum"].f)
    (score,) = scores
    return score


def _describe_losses(records: list[RunRecord]) -> str:
    first = _format_span((record.fit.first_loss or math.nan for record in records), "–")
    last = _format_span((record.fit.last_loss or math.nan for record in records), "–")
    return f"loss falls from {first} to {last}"


def check_sentences_about_real_papers() -> None:
    """Losses and ranges of R-Lsum in the sentences of docs/findings.md are those of the records."""
    etads, swept = _choose_runs("wiki_sections", n=500, model="etads"), _choose_runs("sumpubmed")
    both, basic = (
        [run for run in etads if run.variant == variant]
        for variant in ("", "focus_layers=[],saliency_layers=[]")
    )
    stated = [
        _describe_losses(_choose_runs("pubmed")),
        _describe_losses(etads),
        f"R-Lsum is {_format_span(_list_lsum(etads), ' to ')}, Lead's {_score_baseline('lead', etads):.1f}",
        f"{_format_span(_list_lsum(both), ' to ')} with both, {_format_span(_list_lsum(basic), ' to ')} of the basic model",
        f"R-Lsum lies between {_format_span(_list_lsum(swept), ' and ')}, Lead's at {_score_baseline('lead', swept):.1f}",
    ]
    for dataset, n, words in (("wiki_sections", 300, "R-Lsum "), ("peer_reviews", 147, "")):
        ranked = [run for run in _choose_runs(dataset, n=n) if run.key.model != "pagesum"]
        scores = [_score_baseline(name, ranked) for name in ("lead", "lexrank")]
        others = f"Lead {scores[0]:.1f}, LexRank of paragraphs {scores[1]:.1f}"
        stated.append(f"({words}{_format_span(_list_lsum(ranked), ' to ')}; {others}")
    flat = " ".join(FINDINGS.split())
    assert [words for words in stated if words not in flat] == []


def check_no_system_that_writes_is_ahead_of_lead_on_real_texts() -> None:
    """As README.md and docs/findings.md say: on real text, every run that was trained to write is below Lead."""
    for dataset in RESULTS.datasets():
        if dataset != "probe":
            for run in _find_trained_writers(dataset):
                assert _list_lsum([run])[0] < _score_baseline("lead", [run]), run.run_id


def check_a_trained_scorer_is_ahead_on_real_texts() -> None:
    """In both measures and all seeds, from Lead, Random and LexRank, on all datasets but two."""
    compared = extracts.read_comparisons(RESULTS)
    assert len(compared) >= 3
    not_ahead, behind_lexrank = set(), set()
    for measure in extracts.MEASURES:
        for name, _, _, *cells in extracts.table(compared, measure).rows:
            ahead = [
                re.fullmatch(r"\+\d+\.\d \(\+\S+ to \+\S+\)", cell) is not None for cell in cells
            ]
            assert ahead[1], (name, cells)
            not_ahead |= {(name, measure)} if not ahead[0] else set()
            behind_lexrank |= set() if all(ahead[2:]) else {name}
    assert not_ahead == {("proposals, `ea`", "rouge1")}
    assert behind_lexrank == {"openstax_modules, `ea`"}


def check_committed_runs_have_no_path_of_a_machine() -> None:
    """Settings of committed runs name the results folder as a clone has it."""
    for folder in RESULTS.run_folders():
        assert "\nresults_dir: results\n" in (folder / "config.yaml").read_text()


def check_imported_systems() -> None:
    """Each set has one block with all its systems and baselines on the same examples, and names source and licence."""
    for dataset, examples in {"qmsum": 281, "qmsum_meetings": 35, "squality_human": 100}.items():
        block = read_table(RESULTS, dataset).comparable[0]
        systems = real_systems.SETS[dataset][-1]
        names = {system.partition(": ")[0] for system in systems.values()}
        expected = (names | {*real_systems.BASELINES}) - {"GPT-3.5"}  # with nine outputs
        assert {row.representative.key.model for row in block.rows} == expected
        assert {row.representative.evaluation.n for row in block.rows} == {examples}
        origins = [run.imported for run in RESULTS.records(dataset) if run.imported]
        assert {origin.file.removesuffix(".jsonl") for origin in origins} == {*systems}
        for origin in origins:
            assert origin.origin.endswith(("Apache-2.0", "BSD-3-Clause", "CC BY 4.0"))
            assert len(origin.sha256) == 64


def main() -> None:
    """Run all checks; a wrong number ends the command with an error."""
    check_what_is_concluded_from_probe()
    check_which_systems_learned()
    check_three_of_four_single_facts_in_long_texts()
    check_the_table_of_pubmed()
    check_sentences_about_real_papers()
    check_no_system_that_writes_is_ahead_of_lead_on_real_texts()
    check_a_trained_scorer_is_ahead_on_real_texts()
    check_committed_runs_have_no_path_of_a_machine()
    check_imported_systems()


if __name__ == "__main__":
    main()

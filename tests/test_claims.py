"""The numbers that docs/ states are those of the committed results."""

import math
import re
from collections.abc import Iterable
from pathlib import Path

import extractive_claims as extracts
import pandas as pd
import probe_claims as claims
import pytest
from support.paths import ROOT
from support.run_records import changed, record

from longsumbench.formatting import format_duration
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import write_scores
from longsumbench.runs.record import RunRecord, measured_mean, source_seen
from longsumbench.runs.results import Results

pytestmark = pytest.mark.numbers

RESULTS = Results(claims.RESULTS)
FINDINGS = (ROOT / claims.FINDINGS).read_text()


@pytest.fixture(scope="module")
def seal_runs() -> claims.Runs:
    """The runs of SEAL's family and of PageSum."""
    return claims.read_runs(RESULTS, [*claims.SEAL_FAMILY, *claims.PAGESUMS])


def test_probe_in_its_page(seal_runs: claims.Runs) -> None:
    """Tables, sentences and picture of SEAL and PageSum on `probe` are what benchmarks/claims.py computes."""
    tables = [claims.kinds_table(seal_runs), claims.seal_table(seal_runs)]
    assert claims.differences(tables, claims.seal_sentences(seal_runs)) == []


def test_probe_in_the_findings() -> None:
    """So are those of docs/findings.md."""
    runs = claims.read_runs(RESULTS, [*claims.ETADS, *claims.HIERARCHICAL])
    tables = [
        claims.etads_table(runs),
        claims.hierarchical_table(runs),
        claims.lengths_table(RESULTS),
    ]
    assert claims.differences(tables, claims.other_sentences(runs)) == []


def test_what_is_concluded_from_probe(seal_runs: claims.Runs) -> None:
    """SEAL finds more facts in one place than EA with as many tokens, twice as many with 128; both and PageSum learned."""
    rows = claims.seal_table(seal_runs).rows
    cells = {row[:2]: row[2] for row in rows}
    assert bounds(cells["`seal`", "256"])[0] > bounds(cells["`ea`", "256"])[1]
    seal, ea = (float(cells[f"`{name}`", "128"].split()[0]) for name in ("seal", "ea"))
    assert seal / ea == pytest.approx(2, abs=0.1)
    assert [row[0] for row in rows if "learn" in row[0]] == [
        "`ca`, not learned",
        "`trunc`, not learned",
    ]
    past = next(
        words for _, words in claims.seal_sentences(seal_runs) if "in the last seven" in words
    )
    low, high, chance = map(float, re.findall(r"\d+\.\d", past)[1:])
    assert low < chance < high


def test_which_systems_learned() -> None:
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
        "`flat_transformer`, not learned in 1 of 3 seeds, still learning in 2 of 3 seeds",
        f"`seq2seq`: LongT5, transient-global, neighbourhood of 128, {some}",
        "`seq2seq`: BART, not learned",
        f"`seq2seq`: LED, window of 128, {some}",
    ]
    at_lengths = [row[0] for row in claims.lengths_table(RESULTS).rows if ", not " in row[0]]
    assert at_lengths == [
        "`ca`, not shown",
        "`trunc`, `etads`, `flat_transformer`, not learned: the highest of them",
    ]


def test_three_of_four_single_facts_in_long_texts() -> None:
    """At 65,536 tokens only PageSum and the Hierarchical Transformer find so many, as docs/findings.md says."""
    single_facts = {}
    for name, *_, facts in claims.lengths_table(RESULTS).rows:
        single_facts[name.split("`")[1]] = float(facts.split(" / ")[0])
    for name, single in single_facts.items():
        if name in ("pagesum", "hierarchical_transformer"):
            assert 70 <= single <= 80
        else:
            assert single < 20


def made(seed: int, **changes: object) -> RunRecord:
    """Return a run of SEAL as `dataset=probe scale=probe` makes it."""
    trained = {
        "batch_size": 16,
        "accumulation": 1,
        "batch_words": 2_048,
        "learning_rate": 0.003,
        "unlock": 0.6,
        "max_steps": 1_500,
    }
    texts = {"name": "probe", "reader": "probe"}
    config = {"dataset": texts, "train": trained}
    facts = {"dataset": "probe", "scale": "probe", "n": 400, "config": config}
    run = record("seal", 30, **facts, run_id=f"seal{seed:08d}", seed=seed)
    return changed(run, **changes)


def write_run(run: RunRecord, root: Path) -> Path:
    """Write a run with a score; return its folder."""
    folder = Results(root).run_folder(run)
    run.write(folder)
    index = pd.Index(["a"], name="id")
    write_scores(folder / "scores.csv", pd.DataFrame({"score": [0.5]}, index=index))
    return folder


@pytest.mark.parametrize(
    "changes", [{"n": 200}, {"variant": "extractive_length=128"}, {"split": "validation"}]
)
def test_runs_that_differ_in_anything_are_not_meant(
    changes: dict[str, object], tmp_path: Path
) -> None:
    """A claim rests on runs that are exactly its own; another setting makes its seed missing, in one line."""
    claim = claims.Claim("seal")
    for run in (made(1), made(2, **changes), made(3)):
        write_run(run, tmp_path)
    with pytest.raises(SystemExit) as message:
        claims.read_runs(Results(tmp_path), [claim])
    assert str(message.value).endswith(f"are missing in {tmp_path}: seal (1,500 steps), seed 2")
    write_run(made(2, run_id="another00000"), tmp_path)
    runs = claims.read_runs(Results(tmp_path), [claim])[claim]
    assert [run.record.key.seed for run in runs] == [1, 2, 3]


def bounds(cell: str) -> tuple[float, float]:
    """Return the interval of a cell: "94.0 (92.8 to 95.2; …" → 92.8, 95.2."""
    found = re.search(r"\((\S+) to (\S+);", cell)
    assert found is not None
    return float(found[1]), float(found[2])


def test_the_table_of_pubmed() -> None:
    """Each row of the table in docs/findings.md is what the record of its run holds."""
    header = next(line for line in FINDINGS.splitlines() if line.startswith("| model"))
    names = cells_of(header)
    rows = [cells_of(line) for line in FINDINGS.splitlines() if len(cells_of(line)) == len(names)]
    records = {record.run_id[:8]: record for record in RESULTS.records("pubmed")}
    found = 0
    for row in (dict(zip(names, row, strict=True)) for row in rows):
        if record := records.get(row["run"]):
            found += 1
            assert [row[name].strip("* ") for name in ROUGE_HEADINGS.values()] == [
                score_of(record, kind) for kind in ROUGE_HEADINGS
            ]
            seen, trained = source_seen(record), record.fit.steps
            assert row["source read"] == ("" if seen is None else f"{seen:.0f} %")
            assert row["train time"] == (format_duration(record.fit.seconds) if trained else "")
    assert found == len(records)


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def score_of(record: RunRecord, kind: str) -> str:
    number = measured_mean(record, kind)
    assert number is not None
    mean, low, high = number
    assert low is not None
    assert high is not None
    return f"{mean:.1f} ±{(high - low) / 2:.1f}"


def chosen(dataset: str, **facts: object) -> list[RunRecord]:
    """Return the runs on a dataset with these facts that were trained to write."""
    found = trained_to_write(dataset, **facts)
    assert found
    return found


def trained_to_write(dataset: str, **facts: object) -> list[RunRecord]:
    trained = []
    for run in RESULTS.records(dataset):
        is_chosen = changed(run, **facts) == run
        if is_chosen and run.fit.steps and run.config.scale != extracts.SCALE:
            trained.append(run)
    return trained


def span(values: Iterable[float], between: str) -> str:
    """Return the lowest and the highest number, with one digit."""
    numbers = list(values)
    return f"{min(numbers):.1f}{between}{max(numbers):.1f}"


def lsum(records: Iterable[RunRecord]) -> list[float]:
    return [record.evaluation.scores["rougeLsum"].f for record in records]


def baseline(model: str, compared: list[RunRecord]) -> float:
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


def losses(records: list[RunRecord]) -> str:
    first = span((record.fit.first_loss or math.nan for record in records), "–")
    last = span((record.fit.last_loss or math.nan for record in records), "–")
    return f"loss falls from {first} to {last}"


def test_sentences_about_real_papers() -> None:
    """Losses and ranges of R-Lsum in the sentences of docs/findings.md are those of the records."""
    etads, swept = chosen("wiki_sections", n=500, model="etads"), chosen("sumpubmed")
    both, basic = (
        [run for run in etads if run.variant == variant]
        for variant in ("", "focus_layers=[],saliency_layers=[]")
    )
    stated = [
        losses(chosen("pubmed")),
        losses(etads),
        f"R-Lsum is {span(lsum(etads), ' to ')}, Lead's {baseline('lead', etads):.1f}",
        f"{span(lsum(both), ' to ')} with both, {span(lsum(basic), ' to ')} of the basic model",
        f"R-Lsum lies between {span(lsum(swept), ' and ')}, Lead's at {baseline('lead', swept):.1f}",
    ]
    for dataset, n, words in (("wiki_sections", 300, "R-Lsum "), ("peer_reviews", 147, "")):
        ranked = [run for run in chosen(dataset, n=n) if run.key.model != "pagesum"]
        others = f"Lead {baseline('lead', ranked):.1f}, LexRank of paragraphs {baseline('lexrank', ranked):.1f}"
        stated.append(f"({words}{span(lsum(ranked), ' to ')}; {others}")
    flat = " ".join(FINDINGS.split())
    assert [words for words in stated if words not in flat] == []


def test_no_system_that_writes_is_ahead_of_lead_on_real_texts() -> None:
    """As README.md and docs/findings.md say: on real text, every run that was trained to write is below Lead."""
    for dataset in RESULTS.datasets():
        if dataset != "probe":
            for run in trained_to_write(dataset):
                assert lsum([run])[0] < baseline("lead", [run]), run.run_id


def test_extracts_in_the_findings() -> None:
    """The tables of the extractive track are what benchmarks/extracts.py computes."""
    compared = extracts.read_comparisons(RESULTS)
    assert claims.differences(extracts.all_tables(compared), []) == []


def test_a_trained_scorer_is_ahead_on_real_texts() -> None:
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


def test_committed_runs_have_no_path_of_a_machine() -> None:
    """Settings of committed runs name the results folder as a clone has it."""
    for folder in RESULTS.run_folders():
        assert "\nresults_dir: results\n" in (folder / "config.yaml").read_text()

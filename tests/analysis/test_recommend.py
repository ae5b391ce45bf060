"""Which system for some texts: sentences that are computed from a table, and the command."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.commands import Command
from support.json_files import read_json
from support.run_records import TRAINED, record
from support.tiny_causal import write_causal
from support.toys import write_jsonl

from longsumbench.analysis import recommend as recommendation
from longsumbench.analysis.recommend import (
    choose_texts,
    describe_choice,
    describe_recommendation,
    texts_overrides,
)
from longsumbench.cache.artifacts import user_cache
from longsumbench.core import Cut, Truncation
from longsumbench.corpora.loading.load import load_texts
from longsumbench.errors import UsageError
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.seed_groups import ResultRow, group_rows_by_seed
from longsumbench.leaderboards.significance import LeaderboardBlock, compare_to_best
from longsumbench.metrics.aggregate import aggregate
from longsumbench.runs.plan import plan_dataset
from longsumbench.runs.record import RunRecord, StepSeconds
from longsumbench.runs.results import Results
from longsumbench.views.run_summary_screen import MOST_LINES

BASE = np.random.default_rng(1).beta(4, 8, 80)  # how well the examples go, whoever summarizes


def table(**better: float) -> dict[str, pd.DataFrame]:
    """Return scores per example that lie around `BASE` and a number."""
    found = {}
    for seed, (name, more) in enumerate(better.items()):
        drawn = (BASE + more + np.random.default_rng(seed).normal(0, 0.05, len(BASE))).clip(0, 1)
        columns = {f"{kind}_{part}": drawn for kind in ROUGE_HEADINGS for part in "prf"}
        found[name] = pd.DataFrame(
            columns, index=pd.Index([f"{n:02d}" for n in range(len(BASE))], name="id")
        )
    return found


def finished(name: str, scores: pd.DataFrame, seconds: float, **changes: object) -> RunRecord:
    """Return a run with these scores that took so long to summarize."""
    changes = {"timings": StepSeconds(summarize=seconds), "scores": aggregate(scores), **changes}
    return record(name, 0, run_id=name, n=len(scores), **changes)


def sentences(runs: list[RunRecord], scores: dict[str, pd.DataFrame]) -> list[str]:
    """Return what is said about these runs."""
    rows = group_rows_by_seed(runs, scores)
    return describe_choice(compare_to_best(rows, scores))


CHEAPEST = " It costs the least of those not shown to be below the best."


@pytest.mark.parametrize(
    ("better", "changes", "sentence"),
    [
        (
            0.1,
            {"fit": TRAINED, "seed": 1},
            "Choose lead. Nothing is shown: ea is 10.91 points of R-Lsum above lead (95 % interval 9.45 to 12.37), but one of"
            f" the two was trained once, and another training may give another score.{CHEAPEST}",
        ),
        (
            0.004,
            {},
            "Choose lead. Nothing is shown: ea is 1.31 points of R-Lsum above lead (95 % interval -0.15 to 2.77), but"
            f" that may be chance.{CHEAPEST}",
        ),
        (
            0.1,
            {},
            "Choose ea. ea is above lead by 10.91 points of R-Lsum (95 % interval 9.45 to 12.37).",
        ),
    ],
)
def test_the_cheapest_of_those_not_shown_to_be_below_the_best(
    better: float, changes: dict[str, object], sentence: str
) -> None:
    """Of one seed, or without a difference that is shown, the cheaper system is chosen; a clear winner is, though slow."""
    scores = table(ea=better, lead=0.0)
    runs = [finished("ea", scores["ea"], 40, **changes), finished("lead", scores["lead"], 1)]
    assert sentences(runs, scores)[0] == sentence


@pytest.mark.parametrize("better", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_few_texts_choose_nothing(number: int, better: float) -> None:
    """Below six texts there is never a choice, however large the difference; nor where so few cannot be tested."""
    scores = {name: frame.head(number) for name, frame in table(ea=better, lead=0.0).items()}
    runs = [finished("ea", scores["ea"], 40), finished("lead", scores["lead"], 1)]
    assert sentences(runs, scores)[0].startswith("No choice: too few texts. Nothing is shown: ")


def test_six_texts_of_two_stories_choose_nothing() -> None:
    """Questions about one text are one case."""
    scores = {}
    for name, frame in table(ea=0.5, lead=0.0).items():
        scores[name] = frame.head(6).assign(group=[0, 0, 0, 1, 1, 1])
    runs = [finished("ea", scores["ea"], 40), finished("lead", scores["lead"], 1)]
    assert sentences(runs, scores)[0].startswith("No choice: too few texts. ")


def test_how_many_texts_would_decide() -> None:
    """A difference of half of what the test detects needs four times the texts."""
    scores = table(ea=0.004, lead=0.0)
    runs = [finished("ea", scores["ea"], 40), finished("lead", scores["lead"], 1)]
    block = compare_to_best(group_rows_by_seed(runs, scores), scores)
    difference = block.compare_with_best(block.ranked[1])
    number = math.ceil(80 * (difference.detectable / difference.mean) ** 2)
    assert number > 80
    told = f"About {number:,} texts would tell these two apart, if they differ as much."
    assert describe_choice(block)[1] == told
    clear = [finished("ea", table(ea=0.5)["ea"], 40), runs[1]]
    by_run = {"ea": table(ea=0.5)["ea"], "lead": scores["lead"]}
    assert not describe_choice(compare_to_best(group_rows_by_seed(clear, by_run), by_run))[1]


@pytest.mark.parametrize("format", ["folder", "rows without summaries", "rows", "planted"])
def test_what_is_found_in_the_texts(tmp_path: Path, format: str) -> None:
    """Without a summary for each, facts are planted; a row without an id is called by its file and line."""
    texts = [" ".join(f"Sentence {n} of text {i} says so." for n in range(40)) for i in range(7)]
    path = tmp_path / "mine"
    if format == "folder":
        path.mkdir()
        for i, text in enumerate(texts):
            (path / f"{i}{('.txt', '.md')[i % 2]}").write_text(text)
    else:
        path = tmp_path / "mine.jsonl"
        rows = [{"text": text, "summary": "It says so twice."} for text in texts]
        if format == "rows without summaries":
            rows = [{"text": text} for text in texts]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    chosen = choose_texts(texts_overrides([str(path)]), plant=format == "planted")
    assert chosen.planted == (format != "rows")
    assert chosen.found.startswith("Found 7 texts of ")
    assert ("facts are planted" in chosen.found) == chosen.planted
    assert f"model.length={120 if chosen.planted else 4}" in chosen.words
    assert not chosen.trains
    if format == "rows":
        dataset = load_texts(plan_dataset(chosen.words[:3]), user_cache())
        assert list(dataset.splits["test"].ids) == [f"mine-{line}" for line in range(1, 8)]


def test_price_goes_before_time() -> None:
    """Of two systems alike, the free one is chosen, though it is slower."""
    scores = table(prompt=0.004, lead=0.0)
    paid = finished("prompt", scores["prompt"], 1, counts={"price": 0.4})
    chosen = sentences([paid, finished("lead", scores["lead"], 40)], scores)
    assert chosen[0].startswith("Choose lead")
    assert "US$" not in chosen[3]
    assert sentences([paid], scores)[3] == "prompt took: 80 texts, 1 s, US$ 0.40."


@pytest.mark.parametrize(
    ("changes", "reading", "cost"),
    [
        (
            {"source": Truncation(100, 100, (Cut("input_length", 40, 40),)), "fit": TRAINED},
            "ea never reads 40 % of the texts: what is only there is in no summary.",
            "ea took: 1 min 30 s of training; 80 texts, 40 s.",
        ),
        (
            {"source": Truncation(100, 100)},
            "ea reads the texts to their ends.",
            "ea took: 80 texts, 40 s.",
        ),
        ({"source": None}, "How much of a text ea reads is not known.", "ea took: 80 texts, 40 s."),
    ],
)
def test_what_is_never_read_and_what_it_took(
    changes: dict[str, object], reading: str, cost: str
) -> None:
    """40 of 100 tokens that a limit cut are 40 %."""
    scores = table(ea=0.1)
    run = finished("ea", scores["ea"], 40, **changes)
    assert sentences([run], scores)[2:] == [reading, cost]


def test_oracles_and_random_sentences_are_not_chosen() -> None:
    """Neither is recommended, however good or quick it is; nor is a run on other examples in the table."""
    scores = table(oracle=0.3, lead=0.0, random=0.001)
    runs = [
        finished("oracle", scores["oracle"], 1, oracle=True),
        finished("lead", scores["lead"], 1),
    ]
    runs.append(finished("random", scores["random"], 0))
    assert sentences(runs, scores)[0].startswith("Choose lead. ")
    oracle = LeaderboardBlock((ResultRow((runs[0],)),))
    assert describe_choice(oracle)[0] == "No system can be recommended: none is ranked."
    unlike = finished("other", scores["lead"], 1, examples="e2")
    screen = describe_recommendation(Results(Path("results")), [*runs, unlike], scores)
    assert "other" not in screen
    assert len(screen.splitlines()) <= MOST_LINES


def test_texts_are_a_path_or_settings(tmp_path: Path) -> None:
    """A folder or file becomes a jsonl dataset with a name of its own; settings stay as typed."""
    file = tmp_path / "my texts.jsonl"
    file.touch()
    assert texts_overrides([str(tmp_path), "seed=2"])[:2] == [
        "dataset=jsonl",
        f"dataset.name=texts-{tmp_path.name}",
    ]
    assert "dataset.name=texts-my-texts" in texts_overrides([str(file)])
    assert texts_overrides(["dataset=aclsum", "seed=2"]) == ["dataset=aclsum", "seed=2"]
    with pytest.raises(UsageError, match="one file or folder"):
        texts_overrides([str(file), "dataset=aclsum"])


def test_texts_are_checked_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_command: Command
) -> None:
    """Texts that no system could use are one line, once, before a system is made."""
    monkeypatch.setattr(recommendation, "plan_launch", lambda *_: pytest.fail("planned"))
    bad, only_train = tmp_path / "bad.csv", tmp_path / "only"
    bad.write_text("id,document\n1,Text.\n")  # too short to plant facts
    only_train.mkdir()
    (only_train / "train.csv").write_text("id,document,summary\n1,Text one.,Text.\n")
    for path, message in (
        (bad, "bad.csv:2: the fields 'summary' and 'references' are missing"),
        (only_train, "texts-only has no test split"),
    ):
        lines = run_command(
            3, "recommend", path, f"results_dir={tmp_path / 'results'}"
        ).err.splitlines()
        assert [message in line for line in lines] == [True]
    assert not (tmp_path / "results").exists()


def test_the_command_recommends(
    here: Path, run_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On toy texts it prints a table of all systems and three sentences; a system that cannot run fails at the end."""
    write_jsonl(here / "toys")
    monkeypatch.setattr(recommendation, "_FEWEST_TO_TRAIN", 6)
    quick = ["train.max_steps=4", "train.eval_steps=2", "score.resamples=100"]
    server = "model=prompt model.engine=api model.base_url=http://127.0.0.1:9/v1 model.checkpoint=m model.retries=0"
    printed = run_command(4, "recommend", "toys", *quick, "--also", f"{server} model.reading=whole")
    assert "127.0.0.1" in printed.err
    for name in ("lead", "random", "lexrank", "ea", "seal", "oracle"):
        assert f" {name} " in printed.out
    assert "Choose " in printed.out
    assert " took: " in printed.out
    assert len(printed.out.splitlines()) <= MOST_LINES
    commands = [
        read_json(path)["command"] for path in Path("results").glob("runs/*/*/*/record.json")
    ]
    assert commands[0][:3] == ["longsumbench", "recommend", "toys"]


def test_a_language_model_is_compared_in_four_readings(
    here: Path, run_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--model` adds the model once for each reading; rows are called by it. Three texts choose nothing."""
    write_causal(here / "model", positions=1_024)
    texts = [" ".join(f"Sentence {n} of text {i} says so." for n in range(90)) for i in range(3)]
    (here / "mine").mkdir()
    for i, text in enumerate(texts):
        (here / "mine" / f"{i}.txt").write_text(text)
    monkeypatch.setattr(
        recommendation,
        "_LANGUAGE_MODEL",
        ("model=prompt", "model.input_length=400", "model.decode_length=8"),
    )
    printed = run_command(0, "recommend", "mine", "--model", "model", "score.resamples=100")
    for reading in ("beginning", "ends", "select", "stages"):
        assert f" {reading} " in printed.out
    assert "No choice: too few texts." in printed.out

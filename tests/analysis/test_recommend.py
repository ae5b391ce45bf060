"""Which system for some texts: sentences that are computed from a table, and the command."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.api_server import Message, api_server
from support.commands import Command
from support.json_files import read_json, read_rows, write_rows
from support.run_records import TRAINED, record
from support.tiny_causal import write_causal
from support.toys import write_jsonl

from longsumbench.analysis import candidates, recommend as recommendation
from longsumbench.analysis.candidates import Way, find_affordable
from longsumbench.analysis.recommend import (
    add_references,
    choose_texts,
    describe_choice,
    describe_places,
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
from longsumbench.runs.plan import plan, plan_dataset
from longsumbench.runs.record import RunRecord, StepSeconds
from longsumbench.runs.results import Results
from longsumbench.sweeps.sweep import Launch
from longsumbench.views.columns import ROW_COLUMNS
from longsumbench.views.run_summary_screen import MOST_LINES

QUICK_MODEL = (
    "recommend mine --model model model.input_length=400 model.decode_length=8 score.resamples=100"
)
BASE = np.random.default_rng(1).beta(4, 8, 80)  # how well the examples go, whoever summarizes


def table(**better: float) -> dict[str, pd.DataFrame]:
    """Return scores per example that lie around `BASE` and a number."""
    found = {}
    for seed, (name, more) in enumerate(better.items()):
        drawn = (BASE + more + np.random.default_rng(seed).normal(0, 0.05, len(BASE))).clip(0, 1)
        columns = {f"{kind}_{statistic}": drawn for kind in ROUGE_HEADINGS for statistic in "prf"}
        found[name] = pd.DataFrame(
            columns, index=pd.Index([f"{n:02d}" for n in range(len(BASE))], name="id")
        )
    return found


def finished(name: str, scores: pd.DataFrame, seconds: float, **changes: object) -> RunRecord:
    """Return a run with these scores that took so long to summarize."""
    changes = {"timings": StepSeconds(summarize=seconds), "scores": aggregate(scores), **changes}
    return record(name, 0, run_id=name, n=len(scores), **changes)


def finished_pair(scores: dict[str, pd.DataFrame], **changes: object) -> list[RunRecord]:
    """Return runs of the slow `ea`, with the changes, and of the quick `lead`."""
    return [finished("ea", scores["ea"], 40, **changes), finished("lead", scores["lead"], 1)]


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
    assert sentences(finished_pair(scores, **changes), scores)[0] == sentence


def test_parts_of_a_second_do_not_choose() -> None:
    """Of two systems that both take less than a second or so, the better one is chosen, on a busy machine, too."""
    scores = table(ea=0.004, lead=0.0)
    for seconds in ((0.2, 0.1), (0.9, 0.1), (1.3, 1.1)):
        runs = [finished(*row) for row in zip(scores, scores.values(), seconds, strict=True)]
        assert sentences(runs, scores)[0].startswith("Choose ea. Nothing is shown: ")


@pytest.mark.parametrize("better", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_few_texts_choose_nothing(number: int, better: float) -> None:
    """Below six texts there is never a choice, however large the difference; nor where so few cannot be tested."""
    scores = {name: frame.head(number) for name, frame in table(ea=better, lead=0.0).items()}
    assert sentences(finished_pair(scores), scores)[0].startswith(
        "No choice: too few texts. Nothing is shown: "
    )


def test_six_texts_of_two_stories_choose_nothing() -> None:
    """Questions about one text are one case."""
    scores = {}
    for name, frame in table(ea=0.5, lead=0.0).items():
        scores[name] = frame.head(6).assign(group=[0, 0, 0, 1, 1, 1])
    assert sentences(finished_pair(scores), scores)[0].startswith("No choice: too few texts. ")


def test_how_many_texts_would_decide() -> None:
    """A difference of half of what the test detects needs four times the texts."""
    scores = table(ea=0.004, lead=0.0)
    runs = finished_pair(scores)
    block = compare_to_best(group_rows_by_seed(runs, scores), scores)
    difference = block.compare_with_best(block.ranked[1])
    number = math.ceil(80 * (difference.detectable / difference.mean) ** 2)
    assert number > 80
    told = f"About {number:,} texts would tell these two apart, if they differ as much."
    assert describe_choice(block)[1] == told
    clear = table(ea=0.5, lead=0.0)
    assert not sentences(finished_pair(clear), clear)[1]


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
        write_rows(path, rows)
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
    assert "US$" not in chosen[-1]
    assert sentences([paid], scores)[-1] == "prompt took: 80 texts, 1 s, US$ 0.40."


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
    assert sentences([run], scores)[2:] == [reading, "", cost]


def test_what_is_kept_in_each_half_of_a_text() -> None:
    """20 % of the facts in the first tenth and none in the next four are 4 % of the first half."""
    kept = {f"fact_survival_position_{tenth}": 0.0 for tenth in range(5)}
    kept |= {f"fact_survival_position_{tenth}": 90.0 for tenth in range(5, 10)}
    kept["fact_survival_position_0"] = 20.0
    means = {name: SimpleNamespace(mean=value) for name, value in kept.items()}
    row: Any = SimpleNamespace(label="ends", means=means)
    said = "ends keeps 4 % of the facts in the first half of a text, 90 % of those in the second."
    assert describe_places(row) == said
    (column,) = [column for column in ROW_COLUMNS if column.name == "halves"]
    assert column.cell(row) == "4 / 90"
    row.means.clear()
    assert (describe_places(row), column.cell(row)) == ("", "")


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
    systems = "lead random lexrank ea seal oracle"
    for name in systems.split():
        assert f" {name} " in printed.out
    assert "Choose " in printed.out
    assert " took: " in printed.out
    assert len(printed.out.splitlines()) <= MOST_LINES
    commands = [
        read_json(path)["command"] for path in Path("results").glob("runs/*/*/*/record.json")
    ]
    assert commands[0][:3] == ["longsumbench", "recommend", "toys"]


def write_texts(folder: Path, number: int) -> list[list[str]]:
    """Write texts of 40 sentences, and return these."""
    folder.mkdir()
    texts = []
    for i in range(number):
        texts.append([f"Sentence {n} of text {i} tells story {n * 7 + i}." for n in range(40)])
        (folder / f"{i:02d}.txt").write_text(" ".join(texts[-1]))
    return texts


def test_a_language_model_is_compared_in_the_readings_that_fit(
    here: Path, run_command: Command
) -> None:
    """`--model` adds the model once for each reading; rows are called by it. Three texts choose nothing."""
    write_causal(here / "model", positions=1_024)
    write_texts(here / "mine", 3)
    printed = run_command(0, *QUICK_MODEL.split())
    readings = "beginning ends select stages refine"
    for reading in readings.split():
        assert f" {reading} " in printed.out
    assert ", whole" not in printed.out
    assert "Without whole: 3 of 3 prompts are too long: " in printed.err
    assert "No choice: too few texts." in printed.out


def copy_last_sentence(messages: Sequence[Message]) -> str:
    """Answer with the last sentence of a prompt."""
    return re.findall(r"Sentence \d+ of text \d+ tells story \d+\.", messages[-1]["content"])[-1]


def test_the_reading_that_fits_a_model_is_found(here: Path, run_command: Command) -> None:
    """A server's address is enough: a model that copies the last sentence that it sees needs the ends."""
    texts = write_texts(here / "mine", 12)
    (here / "theirs").mkdir()
    for i, sentences in enumerate(texts):
        (here / "theirs" / f"{i:02d}.md").write_text(sentences[-1])
    write_causal(here / "model", positions=1_024)
    models = {"data": [{"id": "copier", "root": str(here / "model"), "max_model_len": 1_300}]}
    prices = "model.input_price=1 model.output_price=1 model.input_length=700"
    with api_server(answer=copy_last_sentence, models=models) as server:
        words = f"recommend mine --references theirs --model {server.base_url} {prices}"
        printed = run_command(0, *words.split(), "score.resamples=100")
    assert "US$" in printed.err
    assert "Choose prompt, ends. " in printed.out


def test_what_a_server_does_not_say_is_asked_at_once(here: Path, run_command: Command) -> None:
    """A server of two models without a tokenizer: the message has both settings to add."""
    write_texts(here / "mine", 3)
    models = {"data": [{"id": "one", "root": 5, "max_model_len": "long"}, {"id": "two"}]}
    with api_server(models=models) as server:
        printed = run_command(2, "recommend", "mine", "--model", server.base_url)
    assert "model.checkpoint=NAME (it serves one, two) and model.tokenizer=FOLDER" in printed.err


def test_an_interrupt_shows_what_is_finished(
    here: Path, run_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the third system prints the table of the others, and the same command goes on."""
    write_texts(here / "mine", 7)
    command = ("recommend", "mine", "score.resamples=100", "--command", "tail -c 80", "--command")
    start = Launch.start

    def interrupted(launch: Launch) -> None:
        if "head" in str(launch.words):
            raise KeyboardInterrupt
        start(launch)

    monkeypatch.setattr(Launch, "start", interrupted)
    printed = run_command(130, *command, "head -c 80")
    assert "tail" in printed.out
    assert "Choose " in printed.out
    monkeypatch.setattr(Launch, "start", start)
    assert "head" in run_command(0, *command, "head -c 80").out


def test_minutes_choose_the_number_of_texts(here: Path, run_command: Command) -> None:
    """If even the fastest way has no time for six texts, it alone summarizes one."""
    write_causal(here / "model", positions=1_024)
    write_texts(here / "mine", 8)
    printed = run_command(0, *QUICK_MODEL.split(), "--minutes", "1e-9")
    assert "1 way of reading 1 text: " in printed.err
    assert "Of 8 texts, so many fit into --minutes 1e-09, without " in printed.err


def test_minutes_are_a_number(here: Path, run_command: Command) -> None:
    """Anything else is one line, before the texts are read."""
    for minutes in ("-1", "nan", "inf"):
        printed = run_command(2, "recommend", "missing", f"--minutes={minutes}")
        assert f"--minutes {minutes}: give 0 (no limit)" in printed.err


def test_ids_that_are_numbers_and_summaries_without_words(tmp_path: Path) -> None:
    """A number and its digits are the same id; a text whose summary is empty is left out."""
    texts, summaries = tmp_path / "mine.jsonl", tmp_path / "theirs.csv"
    write_rows(texts, ({"id": i, "text": f"Text {i}."} for i in range(3)))
    summaries.write_text("id,summary\n0,One.\n1,\n2,Two.\n")
    results = tmp_path / "results"
    words = [*texts_overrides([str(texts)]), f"results_dir={results}"]
    add_references(words, summaries)
    (joined,) = results.glob("texts/*.jsonl")
    assert [(row["id"], row["summary"]) for row in read_rows(joined)] == [(0, "One."), (2, "Two.")]


@pytest.mark.parametrize(
    ("minutes", "number", "kept"), [(0, 10, 3), (9, 10, 3), (4.5, 9, 2), (1, 6, 1), (0.1, 1, 1)]
)
def test_the_slowest_ways_are_left_out_until_six_texts_fit(
    minutes: float, number: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten texts take 90, 240 and 210 seconds: 540 in all, which are 9 minutes; without the slowest 300."""
    seconds = (90.0, 240.0, 210.0)
    ways = [Way(index, value, 1.0, 0.0) for index, value in enumerate(seconds)]
    model = SimpleNamespace(reading="refine", merge_with=None)
    launch: Any = SimpleNamespace(points=[SimpleNamespace(config=SimpleNamespace(model=model))])
    monkeypatch.setattr(candidates, "_estimate_ways", lambda _: ways)
    affordable = find_affordable([launch] * 3, 10, minutes, 6)
    assert (affordable.number, len(affordable.seconds)) == (number, kept)


def test_a_folder_of_four_formats_and_a_session(here: Path) -> None:
    """Texts and rows in one folder are read together; a log of a session is read as one."""
    texts = [" ".join(sentences) for sentences in write_texts(here / "mine", 2)]
    (here / "mine" / "01.txt").rename(here / "mine" / "01.md")
    write_rows(here / "mine" / "more.jsonl", [{"text": texts[0] + " More."}])
    (here / "mine" / "table.csv").write_text(f"name;article\na;{texts[1]} Again.\n")
    chosen = choose_texts(texts_overrides(["mine"]))
    assert chosen.found.startswith("Found 4 texts of ")
    turns = [
        {"role": role, "content": text}
        for role, text in zip(("user", "assistant"), texts, strict=True)
    ]
    write_rows(here / "log.jsonl", turns)
    chosen = choose_texts(texts_overrides(["log.jsonl"]))
    assert "dataset=sessions" in chosen.words
    assert chosen.found.startswith("Found 1 text of ")


def test_common_words_for_readings() -> None:
    """They are understood, as tools write them."""
    words = {"RAG": "select", "map-reduce": "stages", "stuff": "whole", "Rolling": "refine"}
    for word, reading in words.items():
        command = f"model=prompt model.checkpoint=m model.reading={word} model.length=9"
        with pytest.raises(UsageError, match=f"did you mean '{reading}'"):
            plan(command.split())

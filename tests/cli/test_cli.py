"""The command line as a user types it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.toys import write_jsonl

import longsumbench
from longsumbench.analysis.plan import ANALYSES
from longsumbench.cli.lists import LISTED_KINDS
from longsumbench.cli.main import COMMANDS, main, parse_words, parser
from longsumbench.cli.parser import Parser
from longsumbench.cli.run import FIRST_COMPARISON
from longsumbench.runs.overrides import as_hydra

SUITE = [sys.executable, "-m", "longsumbench"]


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Overrides of a run that takes a second."""
    toy = write_jsonl(tmp_path / "toy")
    return [
        "model=lead",
        "dataset=jsonl",
        f"dataset.path={toy}",
        f"results_dir={tmp_path / 'r'}",
        "score.resamples=100",
    ]


def test_help_imports_nothing_heavy() -> None:
    """Until a command runs, no library beyond the standard one is imported."""
    code = "import sys; from longsumbench.cli.main import parser; parser(); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"torch", "transformers", "hydra", "omegaconf", "numpy", "pandas", "tabulate"} & set(
        loaded
    )


def test_commands_on_finished_runs_import_little(words: list[str]) -> None:
    """Tables, comparisons, examples and lists of finished runs need none of the large libraries."""
    lead, lexrank = longsumbench.sweep(
        **dict(word.split("=") for word in words[1:]), model=["lead", "lexrank"]
    )
    results_dir = ["--results-dir", words[3].removeprefix("results_dir=")]
    commands = [
        ["leaderboard", "jsonl"],
        ["compare", lead.run_id, lexrank.run_id],
        ["inspect", lead.run_id, "0"],
        ["list", "runs"],
    ]
    code = f"import sys; from longsumbench.cli.main import main\nfor words in {commands}: main([*words, *{results_dir}])\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "longsumbench.outputs.compare" in loaded
    assert (
        not {"torch", "transformers", "datasets", "hydra", "pandas", "sklearn", "matplotlib"}
        & loaded
    )


@pytest.mark.parametrize("command", ["", *(command.name for command in COMMANDS)])
def test_help_teaches(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every help shows examples that can be typed, and the exit codes; no line is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([*([command] if command else []), "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert len(re.findall(r"^  longsumbench \w+", text, re.MULTILINE)) >= 2
    assert (
        "exit codes: 0 done, 1 some points failed, 2 wrong usage or configuration, 3 bad data,"
        in " ".join(text.split())
    )
    assert max(map(len, text.splitlines())) <= 80


def test_a_broken_line_of_help_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell joins a broken example again, what it means is a comment, and prose has all its words."""
    monkeypatch.setenv("COLUMNS", "60")
    example = 'longsumbench import out.jsonl --variant "a beam of 5" --model theirs'
    text = Parser(
        "it", description=f"Put outputs\ninto\nthe table.\n\n  {example}   where they are\n"
    ).format_help()
    lines = [line.rstrip() for line in text.partition("\n\n")[2].splitlines()[:5]]
    assert lines == [
        "Put outputs into the table.",
        "",
        '  longsumbench import out.jsonl --variant "a beam of 5" \\',
        "      --model theirs",
        "      # where they are",
    ]


LISTS = ("models", "datasets", "scales", "experiments", "recipes", "metrics", "rankers", "settings")


@pytest.mark.parametrize("kind", LISTS)
def test_lists_fit_the_terminal(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No line of a list is wider than 80 columns, and no name is broken."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["list", kind]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    monkeypatch.setenv("COLUMNS", "1000")
    assert main(["list", kind]) == 0
    whole = capsys.readouterr().out.splitlines()
    names = {line.split()[0] for line in whole}
    assert names - {line.split()[0] for line in lines if not line.startswith(" ")} == set()


def test_screens_of_a_sweep_fit_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is wider than 80 columns: a sweep with a failed point, its status, the list of runs, the cache."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "toy", train=0, validation=0)
    sweep = ["model=lead,lexrank", "model.length=train,20,30", "dataset=jsonl", "dataset.path=toy"]
    assert (
        main(
            [
                "run",
                "-m",
                *sweep,
                "score.resamples=100",
                "score.metrics=[novel_ngrams,extractive,repetition]",
            ]
        )
        == 1
    )
    written = capsys.readouterr()
    table = written.err.partition("\npoint  ")[2].partition("\nlongsumbench: 2 of 6 points failed")[
        0
    ]
    assert len(re.findall(r"^[1-6] +model=", table, re.MULTILINE)) == 6
    screens = [written.out, table]
    for command in ("status", "list runs", "cache list", "cache", "leaderboard jsonl"):
        assert main(command.split()) == 0
        screens += capsys.readouterr()
    too_wide = [line for screen in screens for line in screen.splitlines() if len(line) > 80]
    assert too_wide == []


def test_the_examples_of_the_help_can_be_typed() -> None:
    """What the help shows is understood."""
    text = parser().format_help().replace(" \\\n", "")
    for words in re.findall(r"^  longsumbench ([^#\n]*?)(?:   .*)?$", text, re.MULTILINE):
        assert parse_words(words.split()).command


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """The bare command teaches."""
    with pytest.raises(SystemExit):
        main([])
    assert "longsumbench run" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        "run -m a=1 b=2 --config-dir X",
        "run a=1 -m b=2 --config-dir X",
        "run a=1 b=2 -m --config-dir=X",
        "run --config-dir X a=1 b=2 --multirun",
        "run --config-dir X -m a=1 b=2",
        "run a=1 --config-dir X b=2 -m",
    ],
)
def test_flags_stand_on_either_side_of_overrides(words: str) -> None:
    """Flags and overrides may be mixed; overrides keep their order."""
    options = parse_words(words.split())
    assert (options.multirun, options.config_dir, options.overrides) == (True, "X", ["a=1", "b=2"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run seal", "'seal' is not an override: write model=seal"),
        ("run --model seal", "'--model' is not a flag: write model=seal"),
        ("run --train.max-steps=3", "'--train.max-steps' is not a flag: write train.max_steps=3"),
        ("run --overwrite -m", "'--overwrite' is not a flag: write overwrite=VALUE"),
        ("run max_steps=3", "unknown setting 'max_steps' (did you mean 'train.max_steps'?)"),
        ("run lr=3", "unknown setting 'lr' (did you mean 'train.learning_rate'?)"),
        (
            "run model=org/bart",
            "model=org/bart is a checkpoint: write model=seq2seq model.checkpoint=org/bart",
        ),
        (
            "score a b score.empty_references=zero",
            "is for `run`; here write --empty-references zero",
        ),
        (
            "run limit=3",
            "unknown setting 'limit' (did you mean 'dataset.limit' or 'decode.limit'?)",
        ),
        ("run num_pages=3", "unknown setting 'num_pages' (did you mean 'model.num_pages'?)"),
        ("run dataset=tests", "dataset=tests is a path: write dataset=jsonl dataset.path=tests"),
        ("run tests", "'tests' is not an override: write key=value"),
        ("rnu", "unknown command 'rnu' (did you mean 'run'?)"),
        ("list modls", "unknown kind 'modls' (did you mean 'models'?)"),
        ("dataset", "the following arguments are required: ACTION, NAME; ACTION: add or remove"),
        ("completion", "SHELL: bash, zsh, fish"),
        ("--columns", "COMMAND: run, leaderboard"),
        (
            "run -m model=lead, random",
            "a blank after ',' divides 'model=lead, random': write model=lead,random",
        ),
        (
            "run -m model=lead, random, ea seed=1",
            "'model=lead, random, ea': write model=lead,random,ea",
        ),
        ("run -m model=lead ,random", "a blank before ',' divides 'model=lead ,random'"),
        ("run seed=1, -m 2", "'2' is not an override"),
        ("run model = lead", "a blank before '=' divides 'model = lead': write model=lead"),
        ("run model= lead", "a blank after '=' divides 'model= lead': write model=lead"),
        ("run model.focus_layers=[1, 2]", "write model.focus_layers=[1,2]"),
        ("stats model=trunc, seal", "write model=trunc,seal"),
        (
            "import out.jsonl --model a --dataset b score.metrics=[x, y]",
            "write score.metrics=[x,y]",
        ),
        ("leaderboard pydoc --columns rouge1, rouge2", "write rouge1,rouge2"),
        ("list models lead", "'lead' is an extra argument"),
        ("list settings led", "unknown model 'led' (did you mean 'lead'?)"),
        ("leaderboard a b", "unknown argument 'b'"),
        (
            "leaderboard --measure recal",
            "--measure=recal (did you mean 'recall'?); allowed: f1, precision, recall",
        ),
        ("run experiment=first-probe", "experiment=first-probe has several points: run it with -m"),
        (
            "run -m experiment=first-prob",
            "unknown experiment 'first-prob' (did you mean 'first-probe'?)",
        ),
        ("leaderboard --latx", "unknown flag '--latx' (did you mean '--latex'?)"),
        ("compare one", "name two or more runs; the others are compared with the first"),
        (
            "compare one two --results-dir nowhere",
            "called 'one' under nowhere; `longsumbench list runs` shows the ids",
        ),
        ("run --sho", "unknown flag '--sho' (did you mean '--show'?)"),
        ("run --config-dir", "expected one argument"),
        (
            "leaderboard --results-dir nowhere",
            "no finished run under nowhere: start with `longsumbench run`",
        ),
    ],
)
def test_wrong_usage_is_one_line(
    words: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wrong usage ends with exit code 2 and one line on stderr that says what was meant."""
    (tmp_path / "tests").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert message in output.err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "dataset.path=", "score.stem=true"],
        ["run", "model=lead", "-m", "seed=1"],
        ["run", "dataset.path='a, b'"],
        ["summarize", "lexrank", "a.txt", "--query", "Who, ", "b.txt"],
        ["leaderboard", "pydoc", "--columns", "rouge1,", "--by-run"],
    ],
)
def test_a_blank_that_divides_nothing_is_no_slip(words: list[str]) -> None:
    """An empty value before a setting or a flag, and commas within texts, are left as they are."""
    assert parse_words(words).command == words[0]


@pytest.mark.parametrize(
    ("command", "word"),
    [*(("list", kind) for kind in LISTED_KINDS), *(("analyze", name) for name in ANALYSES)],
)
def test_a_command_without_its_word_lists_what_there_is(
    command: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`list` and `analyze` alone print every word that can follow, as a command, with its meaning."""
    assert main([command]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(re.match(rf"longsumbench {command} {word} +\S", line) for line in lines)


def test_settings_in_one_pair_of_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    """A word that holds several settings is refused with what to do; a text with the sign "=" is not."""
    assert main(["run", "model=lead dataset=pydoc"]) == 2
    assert (
        "has several settings in one pair of quotes: leave the quotes out"
        in capsys.readouterr().err
    )
    assert as_hydra("dataset.path='a dataset=b'") == "++dataset.path='a dataset=b'"
    assert as_hydra("dataset.path=a=b") == "++dataset.path=a=b"


def test_the_settings_of_models_are_known_without_a_network() -> None:
    """A model's setting that lacks its section is found among the settings of all systems, and torch is not loaded."""
    code = "import sys; from longsumbench.runs.overrides import unknown_setting as u; print(u('num_snippets', []))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print('torch' in sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[0].startswith(
        "unknown setting 'num_snippets' (did you mean 'model.num_snippets'?)"
    )
    assert done.stdout.splitlines()[1] == "False"


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("models", {"lead", "random", "oracle", "trunc"}),
        ("datasets", {"pydoc", "probe", "arxiv", "pubmed", "elife", "peer_reviews", "jsonl"}),
        ("scales", {"tiny", "small", "paper"}),
        ("metrics", {"rouge"}),
        ("rankers", {"tfidf", "title"}),
    ],
)
def test_what_can_be_named_is_listed(
    kind: str, named: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every name has a line that says what it is, not its place."""
    assert main(["list", kind]) == 0
    message = {
        line.split()[0]: line.partition(" ")[2].strip()
        for line in capsys.readouterr().out.splitlines()
    }
    assert named <= set(message)
    assert all(" " in about for about in message.values())


def test_settings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Settings of all sections and of the top level have their defaults and meanings; a model's when it is named."""
    assert main(["list", "settings"]) == 0
    text = capsys.readouterr().out
    assert {"train.max_steps", "decode.num_beams", "dataset.path", "seed"} <= {
        line.split()[0] for line in text.splitlines()
    }
    assert "model." not in text
    assert main(["list", "settings", "lead"]) == 0
    assert re.search(r"^model\.length +train +words", capsys.readouterr().out, re.MULTILINE)


def test_a_run_prints_its_table_once(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The table goes to stdout, once; run again, the same table, and one line that nothing was left to do."""
    assert main(["run", *words]) == 0
    first = capsys.readouterr()
    assert first.out.count("test split, 8 examples") == 1
    assert set(first.out.split()) >= {"→", "lead", "random", "oracle"}
    assert first.err == ""
    assert main(["run", *words]) == 0
    again = capsys.readouterr()
    assert again.out == first.out
    assert len(again.err.splitlines()) == 1
    assert "already finished: lead on jsonl" in again.err


def test_a_run_without_arguments_compares(capsys: pytest.CaptureFixture[str]) -> None:
    """It is a sweep over systems on two datasets; with overrides, or as a sweep, it is what they say."""
    assert main(["run", "--show"]) == 0
    shown = capsys.readouterr().out
    assert main(["run", "-m", *FIRST_COMPARISON, "--show"]) == 0
    assert capsys.readouterr().out == shown
    assert set(re.findall(r"^  name: (\w+)$", shown, re.MULTILINE)) >= {
        "probe",
        "pydoc",
        "trunc",
        "ea",
        "seal",
        "pagesum",
    }
    for words in (["model=seal", "dataset=pydoc"], ["-m"]):
        assert main(["run", *words, "--show"]) == 0
        assert re.findall(r"^  name: (\w+)$", capsys.readouterr().out, re.MULTILINE) == [
            "seal",
            "pydoc",
        ]


def test_a_leaderboard_is_printed(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`leaderboard` prints the table that `run` has written, of one dataset or of all; with --latex for a paper."""
    main(["run", *words])
    assert "longsumbench leaderboard jsonl --results-dir" in capsys.readouterr().out
    printed = set()
    for chosen in ([], ["jsonl"]):
        assert main(["leaderboard", *chosen, "--results-dir", str(tmp_path / "r")]) == 0
        printed.add(capsys.readouterr().out)
    assert len(printed) == 1
    assert "test split" in printed.pop()
    assert main(["leaderboard", "--latex", "--results-dir", str(tmp_path / "r")]) == 0
    assert "\\toprule" in capsys.readouterr().out
    assert (
        main(
            [
                "leaderboard",
                "jsonl",
                "--latex",
                str(tmp_path / "t.tex"),
                "--results-dir",
                str(tmp_path / "r"),
            ]
        )
        == 0
    )
    assert capsys.readouterr().out.split() == [str(tmp_path / "t.tex")]
    assert r"\begin{table}" in (tmp_path / "t.tex").read_text(encoding="utf-8")
    assert main(["leaderboard", "--latex", "jsonl", "--results-dir", str(tmp_path / "r")]) == 2
    assert "name one DATASET first, then a file that ends in .tex" in capsys.readouterr().err
    assert (
        main(["leaderboard", "jsonl", "--measure", "recall", "--results-dir", str(tmp_path / "r")])
        == 0
    )
    assert "jsonl, ROUGE recall" in capsys.readouterr().out
    assert main(["leaderboard", "jsnl", "--results-dir", str(tmp_path / "r")]) == 2
    assert "(did you mean 'jsonl'?)" in capsys.readouterr().err


def test_a_sweep_with_a_failing_point_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of what was finished is printed, then which points failed and why; so does the code."""
    toy = write_jsonl(tmp_path / "toy", train=0, validation=0)
    sweep = [
        "-m",
        "model=lead,oracle",
        "dataset=jsonl",
        f"dataset.path={toy}",
        f"results_dir={tmp_path / 'r'}",
    ]
    assert main(["run", *sweep, "score.resamples=100"]) == 1
    output = capsys.readouterr()
    assert output.out.count("test split, 8 examples") == 1
    message = output.err.splitlines()
    assert "longsumbench: 1 of 2 points failed, the others are kept:" in message
    assert re.match(r"model=lead +model.length=train needs a train split", message[-1])


def test_a_torn_record_of_others_ends_no_sweep(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every point has its result and its line, and the table is made; the record that cannot be read is named once."""
    torn = tmp_path / "r" / "runs" / "jsonl" / "lead" / "feedfeedfeed" / "record.json"
    torn.parent.mkdir(parents=True)
    torn.write_bytes(b"")
    assert main(["run", "-m", *words, "baselines=false", "model.length=3,5"]) == 0
    table, said = capsys.readouterr()
    assert len(list((tmp_path / "r").glob("runs/*/*/*/predictions.jsonl"))) == 2
    assert re.search(r"model.length=5 +done", said)
    assert said.count(str(torn)) == 1
    assert "length=5" in table


def test_what_would_be_run_is_shown(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--show prints the resolved configuration and does nothing."""
    assert main(["run", *words, "--show", "seed=7"]) == 0
    assert "seed: 7\n" in capsys.readouterr().out
    assert not (tmp_path / "r").exists()


def test_an_interrupt_ends_with_130(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends a command, a sweep too, with one line and no table."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("longsumbench.runs.pipeline.summarize_split", interrupted)
    assert main(["run", *words]) == 130
    output = capsys.readouterr()
    assert (output.out, len(output.err.splitlines())) == ("", 1)


def test_a_reader_may_stop_reading() -> None:
    """When the output is cut off, as by `head`, the command ends quietly."""
    command = [*SUITE, "list", "settings"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0

"""The command line as a user types it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import Command
from support.toys import write_jsonl

import longsumbench
from longsumbench.cli.lists import LISTED_KINDS
from longsumbench.cli.main import commands, main, parse_words, parser
from longsumbench_reproduction.analysis.analyze import ANALYSES


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


@pytest.mark.parametrize("command", ["", *commands.targets()])
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
        "exit codes: 0 done, 1 some runs failed, 2 wrong usage or configuration, 3 bad data,"
        in " ".join(text.split())
    )
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("kind", ["models", "recipes", "settings"])
def test_lists_fit_the_terminal(
    kind: str, monkeypatch: pytest.MonkeyPatch, run_command: Command
) -> None:
    """No line of a list is wider than 80 columns, and no name is broken."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = run_command(0, "list", kind).out.splitlines()
    assert max(map(len, lines)) <= 80
    monkeypatch.setenv("COLUMNS", "1000")
    whole = run_command(0, "list", kind).out.splitlines()
    names = {line.split()[0] for line in whole}
    assert names - {line.split()[0] for line in lines if not line.startswith(" ")} == set()


def test_screens_of_a_sweep_fit_the_terminal(
    here: Path, monkeypatch: pytest.MonkeyPatch, run_command: Command
) -> None:
    """Nothing is wider than 80 columns: a sweep with a failed point, its status, the list of runs, the cache."""
    monkeypatch.setenv("COLUMNS", "80")
    write_jsonl(here / "toy", train=0, validation=0)
    sweep = ["model=lead,lexrank", "model.length=train,20,30", "dataset=jsonl", "dataset.path=toy"]
    written = run_command(
        1,
        "run",
        "-m",
        *sweep,
        "score.resamples=100",
        "score.metrics=[novel_ngrams,extractive,repetition]",
    )
    table = written.err.partition("\nrun  ")[2].partition("\nlongsumbench: 2 of 6 runs failed")[0]
    assert len(re.findall(r"^[1-6] +model=", table, re.MULTILINE)) == 6
    screens = [written.out, table]
    for command in ("status", "list runs", "cache list", "cache", "leaderboard jsonl"):
        screens += run_command(0, *command.split())
    too_wide = [line for screen in screens for line in screen.splitlines() if len(line) > 80]
    assert too_wide == []


def test_the_examples_of_the_help_can_be_typed() -> None:
    """What the help shows is understood."""
    text = parser().format_help().replace(" \\\n", "")
    for words in re.findall(r"^  longsumbench ([^#\n]*?)(?:   .*)?$", text, re.MULTILINE):
        assert parse_words(words.split()).command


@pytest.mark.parametrize(
    "words",
    [
        "run -m a=1 b=2 --config-dir X",
        "run a=1 b=2 -m --config-dir=X",
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
        ("run dataset=tests", "dataset=tests is a path: write dataset=jsonl dataset.path=tests"),
        ("rnu", "unknown command 'rnu' (did you mean 'run'?)"),
        (
            "run -m model=lead, random",
            "a blank after ',' divides 'model=lead, random': write model=lead,random",
        ),
        ("run model = lead", "a blank before '=' divides 'model = lead': write model=lead"),
        ("list models lead", "'lead' is an extra argument"),
        (
            "leaderboard --measure recal",
            "--measure=recal (did you mean 'recall'?); allowed: f1, precision, recall",
        ),
        ("compare one", "name two or more runs; the others are compared with the first"),
        ("agreement", "required: FOLDER; FOLDER: contains documents, outputs and judgements (see"),
        (
            "stats dataset=aclsum --output x.csv",
            "x.csv is to be a folder, and has the name of a file: choose",
        ),
        ("run --sho", "unknown flag '--sho' (did you mean '--show'?)"),
        ("run --config-dir", "expected one argument"),
    ],
)
def test_wrong_usage_is_one_line(
    words: str,
    message: str,
    run_command: Command,
    here: Path,
) -> None:
    """Wrong usage ends with exit code 2 and one line on stderr that says what was meant."""
    (here / "tests").mkdir()
    output = run_command(2, *words.split())
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert message in output.err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "dataset.path=", "score.stem=true"],
        ["run", "dataset.path='a, b'"],
        ["summarize", "lexrank", "a.txt", "--query", "Who, ", "b.txt"],
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
    command: str, word: str, run_command: Command
) -> None:
    """`list` and `analyze` alone print every word that can follow, as a command, with its meaning."""
    lines = run_command(0, command).out.splitlines()
    assert any(re.match(rf"longsumbench {command} {word} +\S", line) for line in lines)


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


def test_settings_are_listed(run_command: Command) -> None:
    """Settings of all sections and of the top level have their defaults and meanings; a model's when it is named."""
    text = run_command(0, "list", "settings").out
    assert {"train.max_steps", "decode.num_beams", "dataset.path", "seed"} <= {
        line.split()[0] for line in text.splitlines()
    }
    assert "model." not in text
    assert re.search(
        r"^model\.length +train +words",
        run_command(0, "list", "settings", "lead").out,
        re.MULTILINE,
    )


def test_a_run_prints_its_table_once(words: list[str], run_command: Command) -> None:
    """The table goes to stdout, once; run again, the same table, and one line that nothing was left to do."""
    first = run_command(0, "run", *words)
    assert first.out.count("test split, 8 examples") == 1
    assert set(first.out.split()) >= {"→", "lead", "random", "oracle"}
    assert first.err == ""
    again = run_command(0, "run", *words)
    assert again.out == first.out
    assert len(again.err.splitlines()) == 1
    assert "already finished: lead on jsonl" in again.err


def test_a_run_without_arguments_compares(
    run_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a sweep over systems on two datasets; a language model joins it, by its setting or by the environment."""
    shown = run_command(0, "run", "--show").out
    names = re.findall(r"^  name: (\w+)$", shown, re.MULTILINE)
    assert names.count("aclsum") == 9
    assert names.count("probe") == 4
    more = run_command(0, "run", "model.checkpoint=some/model", "--show").out
    assert more.count("limit: 20\n") == 9 + 2
    assert re.findall(r"reading: (\w+)", more) == ["beginning", "select"]
    monkeypatch.setenv("LONGSUMBENCH_MODEL", "some/model")
    assert run_command(0, "run", "--show").out == more


def test_a_leaderboard_is_printed(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`leaderboard` prints the table that `run` has written, of one dataset or of all; with --latex for a paper."""
    main(["run", *words])
    assert "longsumbench leaderboard jsonl --results-dir" in capsys.readouterr().out

    def print_table(*choice: str, code: int = 0) -> str:
        assert main(["leaderboard", *choice, "--results-dir", str(tmp_path / "r")]) == code
        out, err = capsys.readouterr()
        return err if code else out

    assert "test split" in print_table()
    assert print_table() == print_table("jsonl")
    assert "\\toprule" in print_table("--latex")
    file = tmp_path / "t.tex"
    for flag in ("--latex", "--output"):
        assert print_table("jsonl", flag, str(file)).split() == [str(file)]
        assert r"\caption{jsonl, test split, 8 examples}" in file.read_text()
        file.unlink()
    assert "x.md: name one DATASET first" in print_table("jsonl", "--output", "x.md", code=2)
    misplaced = print_table("--latex", "jsonl", code=2)
    assert "name one DATASET first, then a file that ends in .tex" in misplaced
    assert "jsonl, ROUGE recall" in print_table("jsonl", "--measure", "recall")
    assert "(did you mean 'jsonl'?)" in print_table("jsnl", code=2)


def test_a_sweep_with_a_failing_point_ends_with_1(tmp_path: Path, run_command: Command) -> None:
    """The table of what was finished is printed, then which points failed and why; so does the code."""
    toy = write_jsonl(tmp_path / "toy", train=0, validation=0)
    sweep = [
        "-m",
        "model=lead,oracle",
        "dataset=jsonl",
        f"dataset.path={toy}",
        f"results_dir={tmp_path / 'r'}",
    ]
    output = run_command(1, "run", *sweep, "score.resamples=100")
    assert output.out.count("test split, 8 examples") == 1
    message = output.err.splitlines()
    assert "longsumbench: 1 of 2 runs failed, the others are kept:" in message
    assert re.match(r"model=lead +model.length=train needs a train split", message[-1])


def test_a_reader_may_stop_reading() -> None:
    """When the output is cut off, as by `head`, the command ends quietly."""
    command = [sys.executable, "-m", "longsumbench", "list", "settings"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0

"""The command line as a user types it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import Command
from support.imports import modules_after
from support.toys import write_jsonl

import longsumbench
from longsumbench.cli.main import commands, main, parse_words, parser


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
    loaded = modules_after("from longsumbench.cli.main import parser; parser()")
    heavy = {"torch", "transformers", "hydra", "omegaconf", "numpy", "pandas", "tabulate"}
    assert not heavy & loaded


def test_commands_on_finished_runs_import_little(words: list[str], tmp_path: Path) -> None:
    """Tables, comparisons, examples and lists of finished runs, and scores of files, need no large library."""
    lead, lexrank = longsumbench.sweep(
        **dict(word.split("=") for word in words[1:]), model=["lead", "lexrank"]
    )
    outputs = tmp_path / "r/runs/jsonl/lead" / lead.run_id / "predictions.jsonl"
    place = f" --results-dir {tmp_path / 'r'}"
    commands = [
        f"leaderboard jsonl {place}",
        f"compare {lead.run_id} {lexrank.run_id} {place}",
        f"inspect {lead.run_id} 0 {place}",
        f"list runs {place}",
        f"score {outputs} {tmp_path / 'toy/test.jsonl'}",
    ]
    code = "import sys; from longsumbench.cli.main import main\n"
    code += f"for words in {commands}: print(main(words.split()), 'loaded', *sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    lines = [line for line in process.stdout.splitlines() if line.startswith("0 loaded ")]
    assert len(lines) == len(commands)
    of_runs, of_scores = (set(line.split()) for line in lines[-2:])
    assert "longsumbench.outputs.compare" in of_runs
    large = {"torch", "transformers", "datasets", "huggingface_hub", "hydra"}
    assert not (large | {"pandas", "sklearn", "matplotlib"}) & of_runs
    assert not large & of_scores


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


USAGE = """
run seal → 'seal' is not an override: write model=seal
run lr=3 → unknown setting 'lr' (did you mean 'train.learning_rate'?)
run --model seal → settings have no dashes: KEY=VALUE (see longsumbench run --help)
run model=org/bart → model=org/bart is a checkpoint: write model=seq2seq model.checkpoint=org/bart
run limit=3 → unknown setting 'limit' (did you mean 'dataset.limit' or 'decode.limit'?)
run dataset=tests → dataset=tests is a path: write dataset=jsonl dataset.path=tests
rnu → unknown command 'rnu' (did you mean 'run'?)
run -m model=lead, random → a blank after ',' divides 'model=lead, random': write model=lead,random
run model = lead → a blank before '=' divides 'model = lead': write model=lead
list models lead → 'lead' is an extra argument
stats dataset=aclsum --output x.csv → x.csv is to be a folder, and has the name of a file: choose
run model=led → unknown model 'led' (did you mean 'lead'?)
run modle=lead → unknown setting 'modle' (did you mean 'model'?)
run train.max_steps=abc → train.max_steps='abc' is not of type int
run train.learning_rate=0 → train.learning_rate=0.0 must be above 0
run dataset.split=nonsense → dataset.split=nonsense; allowed: train, validation, test
run dataset=[aclsum,probe] → has several names: choose one, or sweep over them with -m dataset=aclsum,probe
run seed=1,2 → 'seed=1,2' has several values: sweep over them with -m
run hydra.verbose=true → of Hydra's own settings, only hydra/launcher=…, hydra.launcher.…
run --config-dir=nowhere → --config-dir nowhere: no such folder
run model=trunc scale=tiny model.num_heads=7 → model.d_model=128 cannot be shared equally by model.num_heads=7
run model=trunc scale=tiny decode.max_length=65 → decode.max_length=65 is above model.decode_length=64
run --sho → unknown flag '--sho' (did you mean '--show'?)
"""


@pytest.mark.parametrize("line", USAGE.strip().splitlines())
def test_wrong_usage_is_one_line(line: str, run_command: Command, here: Path) -> None:
    """Wrong usage ends with exit code 2 before any work, and one line on stderr says what was meant."""
    (here / "tests").mkdir()
    words, message = line.split(" → ")
    output = run_command(2, *words.split())
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert message in output.err
    assert not Path("results").exists()


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

    assert print_table() == print_table("jsonl")
    assert "\\toprule" in print_table("--latex")
    file = tmp_path / "t.tex"
    for flag in ("--latex", "--output"):
        assert print_table("jsonl", flag, str(file)).split() == [str(file)]
        assert r"\caption{jsonl, test split, 8 examples}" in file.read_text()
        file.unlink()
    assert "x.md: name one DATASET first" in print_table("jsonl", "--output", "x.md", code=2)


def test_a_reader_may_stop_reading() -> None:
    """When the output is cut off, as by `head`, the command ends quietly."""
    command = [sys.executable, "-m", "longsumbench", "list", "settings"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0

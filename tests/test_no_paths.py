"""No file that is meant to be shared has a path of the machine that made it."""

import getpass
import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import Command
from support.run_records import TRAINED, record, write_run

from longsumbench.core import Summary
from longsumbench.runs.record import ImportedOutputs
from longsumbench.runs.run_names import shorten_paths

OWNER = "ada_lovelace"
SUMMARIES = [Summary(f"e-{number}", f"Summary number {number}.") for number in range(20)]
SHARES = [(5 * number % 20) / 40 for number in range(20)]


def fill(root: Path, home: Path) -> list[str]:
    """Write runs whose settings, commands, variants and facts have paths of a home folder; return their ids."""
    for folder in ("bart", "tuned", "papers"):
        (home / folder).mkdir(parents=True)
    for file in ("coder.gguf", "tool.py", "out.jsonl"):
        (home / file).write_text("")
    settings: dict[str, dict[str, Any]] = {
        "prompt": {"checkpoint": f"{home}/coder.gguf", "reading": "select"},
        "seq2seq": {"checkpoint": f"{home}/bart", "init": "checkpoint"},
        "ea": {"init": f"{home}/tuned"},
        "command": {"command": f"python {home}/tool.py --in {{texts}}"},
        "lead": {},
    }
    ids = []
    for place, (model, of_model) in enumerate(settings.items()):
        typed = [f"{name}={value}" for name, value in of_model.items()]
        changes: dict[str, Any] = {"fit": TRAINED} if model == "ea" else {}
        for variant in (f"{','.join(sorted(typed))}", f"{','.join(sorted([*typed, 'length=9']))}"):
            run = record(
                model,
                30 - place,
                run_id=f"{model[:6]}{len(variant):06d}",
                variant=variant,
                command=("longsumbench", "run", *typed, f"results_dir={root}"),
                config={
                    "model": {**of_model, "length": 9 * ("length" in variant)},
                    "dataset": {"path": f"{home}/papers"},
                    "results_dir": str(root),
                },
                system={"checkpoint": of_model["checkpoint"]} if "checkpoint" in of_model else {},
                texts={"source": f"{home}/papers", "examples": {"test": 20}},
                **changes,
            )
            write_run(root, run, SUMMARIES, SHARES)
            ids.append(run.run_id)
    origin = ImportedOutputs("out.jsonl", "0" * 64, f"{home}/out.jsonl")
    write_run(root, record("theirs", 9, imported=origin), SUMMARIES, SHARES)
    return ids


def test_shared_files_have_no_path_of_this_machine(
    tmp_path: Path, run_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables, pictures, the site, exports, cards, comparisons and inspections name files by their last name."""
    root, home, shared = tmp_path / "results", tmp_path / "home" / OWNER, tmp_path / "shared"
    monkeypatch.setenv("HOME", str(home))
    first, second, *_ = fill(root, home)
    place = ("--results-dir", root)
    run_command(0, "leaderboard", "arxiv", "--against", "length", *place)
    run_command(0, "site", *place, "--output", shared / "site")
    for kind in ("eee", "hub", "csv", "latex"):
        run_command(0, "export", "arxiv", "--format", kind, "--output", shared / kind, *place)
    run_command(0, "compare", first, second, *place)
    run_command(0, "inspect", first, "0", *place)
    folders = [root / name for name in ("leaderboard", "comparisons", "inspections")]
    files = [path for folder in (shared, *folders) for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 30
    private = [str(tmp_path), OWNER]
    if len(getpass.getuser()) > len("root"):
        private.append(getpass.getuser())
    pattern = "|".join(map(re.escape, private)).encode()
    assert [path for path in files if re.search(pattern, path.read_bytes())] == []


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("checkpoint=/data/ada/a.gguf,length=9", "checkpoint=a.gguf,length=9"),
        ("[~/a/b,../d/e]", "[b,e]"),
        ("/opt/bin/longsumbench", "longsumbench"),
        ("dataset.path=/data/people/me too/texts", "dataset.path=texts"),
        ("../weights/a.gguf", "a.gguf"),
        ("python /data/ada/tool.py --in {texts}", "python tool.py --in {texts}"),
        ("owner/model", "owner/model"),
        ("https://host/v1", "https://host/v1"),
    ],
)
def test_of_a_path_the_last_name_stays(text: str, short: str) -> None:
    """Hub names and addresses are no paths."""
    assert shorten_paths(text) == short

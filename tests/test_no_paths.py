"""No file that is meant to be shared has a path of the machine that made it."""

import getpass
import re
import shutil
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from support.commands import Command
from support.hub import model_hub
from support.tiny_gguf import write_twins
from support.tiny_seq2seq import tiny_checkpoint
from support.toys import tiny_overrides, toy_words, write_jsonl

from longsumbench.runs.run_names import shorten_paths, shorten_values

OWNER = "ada_lovelace"
PROMPT = ["model=prompt", "model.length=5", "model.decode_length=12"]
TUNED = ["model.lora_rank=2", *(f"train.{name}=2" for name in ("max_steps", "batch_size"))]


def fill(root: Path, home: Path, run_command: Command) -> None:
    """Run systems whose settings, commands, variants and facts have paths of a home folder."""
    gguf = write_twins(home)
    bart = shutil.copytree(tiny_checkpoint(), home / "bart")
    (tool := home / "tool.py").write_text("print(input()[:90])")
    results = (f"results_dir={root}", "baselines=false")
    trunc = ["run", *tiny_overrides(write_jsonl(home / "toy"), steps=2), *results]
    run_command(0, *trunc)
    (stage,) = root.glob("runs/*/trunc/*/work/checkpoint")
    run_command(0, *trunc, f"model.init={shutil.copytree(stage, home / 'tuned')}")
    for system in (
        ["model=lead"],
        ["model=lead", "model.length=9"],
        [*PROMPT, f"model.checkpoint={gguf}", "model.reading=select"],
        [*PROMPT, f"model.checkpoint={gguf.with_suffix('')}", *TUNED],
        ["model=seq2seq", f"model.checkpoint={bart}", "model.init=checkpoint", "train.max_steps=0"],
        ["model=command", f"model.command={sys.executable} {tool}"],
    ):
        run_command(0, "run", *toy_words(home), *results, *system)
    outputs = shutil.copy(next(root.glob("runs/*/lead/*/predictions.jsonl")), home / "out.jsonl")
    words = ("--model", "theirs", "--dataset", "jsonl", f"dataset.path={home / 'toy'}", *results)
    run_command(0, "import", outputs, *words, "--from", home / "theirs")


def list_contents(paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of files, also of those in bundles."""
    for path in paths:
        if path.suffix == ".xz":
            with tarfile.open(path) as archive:
                for member in archive:
                    yield member.name, archive.extractfile(member).read()  # type: ignore[union-attr] # a file
        elif path.is_file():
            yield f"{path}", path.read_bytes()


def test_shared_files_have_no_path_of_this_machine(
    tmp_path: Path, run_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables, pictures, the site, exports, cards, comparisons, inspections, bundles and pushed systems.

    They name files by their last name. What was packed is verified with the texts alone.
    """
    home, shared = tmp_path / "home" / OWNER, tmp_path / "shared"
    root = home / "results"
    monkeypatch.setenv("HOME", str(home))
    home.mkdir(parents=True)
    fill(root, home, run_command)
    first, second = (path.name for path in root.glob("runs/*/lead/*"))
    place = ("--results-dir", root)
    run_command(0, "leaderboard", "jsonl", "--against", "length", *place)
    run_command(0, "site", *place, "--output", shared / "site")
    for kind in ("eee", "hub", "csv", "latex"):
        run_command(0, "export", "jsonl", "--format", kind, "--output", shared / kind, *place)
    run_command(0, "compare", first, second, *place)
    run_command(0, "inspect", first, "0", *place)
    run_command(0, "runs", "pack", *place)
    contents = {}
    with model_hub(tmp_path) as hub:
        for report in root.glob("runs/*/*/*/work/checkpoint/fit.json"):
            run = report.parents[2]
            run_command(0, "push", run, f"me/{run.name}", *place)
            for name, content in hub.files[f"me/{run.name}"].items():
                contents[f"{run.name}/{name}"] = content
    folders = [root / name for name in ("leaderboard", "comparisons", "inspections", "bundles")]
    for folder in (shared, *folders):
        contents |= list_contents(folder.rglob("*"))
    assert len(contents) > 100
    private = [str(tmp_path), OWNER]
    if len(getpass.getuser()) > len("root"):
        private.append(getpass.getuser())
    pattern = "|".join(map(re.escape, private)).encode()
    assert [name for name, content in contents.items() if re.search(pattern, content)] == []
    merged = ("--results-dir", tmp_path / "merged")
    run_command(0, "merge", root / "bundles/jsonl.tar.xz", *merged)
    run_command(0, "verify", tmp_path / "merged", "--dataset-path", home / "toy", *merged)


SHORTENED = r"""
checkpoint=/data/ada/a.gguf,length=9 → checkpoint=a.gguf,length=9
[~/a/b,../d/e] → [b,e]
/opt/bin/longsumbench → longsumbench
dataset.path=/data/people/me too/texts → dataset.path=texts
../weights/a.gguf → a.gguf
python /data/ada/tool.py --in {texts} → python tool.py --in {texts}
python /data/ada/tool.py /data/ada/in --out /data/ada/out → python tool.py in --out out
cat /data/ada/a b=/data/ada/b ~/c ./d/e → cat a b=b c e
tool.py /data/ada/a.txt owner/model → tool.py a.txt owner/model
PATH=/data/ada/bin:/usr/bin:~/bin → PATH=bin:bin:bin
cc -I/data/ada/x -L../lib/y --in=/data/ada/z → cc -Ix -Ly --in=z
tool '/data/ada/my texts/a.txt' "/b/c d/e" → tool 'a.txt' "e"
tool /data/ada/in >/data/ada/out → tool in >out
file:///data/ada/a.txt → a.txt
tool.exe C:\Users\ada\My Texts\a.txt -o D:/out/b → tool.exe a.txt -o b
Say and/or, 1 / 2 or 3/4; {texts}/a/b → Say and/or, 1 / 2 or 3/4; {texts}/a/b
<b>a</b></p> <i>b</i> → <b>a</b></p> <i>b</i>
owner/model → owner/model
https://host/v1 → https://host/v1
"""


@pytest.mark.parametrize("line", SHORTENED.strip().splitlines())
def test_of_a_path_the_last_name_stays(line: str) -> None:
    """Hub names and addresses are no paths. JSON, which doubles a backslash, stays valid."""
    text, short = line.split(" → ")
    assert shorten_paths(text) == short
    assert shorten_values({"command": text}) == {"command": short}

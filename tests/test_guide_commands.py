"""The commands of the guides work: each run is planned; with `--slow`, all that need nothing else are run on small texts."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.api_server import api_server
from support.commands import Typed
from support.guides import BLOCK, TINY, commands_in, stand_ins, write_files
from support.paths import ROOT

PAGES = [ROOT / "docs" / "index.md"]
for folder in ("get-started", "how-to", "concepts"):
    PAGES += sorted((ROOT / "docs" / folder).glob("*.md"))
PAGES.remove(ROOT / "docs" / "how-to" / "tiny-checkpoints.md")  # test_tiny_guide.py tries it
# What a command needs that no test has → how such a command is recognized.
NEEDS = {
    "a hub": r"^push | me/|model/recipe=|dataset=hub",
    "files of other people": r"PageSum/output|\.\./|tar\.xz|^agreement|trials|results/r|again/|decoded",
    "weights of a judge or metric": r"bertscore|judge|support|bert-large",
    "programs": r"my_tool|last\b|my_compactor|tools/bin|command=.?perl|command=.?node|torchrun",
    "another machine": r"slurm",
    "minutes": r"^paper (?!list|.*--no-run)|experiment=|optuna|^recommend|rank=.*lstm|train_length",
    "minutes, of the first command": r"^run model\.(?:checkpoint|engine)=",
    "the guide's own texts and runs": r"model=person|journal\.pone|global_attention|my_checkpoint|summaries$|command 0",
    "a file or an import of the reader": r"printed\.csv|lead theirs",
    "several runs": r"--block|--matrix|--against",
}


@pytest.fixture
def server(here: Path, own_config: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server of a language model; the current folder has the files of the guides, and no hub is there."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    write_files(here)
    (own_config / "dataset").mkdir(parents=True)
    settings = f"name: texts\nreader: jsonl\npath: {here / 'my_texts'}\n"
    (own_config / "dataset" / "texts.yaml").write_text(settings)
    with api_server() as found:
        yield found.base_url


def need_of(words: list[str]) -> str | None:
    return next((need for need, signs in NEEDS.items() if re.search(signs, " ".join(words))), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_runs_of_the_guides_are_planned(page: Path, server: str, typed: Typed) -> None:
    """The settings of each run are known, have values that go together, and make runs."""
    for words in commands_in(page.read_text(), BLOCK):
        if words[0] == "run" and not {"--estimate", "--config"} & {*words} and not need_of(words):
            code, _, err = typed(*stand_ins(words, ["a"], server, {}), "--show")
            assert (shlex.join(words), err, code) == (shlex.join(words), err, 0)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_the_guides_end_well(page: Path, server: str, typed: Typed) -> None:
    """Each command ends with 0, one after the other in one folder, with tiny trainings and texts."""
    settings = [f"{key}={value}" for key, value in TINY.items()]
    assert typed("run", "-m", "model=lead,seal", "dataset=texts", *settings)[0] == 0
    runs = [path.name for path in sorted(Path("results/runs/texts").glob("*/*"))]
    failed = []
    for words in commands_in(page.read_text(), BLOCK):
        if not need_of(words):
            tried = stand_ins(words, runs, server, TINY)
            code, _, err = typed(*tried)
            failed += [f"{shlex.join(words)}\n  {shlex.join(tried)}\n  {err}"] if code else []
    assert failed == [], "\n".join(failed)

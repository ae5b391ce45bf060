"""Odd paths: every argument that takes a path, with every kind of path that a user or a script may type by mistake."""

import random
import re
import signal
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from support.permissions import heeded
from support.toys import told_in, write_jsonl

from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cli.main import main
from longsumbench.formatting import escape_line

SECONDS = 30  # that no command may take
CODES = (0, 2, 3, 4)
RUN = "run model=lead dataset=jsonl baselines=false score.resamples=100"
OUTPUTS = "--model theirs --dataset jsonl dataset.path=TOY baselines=false score.resamples=100"
# PATH: where the odd path is put; TOY, OUT, REF, RUN: paths of things that are there
ARGUMENTS = {
    "dataset.path": f"{RUN} dataset.path=PATH results_dir=NEW",
    "results_dir": f"{RUN} dataset.path=TOY results_dir=PATH",
    "run --config-dir": f"{RUN} dataset.path=TOY results_dir=NEW --config-dir PATH",
    "dataset=": "run model=lead dataset=PATH results_dir=NEW",
    "model.init": f"{RUN} model=trunc scale=tiny dataset.path=TOY results_dir=NEW model.init=PATH",
    "summarize CHECKPOINT": "summarize PATH TEXT",
    "summarize FILE": "summarize CHECKPOINT PATH",
    "score PREDICTIONS": "score --resamples 100 PATH REF",
    "import OUTPUTS": f"import PATH {OUTPUTS} results_dir=NEW",
    "score --per-example": "score --resamples 100 OUT REF --per-example PATH",
    "inspect RUN": "inspect PATH 0 --results-dir RESULTS",
    "inspect --output": "inspect RUN 0 --results-dir RESULTS --output PATH",
    "run --config": "run --config PATH",
    "the cache": f"{RUN} dataset.path=TOY results_dir=NEW",
}


def relative_loop(folder: Path) -> str:
    """Make a link that names itself, and a path through it."""
    (folder / "self").symlink_to("self")
    return str(folder / "self" / "test.jsonl")


def file(folder: Path) -> str:
    (folder / "file").write_text("no JSON\n")
    return str(folder / "file")


def unreadable(folder: Path) -> str:
    """Make a folder that nobody but root may use."""
    (folder / "closed").mkdir(mode=0o000)
    return str(folder / "closed" / "test.jsonl")


ODD: dict[str, Callable[[Path], str]] = {
    "5,000 characters": lambda folder: str(folder / "/".join(["abcdefghi"] * 500)),
    "a name of 300 bytes": lambda folder: str(folder / ("é" * 150)),
    "a relative loop of links": relative_loop,
    "an empty folder": lambda folder: str(folder),
    "a file": file,
    "below a file": lambda folder: f"{file(folder)}/below",
    "unreadable": unreadable,
    "NUL": lambda folder: str(folder / "a\0b"),
    "bytes that are no UTF-8": lambda folder: str(folder / "caf\udce9"),
    "half a character": lambda folder: str(folder / "\ud800"),
    "control characters": lambda folder: str(folder / "\x1b[31mred\x07\r\n\x9b2J\u202efdp"),
    "nothing": lambda folder: "",
    "nobody's home": lambda folder: "~nobody-of-this-name/x",
    "quotation marks": lambda folder: str(folder / "a'b\"c\\d,e=f[g]{h}$i"),
}
EVERY = list(product(ARGUMENTS, ODD))
QUICK = set(random.Random(19).sample(EVERY, 16))


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the other arguments of a command name: all of it is there."""
    folder = tmp_path_factory.mktemp("there")
    toy, results = write_jsonl(folder / "toy"), folder / "results"
    names = {"TOY": toy, "RESULTS": results, "CHECKPOINT": folder / "checkpoint"}
    for name in ("OUT", "REF", "TEXT"):
        names[name] = folder / f"{name}.txt"
        names[name].write_text("One two three.\n")
    with pytest.MonkeyPatch.context() as own:
        own.setenv(CACHE_VARIABLE, str(folder / "cache"))
        assert main([*RUN.split(), f"dataset.path={toy}", f"results_dir={results}"]) == 0
    (record,) = results.glob("runs/*/*/*/record.json")
    names["CHECKPOINT"].mkdir()
    saved = '{"system": "lead", "config": {"length": "5"}, "state": {}}'
    (names["CHECKPOINT"] / "system.json").write_text(saved)
    return {name: str(path) for name, path in {**names, "RUN": record.parent}.items()}


@pytest.fixture
def limited() -> Iterator[None]:
    """End a command that takes too long."""

    def stop(*_: object) -> None:
        raise AssertionError(f"not done within {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def typed(word: str, path: str, names: dict[str, str]) -> str:
    """Put paths into a word; a setting's value is quoted as docs/how-to/sweep.md says."""
    key, sign, name = word.partition("=")
    value = path if (name or key) == "PATH" else names.get(name or key)
    if value is None:
        return word
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{key}='{quoted}'" if sign else value


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize(
    ("argument", "odd"),
    [
        pytest.param(*case, id="-".join(case), marks=[] if case in QUICK else [pytest.mark.slow])
        for case in EVERY
    ],
)
def test_an_odd_path_ends_in_one_line(
    argument: str,
    odd: str,
    there: dict[str, str],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It works, or the command ends soon, with a documented exit code and one clean line on stderr."""
    (here / "odd").mkdir()
    path = ODD[odd](here / "odd")
    if argument == "the cache":
        if "\0" in path or "\ud800" in path:
            pytest.skip("no environment variable can have it")
        monkeypatch.setenv(CACHE_VARIABLE, path)
    names = {**there, "NEW": str(here / "new")}
    words = [typed(word, path, names) for word in ARGUMENTS[argument].split()]
    with heeded():
        code = main(words)
    error = capsys.readouterr().err
    assert code in CODES, error
    assert [line for line in error.split("\n") if escape_line(line) != line] == []
    assert "Traceback" not in error
    if code:
        (line,) = told_in(error)
        assert re.match(r"longsumbench: \S", line)

"""Damaged and hostile checkpoints and tokenizers, at every place where a user can name one."""

import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.tiny_bart import write_bart
from support.tiny_bert import write_bert
from support.toys import ToySplit, build_tiny, example
from torch import Tensor

from longsumbench.analysis.locality import Encoder
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Decoding, FitContext, Recipe, Scoring
from longsumbench.errors import SuiteError
from longsumbench.metrics.bertscore import BertScore
from longsumbench.metrics.coherence import Coherence
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.models.pagesum.config import PageSumConfig
from longsumbench.models.pagesum.system import PageSum
from longsumbench.runs.summarize import open_system

SECONDS = 30  # of the processor that a case may take
WAIT = 20  # times as long it may wait, on a busy machine
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
TRAIN = ToySplit.of("train", 12)
ON_CPU = Decoding(max_length=4, device="cpu")
DEEP = b"[" * 100_000 + b"]" * 100_000
JUNK = (None, True, [], {}, "x", "../x", -1, 0, 3, 0.5, float("nan"), 10**6, 10**9, 10**10, ["x"])
CONTENTS = {
    "empty": b"",
    "an empty object": b"{}",
    "an empty list": b"[]",
    "null": b"null",
    "no UTF-8": b"\xff\xfe{",
    "deep": DEEP,
    "a deep object": b'{"model_type": ' + DEEP + b"}",
    "a wrong length": b"\xff" * 16,
}
PUT_THERE: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a broken link": lambda path: path.symlink_to("nothing"),
}
Damage = Callable[[Path], object]


def trunc(folder: Path) -> Path:
    """Write the checkpoint of a tiny Trunc that has learned nothing."""
    system = build_tiny("trunc")
    system.reader.tokenizer = train_tokenizer(TRAIN, 320)
    system.model = system.network.build(system.reader)
    folder.mkdir()
    system.save(folder)
    return folder


def summarize(folder: Path) -> None:
    """As `longsumbench summarize` does."""
    system = open_system(folder)
    system.try_out("cpu", f"the checkpoint {folder}")
    list(system.summarize([example(1)], ON_CPU))


def begin(folder: Path) -> None:
    """As a training from `model.init` begins."""
    system = PageSum(PageSumConfig(page_size=16, num_pages=3, decode_length=24, init=str(folder)))
    system.identity()
    system.ready_to_read(FitContext(TRAIN, None, Recipe(), ArtifactCache(folder.parent / "stages")))
    system.model = system.network.initial_model(system.reader)
    system.try_out("cpu", f"model.init={folder}")
    list(system.summarize([example(1)], ON_CPU))


def tokenize(folder: Path) -> None:
    """As `model.tokenizer` is read."""
    config = PageSumConfig(page_size=16, decode_length=24, init="random", tokenizer=str(folder))
    context = FitContext(TRAIN, None, Recipe(), ArtifactCache(folder.parent / "stages"))
    tokenizer = PageSum(config).network.tokenizer(context)
    assert max(tokenizer(" ".join(example(1).sentences())).input_ids) < len(tokenizer)


def bertscore(folder: Path) -> None:
    """As `score.bertscore_model` is read."""
    metric = BertScore(Scoring(bertscore_model=str(folder), device="cpu"))
    metric.check()
    metric.score("The cat sat.", example(1))
    metric.signature(1)


def coherence(folder: Path) -> None:
    """As `score.coherence_model` is read."""
    metric = Coherence(Scoring(coherence_model=str(folder), device="cpu"))
    metric.check()
    metric.score("The cat sat. It slept.", example(1))
    metric.signature(1)


def encode(folder: Path) -> None:
    """As the encoder of `longsumbench analyze` is read."""
    Encoder(str(folder), device="cpu")(["The cat sat.", "It slept."])


WAYS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], None]]] = {
    "summarize": (trunc, summarize),
    "model.init": (write_bart, begin),
    "model.tokenizer": (write_bart, tokenize),
    "score.bertscore_model": (write_bert, bertscore),
    "score.coherence_model": (write_bert, coherence),
    "analyze encoder": (write_bert, encode),
}


def edit(folder: Path, name: str, keys: tuple[str, ...], *value: Any) -> None:
    """Set a key in a JSON file; without a value, leave it out."""
    content = inner = json.loads((folder / name).read_text(encoding="utf-8"))
    for key in keys[:-1]:
        inner = inner[key]
    if value:
        inner[keys[-1]] = value[0]
    else:
        del inner[keys[-1]]
    (folder / name).write_text(json.dumps(content), encoding="utf-8")


def flip(content: bytes, seed: int) -> bytes:
    """Change some bytes, most of them at the beginning."""
    chance, changed = random.Random(seed), bytearray(content)
    for _ in range(chance.choice((1, 3, 30))):
        changed[chance.randrange(chance.choice((min(2_000, len(changed)), len(changed))))] = chance.randrange(256)
    return bytes(changed)


def rewrite(folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """Change what is in a file."""
    (folder / name).write_bytes(change((folder / name).read_bytes()))


def replaced(folder: Path, name: str, make: Callable[[Path], object]) -> None:
    """Put something else in the place of a file."""
    (folder / name).unlink(missing_ok=True)
    make(folder / name)


def other_weights(folder: Path, change: Callable[[dict[str, Tensor], str], object], number: int) -> None:
    """Change one of the weights."""
    weights = load_file(folder / WEIGHTS)
    change(weights, sorted(weights)[number % len(weights)])
    save_file({name: weight.contiguous() for name, weight in weights.items()}, folder / WEIGHTS, {"format": "pt"})


def shards(folder: Path, listed: Any) -> None:
    """Put a list of shards next to the weights, which become one; a text is the shard of all weights."""
    names = load_file(folder / WEIGHTS)
    shutil.copy(folder / WEIGHTS, folder.parent / "outside.safetensors")
    (folder / WEIGHTS).rename(folder / "shard.safetensors")
    weight_map = dict.fromkeys(names, listed) if isinstance(listed, str) else listed
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}), encoding="utf-8")


WEIGHT_CHANGES: dict[str, Callable[[dict[str, Tensor], str], object]] = {
    "missing": lambda weights, name: weights.pop(name),
    "one more": lambda weights, name: weights.update({f"{name}.more": torch.zeros(2)}),
    "wider": lambda weights, name: weights.update({name: torch.zeros(7, *weights[name].shape[1:])}),
    "none of it": lambda weights, name: weights.update({name: torch.zeros(0)}),
    "bytes": lambda weights, name: weights.update({name: weights[name].to(torch.int8)}),
    "no numbers": lambda weights, name: weights.update({name: weights[name] * torch.nan}),
    "all gone": lambda weights, _: weights.clear(),
}
MORE_KEYS: dict[str, Any] = {  # of config.json, which save_pretrained does not write
    "quantization_config": {"quant_method": "gptq", "bits": 4},
    "auto_map": {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"},
    "transformers_weights": "../outside.safetensors",
    "attn_implementation": "somebody/attention",
    "return_dict": False,
    "model_type": "t5",
    "dtype": "int64",
    "text_config": {"hidden_size": 10**10},
}
SHARDS = ("shard.safetensors", "../outside.safetensors", "/dev/zero", "missing.safetensors", ["x"], {"weight": 1}, {})


def keys_of(value: Any, before: tuple[str, ...] = (), depth: int = 2) -> Iterator[tuple[str, ...]]:
    """Yield the paths to the keys of a JSON object."""
    if isinstance(value, dict) and depth:
        for key, inner in list(value.items())[:60]:
            yield (*before, key)
            yield from keys_of(inner, (*before, key), depth - 1)


def every_damage(folder: Path) -> dict[str, Damage]:
    """Return all damages of a whole checkpoint, by their names."""
    files = sorted(path.name for path in folder.iterdir())
    found: dict[str, Damage] = {"no folder content": lambda to: [path.unlink() for path in to.iterdir()]}
    for name in files:
        found |= {
            f"{name}: {what}": partial(rewrite, name=name, change=lambda _, of=of: of) for what, of in CONTENTS.items()
        }
        for at in (0.01, 0.5, 0.99):
            found[f"{name}: torn at {at}"] = partial(
                rewrite, name=name, change=lambda old, at=at: old[: int(len(old) * at)]
            )
        found |= {
            f"{name}: flipped {seed}": partial(rewrite, name=name, change=partial(flip, seed=seed))
            for seed in range(20)
        }
        found[f"{name}: gone"] = lambda to, name=name: (to / name).unlink()
        for what, make in PUT_THERE.items():
            found[f"{name}: {what}"] = partial(replaced, name=name, make=make)
        if name.endswith(".json"):
            for keys in keys_of(json.loads((folder / name).read_text(encoding="utf-8"))):
                found[f"{name}: without {'.'.join(keys)}"] = lambda to, name=name, keys=keys: edit(to, name, keys)
                for number, value in enumerate(JUNK):
                    label = f"{name}: {'.'.join(keys)}={value!r} ({number})"
                    found[label] = lambda to, name=name, keys=keys, value=value: edit(to, name, keys, value)
    for change, do in WEIGHT_CHANGES.items():
        for number in range(0, 20, 4):
            found[f"weights: {change} {number}"] = partial(other_weights, change=do, number=number)
    for key, value in MORE_KEYS.items():
        found[f"more keys: {key}"] = lambda to, key=key, value=value: edit(to, CONFIG, (key,), value)
    found |= {f"shards: {listed}": partial(shards, listed=listed) for listed in SHARDS}
    return found


def sample(damages: dict[str, Damage], of_each_kind: int, chance: random.Random) -> list[str]:
    """Return some damages of each kind: files, keys, bytes, weights, shards."""

    def kind(name: str) -> str:
        marks = (mark for mark in ("=", "without", "flipped") if mark in name)
        return next(marks, name.partition(":")[0])

    groups: dict[str, list[str]] = {}
    for name in damages:
        groups.setdefault(kind(name), []).append(name)
    return [name for group in groups.values() for name in chance.sample(group, min(of_each_kind, len(group)))]


@contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    """Interrupt what takes longer, by the processor's time; by the clock only what hangs without computing."""

    def late(*_: object) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, seconds * WAIT)}
    before = {number: signal.signal(number, late) for number in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def problem_of(use: Callable[[Path], None], folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """Return what is wrong with how a damaged checkpoint is refused, or used; nothing if that is right."""
    try:
        with no_longer_than(SECONDS):
            use(folder)
    except SuiteError as error:
        message, captured = str(error), capfd.readouterr()
        if "\n" in message or str(folder) not in message or error.exit_code not in (2, 3, 4):
            return f"exit code {error.exit_code}: {message}"
        said = captured.out if captured.out.startswith("Ignored unknown kwarg") else ""  # by tokenizers
        printed = captured.out.replace(said, "") + captured.err
        return f"printed: {printed}" if printed else ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return f"panic: {error}"
    capfd.readouterr()
    return ""


def check(
    way: str, whole: Path, chosen: list[str], damages: dict[str, Damage], to: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Check that each damage ends in one line, or leaves a checkpoint that works."""
    use, wrong = WAYS[way][1], {}
    for number, name in enumerate(chosen):
        folder = to / str(number) / "copy"
        shutil.copytree(whole, folder)
        damages[name](folder)
        if message := problem_of(use, folder, capfd):
            wrong[name] = message
        shutil.rmtree(folder.parent)
    assert not wrong, "\n".join(f"{name} → {message}" for name, message in wrong.items())


@pytest.fixture(params=WAYS)
def whole(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A place where a checkpoint is named, and a whole one."""
    if request.param == "score.bertscore_model":
        pytest.importorskip("bert_score", reason="the extra bertscore is not installed")
    WAYS[request.param][1](folder := WAYS[request.param][0](tmp_path / "whole"))
    return request.param, folder


def test_damaged_checkpoints(whole: tuple[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A damaged checkpoint ends in one line that names it and a documented exit code, or it works; nothing hangs."""
    damages = every_damage(whole[1])
    check(*whole, sample(damages, 4, random.Random(whole[0])), damages, tmp_path, capfd)


@pytest.mark.slow
def test_all_damaged_checkpoints(whole: tuple[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As above, of every file, every key of every JSON file with every kind of junk, and more."""
    damages = every_damage(whole[1])
    check(*whole, list(damages), damages, tmp_path, capfd)


@pytest.mark.parametrize(
    "damage",
    [
        "config.json: an empty list",
        "config.json: null",
        "config.json: deep",
        "config.json: model_type=['x'] (14)",
        "config.json: activation_function='x' (4)",
        "config.json: d_model=-1 (6)",
        "config.json: d_model=1000000000 (12)",
        "config.json: d_model=10000000000 (13)",
        "config.json: encoder_layers=1000000 (11)",
        "config.json: max_position_embeddings=1000000 (11)",
        "tokenizer.json: an empty object",
        "model.safetensors: a pipe",
        "shards: ../outside.safetensors",
        "shards: /dev/zero",
    ],
)
def test_known_damages(damage: str, tmp_path: Path) -> None:
    """Each of these, which once ended in a traceback or never, is refused within seconds."""
    folder = write_bart(tmp_path / "whole")
    every_damage(folder)[damage](folder)
    with pytest.raises(SuiteError) as caught, no_longer_than(SECONDS):
        begin(folder)
    assert "\n" not in str(caught.value)

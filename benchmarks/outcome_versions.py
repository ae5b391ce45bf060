"""Short runs of all built-in systems, whose outcome may change only if a version rises.

    python benchmarks/outcome_versions.py                      writes tests/runs/outcome_versions.json
    python benchmarks/outcome_versions.py --rounding [COMMIT]  compares the bits of float32 with those of another commit

Each run trains 6 steps on 40 reports of `probe` and summarizes 6. The file has the losses (six digits) and hashes of
outputs and scores. They are the same on any processor and with any number of threads:

* Networks compute in float64, where another order of sums changes the last digits only. Losses under
  ATEN_CPU_CAPABILITY=default, avx2 and avx512, with one and two threads, differ by 5e-15 of their value at most.
* Weights are drawn in float64. In float32, PyTorch's normal distribution depends on the instructions of the processor.
  The checkpoints of seq2seq and prompt have NumPy's random numbers.
* There is no dropout: PyTorch draws its masks differently on Intel's processors.
* Ties do not depend on rounding. The scores of two tokens of an untrained network differ by far more than 1e-12.
  `generate` rounds them to float32 and takes the first of equal ones. Sentences of one unit have the same score, and
  the first one is taken. LexRank rounds its scores.

It also has the defaults of the settings that decide outcomes. Run ids contain only what differs from them, so a default
may change only if the version of its part rises; with another one the file is not written.

The file does not show a change of rounding alone, such as another implementation of the optimizer. In float32 such a
change has the effect of another seed on a long training. `--rounding` finds it: it runs the code of two commits on this
machine with one thread. The default is the commit that last wrote the file.
"""

import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BartConfig, BartForConditionalGeneration, Qwen2Config, Qwen2ForCausalLM

from longsumbench.cache.artifacts import CACHE_VARIABLE, ArtifactCache, user_cache
from longsumbench.core import (
    SECTIONS,
    DatasetSettings,
    RunConfig,
    System,
    collect_defaults,
    names_deciding,
    new_system,
    registry,
)
from longsumbench.core.callables import register_function
from longsumbench.core.settings import SAME_RUN
from longsumbench.core.versions import DECODING_VERSION, SCORING_VERSION
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.files import digest
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.runs.environment import environment
from longsumbench.runs.pipeline import run_point
from longsumbench.runs.plan import plan_lines

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests/runs/outcome_versions.json"

RUN = """scale=tiny device=cpu baselines=false dataset=probe dataset.limit=40 dataset.document_length=96
    train.optimizer=adam train.learning_rate=0.01 train.schedule=linear train.warmup_steps=2 train.adam_beta2=0.98
    train.max_grad_norm=1 train.batch_size=6 train.max_steps=6 train.eval_steps=3 train.eval_examples=8
    decode.limit=6 decode.batch_size=4 decode.no_repeat_ngram=1 decode.evidence=none score.resamples=100"""
SIZES: dict[str, Any] = {  # a system uses those that it has
    "d_model": 16,
    "d_ff": 24,
    "num_heads": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "num_layers": 3,
    "dropout": 0.0,
    "vocabulary_size": 320,
    "tokenizer": "trained",
    "input_length": 64,
    "decode_length": 24,
    "snippet_length": 16,
    "num_snippets": 8,
    "extractive_length": 32,
    "segment_length": 8,
    "group_size": 2,
    "page_size": 24,
    "num_pages": 4,
    "paragraph_length": 24,
    "num_paragraphs": 4,
    "block_length": 16,
    "ranker_dimension": 8,
    "ranker_steps": 4,
    "ranker_batch_size": 4,
}
SEVERAL = "dataset.sources=3 dataset.agenda=asked"  # documents, and a query
EXTRACT = "decode.mode=extract"
CASES = {  # what the file calls it → the system, and other settings
    "lead": "lead",
    "lead of ranked paragraphs": f"lead model.rank=tfidf {SEVERAL}",
    "random": "random",
    "lexrank": "lexrank",
    "lexrank of paragraphs": f"lexrank model.unit=paragraph {SEVERAL}",
    "oracle": "oracle",
    "highlights": "highlights dataset=aclsum dataset.document_length=null",
    "ranker by LexRank": "ranker model.redundancy=0.3",
    "ranker by BM25": f"ranker model.rank=bm25 {SEVERAL}",
    "ranker by tf-idf": f"ranker model.rank=tfidf model.unit=section {SEVERAL}",
    "ranker by lstm": f"ranker model.rank=lstm model.unit=paragraph {SEVERAL}",
    "trunc": "trunc train.optimizer=adafactor train.schedule=sqrt_decay train.label_smoothing=0.1",
    "trunc with words": (
        "trunc model.norm=post model.tokenizer=words model.vocabulary_size=100 train.accumulation=2 train.unlock=0.5"
    ),
    "ca": f"ca {SEVERAL}",
    "ea": "ea train.batch_words=300",
    "ea extracts": f"ea {EXTRACT} train.only=scorer train.scored_share=0.5 model.proxy_sequential=true",
    "seal": "seal",
    "seal of several documents": f"seal {SEVERAL} model.proxy_ngram=1 model.proxy_measure=recall",
    "seal extracts": f"seal {EXTRACT} train.only=scorer decode.redundancy=0.3",
    "pagesum": "pagesum model.init=random model.split=sentences train.average_weights=2",
    "pagesum by sections": "pagesum model.init=random model.locality=discourse model.num_pages=null",
    "pagesum with one decoder": "pagesum model.init=random model.decoding=global model.fidelity=official",
    "pagesum extracts": f"pagesum model.init=random model.locality=document model.num_pages=null {SEVERAL} {EXTRACT}",
    "etads": "etads model.tokenizer=words model.vocabulary_size=100",
    "etads without focus": "etads model.focus_layers=[] model.saliency_layers=[2] train.schedule=noam",
    "etads extracts": f"etads {EXTRACT}",
    "hierarchical_transformer": f"hierarchical_transformer {SEVERAL} model.rank=tfidf",
    "hierarchical_transformer with a graph": (
        "hierarchical_transformer model.rank=lstm model.graph=similarity model.paragraph_positions=false"
        " model.pooling_heads=1"
    ),
    "hierarchical_transformer as released": (
        f"hierarchical_transformer {SEVERAL} model.rank=none model.fidelity=official model.graph=discourse"
        " model.entities=capitals"
    ),
    "hierarchical_transformer with beams": (
        "hierarchical_transformer model.rank=none decode.num_beams=2 decode.length_norm=wu decode.coverage=summary"
        " decode.max_length=10"
    ),
    "hierarchical_transformer extracts": f"hierarchical_transformer model.rank=none {EXTRACT}",
    "flat_transformer": f"flat_transformer model.rank=title model.unit=section {SEVERAL}",
    "tdmca": "tdmca model.rank=none",
    "seq2seq": "seq2seq",
    "command": "command model.command=cat train.max_steps=0",
    "function": "function train.max_steps=0",
    "prompt": f"prompt model.input_length=null model.tokenizer=null model.length=20 train.max_steps=0 {SEVERAL}",
}


_SECONDS = re.compile(r'"seconds": [\d.e-]+')  # of a program, which differ


def main() -> None:
    """Write the file, or compare two commits."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounding", nargs="?", const="", metavar="COMMIT", help="compare the bits of float32"
    )
    parser.add_argument(
        "--bits", action="store_true", help="print the runs in float32, with all digits"
    )
    options = parser.parse_args()
    if options.rounding is not None:
        sys.exit(compare_rounding(options.rounding) or None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE_VARIABLE] = f"{folder}/cache"
        if options.bits:
            print(
                json.dumps(
                    {
                        name: run_case(name, Path(folder), digits=17, dtype="float32")
                        for name in CASES
                    }
                )
            )
            return
        stored, defaults = (
            json.loads(FILE.read_text(encoding="utf-8"))["defaults"],
            current_defaults(),
        )
        if problem := describe_changed_defaults(stored, defaults):
            sys.exit(problem)
        outcomes = {name: run_case(name, Path(folder)) for name in CASES}
    content = {"libraries": libraries(), "defaults": defaults, "outcomes": outcomes}
    FILE.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def libraries() -> dict[str, str]:
    """Return the versions of the libraries that compute."""
    packages = environment().packages
    return {
        name: packages[name].partition("+")[0]
        for name in ("torch", "transformers", "tokenizers", "numpy")
    }


def current_defaults() -> dict[str, Any]:
    """Return part → its version, and the defaults of its settings that decide outcomes."""
    versions = {
        "train": DECODING_VERSION,
        "decode": DECODING_VERSION,
        "score": SCORING_VERSION,
    }
    parts = {name: (SECTIONS[name], version) for name, version in versions.items()}
    parts |= {
        name: (registry.load_config_class(name), registry.load_config_class(name).version)
        for name in registry.systems.shipped()
    }
    defaults = {}
    for name, (schema, version) in parts.items():
        neutral = names_deciding(schema, *SAME_RUN)
        values = {
            key: value for key, value in collect_defaults(schema).items() if key not in neutral
        }
        defaults[name] = {"version": version, "settings": values}
    return defaults


def describe_changed_defaults(stored: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    """Name the defaults that changed while the version of their part stayed; an empty string if none did."""
    changed = [
        f"{name}: {key}={value} instead of {stored[name]['settings'][key]}"
        for name, part in current.items()
        for key, value in part["settings"].items()
        if name in stored and stored[name]["version"] == part["version"]
        if key in stored[name]["settings"] and stored[name]["settings"][key] != value
    ]
    problem = (
        f"changed defaults ({'; '.join(changed)}): raise the version of the part (CONTRIBUTING.md)"
    )
    return problem if changed else ""


def run_case(name: str, folder: Path, digits: int = 6, dtype: str = "float64") -> dict[str, Any]:
    """Return the versions and settings of a case, and what its run gives.

    Args:
        name: of the case.
        folder: for checkpoints and results.
        digits: of losses and scores.
        dtype: "float64": the same on any processor; "float32": as in ordinary runs.
    """
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        (point,) = plan_lines([case_words(name, folder, dtype)])[0]
        with contextlib.redirect_stderr(io.StringIO()):
            record = run_point(point, None if dtype == "float32" else in_double_precision)
    finally:
        torch.set_default_dtype(torch.float32)
    key = record.key
    path = folder / dtype / "runs" / key.dataset / key.model / record.run_id / "predictions.jsonl"
    losses = [
        *(loss for _, loss in record.fit.validation_losses),
        record.fit.first_loss,
        record.fit.last_loss,
    ]
    scores = {name: scores.f1.mean for name, scores in record.evaluation.scores.items()}
    scores |= {name: measure.estimate.mean for name, measure in record.evaluation.measures.items()}
    config = {**asdict(point.config), "results_dir": None}
    config["model"] = {**config["model"], "checkpoint": None}
    return {
        "versions": dict(record.key.versions),
        "settings": digest([config, record.key.fingerprint])[:12],
        "losses": [f"{loss:.{digits}g}" for loss in losses if loss is not None],
        "outputs": digest(_SECONDS.sub("", path.read_text(encoding="utf-8")))[:12],
        "scores": digest({name: f"{score:.{digits}g}" for name, score in scores.items()})[:12],
    }


def in_double_precision(config: RunConfig, cache: ArtifactCache) -> tuple[System, Texts]:
    """Return the system and the texts of a run; a network starts in float64, also from a checkpoint in float32."""
    system = new_system(config.model)
    if isinstance(system, NeuralSystem):
        initial_model = system.builder.initial_model
        system.builder.initial_model = lambda reader: initial_model(reader).double()  # type: ignore[method-assign]
    return system, load_texts(config.dataset, cache)


def case_words(name: str, folder: Path, dtype: str) -> list[str]:
    """Return the overrides of a case; those typed in `CASES` come last."""
    model, *words = CASES[name].split()
    known = registry.load_config_class(model).__dataclass_fields__
    sizes = [f"model.{size}={value}" for size, value in SIZES.items() if size in known]
    if model in ("seq2seq", "prompt"):
        sizes.append(
            f"model.checkpoint={write_checkpoint(folder / f'{model} {dtype}', model, dtype)}"
        )
    if model == "function":
        sizes.append(f"model.function={register_function(upper_case)}")
    line = {
        word.partition("=")[0]: word
        for word in [*RUN.split(), f"results_dir={folder / dtype}", *sizes, *words]
    }
    return [f"model={model}", *line.values()]


def upper_case(text: str) -> str:
    """Return a text in capitals: what `function` is here."""
    return text.upper()


def write_checkpoint(folder: Path, model: str, dtype: str) -> Path:
    """Write a BART for seq2seq, or a causal language model for prompt: tiny, with the same weights on any machine."""
    texts = load_texts(DatasetSettings("probe", limit=40, document_length=96), user_cache())
    tokenizer = train_tokenizer(texts.splits["train"], SIZES["vocabulary_size"])
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}</s>{% endfor %}"
    ids = {
        f"{token}_token_id": getattr(tokenizer, f"{token}_token_id")
        for token in ("pad", "bos", "eos")
    }
    stacks: dict[str, Any] = {
        f"{stack}_{size}": value
        for stack in ("encoder", "decoder")
        for size, value in {"layers": 2, "ffn_dim": 24, "attention_heads": 2}.items()
    }
    if model == "seq2seq":
        start = {"decoder_start_token_id": ids["eos_token_id"], "dropout": 0.0}
        network: Any = BartForConditionalGeneration(
            BartConfig(
                vocab_size=len(tokenizer),
                d_model=16,
                max_position_embeddings=80,
                **stacks,
                **start,
                **ids,
            )
        )
    else:
        heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 2}
        network = Qwen2ForCausalLM(
            Qwen2Config(
                vocab_size=len(tokenizer),
                hidden_size=16,
                intermediate_size=24,
                max_position_embeddings=512,
                **heads,
                **ids,
            )
        )
    drawn = np.random.Generator(np.random.PCG64(1))
    for weight in network.state_dict().values():
        if weight.dim() > 1:
            weight.copy_(torch.from_numpy(drawn.random(weight.shape) - 0.5))
    network.to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def describe_change(name: str, run: Mapping[str, Any]) -> str:
    """Compare a run with the file; return what changed and what to do, or an empty string."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    stored = content["outcomes"].get(name)
    write = "write the file again with `python benchmarks/outcome_versions.py`"
    if stored is None or any(stored[part] != run[part] for part in ("versions", "settings")):
        return f"'{name}' has other versions or settings than in {FILE.relative_to(ROOT)}: {write}"
    changed = ", ".join(
        part for part in ("losses", "outputs", "scores") if stored[part] != run[part]
    )
    module, _, system = registry.systems.shipped()[CASES[name].split()[0]].partition(":")
    path = module.removeprefix("longsumbench.").replace(".", "/")
    raised = f"raise {system}.version ({path}.py) or that of the changed step (CONTRIBUTING.md), or find the cause"
    return changed and f"the outcome of '{name}' changed ({changed}): {raised}; then {write}"


def compare_rounding(commit: str) -> str:
    """Run this checkout and another commit in float32; return the cases whose bits differ at equal versions."""
    git = ["git", "-C", str(ROOT)]
    if not commit:
        last = [*git, "log", "-1", "--format=%H", "--", str(FILE.relative_to(ROOT))]
        commit = subprocess.check_output(last, text=True).strip()
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.check_output([*git, "archive", commit])
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        then, now = bits_of(Path(folder)), bits_of(ROOT)
    differing = [
        name
        for name, run in now.items()
        if name in then and then[name]["versions"] == run["versions"] and then[name] != run
    ]
    print(f"{len(now.keys() & then.keys())} runs compared with those of {commit[:12]}")
    changed = ", ".join(f"'{name}'" for name in differing)
    return (
        changed
        and f"the rounding of {changed} changed: raise the version (CONTRIBUTING.md), or find the cause"
    )


def bits_of(checkout: Path) -> dict[str, dict[str, Any]]:
    """Return the runs of a checkout in float32, with all digits."""
    script = checkout / "benchmarks" / Path(__file__).name
    code = f"""
import runpy, sys
sys.meta_path = [finder for finder in sys.meta_path if "Editable" not in getattr(finder, "__name__", "")]
sys.path.insert(0, {str(checkout)!r})
sys.argv = [{str(script)!r}, "--bits"]
runpy.run_path({str(script)!r}, run_name="__main__")
"""
    threads = {**os.environ, "OMP_NUM_THREADS": "1"}
    printed = subprocess.check_output(
        [sys.executable, "-c", code], text=True, env=threads, cwd=checkout
    )
    runs: dict[str, dict[str, Any]] = json.loads(printed.splitlines()[-1])
    return runs


if __name__ == "__main__":
    main()

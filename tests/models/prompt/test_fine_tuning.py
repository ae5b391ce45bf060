"""Fine-tuning: the loss against a pass over each text alone, packed batches, and what is saved and resumed."""

import shutil
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from support.tiny_causal import CHAT_TEMPLATE, write_causal
from support.toys import ToySplit, example, refuses, tiny_recipe
from support.trainings import calling_before, die
from torch.testing import assert_close
from transformers import AutoConfig, AutoModelForCausalLM

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import (
    Decoding,
    Document,
    FitContext,
    FitReport,
    Section,
    TrainConfig,
    build_settings,
)
from longsumbench.errors import MissingSplit
from longsumbench.modeling.training import trainer
from longsumbench.modeling.training.trainer import recompute_activations
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.fine_tuning import (
    PromptCollator,
    Tuning,
    can_pack,
    pack_sequences,
    training_row,
)
from longsumbench.models.prompt.page_mixture import LearnedConfidence, compute_confidence
from longsumbench.models.prompt.selector import Selector
from longsumbench.models.prompt.system import PromptSystem

TRAIN, VALIDATION = ToySplit.of("train", 12), ToySplit.of("validation", 4, start=900)
BRIEF = Document(None, (Section(None, (("kadan.",),)),))
# Two of one word fit into one row, and others of several pages do not.
UNEQUAL = [example(number, sentences) for number, sentences in enumerate((2, 12, 1, 3, 2))]
UNEQUAL[::2] = [replace(one, documents=(BRIEF,)) for one in UNEQUAL[::2]]
GREEDY = Decoding(device="cpu", batch_size=3, min_length=8)
PAGES = {"reading": "pages", "page_length": 60}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with rotary positions, whose weights are so small that training changes its words."""
    path = tmp_path_factory.mktemp("causal") / "llama"
    write_causal(path, "llama", positions=1_024)
    network = AutoModelForCausalLM.from_pretrained(path)
    for weight in network.parameters():
        weight.data *= 0.2
    network.save_pretrained(path)
    return path


def opened(folder: Path, **settings: Any) -> PromptSystem:
    values = {"checkpoint": str(folder), "length": "12", "decode_length": 16, **settings}
    config: PromptConfig = build_settings(PromptConfig, values, "model.")
    return PromptSystem(config)


def fitted(
    folder: Path, cache: ArtifactCache, recipe: TrainConfig | None = None, **settings: Any
) -> tuple[PromptSystem, FitReport]:
    system = opened(folder, **settings)
    context = FitContext(TRAIN, VALIDATION, recipe or tiny_recipe(learning_rate=0.05), cache)
    return system, system.fit(context)


def texts_of(system: PromptSystem) -> list[str]:
    return [summary.text for summary in system.summarize(VALIDATION.examples, GREEDY)]


def batch_of(system: PromptSystem, packs: bool) -> dict[str, torch.Tensor]:
    return PromptCollator(packs)([training_row(system.builder, one) for one in UNEQUAL])


def loss_by_hand(system: PromptSystem) -> torch.Tensor:
    """Return the summed loss from a pass over each page with its reference, one after the other, in double precision."""
    engine: Any = system.builder.engine
    learned = engine.compute_confidence
    total = torch.zeros((), dtype=torch.float64)
    for one in UNEQUAL:
        row = training_row(system.builder, one)
        labels = torch.tensor(row["labels"])
        of_pages, sure = [], []
        for prompt in row["units"]:
            ids = torch.tensor([[*prompt, *row["labels"][:-1]]])
            output = engine.network(ids, output_hidden_states=True)
            log_probabilities = output.logits[0, len(prompt) - 1 :].log_softmax(-1)
            of_pages.append(log_probabilities)
            if isinstance(learned, LearnedConfidence):
                states = output.hidden_states[-1][0, len(prompt) - 1 :]
                sure.append(states @ learned.layer.weight[0])
            else:
                sure.append(compute_confidence(log_probabilities, engine.config.confidence))
        weights = torch.stack(sure).softmax(0)[..., None]
        mixture = (weights * torch.stack(of_pages).exp()).sum(0)
        total = total - mixture.log()[torch.arange(len(labels)), labels].sum()
    return total


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2"])
@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize(
    "settings",
    [{}, PAGES, {**PAGES, "confidence": "uniform"}, {**PAGES, "confidence": "learned"}],
    ids=["one page", "entropy", "uniform", "learned"],
)
def test_the_loss_is_that_of_each_text_alone(
    kind: str, packs: bool, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Packed or not, several examples of several pages have the loss of separate passes; only references count."""
    path = write_causal(tmp_path / kind, kind, positions=1_024)
    prompt = tmp_path / "bare.yaml"
    prompt.write_text("user: '{document}'")
    system = opened(path, lora_rank=2, prompt=str(prompt), decode_length=6, **settings)
    engine: Any = system.builder.engine
    engine.network.double()
    tuning = Tuning(engine)
    tuning.start()
    if isinstance(engine.compute_confidence, LearnedConfidence):
        seeded = torch.Generator().manual_seed(3)
        torch.nn.init.normal_(engine.compute_confidence.layer.double().weight, generator=seeded)
    batch = batch_of(system, packs)
    loss = tuning.output(0.0, **batch, num_items_in_batch=1).loss.double()
    assert_close(loss, loss_by_hand(system), rtol=1e-5, atol=0)
    assert can_pack(engine.network)
    number, sequences = len(batch["input_ids"]), len(batch["rows"])
    assert number < sequences if packs else number == sequences
    assert sequences > 5 or not settings


def test_a_network_whose_states_run_on_is_not_packed() -> None:
    """Mamba ignores positions, so that a second text in a row would see the first; Gemma 3, with images, does not."""
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    vision = {**sizes, "intermediate_size": 16, "image_size": 16, "patch_size": 8}
    text = {**sizes, "num_key_value_heads": 1}
    nested = {"text_config": text, "vision_config": vision}
    for kind, entries, packs in (("mamba", sizes, False), ("gemma3", nested, True)):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            config = AutoConfig.for_model(kind, **entries)
            network = AutoModelForCausalLM.from_config(config)
        assert can_pack(network) == packs


def test_sequences_are_packed_by_hand() -> None:
    """Into rows of 10 tokens: 7 + 3, 6 + 4, 5; without room for two, each has its own."""
    assert pack_sequences([3, 7, 5, 6, 4], 10) == [(0, 7), (0, 0), (2, 0), (1, 0), (1, 6)]
    assert pack_sequences([3, 7, 5], 0) == [(2, 0), (0, 0), (1, 0)]


def test_a_row_by_hand(folder: Path) -> None:
    """The prompt is the one that is asked later; the reference is cut to leave room for the end."""
    system = opened(folder, lora_rank=2, decode_length=6)
    engine: Any = system.builder.engine
    row = training_row(system.builder, TRAIN[0])
    asked = system.builder.messages(TRAIN[0], system.builder.passage(TRAIN[0]).text)
    assert len(row["units"][0]) == engine.count(asked)
    reference = engine.tokenizer(TRAIN[0].references[0][0])["input_ids"]
    reference = [token for token in reference if token != engine.tokenizer.bos_token_id]
    assert row["labels"] == [*reference[:5], engine.tokenizer.eos_token_id]
    assert row["target_tokens"] == len(reference) > 5
    assert row["target_words_cut"] > 0


@pytest.mark.parametrize("settings", [{"lora_rank": 0}, {"lora_rank": 4}, {"tune_all": True}])
def test_nothing_trained_changes_nothing(
    settings: dict[str, Any], folder: Path, cache: ArtifactCache
) -> None:
    """Without steps, and with a rank of 0, the model writes what it writes as it is."""
    plain, _ = fitted(folder, cache, tiny_recipe(max_steps=0))
    steps = 3 if settings.get("lora_rank") == 0 else 0
    system, report = fitted(folder, cache, tiny_recipe(max_steps=steps), **settings)
    assert texts_of(system) == texts_of(plain)
    assert report.steps == 0


SYSTEMS: dict[str, dict[str, Any]] = {
    "adapter": {"lora_rank": 4},
    "all weights": {"tune_all": True},
    "learned": {**PAGES, "page_length": 24, "confidence": "learned", "lora_rank": 4},
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_was_trained_is_saved_and_loaded(
    name: str, folder: Path, cache: ArtifactCache, tmp_path: Path
) -> None:
    """The loss falls, the words change, and a system loaded from its folder has the same weights, words and facts.

    So it is where the checkpoint has weights of fewer bits than the training. No file tells where the cache is.
    """
    folder = shutil.copytree(folder, tmp_path / "half")
    AutoModelForCausalLM.from_pretrained(folder).bfloat16().save_pretrained(folder)
    system, report = fitted(folder, cache, **SYSTEMS[name])
    assert report.validation_losses[-1][1] < report.validation_losses[0][1]
    reading = {key: value for key, value in SYSTEMS[name].items() if key in PAGES}
    plain, _ = fitted(folder, cache, tiny_recipe(max_steps=0), **reading)
    texts = texts_of(system)
    assert texts != texts_of(plain)
    (tmp_path / "pushed").mkdir()
    PromptSystem.load(system.checkpoint).save(tmp_path / "pushed")
    loaded = PromptSystem.load(tmp_path / "pushed")
    assert loaded.metadata() == system.metadata()
    if name == "all weights":
        shutil.rmtree(folder)
    assert texts_of(loaded) == texts
    assert loaded.config.identity()["checkpoint"]
    saved = [path for path in system.checkpoint.glob("*.*") if path.name != "inputs.json"]
    for path in (*saved, *(tmp_path / "pushed").iterdir()):
        assert str(cache.root).encode() not in path.read_bytes()
        assert str(folder).encode() not in path.read_bytes() or path.name == "system.json"
    engine: Any = loaded.builder.engine
    assert engine.network.dtype == torch.bfloat16
    if name == "learned":
        assert bool(engine.compute_confidence.layer.weight.any())
    if name == "all weights":
        other = opened(system.checkpoint)  # an ordinary folder of transformers
        assert texts_of(other) == texts


@pytest.mark.parametrize("targets", [None, ["lm_head", "embed_tokens"]])
def test_an_adapter_is_one_of_peft(
    targets: list[str] | None, folder: Path, cache: ArtifactCache, tmp_path: Path
) -> None:
    """Peft loads what was saved, and `model.adapter` writes with it as the trained system does.

    So it is of layers that share their weights.
    """
    system, _ = fitted(folder, cache, lora_rank=4, lora_targets=targets)
    base = AutoModelForCausalLM.from_pretrained(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peft's code, and of shared weights
        adapted = PeftModel.from_pretrained(base, system.checkpoint).eval()
    engine: Any = system.builder.engine
    ids = torch.arange(3, 40)[None]
    assert_close(engine.network(ids).logits, adapted(ids).logits, rtol=1e-4, atol=1e-4)
    assert sum(path.stat().st_size for path in system.checkpoint.glob("*.safetensors")) < 100_000
    copied = shutil.copytree(system.checkpoint, tmp_path / "lora")
    other, plain = opened(folder, adapter=str(copied)), opened(folder)
    assert texts_of(other) == texts_of(system)
    assert other.config.identity() != plain.config.identity()
    assert other.metadata()["checkpoint"] == "llama + lora"


def test_an_adapter_for_other_weights_is_refused(
    folder: Path, cache: ArtifactCache, tmp_path: Path
) -> None:
    """A checkpoint whose files differ from those that were trained is one line."""
    path = shutil.copytree(folder, tmp_path / "base")
    system, _ = fitted(path, cache, lora_rank=4)
    shutil.copytree(write_causal(tmp_path / "other", "llama"), path, dirs_exist_ok=True)
    problem = "was trained from other weights than those of"
    with refuses(f"^{system.checkpoint} {problem}"):
        PromptSystem.load(system.checkpoint)
    with refuses(rf"^model\.adapter={system.checkpoint} {problem}"):
        opened(path, adapter=str(system.checkpoint)).config.identity()


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("moment", ["forward", "trained"])
def test_a_killed_training_ends_with_the_same_bits(
    name: str, moment: str, folder: Path, tmp_path: Path
) -> None:
    """Wherever it is killed, the same training started again has the same weights and losses."""
    recipe = tiny_recipe(learning_rate=0.05, eval_steps=2, keep_best=2)
    undisturbed, report = fitted(folder, ArtifactCache(tmp_path / "one"), recipe, **SYSTEMS[name])
    moments = {"forward": (Tuning, "output", 14), "trained": (trainer, "mean_weights", 1)}
    owner, method, number = moments[moment]
    store = ArtifactCache(tmp_path / "two")
    with calling_before(owner, method, number, die), pytest.raises(ZeroDivisionError):
        fitted(folder, store, recipe, **SYSTEMS[name])
    system, again = fitted(folder, store, recipe, **SYSTEMS[name])
    assert again.validation_losses == report.validation_losses
    assert again.kept == report.kept
    for number in (1, 2):
        system.load_checkpoint(number)
        undisturbed.load_checkpoint(number)
        weights: Sequence[dict[str, torch.Tensor]] = []
        weights = [other.builder.engine.network.state_dict() for other in (system, undisturbed)]  # type: ignore[attr-defined]
        assert all(torch.equal(value, weights[1][key]) for key, value in weights[0].items())


def test_activations_that_are_computed_again_have_the_same_gradients(folder: Path) -> None:
    """With `train.gradient_checkpointing`, an adapter learns the same."""
    gradients = []
    for again in (False, True):
        system = opened(folder, lora_rank=2)
        engine: Any = system.builder.engine
        engine.network.double()
        tuning = Tuning(engine)
        with torch.random.fork_rng():
            torch.manual_seed(5)
            network = tuning.start(again).train()
        if again:
            recompute_activations(network)
        tuning.output(0.0, **batch_of(system, True), num_items_in_batch=1).loss.backward()
        trained = [weight for weight in network.parameters() if weight.requires_grad]
        gradients.append([weight.grad for weight in trained])
    assert gradients[0]
    assert_close(gradients[0], gradients[1])


def test_what_is_missing_is_said(folder: Path, cache: ArtifactCache) -> None:
    """No training split, and layers that cannot be trained, are each one line."""
    with refuses(r"lora_rank or model\.tune_all needs a train split", MissingSplit):
        opened(folder, lora_rank=2).fit(FitContext(None, None, tiny_recipe(), cache))
    with refuses(r"lora_targets=\['nowhere'\] does not fit.*'llama'"):
        fitted(folder, cache, lora_rank=2, lora_targets=["nowhere"])


def test_a_template_that_begins_thinking_is_refused(tmp_path: Path, cache: ArtifactCache) -> None:
    """References have no thinking, so that answers would have nothing else."""
    template = CHAT_TEMPLATE.replace("<s>assistant", "<s>assistant<think>")
    path = write_causal(tmp_path / "thinking", "llama", template)
    with refuses("begins with thinking"):
        fitted(path, cache, lora_rank=2)


def test_what_decides_the_prompts_decides_the_training(
    folder: Path, cache: ArtifactCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With queries in another split, or another ranker of the same settings, prompts and training are others."""
    for queried, ranker in ((False, "a"), (True, "a"), (True, "b")):
        monkeypatch.setattr(Selector, "fitted_identity", lambda _, name=ranker: [name])
        train = replace(TRAIN, queried=queried)
        context = FitContext(train, None, tiny_recipe(max_steps=1), cache)
        opened(folder, lora_rank=2).fit(context)
    for stage in ("units", "checkpoint"):
        assert len([path for path in (cache.root / stage).iterdir() if path.is_dir()]) == 3

"""How a run reads, trains, decodes and scores: four dataclasses of settings that all systems share.

Each default is defined once, with its unit and its source. YAML files under `conf/` contain only departures.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from longsumbench.core import registry
from longsumbench.core.bounds import (
    BatchSize,
    Between,
    Count,
    Depth,
    Device,
    Fraction,
    FractionBelowOne,
    Minutes,
    NonNegative,
    OneOf,
    Positive,
    Processes,
    Resamples,
    Seed,
    Text,
    TokenCount,
    Weight,
    check_folder_name,
)
from longsumbench.core.settings import setting
from longsumbench.errors import UsageError
from longsumbench.files import digest

# Tokenizers trained on the training split → their smallest vocabulary, with four special entries.
# trained: byte-level BPE, which needs all 256 bytes; words: word level, which needs one word.
TRAINED_TOKENIZERS = {"trained": 260, "words": 5}

RankerName = Annotated[str, OneOf("none", more=lambda: registry.rankers.targets())]
_ReaderName = Annotated[str, OneOf(more=lambda: registry.corpora.targets())]
SplitName = Annotated[str, OneOf("train", "validation", "test")]
Length = Annotated[int, Between(32, 10**7)]
Agenda = Annotated[str, OneOf("fixed", "asked")]
Optimizer = Annotated[str, OneOf("adafactor", "adam", "adagrad")]
ScheduleName = Annotated[str, OneOf("sqrt_decay", "noam", "pagesum", "linear", "constant", "hold")]
_Budget = Annotated[int, Between(0, 10**15)]
Best = Annotated[int, Between(1, 1_000)]
Helpers = Annotated[int, Between(0, 1_024)]
Beams = Annotated[int, Between(1, 1_000)]
Exponent = Annotated[float, Between(-20, 20)]
_LengthNorm = Annotated[str, OneOf("power", "wu")]
_Precision = Annotated[str, OneOf("float32", "tf32", "bf16")]
Coverage = Annotated[str, OneOf("none", "summary", "wu")]
_Failed = Annotated[str, OneOf("stop", "empty", "leave_out")]
TokenLimit = Annotated[int, Between(0, 10**7)]
_Kept = Annotated[str, OneOf("all", "none", number_of="examples", least=0)]
Share = Annotated[float, Between(0, 1, open_low=True)]
TrainedPart = Annotated[str, OneOf("all", "scorer")]
OutputMode = Annotated[str, OneOf("write", "extract")]
SummaryWords = Annotated[str, OneOf("train", "reference", number_of="words")]
AskedWords = Annotated[str, OneOf("train", number_of="words")]
Mode = Annotated[str, OneOf("google", "perl")]
_WordRule = Annotated[str, OneOf("default", "unicode")]
_Splitting = Annotated[str, OneOf("suite", "given", "newline", "nltk")]
Rule = Annotated[str, OneOf("best", "jackknife")]
Empty = Annotated[str, OneOf("skip", "zero")]
Resampling = Annotated[str, OneOf("percentile", "perl")]
_SupportScheme = Annotated[str, OneOf("sentences", "chunks")]
_SupportModel = Annotated[str, OneOf("classifier", "language_model")]
_JudgeForm = Annotated[str, OneOf("json", "probabilities")]


@dataclass
class DatasetSettings:
    """Which dataset, and which of its examples."""

    name: Text = setting(
        "aclsum", "name of the dataset in records, tables and folders; any name for own texts"
    )
    path: Text | None = setting(
        None, "original release, or rows (JSON, CSV, TSV, Parquet); null: download or built-in"
    )
    reader: _ReaderName | None = setting(
        None, "dataset whose format the texts have; null: name, else jsonl"
    )
    tokenizer: Text | None = setting(
        None, "SentencePiece model of a release of token ids instead of text (wikisum)"
    )
    columns: dict[Text, Text] | None = setting(
        None,
        "columns of own texts by field (columns.document=teaser), and columns.group, which examples share a source; "
        "null: usual names are recognized",
    )
    split: SplitName = setting(
        "test", "the split that is summarized and scored", decides="examples"
    )
    limit: Count | None = setting(None, "most examples of each split; null: all")
    strict: bool | None = setting(
        None, "false: skip and count unusable rows; true: also refuse overlapping splits"
    )
    workers: Processes | None = setting(
        None, "processes that read a dataset; null: one a core", decides="nothing"
    )
    split_by_hash: bool = setting(
        False, "split one jsonl file into train, validation and test (80/10/10) by id"
    )
    document_length: Length | None = setting(
        None,
        "length of a generated test document; null: the dataset's default",
        "tokens",
        decides="texts",
    )
    train_length: Length | None = setting(
        None,
        "length of other generated documents; null: that of test documents",
        "tokens",
        decides="texts",
    )
    sources: Count | None = setting(None, "documents of a generated example", decides="texts")
    agenda: Agenda | None = setting(
        None,
        "generated topics: fixed | asked (random, as query)",
        decides="texts",
    )
    filler: _ReaderName | None = setting(
        None,
        "dataset whose sentences surround generated facts; path is then its path",
        decides="texts",
    )
    plant: Count | None = setting(
        None, "facts that are planted in each example's documents; null: none"
    )
    plant_at: list[Fraction] | None = setting(
        None, "shares of the text before planted facts, in turn; null: spread over it"
    )

    def __post_init__(self) -> None:
        corpora = registry.corpora.targets()
        if self.reader is None:
            self.reader = self.name if self.name in corpora or self.path is None else "jsonl"
        if self.name in corpora and self.name != self.reader:
            advice = f"choose another name for texts in the format of '{self.reader}', or write dataset={self.name}"
            raise UsageError(f"dataset.name={self.name} is the name of another dataset: {advice}")
        if self.name not in corpora:
            check_folder_name("dataset.name", self.name)
        if self.plant_at is not None and self.plant is None:
            raise UsageError(
                f"dataset.plant_at={self.plant_at} places planted facts: add dataset.plant=8 or so"
            )


@dataclass
class TrainConfig:
    """How a system is trained. Defaults are those of SEAL §5, as far as it states them."""

    optimizer: Optimizer = setting(
        "adafactor", "adafactor (with parameter scaling, as in its paper) | adam | adagrad"
    )
    learning_rate: Positive = setting(
        0.01, "peak of sqrt_decay, linear, constant and hold; factor of noam and pagesum"
    )
    schedule: ScheduleName = setting(
        "sqrt_decay", "sqrt_decay | noam | pagesum | linear | constant | hold (late decay)"
    )
    warmup_steps: NonNegative = setting(
        10_000, "length of the warm-up; sqrt_decay decays after it", "optimizer steps"
    )
    adam_beta1: FractionBelowOne = setting(0.9, "decay of the mean gradient")
    adam_beta2: FractionBelowOne = setting(0.999, "decay of the mean squared gradient")
    adam_epsilon: Positive = setting(1e-8, "added to Adam's denominator")
    weight_decay: Weight = setting(0.0, "weight decay, per unit of learning rate")
    max_grad_norm: Weight = setting(0.0, "gradients are clipped to this norm; 0: no clipping")
    label_smoothing: FractionBelowOne = setting(0.0, "ε, spread as ε/V over the vocabulary")
    batch_size: BatchSize = setting(16, "examples of a forward pass", decides="budget")
    batch_words: Count | None = setting(
        None, "words of 4 to 64 sources; replaces batch_size", decides="budget"
    )
    batch_tokens: Count | None = setting(
        None, "tokens of a batch, with padding; replaces batch_size", decides="budget"
    )
    unlock: FractionBelowOne = setting(
        0.0, "share of max_steps over which longer examples are added; 0: all at once"
    )
    accumulation: Count = setting(16, "forward passes of an optimizer step", decides="budget")
    max_steps: NonNegative = setting(
        200_000, "most optimizer steps; the first budget ends training", decides="budget"
    )
    max_tokens: _Budget | None = setting(
        None, "most tokens of sources and targets", decides="budget"
    )
    max_minutes: Minutes | None = setting(
        None, "minutes of training alone; not reproducible", decides="budget"
    )
    only: TrainedPart = setting("all", "trained part: all | scorer (of ea and seal, to extract)")
    scored_share: Share = setting(1.0, "share of the snippets that each step draws if only=scorer")
    eval_steps: Count = setting(1_000, "optimizer steps between validations (and checkpoints)")
    eval_examples: Count | None = setting(1_000, "most examples of the validation split; null: all")
    patience: Count | None = setting(
        None, "validations without improvement until training ends; null: no limit"
    )
    keep_best: Best = setting(
        1, "checkpoints of lowest loss that write summaries; scores are averaged"
    )
    average_weights: Best = setting(
        1, "checkpoints of lowest validation loss, averaged into one model"
    )
    bf16: bool | None = setting(
        None,
        "train in bfloat16; null: on GPUs that support it. On a CPU, its speed depends on AMX or AVX512-BF16",
    )
    # Records of earlier runs have null.
    gradient_checkpointing: bool | None = setting(
        False,
        "recompute activations in the backward pass: less memory, slower by about a third",
        decides="nothing",
    )
    workers: Helpers = setting(
        0, "processes that collate batches; 0: the training process", decides="nothing"
    )
    seed: Seed = setting(1, "default: the top-level seed", decides="seed")
    device: Device = setting("auto", "default: the top-level device", decides="nothing")

    def __post_init__(self) -> None:
        if self.batch_tokens is not None and (self.batch_words is not None or self.unlock):
            alternative = "unlock=0" if self.batch_words is None else "batch_words=null"
            raise UsageError(
                f"train.batch_tokens={self.batch_tokens} counts the tokens that are read, train.batch_words and"
                f" train.unlock the texts' words: choose train.batch_tokens=null or train.{alternative}"
            )
        if self.keep_best > 1 and self.average_weights > 1:
            averages = (
                f"train.keep_best={self.keep_best} and train.average_weights={self.average_weights}"
            )
            raise UsageError(
                f"{averages}: one averages scores, the other weights; set one of them to 1"
            )


@dataclass
class Decoding:
    """How summaries are written. Defaults are SEAL's greedy search (SEAL §5)."""

    mode: OutputMode = setting(
        "write", "write | extract: copy the best-scored sentences of the source"
    )
    extract_length: SummaryWords = setting(
        "train",
        "length of an extract: a number | train: the mean target | reference: the example's (an oracle)",
        "words",
    )
    redundancy: Fraction = setting(
        0.0, "weight of the similarity to chosen sentences of an extract (MMR); 0: none"
    )
    num_beams: Beams = setting(1, "beam size; 1: greedy search", source="SEAL §5")
    length_penalty: Exponent = setting(
        1.0, "exponent of the length that divides a hypothesis's log-probability"
    )
    length_norm: _LengthNorm = setting(
        "power",
        "divisor of beams: power: |Y|^length_penalty | wu: ((5+|Y|)/6)^length_penalty",
        source="Wu 2016",
    )
    coverage: Coverage = setting(
        "none", "penalty of beams: none | summary (rereading) | wu (unread text, Wu 2016)"
    )
    coverage_penalty: Weight = setting(5.0, "weight β of the coverage penalty")
    min_length: TokenLimit = setting(0, "shortest output", "tokens")
    max_length: TokenLimit | None = setting(
        None, "longest output; null: the system's limit", "tokens"
    )
    no_repeat_ngram: TokenLimit = setting(
        0, "n-grams of this size occur once at most; 0: no limit", "tokens"
    )
    encoder_no_repeat_ngram: TokenLimit = setting(
        0, "size of n-grams that are not copied from the source; 0: no limit", "tokens"
    )
    repetition_penalty: Positive = setting(1.0, "divisor of the scores of written tokens; 1: none")
    early_stopping: bool = setting(False, "end a beam search once num_beams outputs are complete")
    forced_eos: bool = setting(False, "an output that reaches max_length gets the end token")
    temperature: Weight = setting(
        0.0, "temperature of sampling, each example with its own seed; 0: no sampling"
    )
    top_p: Share = setting(1.0, "sample from the likeliest tokens with this probability together")
    precision: _Precision = setting(
        "float32", "of products: float32 | tf32 (float32 without CUDA) | bf16 (autocast)"
    )
    failed: _Failed = setting(
        "stop",
        "example without an answer of a model, program or function: stop | empty (scores 0) | leave_out",
    )
    batch_size: BatchSize = setting(16, "examples decoded together", decides="speed")
    limit: Count | None = setting(None, "number of first examples; null: all", decides="examples")
    evidence: _Kept = setting(
        "20", "examples whose evidence is stored: all | a number | none", decides="evidence"
    )
    reference_evidence: bool = setting(
        False, "also of the reference", source="PageSum, Figure 3", decides="evidence"
    )
    keep_inputs: _Kept = setting(
        "none", "inputs that are stored as read: all | a number | none", decides="evidence"
    )
    seed: Seed = setting(1, "default: the top-level seed", decides="seed")
    device: Device = setting("auto", "default: the top-level device", decides="nothing")

    def __post_init__(self) -> None:
        if self.mode == "write" and (self.extract_length != "train" or self.redundancy):
            setting_text = f"redundancy={self.redundancy}"
            if self.extract_length != "train":
                setting_text = f"extract_length={self.extract_length}"
            raise UsageError(
                f"decode.{setting_text} is for extracts: add decode.mode=extract or leave it out"
            )
        if self.coverage != "none" and self.num_beams == 1:
            advice = "choose decode.num_beams=4 or so, or decode.coverage=none"
            raise UsageError(
                f"decode.coverage={self.coverage} ranks beams, and decode.num_beams=1 has none: {advice}"
            )
        if self.max_length is not None and self.max_length < max(1, self.min_length):
            raise UsageError(
                f"decode.max_length={self.max_length} is below decode.min_length={self.min_length}"
            )
        if self.temperature and self.num_beams > 1:
            conflict = f"decode.temperature={self.temperature} samples, and decode.num_beams={self.num_beams} searches"
            raise UsageError(f"{conflict}: choose decode.num_beams=1, or decode.temperature=0")
        if self.top_p < 1 and not self.temperature:
            raise UsageError(
                f"decode.top_p={self.top_p} is a setting of sampling: add decode.temperature=1 or so"
            )

    def without_effect(self) -> set[str]:
        """Return the names of the settings that change nothing, given the others."""
        of_beams = (
            {"length_penalty", "length_norm", "early_stopping"} if self.num_beams == 1 else set()
        )
        return of_beams | ({"coverage_penalty"} if self.coverage == "none" else set())

    def derive_seed(self, example_id: str) -> int:
        """Return the seed under which an example's summary is sampled; it depends on `seed` and the id alone."""
        return int(digest([self.seed, example_id])[:8], 16)


@dataclass
class Scoring:
    """How summaries are scored (`score.*`)."""

    mode: Mode = setting(
        "google",
        "google: equals rouge_score 0.1.2 | perl: equals ROUGE-1.5.5 for one reference",
        decides="words",
    )
    stem: bool = setting(
        True, "Porter stemming of words longer than three letters", decides="words"
    )
    wordnet: Text | None = setting(
        None,
        'perl: folder of WordNet\'s exception lists; "none": no lists; null: search',
        decides="words",
    )
    tokenizer: _WordRule = setting(
        "default",
        "default: a–z, 0–9, as ROUGE | unicode: letters, digits of every script",
        decides="words",
    )
    sentences: _Splitting = setting(
        "suite", "for R-Lsum: suite | given (lines) | newline (as rouge_score) | nltk"
    )
    max_words: Count | None = setting(
        None, "ROUGE of the first words of each output, references whole; null: all", "words"
    )
    references: Rule | None = setting(
        None, "several: best (F) | jackknife; null: best (google) or jackknife (perl)"
    )
    empty_references: Empty = setting(
        "skip", "references without a word: skip | zero (score 0, as in rouge_score)"
    )
    resamples: Resamples = setting(1_000, "bootstrap resamples of the 95 % interval")
    resampling: Resampling = setting(
        "percentile", "interval: percentile | perl (as ROUGE-1.5.5; perl mode only)"
    )
    metrics: list[Text] = setting(
        [], "metrics in addition to ROUGE (longsumbench list metrics)", decides="measures"
    )
    coherence_model: Text | None = setting(
        None, "a BERT for coherence: folder or hub name", decides="measures"
    )
    bertscore_model: Text | None = setting(
        None, "an encoder for bertscore: folder or hub name", decides="measures"
    )
    bertscore_layer: Depth | None = setting(
        None, "its layer that is compared; null: bert-score's for a known name", decides="measures"
    )
    evaluate_settings: dict[Text, Any] = setting(
        {}, "settings of metrics evaluate/NAME: {NAME: {SETTING: VALUE}}", decides="measures"
    )
    support_model: Text | None = setting(
        None,
        "an entailment classifier for support: folder, hub name or NAME@REVISION",
        decides="measures",
    )
    support_by: _SupportModel = setting(
        "classifier",
        "what support_model is: classifier | language_model (yes or no, with judge_settings)",
        decides="measures",
    )
    support_label: Text | None = setting(
        None,
        "its label for a supported sentence; null: entailment, supported or so",
        decides="measures",
    )
    support_scheme: _SupportScheme = setting(
        "sentences",
        "what a summary sentence is compared with: sentences of the source (SummaC) | chunks (MiniCheck)",
        decides="measures",
    )
    support_top: Count | None = setting(
        None,
        "most similar sentences or chunks that are compared; null: 3 sentences, or all chunks",
        source="LongDocFACTScore; MiniCheck",
        decides="measures",
    )
    support_length: TokenCount = setting(
        400, "longest chunk; a longer sentence is cut", "tokens", "MiniCheck", decides="measures"
    )
    judge_models: list[Text] = setting(
        [],
        "up to three language models for judge: folder, hub name, NAME@REVISION, or name at a server",
        decides="measures",
    )
    judge_form: _JudgeForm = setting(
        "json",
        "a judge's answer: json, about a summary | probabilities (of yes and no, about each sentence)",
        decides="measures",
    )
    judge_settings: dict[Text, Any] = setting(
        {}, "their settings, those of model=prompt: {engine: api, base_url: …}", decides="measures"
    )
    judge_key_points: Text | None = setting(
        None,
        "JSON file, id → key points, for judge; null: the first judge finds them (probabilities: the references' sentences)",
        decides="measures",
    )
    answer_model: Text | None = setting(
        None,
        "a language model for answers, with judge_settings: folder, hub name, NAME@REVISION, or name at a server",
        decides="measures",
    )
    device: Device = setting("auto", "default: the top-level device", decides="nothing")

    def __post_init__(self) -> None:
        if self.resampling == "perl" and self.mode != "perl":
            raise UsageError(
                "score.resampling=perl needs score.mode=perl: both compute what ROUGE-1.5.5 prints"
            )

"""What every registered system keeps to, built in or added by another package: one set of checks for all.

Systems are reached through the registry alone. A package that adds one runs
`pytest tests/models/test_conformance.py -k <name>` against it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from support.built_once import shared_cache
from support.networks import NEURAL
from support.toys import ToySplit, build_tiny, fit_context, fit_tiny

from longsumbench.core import (
    AXES,
    REFERENCE_AXIS,
    Decoding,
    Document,
    Evidence,
    Example,
    Section,
    Summary,
    System,
    catalogue,
    count_words,
    registry,
)
from longsumbench.modeling.generation import generate_texts
from longsumbench.modeling.neural_system import NeuralSystem

NAMES = sorted(registry.systems.targets())
GREEDY = Decoding(max_length=10, device="cpu")
SEARCH = replace(
    GREEDY,
    num_beams=3,
    encoder_no_repeat_ngram=1,
    repetition_penalty=1.5,
    early_stopping=True,
    forced_eos=True,
)
SAMPLING = replace(GREEDY, temperature=2.0, top_p=0.95)
EXTRACT = replace(GREEDY, mode="extract", extract_length="7")
TEST = ToySplit.of("test", 6, start=30).examples


def summarize(system: System, examples: Sequence[Example]) -> list[Summary]:
    """Return one batch's summaries."""
    return list(system.summarize(examples, GREEDY))


def summarize_next_to_others(system: System, decoding: Decoding = GREEDY) -> list[Summary]:
    """Return the summaries of `TEST`, a batch, and of each odd example, in a batch with another one."""
    summaries = list(system.summarize(TEST, decoding))
    for example in ODD_EXAMPLES:
        _, summary = system.summarize([TEST[4], example], decoding)
        summaries.append(summary)
    return summaries


def texts(system: System, examples: Sequence[Example], decoding: Decoding = GREEDY) -> list[str]:
    """Return the texts of one batch's summaries."""
    return [summary.text for summary in system.summarize(examples, decoding)]


def document(*sentences: str) -> Document:
    """Return a document of one paragraph; without sentences, an empty one."""
    return Document(None, (Section(None, (tuple(sentences),)),) if sentences else ())


def odd_example(
    name: str,
    *documents: Document,
    title: str | None = "t",
    query: str | None = None,
    references: tuple[tuple[str, ...], ...] = (("One.",),),
) -> Example:
    """Return an example whose id says what is odd about it."""
    return Example(name, title, query, documents, references)


ODD_EXAMPLES = (
    odd_example("no title", document("One two three.", "Four five."), title=None),
    odd_example("a query", document("One two three.", "Four five."), query="what?"),
    odd_example("several documents", *(document(f"Text {i}.", "More.") for i in range(5))),
    odd_example("an empty document", document(), document("One two."), document()),
    odd_example("a one-word sentence", document("Word"), references=(("Word",),)),
    odd_example("unicode", document("你好，世界。", "naïve – “café” 🦜\u2028!"), title="标题"),
    odd_example(
        "two references", document("One two.", "Three."), references=(("One.",), ("Two.",))
    ),
    odd_example("an empty reference", document("One two.", "Three."), references=((),)),
    odd_example("no text at all"),
    odd_example("a long sentence", document(" ".join(["long"] * 300))),
    odd_example("equal sentences", document(*["a b c"] * 30), document("a b c")),
    odd_example("many documents", *(document(f"Text {i}.") for i in range(500))),
)
ODD = {example.id: example for example in ODD_EXAMPLES}
SHORT = ("no title", "a query", "a one-word sentence", "no text at all")
ALL = [*TEST, *ODD_EXAMPLES]
EXTRACTORS = {"ea", "seal", "etads", "pagesum", "hierarchical_transformer"}


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is(name: str) -> None:
    """A system has a docstring, what decides it, and a dataclass of explained settings with its registered name."""
    system_class = registry.systems.load(name)
    assert issubclass(system_class, System)
    assert system_class.__doc__
    assert system_class.Config().name == name
    assert is_dataclass(system_class.Config)
    assert system_class.Config.__doc__
    assert (
        registry.load_config_class(name) is system_class.Config
    )  # of a built-in system without importing the system
    assert [
        item.name for item in fields(system_class.Config) if not item.metadata.get("help")
    ] == []
    assert system_class.Config().decided_by <= {"seed", "train", "decode"}


def test_systems_and_corpora_are_described() -> None:
    """Each built-in name is listed with a line of its own, not with where it is defined."""
    for table in (registry.systems, registry.corpora):
        lines = [catalogue.about(table, name) for name in table.shipped()]
        assert len({*lines} - {*table.shipped().values()}) == len(table.shipped())


@dataclass(frozen=True)
class Outputs:
    """What a fitted system writes about all examples: next to others, and about each alone."""

    system: System
    together: list[Summary]
    alone: list[Summary]

    @property
    def tested(self) -> list[Summary]:
        """The summaries of `TEST`, which were one batch."""
        return self.together[: len(TEST)]


def check_texts(outputs: Outputs) -> None:
    """Each example, whatever it lacks, has a text, in its order; others in its batch change nothing."""
    for example, alone, together in zip(ALL, outputs.alone, outputs.together, strict=True):
        assert alone.id == together.id == example.id
        assert alone.text == together.text, example.id
        assert isinstance(alone.text, str)


def check_repeated(outputs: Outputs) -> None:
    """The same settings, texts and seed give the same summaries; so does what `load` rebuilds."""
    assert summarize(outputs.system, TEST) == outputs.tested
    with TemporaryDirectory() as folder:
        outputs.system.save(Path(folder))
        assert summarize(type(outputs.system).load(Path(folder)), TEST) == outputs.tested


def check_search_and_sampling(outputs: Outputs) -> None:
    """Searched and sampled summaries do not depend on the other examples of a batch, or on their order."""
    search = SEARCH
    if outputs.system.config.capabilities.supports_length_norms:
        search = replace(SEARCH, length_norm="wu")
    for decoding in (search, SAMPLING):
        together = texts(outputs.system, TEST, decoding)
        assert [texts(outputs.system, [example], decoding)[0] for example in TEST] == together
        assert texts(outputs.system, TEST[::-1], decoding) == together[::-1]


def check_seeds(outputs: Outputs) -> None:
    """Systems that write sample other summaries under another seed, and for another id."""
    if outputs.system.config.capabilities.shares_work:
        renamed = [replace(example, id=f"{example.id} again") for example in TEST]
        first, second, other_ids = (
            texts(outputs.system, examples, replace(SAMPLING, seed=seed))
            for examples, seed in ((TEST, 1), (TEST, 2), (renamed, 1))
        )
        assert first != second
        assert first != other_ids


def check_nothing_is_copied(outputs: Outputs) -> None:
    """With encoder_no_repeat_ngram=1 a system that writes uses no token of what it read."""
    system = outputs.system
    if isinstance(system, NeuralSystem):
        special = set(system.tokenizer.all_special_ids)
        decoding = replace(SEARCH, min_length=4)
        for written in generate_texts(system.model, system.reader, TEST, decoding):
            for unit in written.units.ids:
                assert special.issuperset({*unit} & {*written.ids})


def check_extracts(outputs: Outputs) -> None:
    """Extracts are text of the source, as long as wanted where the source is, alone as in a batch."""
    system = outputs.system
    assert system.config.capabilities.extracts == (system.config.name in EXTRACTORS)
    if not system.config.capabilities.extracts:
        return
    for example, summary in zip(ALL, summarize_next_to_others(system, EXTRACT), strict=True):
        extract = summary.text
        assert texts(system, [example], EXTRACT) == [extract], example.id
        check_extract(example, extract, 7)
        if example in TEST:
            assert count_words([extract]) == 7
    # Of a text with fewer words than the length, also of one sentence or none, the extract is the whole.
    short = [ODD[kind] for kind in SHORT]
    wholes = ["\n".join(example.sentences()) for example in short]
    assert texts(system, short, replace(EXTRACT, extract_length="100")) == wholes
    # Of 500 documents only those that were read are in an extract of any length.
    everything = replace(EXTRACT, extract_length="9999")
    (summary,) = system.summarize([ODD["many documents"]], everything)
    assert summary.truncation is not None
    # Each of the sentences has two words, and may be read in part.
    assert 0 < count_words([summary.text]) <= 2 * summary.truncation.words_seen
    assert summary.truncation.tokens_seen < 500


def check_extract(example: Example, text: str, length: int) -> None:
    """Check that an extract has sentences of the source in their order, one of them cut, within the length."""
    sentences = iter(example.sentences())
    lines = text.split("\n") if text else []
    num_cut = 0
    for line in lines:
        words = line.split()
        source = next(one.split() for one in sentences if one.split()[: len(words)] == words)
        num_cut += len(source) > len(words)
    assert num_cut <= 1
    assert count_words(lines) <= length


def check_the_ledger(outputs: Outputs) -> None:
    """What was cut is never more than there was, in tokens and in words, and no count is negative."""
    for summary in outputs.together:
        if (ledger := summary.truncation) is not None:
            assert 0 <= sum(cut.tokens for cut in ledger.cuts) <= ledger.tokens
            assert 0 <= sum(cut.words for cut in ledger.cuts) <= ledger.words
            assert all(min(cut.tokens, cut.words) >= 0 for cut in ledger.cuts)


def check_only_an_oracle_sees_the_references(outputs: Outputs) -> None:
    """Other references change a summary only where the system says that it is an oracle."""
    changed = [replace(example, references=(("entirely", "other words"),)) for example in TEST]
    unchanged = texts(outputs.system, changed) == [summary.text for summary in outputs.tested]
    assert unchanged or outputs.system.config.capabilities.oracle


def check_evidence(outputs: Outputs) -> None:
    """Evidence is there where it is asked for and kept, alone as in a batch, and its axes fit its arrays and texts."""
    system = outputs.system
    without = system.summarize(TEST, replace(GREEDY, evidence="none"))
    assert all(summary.evidence is None for summary in without)
    for alone, together in zip(outputs.alone, outputs.tested, strict=False):
        assert (together.evidence is not None) == system.config.capabilities.keeps_evidence
        if together.evidence is not None and alone.evidence is not None:
            check_same_evidence(alone.evidence, together.evidence)


def check_same_evidence(alone: Evidence, together: Evidence) -> None:
    """Check evidence of one example."""
    assert alone.texts == together.texts
    assert set(together.axes) == set(together.arrays)
    assert "unit" in together.texts
    for name, array in together.arrays.items():
        assert set(together.axes[name]) <= set(AXES)
        shape = dict(zip(together.axes[name], array.shape, strict=True))
        for axis, axis_texts in together.texts.items():
            assert shape.get(axis, len(axis_texts)) == len(axis_texts)
        np.testing.assert_allclose(alone.arrays[name], array, rtol=1e-4, atol=1e-5)


def check_evidence_of_the_reference(outputs: Outputs) -> None:
    """Asking what is looked at for the reference changes no summary; a system that keeps it has it on its own axis."""
    capabilities = outputs.system.config.capabilities
    asked = list(outputs.system.summarize(TEST, replace(GREEDY, reference_evidence=True)))
    assert asked == outputs.tested
    for summary in asked:
        axes = summary.evidence.axes.values() if summary.evidence is not None else ()
        is_there = any(REFERENCE_AXIS in of_array for of_array in axes)
        assert is_there == (capabilities.keeps_evidence and capabilities.keeps_reference_evidence)


CHECKS = (
    check_texts,
    check_repeated,
    check_search_and_sampling,
    check_seeds,
    check_nothing_is_copied,
    check_extracts,
    check_the_ledger,
    check_only_an_oracle_sees_the_references,
    check_evidence,
    check_evidence_of_the_reference,
)


@pytest.mark.parametrize("name", NAMES)
def test_a_fitted_system(name: str) -> None:
    """A fitted system has every property of `CHECKS`; the traceback names the one that it lacks."""
    system: System = build_tiny(name)
    train, validation = ToySplit.of("train", 24), ToySplit.of("validation", 6, start=24)
    system.fit(fit_context(shared_cache().root, train, validation, max_steps=4))
    alone = [summarize(system, [example])[0] for example in ALL]
    outputs = Outputs(system, summarize_next_to_others(system), alone)
    for check in CHECKS:
        check(outputs)


@pytest.mark.parametrize("name", NAMES)
def test_odd_examples_are_learned_from(name: str, tmp_path: Path) -> None:
    """A system that was trained on odd examples alone summarizes each of them."""
    odd = [*ODD.values()]
    system = fit_tiny(name, tmp_path, ToySplit("train", odd, multi_document=True))
    assert len(texts(system, odd)) == len(odd)


@pytest.mark.parametrize("name", NEURAL)
def test_it_learns(name: str, tmp_path: Path) -> None:
    """In forty steps the loss of a neural system falls by a third."""
    plain = {"rank": "none", "source_loss": False, "dropout": 0.0}
    known = registry.systems.load(name).Config.__dataclass_fields__
    system = build_tiny(name, **{key: value for key, value in plain.items() if key in known})
    report = system.fit(fit_context(tmp_path, ToySplit.of("train", 24), max_steps=40))
    assert report.last_loss < 0.67 * report.first_loss

"""What every registered system keeps to, built in or added by another package: one set of checks for all.

Systems are reached through the registry alone. A package that adds one runs
`pytest tests/models/test_conformance.py -k <name>` against it.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from support.toys import ToySplit, build_tiny, fit_tiny, tiny_recipe

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import (
    AXES,
    REFERENCE_AXIS,
    Decoding,
    Document,
    Example,
    FitContext,
    Section,
    Summary,
    System,
    catalogue,
    count_words,
    registry,
)
from longsumbench.errors import UsageError
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


def fitted(name: str, folder: Path) -> System:
    """Return the system, fitted on toys; the stages are kept in the folder."""
    system: System = build_tiny(name)
    train, validation = ToySplit.of("train", 24), ToySplit.of("validation", 6, start=24)
    system.fit(FitContext(train, validation, tiny_recipe(max_steps=4), ArtifactCache(folder)))
    return system


def summarize(system: System, examples: Sequence[Example]) -> list[Summary]:
    """Return one batch's summaries."""
    return list(system.summarize(examples, GREEDY))


def document(*sentences: str) -> Document:
    """Return a document of one paragraph; without sentences, an empty one."""
    return Document(None, (Section(None, (tuple(sentences),)),) if sentences else ())


ODD = {
    "no title, no query": Example(
        "odd", None, None, (document("One two three.", "Four five."),), (("One.",),)
    ),
    "title and query": Example(
        "odd", "A title", "what?", (document("One two three.", "Four five."),), (("One.",),)
    ),
    "several documents": Example(
        "odd", "t", None, tuple(document(f"Text {i}.", "More.") for i in range(5)), (("Text.",),)
    ),
    "an empty document": Example(
        "odd", "t", None, (document(), document("One two."), document()), (("One.",),)
    ),
    "a one-word sentence": Example("odd", "t", None, (document("Word"),), (("Word",),)),
    "unicode": Example(
        "odd", "标题", None, (document("你好，世界。", "naïve – “café” 🦜\u2028!"),), (("世界",),)
    ),
    "two references": Example(
        "odd", "t", None, (document("One two.", "Three."),), (("One.",), ("Three.", "Two."))
    ),
    "an empty reference": Example("odd", "t", None, (document("One two.", "Three."),), ((),)),
    "no text at all": Example("odd", "t", None, (), (("One.",),)),
    "a long sentence": Example(
        "odd", "t", None, (document(" ".join(["long"] * 300)),), (("One.",),)
    ),
    "equal sentences": Example(
        "odd", "t", None, (document(*["a b c"] * 30), document("a b c")), (("One.",),)
    ),
    "many documents": Example(
        "odd", "t", None, tuple(document(f"Text {i}.") for i in range(500)), (("Text.",),)
    ),
}


@pytest.fixture(scope="module", params=NAMES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> System:
    """Every registered system, fitted on toys."""
    return fitted(request.param, tmp_path_factory.getbasetemp() / "conformance")


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
        registry.config_of(name) is system_class.Config
    )  # of a built-in system without importing the system
    assert [
        item.name for item in fields(system_class.Config) if not item.metadata.get("help")
    ] == []
    assert system_class.Config().decided_by <= {"seed", "train", "decode"}


def test_built_in_settings_are_listed_without_torch() -> None:
    """`longsumbench list settings MODEL` imports no torch for any built-in system, so it is there at once."""
    code = "import sys; from longsumbench.core import catalogue, registry\n"
    code += "for name in registry.systems.built_in: catalogue.setting_rows(registry.config_of(name), 'model.')\n"
    code += "sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_systems_and_corpora_are_described() -> None:
    """Each built-in name is listed with a line of its own, not with where it is defined."""
    for table in (registry.systems, registry.corpora):
        lines = [catalogue.about(table, name) for name in table.built_in]
        assert len({*lines} - {*table.built_in.values()}) == len(table.built_in)


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_setting_is_refused(name: str) -> None:
    """A setting that the system does not have is an error that names it."""
    with pytest.raises(UsageError, match=r"unknown setting 'model\.no_such_setting'"):
        build_tiny(name, no_such_setting=1)


def test_one_summary_for_each_example_in_order(system: System) -> None:
    """Summaries come in the order of the examples, one each, as text."""
    summaries = summarize(system, TEST)
    assert [one.id for one in summaries] == [one.id for one in TEST]
    assert all(isinstance(one.text, str) for one in summaries)


def test_the_same_twice(system: System, tmp_path: Path) -> None:
    """The same settings, texts and seed give the same summaries, also from a system that is fitted again."""
    summaries = summarize(system, TEST)
    assert summarize(system, TEST) == summaries
    assert summarize(fitted(system.config.name, tmp_path), TEST) == summaries


def test_an_example_alone_is_summarized_as_in_a_batch(system: System) -> None:
    """Other, longer examples in a batch change nothing."""
    together = summarize(system, TEST)
    assert [summarize(system, [example])[0].text for example in TEST] == [
        one.text for one in together
    ]


@pytest.mark.parametrize("decoding", [SEARCH, SAMPLING], ids=["search", "sampling"])
def test_alone_as_in_a_batch_with_other_settings(decoding: Decoding, system: System) -> None:
    """Searched and sampled summaries do not depend on the other examples of a batch, or on their order."""
    if system.config.capabilities.supports_length_norms and decoding.num_beams > 1:
        decoding = replace(decoding, length_norm="wu")
    together = [one.text for one in system.summarize(TEST, decoding)]
    assert [next(iter(system.summarize([example], decoding))).text for example in TEST] == together
    assert [one.text for one in system.summarize(TEST[::-1], decoding)] == together[::-1]


def test_other_seeds_sample_other_summaries(system: System) -> None:
    """Systems that write sample other summaries under another seed, and for another id."""
    if not system.config.capabilities.shares_work:
        pytest.skip("does not write")
    renamed = [replace(example, id=f"{example.id} again") for example in TEST]
    sampled = [
        [one.text for one in system.summarize(examples, replace(SAMPLING, seed=seed))]
        for examples, seed in ((TEST, 1), (TEST, 2), (renamed, 1))
    ]
    assert len({tuple(texts) for texts in sampled}) == 3


def test_nothing_is_copied_where_no_token_may_be(system: System) -> None:
    """With encoder_no_repeat_ngram=1 a system that writes uses no token of what it read."""
    if not isinstance(system, NeuralSystem):
        pytest.skip("does not write")
    for written in generate_texts(system.model, system.reader, TEST, replace(SEARCH, min_length=4)):
        read = {token for unit in written.units.ids for token in unit} - set(
            system.tokenizer.all_special_ids
        )
        assert read.isdisjoint(written.ids)


def test_saved_and_loaded_it_is_the_same(system: System, tmp_path: Path) -> None:
    """What `load` rebuilds writes the same summaries."""
    folder = tmp_path / "saved"
    folder.mkdir()
    system.save(folder)
    assert summarize(type(system).load(folder), TEST) == summarize(system, TEST)


def test_another_systems_folder_is_refused(system: System, tmp_path: Path) -> None:
    """Loading what another system saved, or nothing, is wrong usage."""
    (tmp_path / "system.json").write_text(
        '{"system": "another", "config": {}, "state": {}}', encoding="utf-8"
    )
    with pytest.raises(UsageError, match="is a checkpoint of 'another'"):
        type(system).load(tmp_path)
    with pytest.raises(UsageError, match="is not a checkpoint"):
        type(system).load(tmp_path / "nowhere")


@pytest.mark.parametrize("kind", ODD)
def test_odd_examples_are_summarized(kind: str, system: System) -> None:
    """Whatever an example lacks, or has too much of, it gets a summary, alone and next to others."""
    odd = ODD[kind]
    (alone,) = summarize(system, [odd])
    in_batch = summarize(system, [TEST[4], odd])
    assert (alone.id, alone.text) == ("odd", in_batch[1].text)


EXTRACTORS = {"ea", "seal", "etads", "pagesum", "hierarchical_transformer"}


def test_who_extracts() -> None:
    """These systems extract, as the guide says, and no other neural one."""
    assert {
        name for name in NAMES if registry.config_of(name)().capabilities.extracts
    } == EXTRACTORS


def check_extract(example: Example, text: str, length: int) -> None:
    """Check that an extract has sentences of the source in their order, one of them cut, within the length."""
    sentences, lines, cut = iter(example.sentences()), text.split("\n") if text else [], 0
    for line in lines:
        found = next(
            one.split() for one in sentences if one.split()[: len(line.split())] == line.split()
        )
        cut += len(found) > len(line.split())
    assert cut <= 1
    assert count_words(lines) <= length


def skip_unless_it_extracts(system: System) -> None:
    if not system.config.capabilities.extracts:
        assert system.config.name not in EXTRACTORS
        pytest.skip("does not extract")


@pytest.mark.parametrize("kind", ODD)
def test_extracts_of_odd_examples_are_text_of_the_source(kind: str, system: System) -> None:
    """The extract of an odd example is text of the source, alone and in a batch."""
    skip_unless_it_extracts(system)
    (alone,) = system.summarize([ODD[kind]], EXTRACT)
    together = list(system.summarize([TEST[4], ODD[kind]], EXTRACT))
    assert (alone.id, alone.text) == ("odd", together[1].text)
    check_extract(ODD[kind], alone.text, 7)


def test_extracts_have_the_wanted_words(system: System) -> None:
    """Where the source is long enough, an extract has exactly the wanted words, alone as in a batch."""
    skip_unless_it_extracts(system)
    together = list(system.summarize(TEST, EXTRACT))
    for example, summary in zip(TEST, together, strict=True):
        check_extract(example, summary.text, 7)
        assert count_words([summary.text]) == 7
        assert next(iter(system.summarize([example], EXTRACT))).text == summary.text


@pytest.mark.parametrize(
    "kind", ["no title, no query", "title and query", "a one-word sentence", "no text at all"]
)
def test_a_short_text_is_its_own_extract(kind: str, system: System) -> None:
    """Of a text with fewer words than the length, also of one sentence or none, the extract is the whole."""
    skip_unless_it_extracts(system)
    (summary,) = system.summarize([ODD[kind]], replace(EXTRACT, extract_length="100"))
    assert summary.text == "\n".join(ODD[kind].sentences())


def test_what_is_not_read_is_not_extracted(system: System) -> None:
    """Of 500 documents only those that were read are in an extract of any length."""
    skip_unless_it_extracts(system)
    (summary,) = system.summarize([ODD["many documents"]], replace(EXTRACT, extract_length="9999"))
    assert summary.truncation is not None
    words, seen = count_words([summary.text]), summary.truncation.words_seen
    assert 0 < words <= 2 * seen  # each of the sentences has two words, and may be read in part
    assert summary.truncation.tokens_seen < 500


@pytest.mark.parametrize("name", NAMES)
def test_odd_examples_are_learned_from(name: str, tmp_path: Path) -> None:
    """A system that was trained on odd examples alone summarizes each of them, alone as in a batch."""
    odd = [replace(example, id=kind) for kind, example in ODD.items()]
    system = fit_tiny(name, tmp_path, ToySplit("train", odd, multi_document=True))
    texts = [one.text for one in summarize(system, odd)]
    assert [summarize(system, [example])[0].text for example in odd] == texts


@pytest.mark.parametrize("name", NAMES)
def test_it_learns(name: str, tmp_path: Path) -> None:
    """In forty steps the loss of a neural system falls by a third."""
    if not issubclass(registry.systems.load(name), NeuralSystem):
        return
    plain = {"rank": "none", "source_loss": False, "dropout": 0.0}
    known = registry.systems.load(name).Config.__dataclass_fields__
    system = build_tiny(name, **{key: value for key, value in plain.items() if key in known})
    recipe = tiny_recipe(max_steps=40)
    report = system.fit(FitContext(ToySplit.of("train", 24), None, recipe, ArtifactCache(tmp_path)))
    assert report.last_loss < 0.67 * report.first_loss


def test_the_ledger_balances(system: System) -> None:
    """What was cut is never more than there was, in tokens and in words, and no count is negative."""
    for summary in summarize(system, [*TEST, *ODD.values()]):
        if (ledger := summary.truncation) is not None:
            for unit in ("tokens", "words"):
                cuts = [getattr(cut, unit) for cut in ledger.cuts]
                assert 0 <= sum(cuts) <= getattr(ledger, unit)
                assert min(cuts, default=0) >= 0


def test_what_it_says_it_would_read_is_what_it_reads(
    system: System, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Ready to read, without training, a system tells the ledgers of its summaries; or nothing, as one without any."""
    name, folder = system.config.name, tmp_path_factory.getbasetemp() / "conformance"
    unfitted, train = build_tiny(name), ToySplit.of("train", 24)
    unfitted.prepare(
        FitContext(
            train,
            ToySplit.of("validation", 6, start=24),
            tiny_recipe(max_steps=4),
            ArtifactCache(folder),
        )
    )
    for example in [*TEST, *ODD.values()]:
        (summary,) = summarize(system, [example])
        assert unfitted.ledgers(example) == system.ledgers(example)
        assert unfitted.ledgers(example)[0] in (summary.truncation, None)
    targets = [ledger for _, ledger in map(unfitted.ledgers, train) if ledger is not None]
    assert all(0 <= ledger.tokens_seen <= ledger.tokens for ledger in targets)


def test_only_an_oracle_sees_the_references(system: System) -> None:
    """Other references change a summary only where the system says that it is an oracle."""
    changed = [replace(example, references=(("entirely", "other words"),)) for example in TEST]
    same = [one.text for one in summarize(system, changed)] == [
        one.text for one in summarize(system, TEST)
    ]
    assert same or system.config.capabilities.oracle


def test_evidence_is_whole(system: System) -> None:
    """Evidence is there where it is asked for and kept, alone as in a batch, and its axes fit its arrays and texts."""
    together = [one.evidence for one in summarize(system, TEST)]
    assert [one is not None for one in together] == [
        system.config.capabilities.keeps_evidence
    ] * len(TEST)
    assert all(
        one.evidence is None for one in system.summarize(TEST, replace(GREEDY, evidence="none"))
    )
    for example, evidence in zip(TEST, together, strict=True):
        if evidence is None:
            continue
        alone = summarize(system, [example])[0].evidence
        assert alone is not None
        assert alone.texts == evidence.texts
        assert set(evidence.axes) == set(evidence.arrays)
        assert "unit" in evidence.texts
        for name, array in evidence.arrays.items():
            axes = evidence.axes[name]
            assert set(axes) <= set(AXES)
            shape = dict(zip(axes, array.shape, strict=True))
            assert all(
                shape.get(axis, len(texts)) == len(texts) for axis, texts in evidence.texts.items()
            )
            np.testing.assert_allclose(alone.arrays[name], array, rtol=1e-4, atol=1e-5)


def test_evidence_of_the_reference_is_there_where_it_is_asked_for(system: System) -> None:
    """Asking what is looked at for the reference changes no summary; a system that keeps it has it on its own axis."""
    asked = list(system.summarize(TEST, replace(GREEDY, reference_evidence=True)))
    assert asked == summarize(system, TEST)
    for summary in asked:
        axes = summary.evidence.axes.values() if summary.evidence is not None else ()
        assert any(REFERENCE_AXIS in of_array for of_array in axes) == (
            system.config.capabilities.keeps_evidence
            and system.config.capabilities.keeps_reference_evidence
        )

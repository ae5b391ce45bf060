"""GovReport: the release's nested sections and lists, its rows as JSON lines, and the hub's copy."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.json_files import write_json
from support.reading import read_texts, reading_problem

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Document, Example, Section
from longsumbench.corpora.gov_report import gov_report_example, gov_report_hub_example
from longsumbench.corpora.loading.fields import BadRow
from longsumbench.corpora.loading.rows import thinned_examples

read = partial(read_texts, "gov_report")
problem = partial(reading_problem, "gov_report")


def section(title: str | None, *paragraphs: str, below: Any = ()) -> dict[str, Any]:
    """A section of the release."""
    return {"section_title": title, "paragraphs": list(paragraphs), "subsections": list(below)}


# A report of the Congressional Research Service, with sections on three levels
CRS = """{"title": "On roads", "summary": ["It began. It ended.", " ", "Nobody paid."], "reports":
  {"section_title": "", "paragraphs": [], "subsections": [
    {"section_title": "Introduction", "paragraphs": ["It began."], "subsections": []},
    {"section_title": "Background", "paragraphs": [], "subsections": [
      {"section_title": "Funding", "paragraphs": ["It cost $5. Too much."], "subsections": [
        {"section_title": "2019", "paragraphs": ["More."], "subsections": []}]}]}]}}"""
# A report of the Government Accountability Office: a letter with sections below it, and an appendix
GAO = """{"title": "Roads", "url": "https://gao.gov/1", "fastfact": ["Short."],
  "highlight": [
    {"section_title": "Why GAO Did This Study", "paragraphs": ["Roads are old."], "subsections": []},
    {"section_title": "What GAO Found", "paragraphs": ["They are bad. Very bad."], "subsections": []},
    {"section_title": "What GAO Recommends", "paragraphs": ["Mend them.", "Agreed."], "subsections": []}],
  "report": [
    {"section_title": "Letter", "paragraphs": ["Dear Sir:", "We wrote."], "subsections": [
      {"section_title": "Background", "paragraphs": ["Roads are old."], "subsections": []}]},
    {"section_title": "Appendix I", "paragraphs": ["We counted."], "subsections": []}]}"""


def crs(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {"id": f"R{number}", **json.loads(CRS), **changes}


def gao(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {"id": f"GAO-{number}", **json.loads(GAO), **changes}


CRS_SECTIONS = (
    Section("Introduction", (("It began.",),)),
    Section("Background > Funding", (("It cost $5.", "Too much."),)),
    Section("Background > Funding > 2019", (("More.",),)),
)
GAO_SECTIONS = (
    Section("Background", (("Roads are old.",),)),
    Section("Appendix I", (("We counted.",),)),
)


def sections(row: dict[str, Any]) -> tuple[Section, ...]:
    return thinned_examples(gov_report_example(row))[0].example.documents[0].sections


def write(root: Path, **splits: list[dict[str, Any]]) -> Path:
    """Write a release that has the reports of each split."""
    for folder in ("crs", "gao", "split_ids"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for split, rows in splits.items():
        ids = {"crs": "", "gao": ""}
        for row in rows:
            agency = "gao" if "highlight" in row else "crs"
            write_json(root / agency / f"{row['id']}.json", row)
            ids[agency] += f"{row['id']}\n"
        for agency, lines in ids.items():
            (root / "split_ids" / f"{agency}_{split}.ids").write_text(lines)
    return root


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Three reports to train on, and two in each of the other splits."""
    rows = {"train": [crs(1), crs(2), gao(1)], "valid": [crs(3), gao(2)], "test": [gao(3), crs(4)]}
    return write(tmp_path / "gov-report", **rows)


def test_a_section_is_named_by_the_path_of_headings() -> None:
    """A section is named by the path of headings down to it, and one without paragraphs of its own is none."""
    reference = ("It began.", "It ended.", "Nobody paid.")
    expected = Example("R1", "On roads", None, (Document(None, CRS_SECTIONS),), (reference,))
    assert gov_report_example(crs()) == expected
    row = crs()
    assert gov_report_example({**row, "reports": None, "report": row["reports"]}) == expected
    assert gov_report_example(crs(reports=[row["reports"]])) == expected


def test_letter_and_recommendations_are_left_out_and_counted() -> None:
    """The letter's paragraphs and the recommendations are left out and counted, what is below the letter moves up."""
    reference = ("Roads are old.", "They are bad.", "Very bad.")
    example = Example(
        "GAO-1", "Roads", None, (Document("https://gao.gov/1", GAO_SECTIONS),), (reference,)
    )
    assert gov_report_example(gao()) == (
        example,
        {"letter paragraphs": 2, "recommendation paragraphs": 2},
    )


def test_a_report_with_nothing_else() -> None:
    """A letter without anything below it stays, and recommendations without other highlights."""
    row = gao(
        report=[section("Letter", "We wrote.")],
        highlight=[section("What GAO Recommends", "Mend them.")],
    )
    ((example, left_out),) = thinned_examples(gov_report_example(row))
    assert example.documents[0].sections == (Section("Letter", (("We wrote.",),)),)
    assert example.references == (("Mend them.",),)
    assert left_out == {"letter paragraphs": 0, "recommendation paragraphs": 0}


HEADINGS = st.sampled_from(["", "A", "B c", "Letter"])
TREES = st.recursive(
    st.builds(section, HEADINGS, st.text("ab. ", min_size=1)),
    lambda below: st.builds(
        lambda title, texts, deeper: section(title, *texts, below=deeper),
        HEADINGS,
        st.lists(st.text("ab. "), max_size=3),
        st.lists(below, max_size=3),
    ),
    max_leaves=12,
)


def words_below(item: dict[str, Any]) -> list[str]:
    """The words of a section and those below it, in reading order, by plain recursion."""
    own = [word for paragraph in item["paragraphs"] for word in paragraph.split()]
    return own + [word for below in item["subsections"] for word in words_below(below)]


@given(TREES)
def test_nothing_of_a_nested_report_is_lost(tree: dict[str, Any]) -> None:
    """Every word is there in reading order, and no section is empty."""
    words = words_below(tree)
    if not words:
        with pytest.raises(BadRow, match="the report is empty"):
            gov_report_example(crs(reports=tree))
        return
    example = thinned_examples(gov_report_example(crs(reports=tree)))[0].example
    assert " ".join(example.sentences()).split() == words
    assert all(section.paragraphs for section in example.documents[0].sections)


def test_the_lists_of_a_release_decide_splits_and_order(
    release: Path, cache: ArtifactCache
) -> None:
    """The lists say the splits; reports of the agencies come in turn; the folder above it will do, too."""
    texts = read(release, cache)
    train, validation, test = (split.ids for split in texts.splits.values())
    assert (train, validation, test) == (["R1", "GAO-1", "R2"], ["R3", "GAO-2"], ["R4", "GAO-3"])
    assert texts.splits["test"][0].documents[0].sections == CRS_SECTIONS
    assert texts.metadata["files"][:2] == ["split_ids/crs_train.ids", "split_ids/gao_train.ids"]
    assert texts.metadata["published"] == "2021-04"
    assert str(release) not in json.dumps(dict(texts.metadata))
    assert read(release.parent, cache).fingerprint == texts.fingerprint
    assert read(release, cache, limit=2).splits["train"].ids == ["R1", "GAO-1"]


def test_what_is_no_release_is_named(release: Path, cache: ArtifactCache) -> None:
    """A list without the other agency's, two for one split, an empty split, or no lists at all is each said plainly."""
    lists = release / "split_ids"
    (lists / "gao_test.ids").rename(lists / "kept")
    expected = f"{lists / 'crs_test.ids'}: no such list of the other agency; add it"
    assert problem(release, cache).startswith(expected)
    (lists / "gao_test.ids").write_text("")
    assert read(release, cache).splits["test"].ids == ["R4"]
    (lists / "crs_test.ids").write_text("\n")
    assert "the lists of this split are empty" in problem(release, cache)
    assert "no folder split_ids with crs and gao" in problem(release / "crs", cache)


def test_a_line_of_a_row_of_the_hub_is_a_paragraph() -> None:
    """So it is of the report; of the summary, lines end sentences."""
    row = {"id": "a", "report": "A b. C d.\n\n E f.", "summary": "It is.\nSo."}
    document = Document(None, (Section(None, (("A b.", "C d."), ("E f.",))),))
    expected = Example("a", None, None, (document,), (("It is.", "So."),))
    assert gov_report_hub_example(row) == expected

"""GovReport: reports of two agencies of the US Congress → their summaries (Huang et al. 2021).

Paper: https://aclanthology.org/2021.naacl-main.112. The agencies are the Congressional Research Service (CRS) and the
Government Accountability Office (GAO). Their summaries precede the reports. Three sources:

* the hub (17,517, 973 and 973 reports; the release's lists name 17,519, 974 and 973): a copy in columns report and
  summary, without headings;
* the release at `dataset.path=`: the folder with `crs/ID.json`, `gao/ID.json`, and the ids, one per line, in
  `split_ids/crs_train.ids`, `crs_valid.ids`, `crs_test.ids`, and the same for `gao`;
* JSON lines with rows of either kind at `dataset.path=`.

These fields of a released report are read:

    CRS  id, title?, summary [paragraph], reports {section_title, paragraphs [text], subsections [reports]}
    GAO  id, title?, url?, highlight [{section_title, paragraphs}], report [{section_title, paragraphs, subsections}]

Nested sections become a flat list in reading order, one entry for each section that has paragraphs. Its name is the
path of headings ("Background > Funding"), so the nesting remains readable.

As in the paper, two parts of a GAO report are left out and counted: the paragraphs of "Letter", and "What GAO
Recommends" of the highlights. The subsections of "Letter" stay and move up a level. Each part stays if the text has
nothing else.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

from longsumbench.core import (
    Corpus,
    Document,
    Entry,
    Example,
    Hub,
    PartialExample,
    Read,
    Row,
    Section,
    Sentences,
    Source,
)
from longsumbench.corpora.loading import fields, files, text_files
from longsumbench.errors import DataError

_AGENCIES = ("crs", "gao")
_SPLIT_IDS = "split_ids"
# the folder in the packed release
_RELEASE_FOLDER = "gov-report"
_PATH_SEPARATOR = " > "
_LETTER, _RECOMMENDATIONS = "Letter", "What GAO Recommends"
_LEFT_OUT = {
    _LETTER: "letter paragraphs",
    _RECOMMENDATIONS: "recommendation paragraphs",
}  # names in the record


def gov_report_hub_example(row: Row) -> Example:
    """Turn one row of the hub's copy into an Example. Each line is a paragraph."""
    report = fields.plain_document(fields.line_paragraphs(fields.text_in(row, "report")))
    summary = fields.line_paragraphs(fields.text_in(row, "summary"))
    return _report_example(row, report, summary)


def gov_report_example(row: Row) -> Example | PartialExample:
    """Turn one report of the release, or one row of the hub's copy, into an Example."""
    if isinstance(row.get("report"), str):
        return gov_report_hub_example(row)
    if row.get("highlight") is None:
        return _from_crs(row)
    if row.get("summary") is not None:
        raise fields.BadRow("the fields 'summary' and 'highlight' are both given; give one of them")
    return _from_gao(row)


class _Part(NamedTuple):
    """A section of a nested report, without its subsections; `name` is the path of headings."""

    name: str
    heading: str
    paragraphs: fields.Paragraphs


def _from_crs(row: Row) -> Example:
    # the README of the release says "report"
    field = "report" if row.get("reports") is None else "reports"
    report = row.get(field)
    parts = _report_parts({field: [report] if isinstance(report, dict) else report}, field)
    return _report_example(row, _report_document(parts), fields.listed_paragraphs(row, "summary"))


def _from_gao(row: Row) -> PartialExample:
    report, letter = _without(_LETTER, _report_parts(row, "report", skip=_LETTER))
    parts, recommended = _without(_RECOMMENDATIONS, _report_parts(row, "highlight"))
    document = _report_document(report, fields.optional_in(row, "url"))
    example = _report_example(row, document, chain.from_iterable(part.paragraphs for part in parts))
    return PartialExample(
        example, {_LEFT_OUT[_LETTER]: letter, _LEFT_OUT[_RECOMMENDATIONS]: recommended}
    )


def _report_parts(row: Row, field: str, skip: str | None = None) -> list[_Part]:
    """Return nested sections in reading order; subsections of `skip` move up a level."""
    parts: list[_Part] = []
    parents: tuple[str, ...] = ()
    stack = [(section, parents) for section in reversed(fields.objects_in(row, field))]
    while stack:
        item, parents = stack.pop()
        heading = " ".join((fields.any_text_in(item, "section_title") or "").split())
        path = (*parents, heading) if heading else parents
        paragraphs = fields.listed_paragraphs(item, "paragraphs", required=False)
        parts.append(_Part(_PATH_SEPARATOR.join(path), heading, paragraphs))
        subsections = fields.objects_in(item, "subsections", required=False)
        stack += [
            (section, parents if heading == skip else path) for section in reversed(subsections)
        ]
    return parts


def _without(heading: str, parts: list[_Part]) -> tuple[list[_Part], int]:
    """Return the other parts, and the number of paragraphs left out.

    If the others have no text, return all parts and 0.
    """
    remaining = [part for part in parts if part.heading != heading]
    if not any(part.paragraphs for part in remaining):
        return parts, 0
    return remaining, sum(len(part.paragraphs) for part in parts if part.heading == heading)


def _report_document(parts: list[_Part], source: str | None = None) -> Document:
    with_text = (part for part in parts if part.paragraphs)
    sections = (Section(part.name or None, part.paragraphs) for part in with_text)
    return Document(source, tuple(sections))


def _report_example(row: Row, document: Document, paragraphs: Iterable[Sentences]) -> Example:
    """Return a report as an Example; the paragraphs are those of its summary."""
    summary = tuple(chain.from_iterable(paragraphs))
    if not any(document.sentences()):
        raise fields.BadRow("the report is empty", fields.LEAVE_OUT)
    if not summary:
        raise fields.BadRow("the summary is empty", fields.LEAVE_OUT)
    identity, title = fields.id_in(row, "id"), fields.optional_in(row, "title")
    return Example(identity, title, None, (document,), (summary,))


def _reports_source(path: Path) -> Source | None:
    """Return the reports that the lists name; others are ignored.

    They come in the order of the lists, alternating between the agencies, so a limit takes equally many of both.

    The result is None for a file, and for a folder that has only JSON lines.
    """
    if not path.is_dir():
        return None
    for root in (path, path / _RELEASE_FOLDER):
        if (root / _SPLIT_IDS).is_dir():
            break
    else:
        if files.has_split_files(path):
            return None
        problem = f"no folder {_SPLIT_IDS} with crs and gao, and no train, validation or test .jsonl in it"
        raise DataError(problem, path)
    lists = _find_lists(root / _SPLIT_IDS)
    reports: list[Path] = []
    for agency in _AGENCIES:
        reports += sorted((root / agency).glob("*.json"))
    entries = partial(_report_entries, root, lists, frozenset(reports))
    return files.local_source(root, list(chain.from_iterable(lists.values())), entries, reports)


def _find_lists(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Return split → the lists of both agencies."""
    crs, gao = (_find_agency_lists(agency, folder) for agency in _AGENCIES)
    if not crs and not gao:
        problem = "none of the lists crs_train.ids, gao_train.ids …; fetch the release again"
        raise DataError(problem, folder)
    problem = "no such list of the other agency; add it, empty if there are no such reports"
    return files.pair_splits(crs, gao, problem)


def _find_agency_lists(agency: str, folder: Path) -> dict[str, Path]:
    lists = folder.glob(f"{agency}_*.ids")
    return files.one_per_split((file.stem.removeprefix(f"{agency}_"), file) for file in lists)


def _report_entries(
    root: Path, lists: dict[str, tuple[Path, Path]], reports: frozenset[Path], full: set[str]
) -> Iterator[Entry]:
    for split, pair in lists.items():
        alternating = zip_longest(*map(_ids_in, pair))
        ids = list(filter(None, chain.from_iterable(alternating)))
        if not ids:
            raise DataError("the lists of this split are empty", pair[0])
        for listed, number, identity in ids:
            report = root / listed.stem.partition("_")[0] / f"{identity}.json"
            if report in reports:
                yield Entry(split, partial(_read_report, report, identity), report)
            else:
                problem = f"no {report.parent.name}/{report.name}; {fields.LEAVE_OUT}"
                refuse = partial(fields.refuse_row, "the report is missing", problem)
                yield Entry(split, refuse, listed, number)


def _ids_in(listed: Path) -> Iterator[tuple[Path, int, str]]:
    for number, name in text_files.names_in_list(listed):
        yield listed, number, name.decode("utf-8", "replace")


def _read_report(path: Path, identity: str) -> Read:
    return gov_report_example({**text_files.row_in_file(path), "id": identity})


CORPUS = Corpus(
    name="gov_report",
    title="GovReport: reports to the US Congress → summaries: from the hub, "
    "or with section names by dataset.path=FOLDER of crs, gao and split_ids.",
    licence="CC BY 4.0, says its authors' copy on the hub; the reports are works of the US government",
    homepage="https://gov-report-data.github.io",
    published="2021-04",
    hub=Hub("ccdv/govreport-summarization", config="document"),
    from_hub_row=gov_report_hub_example,
    from_file_row=gov_report_example,
    release=_reports_source,
)

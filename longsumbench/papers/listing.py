"""The list of all tables and figures: their scales, the numbers that the papers print, and what was run here."""

from longsumbench.formatting import format_count, format_duration, plain_table
from longsumbench.papers.artifacts import Artifact, read_artifacts
from longsumbench.papers.kinds import PLANNED_ONLY
from longsumbench.papers.numbers.printed import read_printed_table
from longsumbench.papers.stored_pages import MadePage, read_written
from longsumbench.runs.results import Results

_REFERENCE = "reference"  # in the results folder of a clone: what the suite publishes


def render_artifacts(results: Results) -> str:
    """Render the list for the terminal: two lines for each artifact, with its page here, or that of the suite.

    Raises:
        DataError: a file of `conf/paper`, or of the results, is damaged.
    """
    rows = list[list[str]]()
    for name, artifact in read_artifacts().items():
        printed = len(read_printed_table(artifact))
        status = describe_status(results, artifact)
        facts = [f"scale={'|'.join(scales_of(artifact))}"]
        facts += [format_count(printed, "printed number")] if printed else []
        published = "" if status else describe_status(Results(results.root / _REFERENCE), artifact)
        facts += [f"made here: {status}"] if status else []
        facts += [f"published: {published}"] if published else []
        rows += [[name, artifact.title], ["", "; ".join(facts)]]
    return plain_table(rows)


def describe_status(results: Results, artifact: Artifact) -> str:
    """Describe the files of an artifact in a results folder: scale, runs, verdicts; empty without files."""
    written = read_written(results, artifact.name)
    if written is None:
        return ""
    return ", ".join(filter(None, [written.scale, _runs(artifact, written), written.describe_verdicts()]))


def _runs(artifact: Artifact, written: MadePage) -> str:
    finished, every = len(written.runs), len(written.runs) + len(written.missing)
    if artifact.kind in PLANNED_ONLY or not every:
        return ""
    counted = format_count(every, "run") if finished == every else f"{finished} of {format_count(every, 'run')}"
    return f"{counted}, {format_duration(sum(written.runs.values()))}" if finished else counted


def scales_of(artifact: Artifact) -> list[str]:
    """Return the scales of an artifact, its default first."""
    return [artifact.default, *(scale for scale in artifact.scales if scale != artifact.default)]

"""The generated parts of docs/papers.md: all claims, and all tables and figures with costs and what was run here."""

import re

from longsumbench.formatting import format_count
from longsumbench.papers.artifacts import PAPER, read_artifacts
from longsumbench.papers.cost import ArtifactCost, read_costs
from longsumbench.papers.index import PICTURE, claims_table
from longsumbench.papers.listing import describe_status, scales_of
from longsumbench.papers.numbers.printed import read_printed_table
from longsumbench.report.tables import escape_markdown
from longsumbench.runs.results import Results

_LINKED = "../results/reference/papers"  # from docs/
_OTHER_NUMBERS = {"sizes": "sizes", "dimensions": "settings"}  # kind → what is printed instead of scores
_COLUMNS = ("", "shows", "scales", "printed numbers", "run here", "at paper scale")
_GENERATED = re.compile(r"(<!-- made of results: (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def papers_page(text: str, results: Results) -> str:
    """Return the text of docs/papers.md with its generated parts.

    Args:
        text: the page, with other or without generated parts.
        results: the results folder of the published pages and estimated costs.

    Raises:
        DataError: a file of the results folder is damaged.
    """
    parts = {"tables": _list_artifacts, "claims": _show_claims}
    return _GENERATED.sub(lambda found: f"{found[1]}\n{parts[found[2]](results)}\n", text)


def _show_claims(results: Results) -> str:
    picture = f"![The claims of each paper by outcome]({_LINKED}/{PICTURE})"
    return f"{picture}\n\n{claims_table(results, f'{_LINKED}/')}"


def describe_cost(cost: ArtifactCost | None) -> str:
    """Describe runs and hours at paper scale: "12 runs, about 680 h on one A100"."""
    if cost is None:
        return "not estimated"
    if not cost.runs:
        return "no runs of systems"
    counted = cost.runs - cost.uncounted
    parts = [format_count(cost.runs, "run")]
    if counted and cost.hours:
        parts.append(f"{_format_hours(cost.hours)} on one A100")
    elif counted:
        parts.append("minutes")
    if cost.uncounted:
        parts.append(f"without {cost.uncounted} of public checkpoints")
    return ", ".join(parts)


def _list_artifacts(results: Results) -> str:
    costs = read_costs(results)
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    for name, artifact in read_artifacts().items():
        status = describe_status(results, artifact)
        cells = [
            f"[{name}]({_LINKED}/{name}.md)" if status else name,
            escape_markdown(f"{artifact.prints}: {artifact.title}"),
            ", ".join(scales_of(artifact)),
            _OTHER_NUMBERS.get(artifact.kind) or str(len(read_printed_table(artifact)) or "none"),
            status or "not yet",
            describe_cost(costs.get(name)) if PAPER in artifact.scales else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _format_hours(hours: float) -> str:
    if hours < 1:
        return "an hour or less"
    days = f" ({hours / 24:,.0f} days)" if hours >= 48 else ""
    return f"about {hours:,.0f} h{days}"

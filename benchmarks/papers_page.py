"""The generated parts of docs/papers.md: how many claims hold, and all tables and figures.

    python benchmarks/papers_page.py [--check | --write] [--results-dir results/reference]
    python benchmarks/papers_page.py --remake TEXTS [--skip NAME …] [--results-dir results/reference]
    python benchmarks/papers_page.py --verify [--results-dir results/reference]

Without an option the page is printed. --check compares it with the file, and checks that each verdict rests on a
statement made before its runs, or has a note; it needs git. --write writes the file. It shows the pages in
results/reference/papers. --verify scores the outputs again of all runs behind verdicts that were stated before them.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from longsumbench.exchange.verify import verify_runs
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.tables import escape_markdown
from longsumbench_reproduction.papers.command import paper
from longsumbench_reproduction.papers.page_files import PICTURE, summarize_outcomes
from longsumbench_reproduction.papers.page_model import read_all_written, read_written
from longsumbench_reproduction.papers.paper_tables import find_paper_table, read_paper_tables
from longsumbench_reproduction.papers.published_rows import read_printed_table
from longsumbench_reproduction.papers.statements import Fixed, find_problems, find_statement

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/papers.md"
CONF = ROOT / "reproduction/conf/paper"
_LINKED = "../results/reference/papers"  # from docs/
_OTHER_NUMBERS = {
    "sizes": "sizes",
    "dimensions": "settings",
}  # kind → what is printed instead of scores
_FEWEST_STATED = 36  # runs
_COLUMNS = ("", "shows", "scales", "printed numbers", "run here")
_GENERATED = re.compile(r"(<!-- made of results: (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
FOLDERS = {
    "peer_reviews": "neurips_metareview",
    "openstax_modules": "openstax",
}  # dataset → folder of its texts


def remake(results: Path, texts: Path, skipped: Collection[str] = ()) -> None:
    """Make all pages of a results folder again from their runs, with the texts of their command; train nothing.

    But Table 1 of the Hierarchical Transformer trains its rankers, unless they are cached.
    """
    for page in read_all_written(Results(results)):
        if page.name in skipped:
            continue
        names = [
            word.partition("=")[0].removeprefix("path.")
            for word in page.words
            if word.startswith("path.")
        ]
        paths = {f"path.{name}": texts / FOLDERS.get(name, name) for name in names}
        if missing := [str(path) for path in paths.values() if not path.exists()]:
            print(f"{page.name}: not made again, {', '.join(missing)} is missing")
            continue
        others = [word for word in page.words if word.partition("=")[0] not in paths]
        started = time.monotonic()
        words = [f"scale={page.scale}", *others, *(f"{key}={path}" for key, path in paths.items())]
        paper(page.name, words, run=False, results_dir=results)
        print(f"{page.name}: {time.monotonic() - started:.1f} s", flush=True)


def main() -> None:
    """Print the page, compare it with the file, or write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--results-dir", type=Path, default=ROOT / "results/reference", help="where the pages are"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--check", action="store_true", help="exit code 1 if the file is another one"
    )
    action.add_argument("--write", action="store_true", help="write the file")
    action.add_argument(
        "--remake", type=Path, metavar="TEXTS", help="make all pages again; TEXTS has the corpora"
    )
    action.add_argument("--verify", action="store_true", help="exit code 1 if scores are others")
    parser.add_argument(
        "--skip", nargs="+", default=(), metavar="NAME", help="pages that are not made again"
    )
    options = parser.parse_args()
    if options.remake:
        remake(options.results_dir, options.remake, options.skip)
        return
    if options.verify:
        sys.exit("\n".join(verify_stated(Results(options.results_dir))) or None)
    before = PAGE.read_text(encoding="utf-8")
    text = papers_page(before, Results(options.results_dir))
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    elif options.check:
        problems = [*check_statements(Results(options.results_dir))]
        if before != text:
            problems.append("docs/papers.md is not current: use --write")
        if f"their {len(read_paper_tables())} tables, figures and sections" not in text:
            problems.append("docs/papers.md has another number of tables, figures and sections")
        sys.exit("\n".join(problems) or None)
    else:
        print(text)


def verify_stated(results: Results) -> Iterator[str]:
    """Yield what does not agree in the runs behind verdicts that were stated before; their texts are generated."""
    names = dict[str, None]()
    for page in read_all_written(results):
        for claim in page.counted:
            if claim.stated.endswith("run after it"):
                names |= dict.fromkeys(claim.runs.split())
    if len(names) < _FEWEST_STATED:
        yield f"only {len(names)} runs are behind verdicts that were stated before"
    for folder, problems in verify_runs([results.find(name) for name in names]):
        yield from (f"{folder}: {problem}" for problem in problems)


def check_statements(results: Results) -> Iterator[str]:
    """Yield each verdict of the pages that does not rest on a statement made before its runs."""
    for page in read_all_written(results):
        paper_table = find_paper_table(page.name)
        for claim, outcome in zip(paper_table.claims_at(page.scale), page.claims, strict=True):
            if outcome.p_alone is None or outcome.withdrawn:
                continue
            statement = find_statement(paper_table, claim, page.scale)
            runs = [RunRecord.read(results.find(name)) for name in outcome.runs.split()]
            stated = None
            if statement and statement.commit:
                stated = read_commit(statement.commit, page.name)
            for problem in find_problems(statement, runs, read_content(page.name), stated):
                yield f"{page.name}, {outcome.says}: {problem}"


def read_content(name: str, text: str | None = None) -> dict[str, Any]:
    """Return a paper table as its YAML file has it, or as the text of an earlier file has it."""
    paper_name, _, short = name.partition("-")
    text = text or (CONF / f"{paper_name}.yaml").read_text(encoding="utf-8")
    content: Any = OmegaConf.to_container(OmegaConf.create(text))
    table: dict[str, Any] = content["artifacts"][short]
    return table


def read_commit(commit: str, name: str) -> Fixed | None:
    """Return what a commit of this repository states about a paper table; None if git does not know it."""
    path = f"{CONF.relative_to(ROOT)}/{name.partition('-')[0]}.yaml"
    try:
        time_of_commit = _ask_git("show", "-s", "--format=%cI", commit)
        text = _ask_git("show", f"{commit}:{path}")
    except subprocess.CalledProcessError:
        return None
    return Fixed(datetime.fromisoformat(time_of_commit.strip()), read_content(name, text))


def _ask_git(*words: str) -> str:
    command = ["git", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout


def papers_page(text: str, results: Results) -> str:
    """Return the text of docs/papers.md with its generated parts.

    Args:
        text: the page, with other or without generated parts.
        results: the results folder of the published pages.

    Raises:
        DataError: a file of the results folder is damaged.
    """
    parts = {"tables": _list_paper_tables, "claims": _show_claims}
    return _GENERATED.sub(lambda part: f"{part[1]}\n{parts[part[2]](results)}\n", text)


def _show_claims(results: Results) -> str:
    picture = f"![The claims of each paper by outcome]({_LINKED}/{PICTURE})"
    outcomes = summarize_outcomes(read_all_written(results))
    return f"{picture}\n\n{outcomes} [All claims and their outcomes]({_LINKED}/index.md).\n"


def _list_paper_tables(results: Results) -> str:
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    for name, paper_table in read_paper_tables().items():
        page = read_written(results, name)
        status = page.describe() if page else ""
        cells = [
            f"[{name}]({_LINKED}/{name}.md)" if status else name,
            escape_markdown(f"{paper_table.prints}: {paper_table.title}"),
            ", ".join(paper_table.scale_names),
            _OTHER_NUMBERS.get(paper_table.kind)
            or str(len(read_printed_table(paper_table)) or "none"),
            status or "not yet",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()

"""Hooks of the documentation: pages from outside docs/, notebooks, links between all pages, tables, the leaderboard.

A page says `<!-- generated: settings -->` where a table or list of GENERATORS is put.
"""

import base64
import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pandas as pd
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation
from mkdocs.structure.pages import Page
from omegaconf import OmegaConf

from longsumbench.conf import CONF
from longsumbench.core import catalogue, registry
from longsumbench.runs.results import Results

ROOT = Path(__file__).parents[1]
LEADERBOARD = "leaderboard/index.html"  # written after the other pages, as all files of its folder
SITE = {  # pattern of files in the repository → where the site has them; {} is the name, of a README its folder's
    "CONTRIBUTING.md": "extend/contributing.md",
    "CHANGELOG.md": "changelog.md",
    "models/README.md": "systems/index.md",
    "models/*/README.md": "systems/{}.md",
    "reproduction/models/*/README.md": "systems/{}.md",
    "results/README.md": "reference/results.md",
    "benchmarks/RESULTS.md": "findings/speed.md",
    "results/reference/leaderboard/*.*": "tables/{}",
    "results/reference/papers/claims.png": "papers/{}",
    "results/reference/papers/index.md": "leaderboard/papers.html",
    "results/reference/papers/*-*.md": "leaderboard/assets/papers/{stem}.html",
}
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))  # each becomes a page
LINK = re.compile(r"(!?)\[([^\]\[]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
WIDTH = {"COLUMNS": "120"}  # of help
FIGURES = ROOT / "results" / "reference" / "agreement"
RELEVANCE_AND_FACTS = ("relevance", "factual_consistency")
ANSWERS = ("coverage", "correctness", "overall")
JUDGED = {  # set → its texts, and the aspects that are shown
    "koh2022/arXiv": ("papers: arXiv", RELEVANCE_AND_FACTS),
    "longsciverify/arxiv": ("papers: arXiv, LongSciVerify", ("factuality",)),
    "longsciverify/pubmed": ("papers: PubMed, LongSciVerify", ("factuality",)),
    "koh2022/GovReport": ("reports", RELEVANCE_AND_FACTS),
    "kirstein_qmsum": ("meetings", ("number of errors (of 8)",)),
    "squality/3 systems": ("stories: two models and a person", ANSWERS),
    "squality/bart; bart-dpr": ("stories: two models", ANSWERS),
    "summeval_op": (
        "reviews",
        (
            *("relevance", "faithfulness", "aspect_coverage", "sentiment_consistency"),
            *("specificity", "coherence", "fluency"),
        ),
    ),
}
MEASURES = {  # column of the CSV → heading
    "rouge1_f": "R-1",
    "rouge2_f": "R-2",
    "rougeL_f": "R-L",
    "copied_bigrams": "copied bigrams",
    "entity_precision": "names",
    "number_precision": "numbers",
    "words": "words",
    "annotators": "people",
}
FAULT_METRICS = {
    "entity_precision": "names",
    "number_precision": "numbers",
    "rouge1_p": "R-1",
    "rouge2_p": "R-2",
    "rougeL_p": "R-L",
    "copied_bigrams": "copied bigrams",
    "copied_longest": "longest copy",
    "length_summary": "words",
}
FEW_SYSTEMS = 5  # τ within documents of fewer has few values
SEEN = 0.6  # AUC
MARKER = re.compile(r"<!-- generated: (\w+) -->")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of SITE, and a place for the leaderboard, so that pages can link to it."""
    files.append(File.generated(config, LEADERBOARD, content=""))
    for pattern, place in SITE.items():
        for path in sorted(ROOT.glob(pattern)):
            name = path.parent.name if path.name == "README.md" else path.name
            files.append(
                File.generated(config, place.format(name, stem=path.stem), abs_src_path=str(path))
            )
    for path in NOTEBOOKS:
        place = path.relative_to(ROOT / "docs").with_suffix("")
        text, pictures = notebook_page(path)
        files.append(File.generated(config, f"{place}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"{place.parent / name}", content=content))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Add the leaderboard to the tabs."""
    nav.items.append(Link("Leaderboard", LEADERBOARD))
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Write the site of the published results into the documentation."""
    from longsumbench.site.build import write_site

    write_site(Results(FIGURES.parent), Path(config.site_dir, LEADERBOARD).parent)


def notebook_page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return an executed notebook as Markdown, and its pictures by file name."""
    parts, pictures = [], {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{path.stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![What the cell draws]({name})")
            else:
                text = "".join(output.get("text", data.get("text/plain", ())))
                parts.append(f"```text\n{text.rstrip()}\n```")
    note = f'To run it yourself, download <a href="{path.name}" download>the notebook</a>.'
    return "\n\n".join([parts[0], note, *parts[1:]]), pictures


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files into links to pages of the site, and fill in what is generated."""
    pages = {Path(file.abs_src_path).resolve(): file.src_uri for file in files if file.abs_src_path}
    pages[ROOT / "README.md"] = "index.md"
    pages |= {path: str(path.relative_to(ROOT / "docs").with_suffix(".md")) for path in NOTEBOOKS}
    source = Path(page.file.abs_src_path or "")
    if page.file.src_uri.startswith(
        ("index", "tables/", "concepts/which-number", "concepts/metrics-with")
    ):
        page.meta["hide"] = ["toc"]  # room for wide tables

    def link(found: re.Match[str]) -> str:
        picture, text, address, anchor = found.groups(default="")
        target = (source.parent / address).resolve()
        if target in pages:
            return f"{picture}[{text}]({os.path.relpath(pages[target], Path(page.file.src_uri).parent)}{anchor})"
        return (
            text if target.exists() else found[0]
        )  # other files of the repository are no pages: no link

    return LINK.sub(link, MARKER.sub(lambda found: GENERATORS[found[1]](), markdown))


def printed(*words: str) -> str:
    """Return what `longsumbench` prints."""
    program = Path(sys.executable).with_name("longsumbench")
    command = [program, *words]
    environment = os.environ | WIDTH
    result = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)  # noqa: S603 - ours
    return result.stdout


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    cells = [
        [cell.replace("|", r"\|") for cell in row] for row in [header, ["---"] * len(header), *rows]
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def commands() -> str:
    """Return the help of each command."""
    parts = []
    for name in re.findall(
        r"^    (\w+) {2,}", printed("--help").partition("\ncommands:")[2], re.MULTILINE
    ):
        text = printed(name, "--help").partition("\nexit codes:")[0]
        usage, _, rest = text.partition("\n\n")
        parts.append(f"## longsumbench {name}\n\n```text\n{usage}\n\n{rest.strip()}\n```")
    return "\n\n".join(parts)


def exit_codes() -> str:
    """Return the exit codes that every help ends with."""
    text = " ".join(printed("--help").partition("exit codes: ")[2].split())
    return table(
        ["exit code", "meaning"],
        [list(pair) for pair in re.findall(r"(\d+) ((?:\([^)]*\)|[^,(])+)", text)],
    )


def names(kind: str) -> str:
    """Return what can be named, with a line about each."""
    return table(
        [kind.removesuffix("s"), ""],
        [[f"`{name}`", about] for name, about in catalogue.name_rows(kind)],
    )


def settings() -> str:
    """Return the settings of all systems."""
    return settings_table(catalogue.all_setting_rows())


def settings_of_systems() -> str:
    """Return the settings of each system."""
    parts = []
    for name in registry.systems.shipped():
        parts.append(
            f"### {name}\n\n{settings_table(catalogue.setting_rows(registry.load_config_class(name), 'model.'))}"
        )
    return "\n\n".join(parts)


def settings_table(rows: list[list[str]]) -> str:
    """Return settings as a table."""
    cells = [
        [f"`{name}`", f"`{default}`" if default else "", about] for name, default, about in rows
    ]
    return table(["setting", "default", "meaning"], cells)


def published_recipes() -> str:
    """Return the recipes of published checkpoints: what they set, and where that is from."""
    rows = []
    for path in sorted((CONF / "model" / "recipe").glob("*.yaml")):
        name, about = path.stem, catalogue.first_comment(path)
        recipe = OmegaConf.load(path)
        if checkpoint := OmegaConf.select(recipe, "model.checkpoint"):
            settings = [
                f"`{section}.{key}={value}`"
                for section in ("model", "train", "decode")
                for key, value in recipe.get(section, {}).items()
                if key not in ("name", "checkpoint")
            ]
            source = about.removeprefix(f"{checkpoint} on {recipe.dataset.name}: ")
            rows.append([f"`{name}`", f"`{checkpoint}`", "<br>".join(settings), source])
    return table(["recipe", "checkpoint", "settings", "source"], rows)


def datasets() -> str:
    """Return the datasets, with licence and home page."""
    rows = []
    for name in sorted(registry.corpora.shipped()):
        corpus = registry.corpora.load(name)
        source = (
            corpus.homepage if "://" in corpus.homepage else f"../../{corpus.homepage}"
        )  # from docs/reference/
        rows.append(
            [
                f"`{name}`",
                corpus.title,
                f"{corpus.licence} ([source]({source}))" if corpus.homepage else corpus.licence,
            ]
        )
    return table(["dataset", "what it holds", "licence"], rows)


def leaderboard() -> str:
    """Return the link to the leaderboard, which is no file of the repository."""
    what = "all published results, to sort, filter and compare, down to single runs and examples"
    return f"**[Leaderboard]({LEADERBOARD})**: {what}. It is what `longsumbench site` writes."


def agreement_with_people() -> str:
    """Return τ within documents of metrics and people, for each set and aspect."""
    rows = pd.read_csv(FIGURES / "agreement.csv").query(
        "level == 'within' and measure in @MEASURES"
    )
    cells = []
    for judged, (texts, aspects) in JUDGED.items():
        for aspect in aspects:
            chosen = rows[(rows["set"] == judged) & (rows["aspect"] == aspect)].set_index("measure")
            documents, systems = int(chosen["documents"].max()), int(chosen["systems"].max())
            size = f"{documents} × {systems}{'†' if systems < FEW_SYSTEMS else ''}"
            taus = [agreement_cell(chosen, measure, documents) for measure in MEASURES]
            cells.append([texts, aspect.replace("_", " "), size, *taus])
    return table(["texts", "aspect", "documents × systems", *MEASURES.values()], cells)


def agreement_cell(rows: pd.DataFrame, measure: str, documents: int) -> str:
    """Return τ and its interval, bold if that excludes 0 in half of the documents; empty if τ is undefined."""
    if measure not in rows.index or pd.isna(rows.loc[measure, "tau"]):
        return ""
    tau, low, high = (signed(rows.loc[measure, name]) for name in ("tau", "tau_lo", "tau_hi"))
    interval = f"<br><small>{low}&nbsp;to&nbsp;{high}</small>"
    defined = int(rows.loc[measure, "documents"])
    if 2 * defined < documents:
        return f"{tau}{interval}<br><small>{defined}&nbsp;documents</small>"
    clear = rows.loc[measure, "tau_lo"] > 0 or rows.loc[measure, "tau_hi"] < 0
    return f"{f'**{tau}**' if clear else tau}{interval}"


def signed(number: float) -> str:
    """Return a number with two digits and a minus sign, without a negative zero."""
    return f"{number:.2f}".replace("-0.00", "0.00").replace("-", "−")


def planted_faults() -> str:
    """Return the AUC of metrics for each kind of planted fault and corpus."""
    rows = pd.read_csv(FIGURES / "planted_faults.csv").query("metric in @FAULT_METRICS")
    cells = []
    for (fault, corpus), corpus_rows in rows.groupby(["fault", "corpus"]):
        areas = corpus_rows.set_index("metric")["auc"]
        values = [f"{areas[metric]:.2f}" for metric in FAULT_METRICS]
        bold = [f"**{value}**" if float(value) >= SEEN else value for value in values]
        cells.append([fault, f"`{corpus}`", str(corpus_rows["n"].max()), *bold])
    return table(["fault", "corpus", "n", *FAULT_METRICS.values()], cells)


GENERATORS = {
    "leaderboard": leaderboard,
    "commands": commands,
    "exit_codes": exit_codes,
    "settings": settings,
    "settings_of_systems": settings_of_systems,
    "datasets": datasets,
    "published_recipes": published_recipes,
    "agreement_with_people": agreement_with_people,
    "planted_faults": planted_faults,
    **{kind: partial(names, kind) for kind in ("rankers", "scales", "experiments")},
}

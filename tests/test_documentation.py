"""What the Markdown files name exists: commands, flags, settings, models, datasets, scales and experiments."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

from support.guides import BLOCK, INLINE, commands_in
from support.paths import ROOT

from longsumbench.cli.main import parse_words
from longsumbench.conf import CONF
from longsumbench.core import SECTIONS, RankerSettings, registry
from longsumbench.errors import UsageError
from longsumbench.runs.overrides import as_hydra

FOLDERS = (".", "docs/**", "models/**", "reproduction/**", "results", "benchmarks")
PAGES: list[Path] = []
for folder in FOLDERS:
    PAGES += (path for path in ROOT.glob(f"{folder}/*.md") if path.name != "CHANGELOG.md")
PAGES.sort()
LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)")
SETTING = re.compile(
    r"\b(model|dataset|train|decode|score|ranker)\.([a-z_]\w*)\b(?![./])(?=[^`\n]*`)"
)
# Of files, and functions of a model.py
ENDINGS = "py md csv json jsonl yaml confidences mix"
# Of CONTRIBUTING.md and how-to pages
ELSEWHERE = "last near letters bert-large-uncased scisumm first_sentences"
GROUPS = {"model": registry.systems, "dataset": registry.corpora}


def test_links_on_pages_lead_to_files() -> None:
    """Every relative link names a file or folder of the repository, so that it also works without the site."""
    for page in (*PAGES, ROOT / "CHANGELOG.md"):
        links = LINK.findall(page.read_text())
        assert (page, [link for link in links if not (page.parent / link).exists()]) == (page, [])


def test_pages_named_in_code_exist() -> None:
    """Help, messages, comments and YAML files name pages that are there."""
    files = list(CONF.rglob("*.yaml"))
    for folder in ("longsumbench", "models", "reproduction", "benchmarks", "tests"):
        files += (ROOT / folder).rglob("*.py")
    for path in files:
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text()):
            assert (ROOT / page).is_file(), (path, page)


def test_commands_on_pages_can_be_typed() -> None:
    """The parser takes every command with its flags, and every override is of a group or a setting that exists."""
    wrong = []
    for page in PAGES:
        for words in commands_in(page.read_text(), BLOCK, INLINE):
            try:
                options = parse_words(words)
                for word in options.overrides if options.command == "run" else ():
                    if not word.startswith("hydra") and not word.isupper():  # MODEL means words
                        as_hydra(word)
            except UsageError as problem:
                wrong.append(f"{page}: {shlex.join(words)}: {problem}")
    assert wrong == []


def test_settings_on_pages_exist() -> None:
    """Every setting that a page names is one of the suite's or of some system's."""
    schemas: list[tuple[str, type]] = [*SECTIONS.items(), ("ranker", RankerSettings)]
    schemas += (
        ("model", registry.systems.load(name).Config) for name in registry.systems.shipped()
    )
    known: set[tuple[str, str]] = set()
    for section, schema in schemas:
        known.update((section, item.name) for item in fields(schema))
    for page in PAGES:
        for section, name in SETTING.findall(page.read_text()):
            assert (section, name) in known or name in ENDINGS.split(), (page, section, name)


def test_names_on_pages_exist() -> None:
    """Every model, dataset, scale and experiment that a page chooses by name is there."""
    names = {group: {*table.targets(), *ELSEWHERE.split()} for group, table in GROUPS.items()}
    for group in ("scale", "experiment"):
        names[group] = {path.stem for path in (CONF / group).glob("*.yaml")}
    chosen = r"(?<![\w./-])(model|dataset|scale|experiment)=([a-z][\w-]*(?:,[a-z][\w-]*)*)(?![\w|])"
    for page in PAGES:
        for group, values in re.findall(chosen, page.read_text()):
            assert names[group].issuperset(values.split(",")), (page, group, values)

"""What is released: the extras, the image of the Dockerfile, one version everywhere."""

import re
import tomllib

from support.paths import ROOT

import longsumbench

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
IN_IMAGE = {
    line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
}


def test_all_has_what_users_can_add() -> None:
    """The extra `all` names every extra but those for work on the suite itself; `dev` has those that tests need."""
    listed = {
        name: set(re.findall(r"[a-z]+", "".join(EXTRAS[name]).partition("[")[2].partition("]")[0]))
        for name in ("all", "dev")
    }
    assert listed["all"] == EXTRAS.keys() - {"all", "dev", "docs"}
    assert listed["dev"] == listed["all"] - {"spacy"}


def test_the_version_is_the_same_everywhere() -> None:
    """The package, the citation and the newest section of the changes, which has a date, agree."""
    citation = (ROOT / "CITATION.cff").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", changes, re.MULTILINE)
    assert newest is not None
    assert f"\nversion: {newest[1]}\ndate-released: {newest[2]}\n" in citation
    assert newest[1] == longsumbench.__version__


def test_the_image_has_all_files_of_the_package() -> None:
    """The files that pip reads exist and reach the image: also the targets of links, the licence and the README."""
    needed = {
        "pyproject.toml",
        "constraints.txt",
        "longsumbench",
        PROJECT["readme"],
        *PROJECT["license-files"],
    }
    links = [
        path.resolve().relative_to(ROOT)
        for path in (ROOT / "longsumbench").iterdir()
        if path.is_symlink()
    ]
    assert needed | set(map(str, links)) <= IN_IMAGE
    assert all((ROOT / name).exists() for name in IN_IMAGE)

"""Packages that tests install for their own process."""

from collections.abc import Mapping
from pathlib import Path


def install_package(
    site: Path, name: str, files: Mapping[str, str], groups: Mapping[str, Mapping[str, str]]
) -> None:
    """Write a package as pip leaves it in a folder of Python's path.

    Args:
        site: the folder.
        name: the name of the distribution.
        files: path ("mine/last.py") → content.
        groups: group of entry points ("longsumbench.systems") → name → target.
    """
    for path, content in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(content)
    facts = site / f"{name}-1.0.dist-info"
    facts.mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    (facts / "METADATA").write_text(metadata)
    lines = []
    for group, targets in groups.items():
        lines += [f"[{group}]", *(f"{key} = {target}" for key, target in targets.items())]
    (facts / "entry_points.txt").write_text("\n".join(lines))

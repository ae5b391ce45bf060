"""File names of an artifact's pictures."""

import re

from longsumbench.papers.artifacts import Artifact

_NOT_IN_A_FILE_NAME = re.compile(r"[^a-z0-9]+")


def picture_name(artifact: Artifact, shown: str) -> str:
    """Return the file name of a picture: "seal-figure5-seal.png".

    Args:
        artifact: the figure.
        shown: the dataset or the row that the picture shows.
    """
    return f"{artifact.name}-{_NOT_IN_A_FILE_NAME.sub('-', shown.lower()).strip('-')}.png"

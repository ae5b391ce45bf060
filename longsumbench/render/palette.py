"""Colours and markers of all pictures; a system has the same ones in every picture."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

# The hues of Okabe and Ito in their order, without yellow, which is faint on white. They are shaded so that all but
# black have a contrast of 3 or more with white and with dark pages, and differ with any kind of colour blindness.
COLOURS = ("#0069A4", "#EA6700", "#008662", "#C2739F", "#4A9BC8", "#855C00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
GREY = "#767676"
_LINE_STYLES = ("-", "--", "-.", ":")

# A system's place decides its colour and its marker; new systems are added at the end
_SYSTEMS = (
    *("seal", "pagesum", "hierarchical_transformer", "ca", "ea", "tdmca", "trunc"),
    *("etads", "lead", "random", "lexrank", "oracle", "flat_transformer", "ranker", "seq2seq", "prompt"),
)


def system_styles(models: Sequence[str]) -> list[dict[str, Any]]:
    """Return the colour, line and marker of each line of a picture, as keywords of `Axes.plot`.

    A model's first line looks the same in every picture. Its other lines have the same colour. The oracle is grey.

    Args:
        models: the model of each line.
    """
    styles = []
    for number, model in enumerate(models):
        place = _SYSTEMS.index(model) if model in _SYSTEMS else crc32(model.encode())
        same = models[:number].count(model)
        colour = GREY if model == "oracle" else COLOURS[place % len(COLOURS)]
        style = {"color": colour, "marker": MARKERS[(place + same) % len(MARKERS)]}
        edge = {"markersize": 6.5, "markeredgecolor": "white", "markeredgewidth": 0.7}
        styles.append({**style, "linestyle": _LINE_STYLES[same % len(_LINE_STYLES)], **edge})
    return styles

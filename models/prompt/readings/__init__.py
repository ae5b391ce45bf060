"""Ways of reading a long text, `model.reading`: one class each. Start with `reading.py`, which has what is common.

The papers' ways (Trunc, EA, SEAL, PageSum), and those of other tools and papers (docs/how-to/readings.md), for any
language model.
"""

from types import MappingProxyType

from longsumbench.core.registry import Registry

_HERE = "longsumbench.models.prompt.readings"
readings = Registry(
    "reading",
    "longsumbench.readings",
    MappingProxyType(
        {
            "beginning": f"{_HERE}.ends:Ends",
            "ending": f"{_HERE}.ends:Ends",
            "ends": f"{_HERE}.ends:Ends",
            "whole": f"{_HERE}.ends:Whole",
            "select": f"{_HERE}.select:Select",
            "segments": f"{_HERE}.select:Segments",
            "pages": f"{_HERE}.pages:MixedPages",
            "stages": f"{_HERE}.stages:Stages",
            "refine": f"{_HERE}.stages:Refine",
            "gists": f"{_HERE}.gists:Gists",
        }
    ),
)

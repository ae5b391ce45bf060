"""The configuration groups: YAML files that list departures from the dataclasses' defaults."""

from pathlib import Path

CONF = Path(__file__).parent

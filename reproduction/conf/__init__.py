"""YAML files: settings of the systems here, and the tables and figures of the papers."""

from pathlib import Path

PAPERS_CONF = Path(__file__).parent

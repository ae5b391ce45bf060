"""The configuration groups: YAML files that list departures from the dataclasses' defaults."""

import os
from pathlib import Path

CONF = Path(__file__).parent
CONFIG_VARIABLE = "LONGSUMBENCH_CONFIG"


def user_config_folder() -> Path:
    """Return the folder of the user's own YAML files; the environment variable LONGSUMBENCH_CONFIG overrides it."""
    if chosen := os.environ.get(CONFIG_VARIABLE):
        return Path(chosen)
    from platformdirs import user_config_path

    return user_config_path("longsumbench")

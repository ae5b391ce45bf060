"""Names on the Hugging Face hub; and a probe before downloads, which the library would retry for half a minute."""

import http.client
import os
import re
import urllib.request
from pathlib import PurePath

from longsumbench.interrupts import within_seconds

HUB_NAME = re.compile(r"(?!\.\.?/)[\w.-]+/[\w.-]+")  # owner/name; it may also be that of a folder
_PROBE_SECONDS = 2.5


def checkpoint_name(name: str) -> str:
    """Return a hub name as it is, and the last name of a folder."""
    return name if HUB_NAME.fullmatch(name) else PurePath(name).name or name


def unreachable() -> str | None:
    """Return why the hub cannot be reached, or None; takes 2.5 s at most."""
    from huggingface_hub import constants

    datasets_offline = os.environ.get("HF_DATASETS_OFFLINE", "").upper()
    if constants.HF_HUB_OFFLINE or datasets_offline in constants.ENV_VARS_TRUE_VALUES:
        return "offline mode is set"
    try:  # looking up a host name has no time limit
        return within_seconds(_PROBE_SECONDS, lambda: _probe(constants.ENDPOINT))
    except TimeoutError:
        return f"no answer within {_PROBE_SECONDS} s"


def _probe(endpoint: str) -> str | None:
    try:
        request = urllib.request.Request(endpoint, method="HEAD")  # noqa: S310 - the endpoint is the user's own setting
        with urllib.request.urlopen(request, timeout=_PROBE_SECONDS):  # noqa: S310 - the same
            return None
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}" if error.code >= 500 else None
    except urllib.error.URLError as error:
        return str(error.reason)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return type(error).__name__  # its text may have a part of a proxy's password

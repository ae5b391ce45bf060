"""Names on the Hugging Face hub; and a probe before downloads, which the library would retry for half a minute."""

import http.client
import os
import re
import threading
import urllib.request

HUB_NAME = re.compile(r"(?!\.\.?/)[\w.-]+/[\w.-]+")  # owner/name; it may also be that of a folder
_PROBE_SECONDS = 2.5


def unreachable() -> str | None:
    """Return why the hub cannot be reached, or None; takes 2.5 s at most."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or os.environ.get("HF_DATASETS_OFFLINE", "").upper() in (
        "1",
        "ON",
        "YES",
        "TRUE",
    ):
        return "offline mode is set"
    outcome: list[str | None] = []
    prober = threading.Thread(
        target=lambda: outcome.append(_probe(constants.ENDPOINT)), daemon=True
    )
    prober.start()  # in a thread, because looking up a host name has no time limit
    prober.join(_PROBE_SECONDS)
    return outcome[0] if outcome else f"no answer within {_PROBE_SECONDS} s"


def _probe(endpoint: str) -> str | None:
    try:
        request = urllib.request.Request(endpoint, method="HEAD")  # noqa: S310 - the endpoint is the user's own setting
        with urllib.request.urlopen(request, timeout=_PROBE_SECONDS):  # noqa: S310 - the same
            return None
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}" if error.code >= 500 else None
    except (OSError, ValueError, http.client.HTTPException) as error:
        return str(getattr(error, "reason", error)) or type(error).__name__

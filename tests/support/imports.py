"""What a fresh interpreter imports."""

import subprocess
import sys


def modules_after(code: str, *words: str) -> set[str]:
    """Return the modules that Python has loaded after some code, with words on its command line."""
    code = f"{code}\nimport sys\nprint(*sys.modules, sep=chr(10))"
    command = [sys.executable, "-c", code, *words]
    return {*subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()}

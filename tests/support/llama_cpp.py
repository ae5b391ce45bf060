"""llama.cpp's own server, from the package xllamacpp, in another process."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.waiting import wait_until

_CODE = """
import sys, time
import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.port, parameters.n_ctx, parameters.n_parallel = 0, 8_192, 2
# Threads of llama.cpp wait busily for each other, which takes minutes on a machine with other work.
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(parameters)
print("address", server.listening_address, flush=True)
time.sleep(1e6)
"""


@contextmanager
def llama_cpp_server(path: Path, log: Path) -> Iterator[str]:
    """Serve a GGUF file; yield the address, as in `model.base_url`. The log has a line for each request."""
    pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _CODE, str(path)], stdout=output, stderr=output, text=True
        )
    try:
        wait_until(lambda: re.search(r"^address (\S+)$", log.read_text(), re.MULTILINE), process)
        (address,) = re.findall(r"^address (\S+)$", log.read_text(), re.MULTILINE)
        yield f"{address}/v1"
    finally:
        process.kill()
        process.wait()

import subprocess
import sys

CODE = """
import threading
from longsumbench.nn.memory import save_memory
{call}
def work():
    blocks = [bytearray(100_000) for _ in range(1_000)]
for _ in range(4):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
save_memory()
print("done")
"""


def test_it_can_be_called_whenever() -> None:
    """Before or after threads have worked, once or twice, it changes nothing but where memory comes from."""
    for call in ("", "save_memory()"):
        done = subprocess.run(
            [sys.executable, "-c", CODE.format(call=call)], capture_output=True, text=True, check=True
        )
        assert done.stdout == "done\n"

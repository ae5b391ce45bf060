"""A script that gives the suite several commands, one after the other; torchrun starts it in several processes."""

import json
import sys

from longsumbench.cli.main import main

for words in json.loads(sys.argv[1]):
    if code := main(words):
        sys.exit(code)

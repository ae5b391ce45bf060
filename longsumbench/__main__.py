"""`python -m longsumbench`: the command line."""

import sys

from longsumbench.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""Lets `python -m rsi_anything` be the command `rsi`."""

import sys

from rsi_anything.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""The entry point of `rdgraph`, which loads the rest of the program."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the program; Ctrl-C ends it without a traceback, also while it is loaded."""
    try:
        from studies.cli.app import main as command
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    command()

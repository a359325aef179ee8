"""The command line: `app`, its commands, what they print, and the edge where errors become text."""

import sys


def main() -> None:
    """Entry point: Ctrl-C ends the program without a traceback while it is loaded, too."""
    try:
        from studies.cli.app import main as command
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    command()

"""The command line. One module a command; each imports what it needs when it runs."""

import sys


def run() -> None:
    """Run the command of this process's arguments, and end with its exit code."""
    from polyplex.cli.main import main

    sys.exit(main(sys.argv[1:]))

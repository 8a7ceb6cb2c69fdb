#!/usr/bin/env python3
"""Install the development group and run the tests: python3 scripts/run_tests.py [pytest arguments]

Needs git and Python 3.11 or newer. What needs Node.js skips with its reason unless `scripts/peers.py node` has run.
"""

import os
import sys

from bootstrap import ENVIRONMENT, ROOT, make_environment, say
from peers import PeersError, python_peers


def main() -> None:
    commands = make_environment(development=True)
    try:
        python_peers()
    except PeersError as error:
        say(f"the tests against real servers will skip: {error}")
    environment = {**os.environ, "VIRTUAL_ENV": str(ENVIRONMENT)}
    environment["PATH"] = f"{commands}{os.pathsep}{environment.get('PATH', os.defpath)}"
    arguments = sys.argv[1:] or ["-n", "2"]
    os.chdir(ROOT)
    os.execve(commands / "python", ["python", "-m", "pytest", *arguments], environment)


if __name__ == "__main__":
    main()

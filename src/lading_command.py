"""The installed command ``lading``: outside the package, so that Ctrl-C while that is imported ends in one line."""

import importlib
import sys


def main() -> None:
    """Run the command line."""
    try:
        importlib.import_module("lading.cli").main(prog_name="lading")
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
